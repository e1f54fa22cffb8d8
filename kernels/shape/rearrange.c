/* SPDX-License-Identifier: Apache-2.0 */
#include "rearrange.h"

#include "rules.h"
#include "window.h"

#include <inttypes.h>

void sl_block_walk_read(const struct sl_node_desc *node, struct sl_block_walk *ret_walk)
{
        bool to_space = node->op == SL_OP_DEPTH_TO_SPACE, by_columns = sl_attrs_int(&node->attrs, SL_ATTR_MODE, 0) == 1;
        const struct sl_tensor *depth = &node->inputs[0], *space = &node->outputs[0];
        int64_t b = sl_attrs_int(&node->attrs, SL_ATTR_BLOCK_SIZE, 1), d[SL_RANK_MAX], s[SL_RANK_MAX], channels;

        if (!to_space) {
                depth = &node->outputs[0];
                space = &node->inputs[0];
        }
        channels = space->shape.dims[1];
        sl_tensor_strides(depth, d);
        sl_tensor_strides(space, s);
        const int64_t sizes[] = {depth->shape.dims[0], channels, depth->shape.dims[2], b, depth->shape.dims[3], b};
        const int64_t in_space[] = {s[0], s[1], b * s[2], s[2], b * s[3], s[3]};
        const int64_t in_depth[] = {d[0], by_columns ? b * b * d[1] : d[1], d[2], by_columns ? b * d[1] : b * channels * d[1], d[3],
                by_columns ? d[1] : channels * d[1]};

        for (uint32_t i = 0; i < SL_BLOCK_WALK_RANK; i++) {
                ret_walk->sizes[i] = sizes[i];
                ret_walk->out_strides[i] = to_space ? in_space[i] : in_depth[i];
                ret_walk->in_strides[i] = to_space ? in_depth[i] : in_space[i];
        }
}

static int grow(int64_t dim, int64_t factor, int64_t *ret_dim, struct sl_error *error)
{
        *ret_dim = SL_DIM_UNKNOWN;
        if (sl_dim_known(dim) && __builtin_mul_overflow(dim, factor, ret_dim))
                return sl_error_set(error, EOVERFLOW, "a dimension of the output exceeds 64 bits");
        return 0;
}

static int shrink(int64_t dim, int64_t factor, uint32_t axis, int64_t *ret_dim, struct sl_error *error)
{
        *ret_dim = sl_dim_known(dim) ? dim / factor : SL_DIM_UNKNOWN;
        if (sl_dim_known(dim) && dim % factor)
                return sl_error_set(error, EINVAL, "dimension %u is %" PRId64 ", no multiple of %" PRId64, axis, dim, factor);
        return 0;
}

int sl_shape_blocks(struct sl_node_desc *node, struct sl_error *error)
{
        int64_t b = sl_attrs_int(&node->attrs, SL_ATTR_BLOCK_SIZE, 0);
        const struct sl_shape *in = &node->inputs[0].shape;
        struct sl_shape out = *in;
        int r;

        if (in->rank != 4)
                return sl_error_set(error, EINVAL, "input 0 has rank %u, wants 4", in->rank);
        if (b < 1 || b > 32767)
                return sl_error_set(error, EINVAL, "attribute blocksize is %" PRId64 ", outside [1,32767]", b);
        if (node->op == SL_OP_DEPTH_TO_SPACE) {
                r = shrink(in->dims[1], b * b, 1, &out.dims[1], error);
                r = r ? r : grow(in->dims[2], b, &out.dims[2], error);
                r = r ? r : grow(in->dims[3], b, &out.dims[3], error);
        } else {
                r = grow(in->dims[1], b * b, &out.dims[1], error);
                r = r ? r : shrink(in->dims[2], b, 2, &out.dims[2], error);
                r = r ? r : shrink(in->dims[3], b, 3, &out.dims[3], error);
        }
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape = out;
        return r;
}

static int same_as_input(struct sl_node_desc *node)
{
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape = node->inputs[0].shape;
        return 0;
}

int sl_shape_reverse_sequence(struct sl_node_desc *node, struct sl_error *error)
{
        int64_t batch = sl_attrs_int(&node->attrs, SL_ATTR_BATCH_AXIS, 1), time = sl_attrs_int(&node->attrs, SL_ATTR_TIME_AXIS, 0);
        const struct sl_shape *in = &node->inputs[0].shape;

        if (in->rank < 2 || batch < 0 || batch > 1 || time < 0 || time > 1 || batch == time)
                return sl_error_set(error, EINVAL,
                        "rank %u, batch_axis %" PRId64 ", time_axis %" PRId64 ": wants 2 axes at least, one 0 and the other 1",
                        in->rank, batch, time);
        if (node->inputs[1].dtype != SL_DTYPE_I64)
                return sl_error_set(error, EINVAL, "input 1 is %s, wants int64", sl_dtype_name(node->inputs[1].dtype));
        int r = sl_vector_of(node, 1, in->dims[batch], error);

        return r ? r : same_as_input(node);
}

int sl_shape_trilu(struct sl_node_desc *node, struct sl_error *error)
{
        if (node->inputs[0].shape.rank < 2)
                return sl_error_set(error, EINVAL, "input 0 has rank %u, wants 2 at least", node->inputs[0].shape.rank);
        return same_as_input(node);
}

int sl_shape_eye_like(struct sl_node_desc *node, struct sl_error *error)
{
        int64_t type = sl_attrs_int(&node->attrs, SL_ATTR_TO, node->inputs[0].dtype);

        if (node->inputs[0].shape.rank != 2)
                return sl_error_set(error, EINVAL, "input 0 has rank %u, wants 2", node->inputs[0].shape.rank);
        if (type < 0 || type > UINT16_MAX || !sl_dtype_bytes((uint32_t)type))
                return sl_error_set(error, EINVAL, "attribute dtype is %" PRId64 ", which is no type", type);
        same_as_input(node);
        node->outputs[0].dtype = (uint32_t)type;
        return 0;
}

int sl_shape_one_hot(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *in = &node->inputs[0].shape, *values = &node->inputs[1].shape;
        double depth = sl_attrs_float(&node->attrs, SL_ATTR_DEPTH, -1);
        struct sl_shape out = {.rank = in->rank + 1};
        uint32_t axis;
        int64_t merged;
        int r;

        if (!sl_attrs_find(&node->attrs, SL_ATTR_DEPTH) && !sl_input_present(node, 2))
                return sl_error_set(error, EINVAL, "the depth is missing");
        if (in->rank >= SL_RANK_MAX)
                return sl_error_set(error, EINVAL, "the rank of the output exceeds %d", SL_RANK_MAX);
        if (values->rank != 1 || sl_dim_merge(values->dims[0], 2, &merged))
                return sl_error_set(error, EINVAL, "the values want two elements, off and on");
        if (sl_attrs_find(&node->attrs, SL_ATTR_DEPTH) && !(depth >= 0 && depth < 0x1p31))
                return sl_error_set(error, EINVAL, "the depth is %g, outside [0,2^31)", depth);
        r = sl_axis_resolve(sl_attrs_int(&node->attrs, SL_ATTR_AXIS, -1), out.rank, &axis, error);
        if (r)
                return r;
        for (uint32_t i = 0; i < out.rank; i++)
                out.dims[i] = i == axis ? (depth < 0 ? SL_DIM_UNKNOWN : (int64_t)depth) : in->dims[i - (i > axis)];
        node->outputs[0].dtype = node->inputs[1].dtype;
        node->outputs[0].shape = out;
        return 0;
}

int sl_shape_along_axis(struct sl_node_desc *node, struct sl_error *error)
{
        uint32_t axis;
        bool running = node->op == SL_OP_CUM_SUM || node->op == SL_OP_CUM_PROD;
        int r = sl_axis_resolve(
                sl_attrs_int(&node->attrs, SL_ATTR_AXIS, running ? 0 : -1), node->inputs[0].shape.rank, &axis, error);

        return r ? r : same_as_input(node);
}

int sl_shape_det(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        int64_t merged;

        if (in->rank < 2 || sl_dim_merge(in->dims[in->rank - 1], in->dims[in->rank - 2], &merged))
                return sl_error_set(error, EINVAL, "input 0 is no square matrix, or several");
        same_as_input(node);
        node->outputs[0].shape.rank -= 2;
        return 0;
}

/* The image that is put together, seen by the window that took it apart. */
void sl_col2im_image(const struct sl_node_desc *node, struct sl_node_desc *ret_image)
{
        const struct sl_attr *sizes = sl_attrs_find(&node->attrs, SL_ATTR_SIZES);

        *ret_image = (struct sl_node_desc){.op = SL_OP_MAX_POOL, .n_inputs = 1, .n_outputs = 1, .attrs = node->attrs};
        ret_image->inputs[0] = (struct sl_tensor){.dtype = node->inputs[0].dtype, .shape = {.rank = 2, .dims = {1, 1}}};
        for (uint32_t i = 0; sizes && i < sizes->count && i + 2 < SL_RANK_MAX; i++)
                ret_image->inputs[0].shape.dims[ret_image->inputs[0].shape.rank++] = sizes->ints[i];
        sl_attrs_remove(&ret_image->attrs, SL_ATTR_CEIL_MODE);
}

/* Sizes of the image or of the block that only data tell; how many they are says the rank. */
static int col2im_of_data(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_attr *sizes = sl_attrs_find(&node->attrs, SL_ATTR_SIZES);
        const struct sl_attr *block = sl_attrs_find(&node->attrs, SL_ATTR_KERNEL_SHAPE);
        struct sl_shape *out = &node->outputs[0].shape;
        uint32_t rank = sizes ? sizes->count : block ? block->count : 0;
        int r = 0;

        if ((!sizes && !sl_input_present(node, 1)) || (!block && !sl_input_present(node, 2)))
                return sl_error_set(error, EINVAL, "the sizes of image or block are missing");
        if (sizes && sizes->type != SL_ATTR_TYPE_INTS)
                return sl_error_set(error, EINVAL, "attribute sizes is no list of integers");
        if (!sizes && !block)
                r = sl_parameter_length(node, 1, &rank, error);
        if (r == 0 && (rank < 1 || rank > SL_RANK_MAX - 2))
                r = sl_error_set(error, EINVAL, "an image of %u dimensions", rank);
        if (r < 0)
                return r;
        node->outputs[0].dtype = node->inputs[0].dtype;
        *out = (struct sl_shape){.rank = rank + 2, .dims = {node->inputs[0].shape.dims[0], SL_DIM_UNKNOWN}};
        for (uint32_t i = 0; i < rank; i++)
                out->dims[i + 2] = sizes ? sizes->ints[i] : SL_DIM_UNKNOWN;
        return 0;
}

int sl_shape_col2im(struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_attr *sizes = sl_attrs_find(&node->attrs, SL_ATTR_SIZES);
        const struct sl_shape *in = &node->inputs[0].shape;
        struct sl_node_desc *image = &(struct sl_node_desc){.op = SL_OP_MAX_POOL};
        int64_t taps = 1, positions = 1, merged;
        struct sl_window window;
        int r;

        if (in->rank != 3)
                return sl_error_set(error, EINVAL, "input 0 has rank %u, wants 3", in->rank);
        for (uint32_t i = 0; sizes && sizes->type == SL_ATTR_TYPE_INTS && i < sizes->count; i++)
                if (sizes->ints[i] < 0 || sizes->ints[i] > INT32_MAX)
                        return sl_error_set(error, EINVAL, "the image has the size %" PRId64, sizes->ints[i]);
        if (!sizes || !sl_attrs_find(&node->attrs, SL_ATTR_KERNEL_SHAPE))
                return col2im_of_data(node, error);
        sl_col2im_image(node, image);
        r = sl_window_read(image, &window, error);
        node->outputs[0].shape = (struct sl_shape){.rank = 2, .dims = {in->dims[0]}};
        for (uint32_t i = 0; i < window.rank && !r; i++) {
                int64_t at;

                r = sl_window_positions(&window, i, image->inputs[0].shape.dims[i + 2], &at, error);
                if (!r && (__builtin_mul_overflow(taps, window.kernel[i], &taps) ||
                                  __builtin_mul_overflow(positions, at, &positions)))
                        r = sl_error_set(error, EOVERFLOW, "the columns exceed 64 bits");
                node->outputs[0].shape.dims[node->outputs[0].shape.rank++] = image->inputs[0].shape.dims[i + 2];
        }
        r = r ? r : shrink(in->dims[1], taps, 1, &node->outputs[0].shape.dims[1], error);
        if (!r && sl_dim_merge(in->dims[2], positions, &merged))
                return sl_error_set(error, EINVAL, "input 0 has %" PRId64 " columns, the window has %" PRId64 " positions",
                        in->dims[2], positions);
        node->outputs[0].dtype = node->inputs[0].dtype;
        return r;
}
