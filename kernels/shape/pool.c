#include "rules.h"
#include "window.h"

#include <inttypes.h>

/* A window that lies in the padding alone would have nothing to look at. */
static int check_pads(const struct sl_window *window, struct sl_error *error)
{
        for (uint32_t i = 0; i < window->rank; i++) {
                int64_t reach = (window->kernel[i] - 1) * window->dilation[i] + 1;
                int64_t pad = window->pad_begin[i] > window->pad_end[i] ? window->pad_begin[i] : window->pad_end[i];

                if (pad >= reach)
                        return sl_error_set(error, EINVAL,
                                "padding %" PRId64 " of spatial dimension %u is not below the window's %" PRId64, pad, i, reach);
        }
        return 0;
}

int sl_shape_pool(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_tensor *in = &node->inputs[0];
        struct sl_tensor *out = &node->outputs[0];
        struct sl_window window;
        int r = sl_window_read(node, &window, error);

        r = r ? r : check_pads(&window, error);
        if (r)
                return r;
        out->dtype = in->dtype;
        out->shape = (struct sl_shape){.rank = in->shape.rank, .dims = {in->shape.dims[0], in->shape.dims[1]}};
        for (uint32_t i = 0; i < window.rank && !r; i++)
                r = sl_window_positions(&window, i, in->shape.dims[i + 2], &out->shape.dims[i + 2], error);
        return r;
}

int sl_shape_global_pool(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *in = &node->inputs[0].shape;

        if (in->rank < 3)
                return sl_error_set(error, EINVAL, "input 0 has rank %u, wants 3 at least", in->rank);
        for (uint32_t i = 2; i < in->rank; i++)
                if (!in->dims[i])
                        return sl_error_set(error, EINVAL, "input 0 has no elements along dimension %u", i);
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape = (struct sl_shape){.rank = in->rank, .dims = {in->dims[0], in->dims[1], 1, 1, 1, 1, 1, 1}};
        return 0;
}
