/* SPDX-License-Identifier: Apache-2.0 */
#include "einsum.h"

#include "rules.h"

#include <inttypes.h>

uint8_t sl_einsum_label(const struct sl_node_desc *node, uint32_t k, uint32_t i)
{
        return (uint8_t)(i < 8 ? (uint64_t)sl_attrs_ints(&node->attrs, SL_ATTR_EQUATION, k, 0) >> (8 * i) : 0);
}

static bool is_of_ellipsis(uint8_t label)
{
        return label <= SL_RANK_MAX;
}

/* The place of the label among those known; a new one at the end. -1: no room. */
static int place_of(struct sl_einsum *e, uint8_t label)
{
        uint32_t i = 0;

        while (i < e->n_labels && e->labels[i] != label)
                i++;
        if (i == SL_EINSUM_LABELS_MAX)
                return -1;
        if (i == e->n_labels) {
                e->labels[i] = label;
                e->sizes[i] = 1;
                e->n_labels++;
        }
        return (int)i;
}

/* A dimension of 1 leaves the label's size to others where it broadcasts; known sizes must agree. */
static int meet_size(struct sl_einsum *e, int place, int64_t dim, bool first, uint32_t k, struct sl_error *error)
{
        int64_t *size = &e->sizes[place];

        if (first || *size == 1) {
                *size = dim;
                return 0;
        }
        if (dim == 1)
                return 0;
        if (!sl_dim_merge(*size, dim, size))
                return 0;
        return sl_error_set(error, EINVAL, "input %u has %" PRId64 " elements where another has %" PRId64, k, dim, *size);
}

static int read_operand(const struct sl_node_desc *node, struct sl_einsum *e, uint32_t k, struct sl_error *error)
{
        const struct sl_shape *shape = &node->inputs[k].shape;

        for (uint32_t i = 0; i < shape->rank; i++) {
                uint8_t label = sl_einsum_label(node, k, i);
                uint32_t n_before = e->n_labels;
                int place = label ? place_of(e, label) : -1, r;

                if (place < 0)
                        return sl_error_set(error, EINVAL,
                                "input %u has rank %u, its part of the equation less, or too many labels", k, shape->rank);
                /* A letter alone may be as short as 1 in one operand only if it is so in all. */
                r = meet_size(e, place, shape->dims[i], e->n_labels > n_before, k, error);
                if (r)
                        return r;
        }
        if (sl_einsum_label(node, k, shape->rank))
                return sl_error_set(error, EINVAL, "input %u has rank %u, its part of the equation more", k, shape->rank);
        return 0;
}

int sl_einsum_read(const struct sl_node_desc *node, struct sl_einsum *ret_einsum, struct sl_error *error)
{
        const struct sl_attr *equation = sl_attrs_find(&node->attrs, SL_ATTR_EQUATION);
        struct sl_einsum e = {.n_labels = 0};
        uint8_t label;

        if (!equation || equation->type != SL_ATTR_TYPE_INTS || equation->count != node->n_inputs + 1)
                return sl_error_set(
                        error, EINVAL, "the equation has %u parts, wants %u", equation ? equation->count : 0, node->n_inputs + 1);
        for (; e.n_out < SL_RANK_MAX && (label = sl_einsum_label(node, node->n_inputs, e.n_out)); e.n_out++) {
                if (place_of(&e, label) != (int)e.n_out)
                        return sl_error_set(error, EINVAL, "the output has a label twice");
                e.sizes[e.n_out] = SL_DIM_UNKNOWN - 1;
        }
        for (uint32_t k = 0; k < node->n_inputs; k++) {
                int r;

                if (!sl_input_present(node, k))
                        return sl_error_set(error, EINVAL, "input %u is missing", k);
                for (uint32_t i = 0; i < e.n_out; i++)
                        if (e.sizes[i] < SL_DIM_UNKNOWN)
                                for (uint32_t d = 0; d < node->inputs[k].shape.rank; d++)
                                        if (sl_einsum_label(node, k, d) == e.labels[i])
                                                e.sizes[i] = 1;
                r = read_operand(node, &e, k, error);
                r = r ? r : sl_same_dtype(node, k, error);
                if (r)
                        return r;
        }
        for (uint32_t i = 0; i < e.n_out; i++)
                if (e.sizes[i] < SL_DIM_UNKNOWN && !is_of_ellipsis(e.labels[i]))
                        return sl_error_set(error, EINVAL, "the output has a label that no input has");
                else if (e.sizes[i] < SL_DIM_UNKNOWN)
                        e.sizes[i] = 1;
        *ret_einsum = e;
        return 0;
}

int sl_shape_einsum(struct sl_node_desc *node, struct sl_error *error)
{
        struct sl_einsum e;
        int r = sl_einsum_read(node, &e, error);

        if (r)
                return r;
        node->outputs[0].dtype = node->inputs[0].dtype;
        node->outputs[0].shape.rank = e.n_out;
        for (uint32_t i = 0; i < e.n_out; i++)
                node->outputs[0].shape.dims[i] = e.sizes[i];
        return 0;
}
