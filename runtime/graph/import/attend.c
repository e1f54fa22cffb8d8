/* SPDX-License-Identifier: Apache-2.0 */
#include "import/attend.h"

#include <float.h>
#include <math.h>

#define FILTER (-10000.0)

void sl_attend_read(struct sl_expansion *x, struct sl_attend *attend)
{
        attend->mask = SL_VALUE_NONE;
        attend->heads = sl_expand_int(x, "num_heads", 0);
        attend->scale = sl_expand_float(x, "scale", 0);
        attend->filter = sl_expand_float(x, "mask_filter_value", FILTER);
        attend->causal = sl_expand_int(x, "unidirectional", 0);
        if (attend->heads < 1 || attend->heads > INT32_MAX)
                sl_expand_wrong(x, "num_heads is missing, or outside [1,2^31)");
}

uint32_t sl_attend_split(struct sl_expansion *x, const struct sl_attend *attend, uint32_t rows)
{
        int64_t width = sl_expand_shape(x, rows)->dims[2];

        if (sl_expand_shape(x, rows)->rank == 3 && width < 0)
                sl_expand_unsettled(x, "the width of queries, keys or values is not known");
        else if (sl_expand_shape(x, rows)->rank != 3 || width < 1 || attend->heads < 1 || width % attend->heads)
                sl_expand_misfit(x, "num_heads does not divide the width of queries, keys or values");
        if (x->result < 0)
                return SL_VALUE_NONE;
        rows = sl_expand_reshape(x, rows, (int64_t[]){0, 0, attend->heads, width / attend->heads}, 4);
        return sl_expand_transpose(x, rows, (int64_t[]){0, 2, 1, 3}, 4);
}

uint32_t sl_attend_append(struct sl_expansion *x, uint32_t past, uint32_t value)
{
        return past == SL_VALUE_NONE ? value : sl_expand_concat(x, past, value, 2);
}

void sl_attend_bias(struct sl_expansion *x, struct sl_attend *attend, uint32_t bias)
{
        if (bias != SL_VALUE_NONE)
                attend->mask = attend->mask == SL_VALUE_NONE ? bias : sl_expand_binary(x, SL_OP_ADD, attend->mask, bias);
}

/* 0 where the truth value is true, @otherwise where it is not. */
static uint32_t choose(struct sl_expansion *x, uint32_t condition, double otherwise, uint32_t dtype)
{
        struct sl_draft where = {.op = SL_OP_WHERE, .n_inputs = 3, .inputs = {condition}};

        where.inputs[1] = sl_expand_number(x, 0, dtype);
        where.inputs[2] = sl_expand_number(x, otherwise, dtype);
        return sl_expand(x, &where);
}

static uint32_t whole_number(struct sl_expansion *x, int64_t number)
{
        uint32_t value = SL_VALUE_NONE;

        if (x->result == 0)
                x->result = sl_import_ints(x->im, x->node->name, &number, 1, true, &value);
        return value;
}

/* How many rows it has: a number of the file, or what the shape of a request says. */
static uint32_t rows_of(struct sl_expansion *x, uint32_t value)
{
        int64_t rows = sl_expand_shape(x, value)->dims[2];

        if (rows >= 0)
                return whole_number(x, rows);
        if (!x->im->limits->any_size)
                sl_expand_refuse(x, "a mask over keys whose number is not known");
        return sl_expand_binary(x, SL_OP_GATHER, sl_expand_unary(x, SL_OP_SHAPE, value), whole_number(x, 2));
}

/* @first, @first + 1, ... before @limit */
static uint32_t count_from(struct sl_expansion *x, uint32_t first, uint32_t limit)
{
        struct sl_draft range = {.op = SL_OP_RANGE, .n_inputs = 3, .inputs = {first, limit, whole_number(x, 1)}};

        return sl_expand(x, &range);
}

/* [batch] of numbers beside the places of the keys: [batch, 1] and [keys] */
static uint32_t compare_places(struct sl_expansion *x, const struct sl_attend *attend, uint32_t op, uint32_t numbers)
{
        uint32_t places = count_from(x, whole_number(x, 0), rows_of(x, attend->keys));

        numbers = sl_expand_unsqueeze(x, sl_expand_cast(x, numbers, SL_DTYPE_I64), (int64_t[]){1}, 1);
        return sl_expand_binary(x, op, places, numbers);
}

/* Keys end where the first numbers say, and begin where the second ones do, if there are any. */
static uint32_t mask_of_ends(struct sl_expansion *x, const struct sl_attend *attend, uint32_t ends)
{
        int64_t batch = sl_expand_shape(x, attend->queries)->dims[0], n = sl_expand_shape(x, ends)->dims[0];
        uint32_t begins = SL_VALUE_NONE, inside;

        if (n < 0 && x->im->limits->any_size)
                sl_expand_refuse(x, "a mask of one dimension, whose size tells what it is, and that is not known");
        if (n != batch && (batch < 1 || n != 2 * batch))
                sl_expand_refuse(x, "a mask of one dimension that is neither [batch] nor [2 * batch] of a known batch");
        if (n != batch) {
                begins = sl_expand_slice(x, ends, 0, batch, n);
                ends = sl_expand_slice(x, ends, 0, 0, batch);
        }
        inside = compare_places(x, attend, SL_OP_LESS, ends);
        if (begins != SL_VALUE_NONE)
                inside = sl_expand_binary(x, SL_OP_AND, inside, compare_places(x, attend, SL_OP_GREATER_OR_EQUAL, begins));
        return inside;
}

void sl_attend_mask(struct sl_expansion *x, struct sl_attend *attend, uint32_t mask)
{
        uint32_t rank = sl_expand_shape(x, mask)->rank, inside;

        if (mask == SL_VALUE_NONE)
                return;
        if (rank < 1 || rank > 3)
                sl_expand_refuse(x, "a mask of no or of more than three dimensions is not supported");
        if (rank == 1)
                inside = mask_of_ends(x, attend, mask);
        else
                inside = sl_expand_binary(x, SL_OP_GREATER, mask, sl_expand_number(x, 0, sl_expand_dtype(x, mask)));
        inside = sl_expand_unsqueeze(x, inside, (int64_t[]){1, 2}, rank == 3 ? 1 : 2);
        sl_attend_bias(x, attend, choose(x, inside, attend->filter, sl_expand_dtype(x, attend->queries)));
}

/* Query i stands beside key i + keys - queries, and sees no key behind that. */
static void mask_causally(struct sl_expansion *x, struct sl_attend *attend)
{
        int64_t n_queries = sl_expand_shape(x, attend->queries)->dims[2], n_keys = sl_expand_shape(x, attend->keys)->dims[2];
        uint32_t keys = rows_of(x, attend->keys), dtype = sl_expand_dtype(x, attend->queries);
        uint32_t first = n_queries >= 0 && n_keys >= 0 ? whole_number(x, n_keys - n_queries)
                                                       : sl_expand_binary(x, SL_OP_SUB, keys, rows_of(x, attend->queries));
        uint32_t here = sl_expand_unsqueeze(x, count_from(x, first, keys), (int64_t[]){1}, 1);
        uint32_t seen = sl_expand_binary(x, SL_OP_GREATER_OR_EQUAL, here, count_from(x, whole_number(x, 0), keys));

        sl_attend_bias(x, attend, choose(x, seen, dtype == SL_DTYPE_F16 ? -65504.0 : -(double)FLT_MAX, dtype));
}

uint32_t sl_attend(struct sl_expansion *x, struct sl_attend *attend)
{
        int64_t length = sl_expand_shape(x, attend->queries)->dims[3], width = sl_expand_shape(x, attend->values)->dims[3];
        uint32_t scores, sums;

        if (length < 0 || width < 0)
                sl_expand_unsettled(x, "the length of a head is not known");
        else if (!length || !width)
                sl_expand_misfit(x, "the length of a head is 0");
        if (attend->causal)
                mask_causally(x, attend);
        if (x->result < 0)
                return SL_VALUE_NONE;
        scores = sl_expand_transpose(x, attend->keys, (int64_t[]){0, 1, 3, 2}, 4);
        scores = sl_expand_binary(x, SL_OP_MATMUL, attend->queries, scores);
        scores = sl_expand_times(x, scores, attend->scale != 0 ? attend->scale : 1 / sqrt((double)length));
        scores = sl_expand_plus(x, scores, attend->mask);
        sums = sl_expand_binary(x, SL_OP_MATMUL, sl_expand_softmax(x, scores, -1), attend->values);
        sums = sl_expand_transpose(x, sums, (int64_t[]){0, 2, 1, 3}, 4);
        return sl_expand_reshape(x, sums, (int64_t[]){0, 0, attend->heads * width}, 3);
}
