/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention projects its input itself, by one matrix for queries, keys and values; MultiHeadAttention gets them projected, in one
 * of several layouts. Caches whose memory inputs and outputs share are refused: here they are different tensors.
 */
#include "import/attend.h"
#include "import/contrib.h"

/* One of the tensors that lie side by side along @axis. */
static uint32_t part_of(struct sl_expansion *x, uint32_t value, int64_t index, int64_t axis)
{
        struct sl_draft gather = {.op = SL_OP_GATHER, .n_inputs = 2, .inputs = {value}};

        if (value == SL_VALUE_NONE)
                return SL_VALUE_NONE;
        if (x->result == 0)
                x->result = sl_import_ints(x->im, x->node->name, &index, 1, true, &gather.inputs[1]);
        if (x->result == 0)
                x->result = sl_attrs_set_int(&gather.attrs, SL_ATTR_AXIS, axis);
        return sl_expand(x, &gather);
}

static void refuse_if_set(struct sl_expansion *x, const char *attribute, const char *what)
{
        if (sl_expand_int(x, attribute, 0))
                sl_expand_refuse(x, what);
}

/* The widths of queries, keys and values that lie side by side in @width columns. */
static void read_widths(struct sl_expansion *x, int64_t width, int64_t widths[3])
{
        const Onnx__AttributeProto *attr = sl_onnx_attr(x->node, "qkv_hidden_sizes");
        bool fits = true;
        int64_t left = width;

        for (int i = 0; i < 3; i++) {
                widths[i] = attr && attr->n_ints == 3 ? attr->ints[i] : width / 3;
                fits = fits && widths[i] > 0 && widths[i] <= left;
                left -= fits ? widths[i] : 0;
        }
        if (width < 0)
                sl_expand_unsettled(x, "how many columns its weights have is not known");
        else if (!fits || left || (attr && attr->n_ints && attr->n_ints != 3))
                sl_expand_misfit(x, "the columns of its weights are not those of queries, keys and values");
}

void sl_contrib_attend_to_product(struct sl_expansion *x, struct sl_attend *a, uint32_t product)
{
        uint32_t *parts[] = {&a->queries, &a->keys, &a->values};
        int64_t widths[3], first = 0;
        bool equal;

        if (sl_expand_shape(x, product)->rank != 3)
                sl_expand_wrong(x, "its input has another rank than 3");
        read_widths(x, sl_expand_shape(x, product)->dims[2], widths);
        equal = widths[0] == widths[1] && widths[0] == widths[2];
        if (a->heads < 1 || widths[0] % a->heads)
                sl_expand_misfit(x, "num_heads does not divide the width of a query");
        if (x->result < 0)
                return;
        if (equal)
                product = sl_expand_reshape(x, product, (int64_t[]){0, 0, 3, a->heads, widths[0] / a->heads}, 5);
        for (int i = 0; i < 3; first += widths[i++]) {
                if (equal)
                        *parts[i] = sl_expand_transpose(x, part_of(x, product, i, 2), (int64_t[]){0, 2, 1, 3}, 4);
                else
                        *parts[i] = sl_attend_split(x, a, sl_expand_slice(x, product, 2, first, first + widths[i]));
        }
}

/* Both caches as one tensor, [2, batch, heads, rows, length]. */
static uint32_t present_of(struct sl_expansion *x, const struct sl_attend *a)
{
        uint32_t keys = sl_expand_unsqueeze(x, a->keys, (int64_t[]){0}, 1);

        return sl_expand_concat(x, keys, sl_expand_unsqueeze(x, a->values, (int64_t[]){0}, 1), 0);
}

void sl_contrib_attend_with_past(struct sl_expansion *x, struct sl_attend *a, uint32_t past, uint32_t mask, uint32_t bias)
{
        refuse_if_set(x, "do_rotary", "its attribute do_rotary is not supported");
        refuse_if_set(x, "past_present_share_buffer", "its attribute past_present_share_buffer is not supported");
        a->keys = sl_attend_append(x, part_of(x, past, 0, 0), a->keys);
        a->values = sl_attend_append(x, part_of(x, past, 1, 0), a->values);
        sl_attend_mask(x, a, mask);
        sl_attend_bias(x, a, bias);
        sl_expand_output(x, 0, sl_attend(x, a));
        if (sl_expand_has_output(x, 1))
                sl_expand_output(x, 1, present_of(x, a));
}

SL_CONTRIB(attention)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        uint32_t product = sl_expand_binary(&x, SL_OP_MATMUL, sl_expand_input(&x, 0), sl_expand_input(&x, 1));
        struct sl_attend a = {0};

        (void)draft;
        if (sl_expand_input(&x, 6) != SL_VALUE_NONE)
                sl_expand_refuse(&x, "its input past_sequence_length is not supported");
        sl_attend_read(&x, &a);
        sl_contrib_attend_to_product(&x, &a, sl_expand_plus(&x, product, sl_expand_input(&x, 2)));
        sl_contrib_attend_with_past(&x, &a, sl_expand_input(&x, 4), sl_expand_input(&x, 3), sl_expand_input(&x, 5));
        return sl_expansion_end(&x);
}

/* Rows [batch, rows, width], with their part of the bias, as heads. */
static uint32_t heads_of(struct sl_expansion *x, const struct sl_attend *a, uint32_t rows, int64_t first)
{
        uint32_t bias = sl_expand_input(x, 3);
        int64_t width = sl_expand_shape(x, rows)->dims[2];

        if (width < 0)
                sl_expand_unsettled(x, "the width of queries, keys or values is not known");
        if (bias != SL_VALUE_NONE)
                rows = sl_expand_plus(x, rows, sl_expand_slice(x, bias, 0, first, first + width));
        return sl_attend_split(x, a, rows);
}

/* One of @n tensors, packed as [batch, rows, heads, n, length]. */
static uint32_t unpacked(struct sl_expansion *x, uint32_t packed, int64_t index)
{
        return sl_expand_transpose(x, part_of(x, packed, index, 3), (int64_t[]){0, 2, 1, 3}, 4);
}

static void find_projected(struct sl_expansion *x, struct sl_attend *a)
{
        uint32_t q = sl_expand_input(x, 0), k = sl_expand_input(x, 1), v = sl_expand_input(x, 2);
        uint32_t rank = sl_expand_shape(x, k)->rank;
        int64_t width = sl_expand_shape(x, q)->dims[2];
        bool packed = sl_expand_shape(x, q)->rank == 5 || (k != SL_VALUE_NONE && rank == 5);

        if (packed && sl_expand_input(x, 3) != SL_VALUE_NONE)
                sl_expand_refuse(x, "a bias of packed queries, keys and values is not supported");
        if (k == SL_VALUE_NONE && sl_expand_shape(x, q)->rank != 5)
                sl_expand_wrong(x, "keys are missing, and its queries are not packed");
        if (k != SL_VALUE_NONE && rank != 5 && v == SL_VALUE_NONE)
                sl_expand_wrong(x, "values are missing, and its keys are not packed");
        if (k == SL_VALUE_NONE) {
                a->queries = unpacked(x, q, 0);
                a->keys = unpacked(x, q, 1);
                a->values = unpacked(x, q, 2);
                return;
        }
        a->queries = heads_of(x, a, q, 0);
        if (rank == 3) {
                a->keys = heads_of(x, a, k, width);
                a->values = heads_of(x, a, v, 2 * width);
        } else if (rank == 4) {
                a->keys = k;
                a->values = v;
        } else {
                a->keys = unpacked(x, k, 0);
                a->values = unpacked(x, k, 1);
        }
}

SL_CONTRIB(multi_head_attention)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        struct sl_attend a = {0};

        (void)draft;
        if (sl_expand_input(&x, 8) != SL_VALUE_NONE || sl_expand_input(&x, 9) != SL_VALUE_NONE)
                sl_expand_refuse(&x, "its inputs past_sequence_length and cache_indirection are not supported");
        sl_attend_read(&x, &a);
        find_projected(&x, &a);
        a.keys = sl_attend_append(&x, sl_expand_input(&x, 6), a.keys);
        a.values = sl_attend_append(&x, sl_expand_input(&x, 7), a.values);
        sl_attend_mask(&x, &a, sl_expand_input(&x, 4));
        sl_attend_bias(&x, &a, sl_expand_input(&x, 5));
        sl_expand_output(&x, 0, sl_attend(&x, &a));
        sl_expand_output(&x, 1, a.keys);
        sl_expand_output(&x, 2, a.values);
        return sl_expansion_end(&x);
}
