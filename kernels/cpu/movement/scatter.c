/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ScatterElements and ScatterND: the data are copied, and updates put, added, multiplied or compared in, one after the other in
 * their order, so that a place that several name has the bits of `ref`. Each index is checked where it is used: it may come from a
 * client.
 *
 * ScatterElements goes row by row of what lies behind the axis. Graph networks name one place by all indices of a row: such a row
 * is joined at once. It is cut where no two parts name the same place: before the axis, or else behind it.
 */
#include "cpu/base/bfloat16.h"
#include "cpu/base/float16.h"
#include "cpu/movement/loops.h"
#include "shape/rules.h"

#include <errno.h>
#include <string.h>

enum { REDUCE_NONE, REDUCE_ADD, REDUCE_MUL, REDUCE_MAX, REDUCE_MIN, REDUCE_KINDS };

/* @n neighbours of @u go into as many of @y. */
typedef void join_fn(int64_t n, void *y, const void *u);

/* Element j of @u goes to place indices[j] of column j of @y. -ERANGE. */
typedef int spread_fn(int64_t n, int64_t size, int64_t stride, const void *indices, void *y, const void *u);

#define DEFINE_JOIN(name, T, V, LOAD, STORE, JOIN)                                                                                 \
        SL_CPU_CLONES static void join_##name(int64_t n, void *y, const void *u)                                                   \
        {                                                                                                                          \
                T *to = y;                                                                                                         \
                const T *from = u;                                                                                                 \
                                                                                                                                   \
                for (int64_t i = 0; i < n; i++) {                                                                                  \
                        V old = LOAD(to[i]), new = LOAD(from[i]);                                                                  \
                                                                                                                                   \
                        to[i] = (T)STORE(JOIN(old, new));                                                                          \
                }                                                                                                                  \
        }                                                                                                                          \
        DEFINE_SPREAD(spread_##name##_wide, T, V, int64_t, LOAD, STORE, JOIN)                                                      \
        DEFINE_SPREAD(spread_##name, T, V, int32_t, LOAD, STORE, JOIN)

#define DEFINE_SPREAD(name, T, V, index_type, LOAD, STORE, JOIN)                                                                   \
        static int name(int64_t n, int64_t size, int64_t stride, const void *indices, void *y, const void *u)                      \
        {                                                                                                                          \
                for (int64_t j = 0; j < n; j++) {                                                                                  \
                        int64_t index = ((const index_type *)indices)[j];                                                          \
                                                                                                                                   \
                        if (index < -size || index >= size)                                                                        \
                                return -ERANGE;                                                                                    \
                        T *to = (T *)y + (index < 0 ? index + size : index) * stride + j;                                          \
                        V old = LOAD(*to), new = LOAD(((const T *)u)[j]);                                                          \
                                                                                                                                   \
                        *to = (T)STORE(JOIN(old, new));                                                                            \
                }                                                                                                                  \
                return 0;                                                                                                          \
        }

#define AS_IT_LIES(v)     (v)
#define LAST(old, new)    ((void)(old), (new))
#define PLUS(old, new)    ((old) + (new))
#define TIMES(old, new)   ((old) * (new))
#define GREATER(old, new) ((old) != (old) ? (old) : (old) > (new) ? (old) : (new))
#define SMALLER(old, new) ((old) != (old) ? (old) : (old) < (new) ? (old) : (new))

#define DEFINE_JOINS(name, T, V, LOAD, STORE)                                                                                      \
        DEFINE_JOIN(add_##name, T, V, LOAD, STORE, PLUS)                                                                           \
        DEFINE_JOIN(mul_##name, T, V, LOAD, STORE, TIMES)                                                                          \
        DEFINE_LIMITS(name, T, V, LOAD, STORE)
#define DEFINE_LIMITS(name, T, V, LOAD, STORE)                                                                                     \
        DEFINE_JOIN(max_##name, T, V, LOAD, STORE, GREATER)                                                                        \
        DEFINE_JOIN(min_##name, T, V, LOAD, STORE, SMALLER)

/* Integers wrap: sums and products of them are those of unsigned ones. */
DEFINE_JOINS(f32, float, float, AS_IT_LIES, AS_IT_LIES)
DEFINE_JOINS(f64, double, double, AS_IT_LIES, AS_IT_LIES)
DEFINE_JOINS(f16, uint16_t, float, sl_widen_f16, sl_narrow_f16)
DEFINE_JOINS(bf16, uint16_t, float, sl_widen_bf16, sl_narrow_bf16)
DEFINE_JOIN(add_32, uint32_t, uint32_t, AS_IT_LIES, AS_IT_LIES, PLUS)
DEFINE_JOIN(mul_32, uint32_t, uint32_t, AS_IT_LIES, AS_IT_LIES, TIMES)
DEFINE_JOIN(add_64, uint64_t, uint64_t, AS_IT_LIES, AS_IT_LIES, PLUS)
DEFINE_JOIN(mul_64, uint64_t, uint64_t, AS_IT_LIES, AS_IT_LIES, TIMES)
DEFINE_LIMITS(i32, int32_t, int32_t, AS_IT_LIES, AS_IT_LIES)
DEFINE_LIMITS(i64, int64_t, int64_t, AS_IT_LIES, AS_IT_LIES)
DEFINE_JOIN(put_8, uint8_t, uint8_t, AS_IT_LIES, AS_IT_LIES, LAST)
DEFINE_JOIN(put_16, uint16_t, uint16_t, AS_IT_LIES, AS_IT_LIES, LAST)
DEFINE_JOIN(put_32, uint32_t, uint32_t, AS_IT_LIES, AS_IT_LIES, LAST)
DEFINE_JOIN(put_64, uint64_t, uint64_t, AS_IT_LIES, AS_IT_LIES, LAST)

struct joins {
        join_fn *join;
        spread_fn *spread, *spread_wide;
};

#define JOINS(name)                                                                                                                \
        {                                                                                                                          \
                join_##name, spread_##name, spread_##name##_wide                                                                   \
        }
#define REAL_JOINS(name)                                                                                                           \
        {                                                                                                                          \
                [REDUCE_ADD] = JOINS(add_##name), JOINS(mul_##name), JOINS(max_##name), JOINS(min_##name)                          \
        }
#define WHOLE_JOINS(bits)                                                                                                          \
        {                                                                                                                          \
                [REDUCE_ADD] = JOINS(add_##bits), JOINS(mul_##bits), JOINS(max_i##bits), JOINS(min_i##bits)                        \
        }

static const struct joins joins[SL_DTYPE_LIMIT][REDUCE_KINDS] = {
        [SL_DTYPE_F32] = REAL_JOINS(f32),
        [SL_DTYPE_F64] = REAL_JOINS(f64),
        [SL_DTYPE_F16] = REAL_JOINS(f16),
        [SL_DTYPE_BF16] = REAL_JOINS(bf16),
        [SL_DTYPE_I32] = WHOLE_JOINS(32),
        [SL_DTYPE_I64] = WHOLE_JOINS(64),
};

static struct joins joins_of(const struct sl_node_desc *node)
{
        static const struct joins puts[] = {[1] = JOINS(put_8), [2] = JOINS(put_16), [4] = JOINS(put_32), [8] = JOINS(put_64)};
        int64_t kind = sl_attrs_int(&node->attrs, SL_ATTR_REDUCTION, REDUCE_NONE);
        uint32_t dtype = node->inputs[0].dtype;
        size_t bytes = sl_dtype_bytes(dtype);

        if (kind == REDUCE_NONE)
                return bytes < sizeof(puts) / sizeof(puts[0]) ? puts[bytes] : (struct joins){NULL};
        return kind > REDUCE_NONE && kind < REDUCE_KINDS && dtype < SL_DTYPE_LIMIT ? joins[dtype][kind] : (struct joins){NULL};
}

static bool lies_plain(const struct sl_node_desc *node)
{
        const struct sl_tensor *indices = &node->inputs[1];

        for (uint32_t i = 0; i < 3; i++)
                if (node->inputs[i].layout != SL_LAYOUT_PLAIN)
                        return false;
        return node->outputs[0].layout == SL_LAYOUT_PLAIN && (indices->dtype == SL_DTYPE_I64 || indices->dtype == SL_DTYPE_I32) &&
               !sl_cpu_is_empty(&node->inputs[0]) && !sl_cpu_is_empty(indices);
}

/* What is named has sizes of its own but behind the axis, where of the first dimension alone there may be less. */
struct scatter_elements {
        struct joins joins;
        spread_fn *spread;
        int64_t bytes, index_bytes;
        int64_t outer, size, inner; /* of the data, around the axis */
        int64_t named_outer, named_size, named_inner;
        uint32_t outer_rank;
        int64_t named_sizes[SL_RANK_MAX], sizes[SL_RANK_MAX]; /* before the axis */
};

static bool scatter_elements_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_shape *data = &node->inputs[0].shape, *named = &node->inputs[1].shape;
        struct scatter_elements *s = state;
        uint32_t axis;

        (void)sizes;
        if (!lies_plain(node) || sl_axis_resolve(sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 0), data->rank, &axis, NULL))
                return false;
        s->joins = joins_of(node);
        s->spread = node->inputs[1].dtype == SL_DTYPE_I64 ? s->joins.spread_wide : s->joins.spread;
        s->bytes = (int64_t)sl_dtype_bytes(node->inputs[0].dtype);
        s->index_bytes = (int64_t)sl_dtype_bytes(node->inputs[1].dtype);
        s->outer = s->inner = s->named_outer = s->named_inner = 1;
        s->outer_rank = axis;
        s->size = data->dims[axis];
        s->named_size = named->dims[axis];
        for (uint32_t d = 0; d < data->rank; d++) {
                int64_t *all = d < axis ? &s->outer : &s->inner, *own = d < axis ? &s->named_outer : &s->named_inner;

                if (d == axis)
                        continue;
                if (d > axis + 1 && named->dims[d] != data->dims[d])
                        return false;
                *all *= data->dims[d];
                *own *= named->dims[d];
                s->sizes[d] = data->dims[d];
                s->named_sizes[d] = named->dims[d];
        }
        return s->spread;
}

/* The slice of the data that slice @o of the indices belongs to. */
static int64_t slice_of(const struct scatter_elements *s, int64_t o)
{
        int64_t at = 0, step = 1;

        for (uint32_t d = s->outer_rank; d-- > 0; step *= s->sizes[d], o /= s->named_sizes[d])
                at += o % s->named_sizes[d] * step;
        return at;
}

/* Do all @n indices of a row name one place? */
static bool names_one(const struct scatter_elements *s, const char *indices, int64_t n)
{
        return n > 1 && !memcmp(indices, indices + s->index_bytes, (size_t)((n - 1) * s->index_bytes));
}

static int scatter_row(const struct scatter_elements *s, int64_t n, const char *indices, char *y, const char *u)
{
        int64_t index;

        if (!names_one(s, indices, n))
                return s->spread(n, s->size, s->inner, indices, y, u);
        index = s->index_bytes == 8 ? *(const int64_t *)(const void *)indices : *(const int32_t *)(const void *)indices;
        if (index < -s->size || index >= s->size)
                return -ERANGE;
        s->joins.join(n, y + (index < 0 ? index + s->size : index) * s->inner * s->bytes, u);
        return 0;
}

static void copy_columns(
        const struct scatter_elements *s, const struct sl_binding *binding, const struct sl_part *outer, int64_t first, int64_t end)
{
        int64_t row = s->inner * s->bytes, rows = (outer->end - outer->first) * s->size, at = outer->first * s->size * row;
        const char *x = (const char *)binding->inputs[0] + at;
        char *y = (char *)binding->outputs[0] + at;

        if (x == y)
                return;
        if (end - first == s->inner) {
                memcpy(y, x, (size_t)(rows * row));
                return;
        }
        for (int64_t r = 0; r < rows; r++)
                memcpy(y + r * row + first * s->bytes, x + r * row + first * s->bytes, (size_t)((end - first) * s->bytes));
}

static int64_t inner_units(const struct scatter_elements *s)
{
        return (s->inner + SL_FLAT_UNIT - 1) / SL_FLAT_UNIT;
}

static int scatter_elements_run(const void *state, const struct sl_binding *binding)
{
        const struct scatter_elements *s = state;
        struct sl_part outer = sl_part_along(binding->part, SL_AXIS_ROWS, s->outer);
        struct sl_part columns = sl_part_along(binding->part, SL_AXIS_COLUMNS, inner_units(s));
        int64_t first = columns.first * SL_FLAT_UNIT, end = columns.end * SL_FLAT_UNIT, n;
        int r = 0;

        end = end < s->inner ? end : s->inner;
        copy_columns(s, binding, &outer, first, end);
        n = (end < s->named_inner ? end : s->named_inner) - first;
        for (int64_t o = 0; o < s->named_outer && n > 0; o++) {
                int64_t slice = slice_of(s, o);

                if (slice < outer.first || slice >= outer.end)
                        continue;
                for (int64_t k = 0; k < s->named_size && !r; k++) {
                        int64_t at = (o * s->named_size + k) * s->named_inner + first;

                        r = scatter_row(s, n, (const char *)binding->inputs[1] + at * s->index_bytes,
                                (char *)binding->outputs[0] + (slice * s->size * s->inner + first) * s->bytes,
                                (const char *)binding->inputs[2] + at * s->bytes);
                }
        }
        return r;
}

static int64_t scatter_elements_units(const void *state, uint32_t axis)
{
        const struct scatter_elements *s = state;

        return axis == SL_AXIS_ROWS ? s->outer : inner_units(s);
}

static bool scatter_elements_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct scatter_elements *s = state;

        if (operand != 0 && operand != SL_REACH_OUTPUT)
                return false;
        if (part->axis == SL_AXIS_ROWS)
                return sl_reach_rows(part, s->size * s->inner * s->bytes, ret_reach);
        return sl_reach_columns(part, SL_FLAT_UNIT * s->bytes, s->inner * s->bytes, s->outer * s->size, ret_reach);
}

const struct sl_cpu_loop sl_cpu_scatter_elements = {.state_bytes = sizeof(struct scatter_elements),
        .plan = scatter_elements_plan,
        .run = scatter_elements_run,
        .units = scatter_elements_units,
        .reach = scatter_elements_reach};

struct scatter_nd {
        struct joins joins;
        int64_t bytes, tuples, row, rows; /* the data are @rows of @row elements */
        uint32_t depth;
        bool wide;
        int64_t sizes[SL_RANK_MAX], steps[SL_RANK_MAX]; /* of what a tuple names; steps in rows */
};

static bool scatter_nd_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_shape *data = &node->inputs[0].shape, *named = &node->inputs[1].shape;
        struct scatter_nd *s = state;

        (void)sizes;
        if (!lies_plain(node))
                return false;
        s->joins = joins_of(node);
        s->bytes = (int64_t)sl_dtype_bytes(node->inputs[0].dtype);
        s->depth = (uint32_t)named->dims[named->rank - 1];
        s->wide = node->inputs[1].dtype == SL_DTYPE_I64;
        s->tuples = s->row = s->rows = 1;
        for (uint32_t d = 0; d + 1 < named->rank; d++)
                s->tuples *= named->dims[d];
        for (uint32_t d = data->rank; d-- > 0;) {
                if (d >= s->depth) {
                        s->row *= data->dims[d];
                        continue;
                }
                s->sizes[d] = data->dims[d];
                s->steps[d] = s->rows;
                s->rows *= data->dims[d];
        }
        return s->joins.join;
}

static int64_t row_of(const struct scatter_nd *s, const void *indices, int64_t tuple)
{
        int64_t at = 0;

        for (uint32_t k = 0; k < s->depth; k++) {
                int64_t i = tuple * s->depth + k, size = s->sizes[k];
                int64_t index = s->wide ? ((const int64_t *)indices)[i] : ((const int32_t *)indices)[i];

                if (index < -size || index >= size)
                        return -ERANGE;
                at += (index < 0 ? index + size : index) * s->steps[k];
        }
        return at;
}

static int64_t row_units(const struct scatter_nd *s)
{
        return (s->row + SL_FLAT_UNIT - 1) / SL_FLAT_UNIT;
}

static int scatter_nd_run(const void *state, const struct sl_binding *binding)
{
        const struct scatter_nd *s = state;
        struct sl_part columns = sl_part_along(binding->part, SL_AXIS_COLUMNS, row_units(s));
        int64_t first = columns.first * SL_FLAT_UNIT, end = columns.end * SL_FLAT_UNIT, row = s->row * s->bytes;
        char *y = (char *)binding->outputs[0] + first * s->bytes;
        const char *x = (const char *)binding->inputs[0] + first * s->bytes;
        const char *u = (const char *)binding->inputs[2] + first * s->bytes;

        end = end < s->row ? end : s->row;
        if (x != y && end - first == s->row)
                memcpy(y, x, (size_t)(s->rows * row));
        else if (x != y)
                for (int64_t r = 0; r < s->rows; r++)
                        memcpy(y + r * row, x + r * row, (size_t)((end - first) * s->bytes));
        for (int64_t i = 0; i < s->tuples; i++) {
                int64_t at = row_of(s, binding->inputs[1], i);

                if (at < 0)
                        return (int)at;
                s->joins.join(end - first, y + at * row, u + i * row);
        }
        return 0;
}

static int64_t scatter_nd_units(const void *state, uint32_t axis)
{
        return axis == SL_AXIS_COLUMNS ? row_units(state) : 0;
}

static bool scatter_nd_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct scatter_nd *s = state;
        int64_t rows = operand == 2 ? s->tuples : s->rows;

        if (operand == 1)
                return false;
        return sl_reach_columns(part, SL_FLAT_UNIT * s->bytes, s->row * s->bytes, rows, ret_reach);
}

const struct sl_cpu_loop sl_cpu_scatter_nd = {.state_bytes = sizeof(struct scatter_nd),
        .plan = scatter_nd_plan,
        .run = scatter_nd_run,
        .units = scatter_nd_units,
        .reach = scatter_nd_reach};
