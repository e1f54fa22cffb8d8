#include "rules.h"
#include "window.h"

#include <inttypes.h>

static int check_channels(const struct sl_node_desc *node, struct sl_error *error)
{
        const int64_t *x = node->inputs[0].shape.dims, *w = node->inputs[1].shape.dims;
        int64_t group = sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1);

        if (group < 1 || group > INT32_MAX)
                return sl_error_set(error, EINVAL, "attribute group is %" PRId64 ", outside [1,%d]", group, INT32_MAX);
        if (sl_dim_known(w[0]) && w[0] % group)
                return sl_error_set(
                        error, EINVAL, "input 1 has %" PRId64 " output channels, not a multiple of group %" PRId64, w[0], group);
        if (!sl_dim_known(w[1]) || !sl_dim_known(x[1]))
                return 0;
        if (x[1] % group || x[1] / group != w[1])
                return sl_error_set(error, EINVAL,
                        "input 0 has %" PRId64 " channels, input 1 wants %" PRId64 " in each of %" PRId64 " groups", x[1], w[1],
                        group);
        return 0;
}

int sl_shape_conv(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *x = &node->inputs[0].shape, *w = &node->inputs[1].shape;
        struct sl_tensor *out = &node->outputs[0];
        struct sl_window window;
        int r = sl_same_dtype(node, 1, error);

        if (r)
                return r;
        if (x->rank != w->rank)
                return sl_error_set(error, EINVAL, "input 1 has rank %u, input 0 has rank %u", w->rank, x->rank);
        r = sl_window_read(node, &window, error);
        r = r ? r : check_channels(node, error);
        if (!r && sl_input_present(node, 2))
                r = (r = sl_same_dtype(node, 2, error)) ? r : sl_vector_of(node, 2, w->dims[0], error);
        if (r)
                return r;
        out->dtype = node->inputs[0].dtype;
        out->shape = (struct sl_shape){.rank = x->rank, .dims = {x->dims[0], w->dims[0]}};
        for (uint32_t i = 0; i < window.rank && !r; i++)
                r = sl_window_positions(&window, i, x->dims[i + 2], &out->shape.dims[i + 2], error);
        return r;
}
