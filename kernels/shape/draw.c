/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of the operators that draw random numbers. The keys of the samples are their last input.
 */
#include "draw.h"

#include "rules.h"

#include <inttypes.h>

int sl_shape_sample_keys(struct sl_node_desc *node, struct sl_error *error)
{
        int64_t samples = 1;

        if (sl_input_present(node, 0)) {
                if (!node->inputs[0].shape.rank)
                        return sl_error_set(error, EINVAL, "input 0 is a scalar, wants samples");
                samples = node->inputs[0].shape.dims[0];
        }
        if (!samples)
                return sl_error_set(error, EINVAL, "input 0 has no samples");
        node->outputs[0].dtype = SL_DTYPE_U64;
        node->outputs[0].shape = (struct sl_shape){.rank = 2, .dims = {samples, SL_DRAW_KEY_WORDS}};
        return 0;
}

static int check_keys(const struct sl_node_desc *node, struct sl_error *error)
{
        const struct sl_tensor *keys = &node->inputs[node->n_inputs - 1];
        char text[SL_SHAPE_TEXT_BYTES];

        if (keys->dtype == SL_DTYPE_U64 && keys->shape.rank == 2 && keys->shape.dims[0] != 0 &&
                (keys->shape.dims[1] == SL_DRAW_KEY_WORDS || !sl_dim_known(keys->shape.dims[1])))
                return 0;
        return sl_error_set(error, EINVAL, "input %u, the keys, is %s %s, wants uint64 [samples,%d]", node->n_inputs - 1,
                sl_dtype_name(keys->dtype), sl_shape_print(&keys->shape, text), SL_DRAW_KEY_WORDS);
}

/* @fallback: where the node names no type. */
static int type_of(const struct sl_node_desc *node, uint32_t fallback, bool floats, uint32_t *ret_dtype, struct sl_error *error)
{
        int64_t to = sl_attrs_int(&node->attrs, SL_ATTR_TO, fallback);

        if (to <= 0 || to >= SL_DTYPE_LIMIT || !sl_dtype_bytes((uint32_t)to))
                return sl_error_set(error, EINVAL, "attribute dtype is %" PRId64 ", which is no element type", to);
        if (floats && !sl_dtype_is_float((uint32_t)to))
                return sl_error_set(error, EINVAL, "attribute dtype is %s, wants floats", sl_dtype_name((uint32_t)to));
        *ret_dtype = (uint32_t)to;
        return 0;
}

static int read_shape(const struct sl_node_desc *node, struct sl_shape *ret_shape, struct sl_error *error)
{
        const struct sl_attr *list = sl_attrs_find(&node->attrs, SL_ATTR_SHAPE);

        if (!list || list->type != SL_ATTR_TYPE_INTS)
                return sl_error_set(error, EINVAL, "attribute shape is missing");
        if (list->count > SL_RANK_MAX)
                return sl_error_set(
                        error, EINVAL, "attribute shape has %u elements, the highest rank is %d", list->count, SL_RANK_MAX);
        *ret_shape = (struct sl_shape){.rank = list->count};
        for (uint32_t i = 0; i < list->count; i++) {
                if (list->ints[i] < 0)
                        return sl_error_set(error, EINVAL, "attribute shape has the element %" PRId64, list->ints[i]);
                ret_shape->dims[i] = list->ints[i];
        }
        return 0;
}

int sl_shape_random(struct sl_node_desc *node, struct sl_error *error)
{
        int r = check_keys(node, error);

        if (r == 0)
                r = type_of(node, SL_DTYPE_F32, true, &node->outputs[0].dtype, error);
        return r == 0 ? read_shape(node, &node->outputs[0].shape, error) : r;
}

static int like(struct sl_node_desc *node, bool floats, struct sl_error *error)
{
        int r = check_keys(node, error);

        if (r == 0)
                r = type_of(node, node->inputs[0].dtype, floats, &node->outputs[0].dtype, error);
        node->outputs[0].shape = node->inputs[0].shape;
        return r;
}

int sl_shape_random_like(struct sl_node_desc *node, struct sl_error *error)
{
        return like(node, true, error);
}

int sl_shape_bernoulli(struct sl_node_desc *node, struct sl_error *error)
{
        if (!sl_dtype_is_float(node->inputs[0].dtype))
                return sl_error_set(error, EINVAL, "input 0 is %s, wants probabilities", sl_dtype_name(node->inputs[0].dtype));
        return like(node, false, error);
}

int sl_shape_multinomial(struct sl_node_desc *node, struct sl_error *error)
{
        int64_t n = sl_attrs_int(&node->attrs, SL_ATTR_SAMPLE_SIZE, 1), to = sl_attrs_int(&node->attrs, SL_ATTR_TO, SL_DTYPE_I32);
        const struct sl_tensor *in = &node->inputs[0];
        int r = check_keys(node, error);

        if (r < 0)
                return r;
        if (!sl_dtype_is_float(in->dtype) || in->shape.rank != 2)
                return sl_error_set(error, EINVAL, "input 0 is %s of rank %u, wants floats of rank 2", sl_dtype_name(in->dtype),
                        in->shape.rank);
        if (!in->shape.dims[1])
                return sl_error_set(error, EINVAL, "input 0 has no classes");
        if (in->shape.dims[1] > INT32_MAX)
                return sl_error_set(error, EINVAL, "input 0 has %" PRId64 " classes, at most %d", in->shape.dims[1], INT32_MAX);
        if (n < 0)
                return sl_error_set(error, EINVAL, "attribute sample_size is %" PRId64, n);
        if (to != SL_DTYPE_I32 && to != SL_DTYPE_I64)
                return sl_error_set(error, EINVAL, "attribute dtype is %" PRId64 ", wants int32 or int64", to);
        node->outputs[0].dtype = (uint32_t)to;
        node->outputs[0].shape = (struct sl_shape){.rank = 2, .dims = {in->shape.dims[0], n}};
        return 0;
}
