/* SPDX-License-Identifier: Apache-2.0 */
#include "nibbles.h"

#include "rules.h"

#include <inttypes.h>

static bool may_be(int64_t a, int64_t b)
{
        int64_t merged;

        return !sl_dim_merge(a, b, &merged);
}

/* Input @index of one number for each block. */
static int check_blocks(const struct sl_node_desc *node, uint32_t index, const struct sl_nibbles *n, struct sl_error *error)
{
        const struct sl_shape *shape = &node->inputs[index].shape;
        char text[SL_SHAPE_TEXT_BYTES];

        if (shape->rank == 2 && may_be(shape->dims[0], n->columns) && may_be(shape->dims[1], n->blocks))
                return 0;
        return sl_error_set(error, EINVAL,
                "input %u is %s, wants one number for each of %" PRId64 " columns and %" PRId64 " blocks", index,
                sl_shape_print(shape, text), n->columns, n->blocks);
}

static int check_matrix(const struct sl_node_desc *node, const struct sl_nibbles *n, struct sl_error *error)
{
        const struct sl_tensor *b = &node->inputs[1];
        char text[SL_SHAPE_TEXT_BYTES];

        if (b->dtype == SL_DTYPE_U8 && b->shape.rank == 3 && may_be(b->shape.dims[1], n->blocks) &&
                may_be(b->shape.dims[2], n->block / 2))
                return 0;
        return sl_error_set(error, EINVAL, "input 1 is %s %s, wants uint8 [columns,%" PRId64 ",%" PRId64 "]",
                sl_dtype_name(b->dtype), sl_shape_print(&b->shape, text), n->blocks, n->block / 2);
}

static int check(const struct sl_node_desc *node, struct sl_nibbles *n, struct sl_error *error)
{
        const struct sl_shape *a = &node->inputs[0].shape;
        int r;

        if (!a->rank || !a->dims[a->rank - 1])
                return sl_error_set(error, EINVAL, "input 0 has no columns");
        n->depth = a->dims[a->rank - 1];
        if (n->mode > SL_NIBBLE_BYTES || n->block < SL_NIBBLE_GROUP || n->block % SL_NIBBLE_GROUP || n->block > INT32_MAX ||
                (n->mode == SL_NIBBLE_BYTES && n->block > SL_NIBBLE_BLOCK_MAX))
                return sl_error_set(error, EINVAL,
                        "block_size %" PRId64 " or mode %u is outside: a multiple of %d, at most %d with mode 1", n->block, n->mode,
                        SL_NIBBLE_GROUP, SL_NIBBLE_BLOCK_MAX);
        n->blocks = n->depth < 0 ? SL_DIM_UNKNOWN : (n->depth - 1) / n->block + 1;
        r = check_matrix(node, n, error);
        n->columns = node->inputs[1].shape.dims[0];
        r = r ? r : sl_same_dtype(node, 2, error);
        r = r ? r : check_blocks(node, 2, n, error);
        if (!r && n->has_zeros && node->inputs[3].dtype != SL_DTYPE_U8)
                return sl_error_set(error, EINVAL, "input 3 is %s, wants uint8", sl_dtype_name(node->inputs[3].dtype));
        return r || !n->has_zeros ? r : check_blocks(node, 3, n, error);
}

int sl_nibbles_read(const struct sl_node_desc *node, struct sl_nibbles *ret_nibbles, struct sl_error *error)
{
        struct sl_nibbles n = {.block = sl_attrs_int(&node->attrs, SL_ATTR_BLOCK_SIZE, 0),
                .mode = (uint32_t)sl_attrs_int(&node->attrs, SL_ATTR_MODE, 0),
                .has_zeros = sl_input_present(node, 3)};
        int r = check(node, &n, error);

        if (!r)
                *ret_nibbles = n;
        return r;
}

int sl_shape_nibble_matmul(struct sl_node_desc *node, struct sl_error *error)
{
        struct sl_nibbles n = {0};
        int r = sl_nibbles_read(node, &n, error);

        if (r)
                return r;
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape = node->inputs[0].shape;
        node->outputs[0].shape.dims[node->outputs[0].shape.rank - 1] = n.columns;
        return 0;
}
