/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators that find out how much they make. They write as if the counted dimension had the size that they say in `made`; where
 * nobody asks, they fill what there is with zeros behind it.
 */
#include "element.h"
#include "kernels.h"

#include <errno.h>
#include <string.h>

static bool is_zero(const void *data, int64_t i, uint32_t dtype)
{
        return sl_dtype_is_float(dtype) ? sl_ref_load(data, i, dtype) == 0 : sl_ref_load_bits(data, i, dtype) == 0;
}

int sl_ref_non_zero(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const struct sl_shape *shape = &node->inputs[0].shape;
        int64_t elements = (int64_t)sl_shape_elements(shape), n = 0, pitch = node->outputs[0].shape.dims[1], at = 0;
        int64_t *out = binding->outputs[0];

        for (int64_t i = 0; i < elements && sl_pace_on(binding->pace, 1); i++)
                n += !is_zero(binding->inputs[0], i, node->inputs[0].dtype);
        if (n > pitch)
                return -ERANGE;
        memset(out, 0, sl_tensor_bytes(&node->outputs[0]));
        if (binding->made)
                *binding->made = pitch = n;
        for (int64_t i = 0; i < elements && sl_pace_on(binding->pace, 1); i++) {
                int64_t rest = i;

                /* Floats of a client may have changed since they were counted. */
                if (at == n || is_zero(binding->inputs[0], i, node->inputs[0].dtype))
                        continue;
                for (uint32_t d = shape->rank; d-- > 0; rest /= shape->dims[d])
                        out[(int64_t)d * pitch + at] = rest % shape->dims[d];
                at++;
        }
        return 0;
}

/* The tensor as [outer, n, row], the axis in the middle; without one as [1, elements, 1]. */
struct rows {
        int64_t outer, n, row_bytes;
};

static struct rows rows_of(const struct sl_node_desc *node)
{
        const struct sl_shape *shape = &node->inputs[0].shape;
        const struct sl_attr *given = sl_attrs_find(&node->attrs, SL_ATTR_AXIS);
        int64_t axis = given ? given->i + (given->i < 0 ? shape->rank : 0) : 0;
        struct rows rows = {.outer = 1, .n = 1, .row_bytes = (int64_t)sl_dtype_bytes(node->inputs[0].dtype)};

        if (!given) {
                rows.n = (int64_t)sl_shape_elements(shape);
                return rows;
        }
        for (uint32_t i = 0; i < shape->rank; i++) {
                if (i < axis)
                        rows.outer *= shape->dims[i];
                else if (i == axis)
                        rows.n = shape->dims[i];
                else
                        rows.row_bytes *= shape->dims[i];
        }
        return rows;
}

static void copy_row(
        struct sl_pace *pace, const struct rows *rows, void *out, int64_t out_n, int64_t to, const void *in, int64_t from)
{
        for (int64_t o = 0; o < rows->outer && sl_pace_on(pace, 1 + (uint64_t)rows->row_bytes / sizeof(uint64_t)); o++)
                memcpy((char *)out + (o * out_n + to) * rows->row_bytes, (const char *)in + (o * rows->n + from) * rows->row_bytes,
                        (size_t)rows->row_bytes);
}

int sl_ref_compress(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        struct rows rows = rows_of(node);
        const uint8_t *condition = binding->inputs[1];
        int64_t length = node->inputs[1].shape.dims[0], n = 0, at = 0, pitch = rows.n;

        length = length < rows.n ? length : rows.n;
        for (int64_t i = 0; i < length; i++)
                n += condition[i] != 0;
        memset(binding->outputs[0], 0, sl_tensor_bytes(&node->outputs[0]));
        if (binding->made)
                *binding->made = pitch = n;
        for (int64_t i = 0; i < length && at < n && sl_pace_on(binding->pace, 1); i++)
                if (condition[i])
                        copy_row(binding->pace, &rows, binding->outputs[0], pitch, at++, binding->inputs[0], i);
        return 0;
}

/* Four lists of one entry for each row: the rows in order, the group of each, the first row of each group, its final number. */
enum { UNIQUE_LISTS = 4 };

size_t sl_ref_scratch_unique(const struct sl_node_desc *node)
{
        int64_t n = rows_of(node).n;

        /* The lists of no rows begin somewhere, too. */
        return (size_t)(n ? n : 1) * UNIQUE_LISTS * sizeof(int64_t);
}

struct order {
        const struct rows *rows;
        const void *data;
        uint32_t dtype;
        struct sl_pace *pace;
};

/* A NaN is larger than every number, and equal to another. */
static int compare_elements(const void *data, int64_t a, int64_t b, uint32_t dtype)
{
        if (sl_dtype_is_float(dtype)) {
                double x = sl_ref_load(data, a, dtype), y = sl_ref_load(data, b, dtype);

                if (isnan(x) || isnan(y))
                        return isnan(x) - isnan(y);
                return (x > y) - (x < y);
        }
        uint64_t x = sl_ref_load_bits(data, a, dtype), y = sl_ref_load_bits(data, b, dtype);

        if (sl_ref_is_unsigned(dtype))
                return (x > y) - (x < y);
        return ((int64_t)x > (int64_t)y) - ((int64_t)x < (int64_t)y);
}

/* Rows seem equal once the computation has been ended: a sort of such rows comes to its end, too. */
static int compare_rows(const struct order *order, int64_t a, int64_t b)
{
        int64_t each = order->rows->row_bytes / (int64_t)sl_dtype_bytes(order->dtype);
        int difference = 0;

        for (int64_t o = 0; o < order->rows->outer && !difference; o++)
                for (int64_t i = 0; i < each && !difference && sl_pace_on(order->pace, 1); i++)
                        difference = compare_elements(order->data, (o * order->rows->n + a) * each + i,
                                (o * order->rows->n + b) * each + i, order->dtype);
        return difference;
}

/* Two runs that lie side by side, in order each, become one; equal rows stay in order, so that the first of a group is its first.
 */
static void merge_runs(const struct order *order, const int64_t *from, int64_t middle, int64_t end, int64_t *to)
{
        int64_t left = 0, right = middle;

        for (int64_t i = 0; i < end; i++)
                to[i] = right == end || (left < middle && compare_rows(order, from[left], from[right]) <= 0) ? from[left++]
                                                                                                             : from[right++];
}

static int64_t least(int64_t a, int64_t b)
{
        return a < b ? a : b;
}

/* @spare has room for as many. */
static void sort_rows(const struct order *order, int64_t *rows, int64_t *spare)
{
        int64_t n = order->rows->n;

        for (int64_t run = 1; run < n && sl_pace_on(order->pace, 1); run *= 2) {
                for (int64_t at = 0; at < n && sl_pace_on(order->pace, 1); at += 2 * run)
                        merge_runs(order, rows + at, least(run, n - at), least(2 * run, n - at), spare + at);
                memcpy(rows, spare, (size_t)n * sizeof(*rows));
        }
}

/* Return: how many groups there are. */
static int64_t group_rows(const struct order *order, int64_t *sorted, int64_t *groups, int64_t *firsts)
{
        int64_t n = 0;

        for (int64_t i = 0; i < order->rows->n; i++)
                sorted[i] = i;
        sort_rows(order, sorted, groups);
        if (sl_pace_status(order->pace))
                return 0;
        for (int64_t i = 0; i < order->rows->n; i++) {
                if (i == 0 || compare_rows(order, sorted[i - 1], sorted[i]))
                        firsts[n++] = sorted[i];
                groups[sorted[i]] = n - 1;
        }
        return n;
}

int sl_ref_unique(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        struct rows rows = rows_of(node);
        struct order order = {&rows, binding->inputs[0], node->inputs[0].dtype, binding->pace};
        int64_t *sorted = binding->scratch, *groups = sorted + rows.n, *firsts = groups + rows.n, *numbers = firsts + rows.n;
        bool by_value = sl_attrs_int(&node->attrs, SL_ATTR_SORTED, 1);
        int64_t n = group_rows(&order, sorted, groups, firsts), next = 0, pitch = rows.n;
        int64_t *outs[4] = {0};

        for (uint32_t i = 0; i < node->n_outputs; i++) {
                outs[i] = binding->outputs[i];
                if (outs[i])
                        memset(outs[i], 0, sl_tensor_bytes(&node->outputs[i]));
        }
        if (binding->made)
                *binding->made = pitch = n;
        if (sl_pace_status(binding->pace))
                return sl_pace_status(binding->pace);
        for (int64_t i = 0; i < rows.n; i++)
                if (firsts[groups[i]] == i)
                        numbers[groups[i]] = by_value ? groups[i] : next++;
        for (int64_t i = 0; i < rows.n && sl_pace_on(binding->pace, 1); i++) {
                int64_t number = numbers[groups[i]];

                if (firsts[groups[i]] == i)
                        copy_row(binding->pace, &rows, outs[0], pitch, number, binding->inputs[0], i);
                if (outs[1] && firsts[groups[i]] == i)
                        outs[1][number] = i;
                if (outs[2])
                        outs[2][i] = number;
                if (outs[3])
                        outs[3][number]++;
        }
        return 0;
}

/* Nodes with bodies are run by whoever has the bodies (control.h). */
int sl_ref_control(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        (void)node;
        (void)binding;
        return -ENOTSUP;
}
