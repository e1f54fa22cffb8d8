/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions of float32 over axes that lie side by side: the tensor is [outer, count, inner], and count goes away. With inner 1 a
 * row is reduced at a time, else whole rows of inner elements are joined, which the compiler vectorises. CHANNELS_LAST is read when
 * all pixels of a channel go: then the channels are the inner elements. A GlobalAveragePool is the mean over the pixels, a
 * GlobalMaxPool their greatest, in either layout; oneDNN would add them up one after the other, and lose a NaN.
 */
#include "shape/reduce.h"
#include "cpu/base/rows.h"
#include "cpu/reduce/columns.h"
#include "cpu/reduce/loops.h"

#include <math.h>
#include <string.h>

#define LANES 16
#define STRIP 4  /* vectors of them */
#define SHORT 32 /* of shorter rows fold.c takes several at once */

struct reduce {
        uint32_t op;
        int64_t outer, count, inner;
};

/* False when a dimension that stays lies between two that go. */
static bool split_shape(const struct sl_shape *shape, uint32_t mask, struct reduce *r)
{
        bool ended = false;

        r->outer = r->count = r->inner = 1;
        for (uint32_t d = 0; d < shape->rank; d++) {
                bool goes = mask & 1u << d;

                if (shape->dims[d] == 1)
                        continue;
                if (goes && ended)
                        return false;
                if (goes)
                        r->count *= shape->dims[d];
                else if (r->count == 1)
                        r->outer *= shape->dims[d];
                else
                        r->inner *= shape->dims[d];
                ended = !goes && r->count != 1;
        }
        return true;
}

/* Of a CHANNELS_LAST tensor: all pixels, and nothing else. */
static bool split_pixels(const struct sl_shape *shape, uint32_t mask, struct reduce *r)
{
        r->outer = shape->dims[0];
        r->inner = shape->dims[1];
        r->count = 1;
        for (uint32_t d = 2; d < shape->rank; d++)
                r->count *= shape->dims[d];
        return mask == ((1u << shape->rank) - 1u - 3u);
}

static bool plan_pool(uint32_t op, const struct sl_tensor *x, const struct sl_tensor *y, struct reduce *r)
{
        uint32_t pixels = (1u << x->shape.rank) - 1u - 3u;

        if (x->shape.rank < 3 || !sl_cpu_same_layout(x, y))
                return false;
        r->op = op == SL_OP_GLOBAL_MAX_POOL ? SL_OP_REDUCE_MAX : SL_OP_REDUCE_MEAN;
        return x->layout == SL_LAYOUT_PLAIN ? split_shape(&x->shape, pixels, r) : split_pixels(&x->shape, pixels, r);
}

static bool reduce_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *x = &node->inputs[0], *y = &node->outputs[0];
        struct reduce *r = state;
        uint32_t mask;

        (void)sizes;
        if (!sl_cpu_is_f32(x) || !sl_cpu_is_f32(y) || sl_cpu_is_empty(x))
                return false;
        if (node->op == SL_OP_GLOBAL_AVERAGE_POOL || node->op == SL_OP_GLOBAL_MAX_POOL)
                return plan_pool(node->op, x, y, r);
        if (y->layout != SL_LAYOUT_PLAIN || sl_reduced_axes(node, &mask, NULL))
                return false;
        r->op = node->op;
        if (x->layout != SL_LAYOUT_PLAIN)
                return split_pixels(&x->shape, mask, r);
        return split_shape(&x->shape, mask, r) && (r->inner > 1 || r->count >= SHORT || r->outer == 1);
}

/* @width of the inner elements. */
static void sum_rows(const struct reduce *r, int64_t width, float *y, const float *x)
{
        const struct sl_columns columns = {.lines = 1, .length = r->count, .row = r->inner, .width = width};
        bool squares = r->op == SL_OP_REDUCE_L2 || r->op == SL_OP_REDUCE_SUM_SQUARE;

        sl_column_sums(&columns,
                r->op == SL_OP_REDUCE_L1 ? SL_COLUMN_MAGNITUDES
                : squares                ? SL_COLUMN_SQUARES
                                         : SL_COLUMN_VALUES,
                x, y);
}

#define GREATER(a, b) ((a) > (b) ? (a) : (b))
#define SMALLER(a, b) ((a) < (b) ? (a) : (b))

/*
 * Of @vectors columns: they stay in registers while the rows pass by, two at a time. Return: whether one was a NaN, which comparing
 * loses. take_NAME() keeps it.
 */
#define DEFINE_EXTREMES(name, BETTER)                                                                                              \
        static inline __attribute__((always_inline))                                                                               \
        int32_t strip_##name(int vectors, int64_t n, int64_t row, const float *x, float *y)                                        \
        {                                                                                                                          \
                float best[STRIP][LANES];                                                                                          \
                int32_t odd[LANES] = {0}, any = 0;                                                                                 \
                int64_t first = n % 2;                                                                                             \
                                                                                                                                   \
                for (int k = 0; k < vectors; k++)                                                                                  \
                        for (int j = 0; j < LANES; j++) {                                                                          \
                                best[k][j] = x[k * LANES + j];                                                                     \
                                odd[j] |= __builtin_isunordered(best[k][j], best[k][j]) ? -1 : 0;                                  \
                        }                                                                                                          \
                for (int64_t i = first; i < n; i += 2)                                                                             \
                        for (int k = 0; k < vectors; k++)                                                                          \
                                for (int j = 0; j < LANES; j++) {                                                                  \
                                        float a = x[i * row + k * LANES + j], b = x[(i + 1) * row + k * LANES + j];                \
                                        float better = BETTER(a, b);                                                               \
                                                                                                                                   \
                                        odd[j] |= __builtin_isunordered(a, b) ? -1 : 0;                                            \
                                        best[k][j] = BETTER(better, best[k][j]);                                                   \
                                }                                                                                                  \
                memcpy(y, best, (size_t)vectors * sizeof(best[0]));                                                                \
                for (int j = 0; j < LANES; j++)                                                                                    \
                        any |= odd[j];                                                                                             \
                return any;                                                                                                        \
        }                                                                                                                          \
                                                                                                                                   \
        SL_CPU_CLONES static int32_t strips_##name(int64_t n, int64_t row, int64_t width, const float *x, float *y)                \
        {                                                                                                                          \
                int32_t odd = 0;                                                                                                   \
                int64_t at = 0;                                                                                                    \
                                                                                                                                   \
                for (; at + STRIP * LANES <= width; at += STRIP * LANES)                                                           \
                        odd |= strip_##name(STRIP, n, row, x + at, y + at);                                                        \
                for (; at + LANES <= width; at += LANES)                                                                           \
                        odd |= strip_##name(1, n, row, x + at, y + at);                                                            \
                return odd;                                                                                                        \
        }                                                                                                                          \
                                                                                                                                   \
        SL_CPU_CLONES static void take_##name(int64_t n, float *restrict y, const float *restrict x)                               \
        {                                                                                                                          \
                for (int64_t i = 0; i < n; i++)                                                                                    \
                        y[i] = y[i] != y[i] ? y[i] : BETTER(y[i], x[i]);                                                           \
        }

DEFINE_EXTREMES(greatest, GREATER)
DEFINE_EXTREMES(least, SMALLER)

/* The strips, and what is left beside them; of strips that have a NaN all once more. */
static void join_extremes(const struct reduce *r, int64_t width, float *y, const float *x)
{
        bool greatest = r->op == SL_OP_REDUCE_MAX;
        int64_t strips = width / LANES * LANES;

        if (strips && (greatest ? strips_greatest : strips_least)(r->count, r->inner, strips, x, y))
                strips = 0;
        memcpy(y + strips, x + strips, (size_t)(width - strips) * sizeof(*y));
        for (int64_t i = 1; i < r->count && strips < width; i++)
                (greatest ? take_greatest : take_least)(width - strips, y + strips, x + i * r->inner + strips);
}

static void join_rows(const struct reduce *r, int64_t width, float *y, const float *x)
{
        if (r->op == SL_OP_REDUCE_MAX || r->op == SL_OP_REDUCE_MIN)
                join_extremes(r, width, y, x);
        else
                sum_rows(r, width, y, x);
}

static float reduce_row(uint32_t op, const float *x, int64_t n)
{
        switch (op) {
        case SL_OP_REDUCE_MAX:
                return sl_row_maximum(x, n);
        case SL_OP_REDUCE_MIN:
                return sl_row_minimum(x, n);
        case SL_OP_REDUCE_L1:
                return sl_row_sum_absolute(x, n);
        case SL_OP_REDUCE_L2:
        case SL_OP_REDUCE_SUM_SQUARE:
                return sl_row_sum_square(x, 0.0f, n);
        default:
                return sl_row_sum(x, n);
        }
}

static void finish(const struct reduce *r, int64_t n, float *y)
{
        if (r->op == SL_OP_REDUCE_MEAN)
                for (int64_t i = 0; i < n; i++)
                        y[i] /= (float)r->count;
        if (r->op == SL_OP_REDUCE_L2)
                for (int64_t i = 0; i < n; i++)
                        y[i] = sqrtf(y[i]);
}

static int64_t inner_units(const struct reduce *r)
{
        return (r->inner + SL_FLAT_UNIT - 1) / SL_FLAT_UNIT;
}

static int reduce_run(const void *state, const struct sl_binding *binding)
{
        const struct reduce *r = state;
        struct sl_part rows = sl_part_along(binding->part, SL_AXIS_ROWS, r->outer);
        struct sl_part columns = sl_part_along(binding->part, SL_AXIS_COLUMNS, inner_units(r));
        int64_t first = columns.first * SL_FLAT_UNIT, end = columns.end * SL_FLAT_UNIT;

        end = end < r->inner ? end : r->inner;
        for (int64_t o = rows.first; o < rows.end; o++) {
                const float *x = (const float *)binding->inputs[0] + o * r->count * r->inner + first;
                float *y = (float *)binding->outputs[0] + o * r->inner + first;

                if (r->inner == 1)
                        *y = reduce_row(r->op, x, r->count);
                else
                        join_rows(r, end - first, y, x);
                finish(r, end - first, y);
        }
        return 0;
}

static int64_t reduce_units(const void *state, uint32_t axis)
{
        const struct reduce *r = state;

        return axis == SL_AXIS_ROWS ? r->outer : inner_units(r);
}

static bool reduce_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct reduce *r = state;
        int64_t row_bytes = r->inner * (int64_t)sizeof(float), count = operand == SL_REACH_OUTPUT ? 1 : r->count;

        if (part->axis == SL_AXIS_ROWS)
                return sl_reach_rows(part, count * row_bytes, ret_reach);
        return sl_reach_columns(part, SL_FLAT_UNIT * (int64_t)sizeof(float), row_bytes, r->outer * count, ret_reach);
}

const struct sl_cpu_loop sl_cpu_reduce = {.state_bytes = sizeof(struct reduce),
        .plan = reduce_plan,
        .run = reduce_run,
        .units = reduce_units,
        .reach = reduce_reach,
        .instead = &sl_cpu_fold};

const struct sl_cpu_loop sl_cpu_global = {.state_bytes = sizeof(struct reduce),
        .plan = reduce_plan,
        .run = reduce_run,
        .units = reduce_units,
        .reach = reduce_reach,
        .instead = &sl_cpu_max_pool};
