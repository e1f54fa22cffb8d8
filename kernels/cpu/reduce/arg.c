/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ArgMax and ArgMin of PLAIN tensors: [outer, count, inner], and count goes away. A long row is looked through twice, for its best
 * value and for where that is; of short rows sixteen, and of columns 32, pass by together and remember both. Comparing loses a NaN,
 * which comes before all numbers: where there was one, the outputs are found once more with care.
 */
#include "cpu/base/bfloat16.h"
#include "cpu/base/float16.h"
#include "cpu/base/rows.h"
#include "cpu/reduce/loops.h"
#include "shape/rules.h"

#define COLUMNS  32
#define TOGETHER 16
#define SHORT    64 /* rows of fewer values are not looked through twice */

struct arg;

/* Where the best of count values is, i * @row + j * @step being value i of output j, for @width outputs; false: there is a NaN. */
typedef bool arg_fn(const struct arg *a, int64_t row, int64_t step, int width, const void *in, int64_t *ret_places);

struct arg {
        int64_t outer, count, inner, bytes;
        arg_fn *find, *find_carefully;
        bool last; /* of equals the last */
};

/* The best value of @n; false: there is a NaN. */
#define DEFINE_EXTREME(name, CLONES, T, V, M, LOAD, BETTER, IS_NAN)                                                                \
        CLONES static bool extreme_##name(int64_t n, const T *x, V *ret_best)                                                      \
        {                                                                                                                          \
                enum { LANES = 64 / sizeof(V) };                                                                                   \
                V best[LANES], found = LOAD(x[0]);                                                                                 \
                M odd[LANES] = {0};                                                                                                \
                int64_t i = 0;                                                                                                     \
                                                                                                                                   \
                for (int j = 0; j < LANES; j++)                                                                                    \
                        best[j] = found;                                                                                           \
                for (; i + LANES <= n; i += LANES)                                                                                 \
                        for (int j = 0; j < LANES; j++) {                                                                          \
                                V v = LOAD(x[i + j]);                                                                              \
                                                                                                                                   \
                                odd[j] |= (M)(IS_NAN(v) ? -1 : 0);                                                                 \
                                best[j] = BETTER(v, best[j]) ? v : best[j];                                                        \
                        }                                                                                                          \
                for (; i < n; i++) {                                                                                               \
                        V v = LOAD(x[i]);                                                                                          \
                                                                                                                                   \
                        odd[0] |= (M)(IS_NAN(v) ? -1 : 0);                                                                         \
                        best[0] = BETTER(v, best[0]) ? v : best[0];                                                                \
                }                                                                                                                  \
                for (int j = 0; j < LANES; j++) {                                                                                  \
                        found = BETTER(best[j], found) ? best[j] : found;                                                          \
                        if (odd[j] != 0)                                                                                           \
                                return false;                                                                                      \
                }                                                                                                                  \
                *ret_best = found;                                                                                                 \
                return true;                                                                                                       \
        }

static bool extreme_greatest_f32(int64_t n, const float *x, float *ret_best)
{
        *ret_best = sl_row_maximum(x, n);
        return *ret_best == *ret_best;
}

static bool extreme_least_f32(int64_t n, const float *x, float *ret_best)
{
        *ret_best = sl_row_minimum(x, n);
        return *ret_best == *ret_best;
}

/* T: as it lies; V: as a number; M: of which it is said whether it is a NaN, an integer as wide. */
#define DEFINE_ARG(name, CLONES, T, V, M, LOAD, BETTER, IS_NAN)                                                                    \
        static bool place_##name(const struct arg *a, const T *x, int64_t *ret_place)                                              \
        {                                                                                                                          \
                int64_t i = a->last ? a->count - 1 : 0;                                                                            \
                V best;                                                                                                            \
                                                                                                                                   \
                if (!extreme_##name(a->count, x, &best))                                                                           \
                        return false;                                                                                              \
                while (!(LOAD(x[i]) == best))                                                                                      \
                        i += a->last ? -1 : 1;                                                                                     \
                *ret_place = i;                                                                                                    \
                return true;                                                                                                       \
        }                                                                                                                          \
                                                                                                                                   \
        static inline __attribute__((always_inline)) bool columns_##name(                                                          \
                const struct arg *a, int64_t row, int64_t step, int width, const T *x, int64_t *ret_places, bool last)             \
        {                                                                                                                          \
                V best[COLUMNS];                                                                                                   \
                M odd[COLUMNS];                                                                                                    \
                int32_t places[COLUMNS];                                                                                           \
                bool any = false;                                                                                                  \
                                                                                                                                   \
                for (int j = 0; j < width; j++) {                                                                                  \
                        best[j] = LOAD(x[j * step]);                                                                               \
                        odd[j] = (M)(IS_NAN(best[j]) ? -1 : 0);                                                                    \
                        places[j] = 0;                                                                                             \
                }                                                                                                                  \
                for (int64_t i = 1; i < a->count; i++)                                                                             \
                        for (int j = 0; j < width; j++) {                                                                          \
                                V v = LOAD(x[i * row + j * step]);                                                                 \
                                bool better = last ? !BETTER(best[j], v) : BETTER(v, best[j]);                                     \
                                                                                                                                   \
                                odd[j] |= (M)(IS_NAN(v) ? -1 : 0);                                                                 \
                                places[j] = better ? (int32_t)i : places[j];                                                       \
                                best[j] = better ? v : best[j];                                                                    \
                        }                                                                                                          \
                for (int j = 0; j < width; j++) {                                                                                  \
                        ret_places[j] = places[j];                                                                                 \
                        any |= odd[j] != 0;                                                                                        \
                }                                                                                                                  \
                return !any;                                                                                                       \
        }                                                                                                                          \
                                                                                                                                   \
        CLONES static bool name(const struct arg *a, int64_t row, int64_t step, int width, const void *in, int64_t *ret_places)    \
        {                                                                                                                          \
                if (width == 1 && row == 1)                                                                                        \
                        return place_##name(a, in, ret_places);                                                                    \
                if (a->last)                                                                                                       \
                        return columns_##name(a, row, step, width, in, ret_places, true);                                          \
                if (width == COLUMNS && step == 1)                                                                                 \
                        return columns_##name(a, row, 1, COLUMNS, in, ret_places, false);                                          \
                if (width == TOGETHER && row == 1)                                                                                 \
                        return columns_##name(a, 1, step, TOGETHER, in, ret_places, false);                                        \
                return columns_##name(a, row, step, width, in, ret_places, false);                                                 \
        }                                                                                                                          \
                                                                                                                                   \
        /* A NaN comes before all numbers, of several the first or the last. */                                                    \
        static bool careful_##name(const struct arg *a, int64_t row, int64_t step, int width, const void *in, int64_t *ret_places) \
        {                                                                                                                          \
                for (int j = 0; j < width; j++) {                                                                                  \
                        const T *x = (const T *)in + j * step;                                                                     \
                        int64_t at = 0;                                                                                            \
                                                                                                                                   \
                        for (int64_t i = 1; i < a->count; i++) {                                                                   \
                                V v = LOAD(x[i * row]), best = LOAD(x[at * row]);                                                  \
                                bool better = IS_NAN(v)      ? a->last || !IS_NAN(best)                                            \
                                              : IS_NAN(best) ? false                                                               \
                                              : a->last      ? !BETTER(best, v)                                                    \
                                                             : BETTER(v, best);                                                         \
                                                                                                                                   \
                                at = better ? i : at;                                                                              \
                        }                                                                                                          \
                        ret_places[j] = at;                                                                                        \
                }                                                                                                                  \
                return true;                                                                                                       \
        }

#define PLAIN
#define AS_IT_LIES(v) (v)
#define NEVER(v)      0
#define IS_NAN(v)     ((v) != (v))
#define GREATER(a, b) ((a) > (b))
#define SMALLER(a, b) ((a) < (b))

#define DEFINE_ARGS(name, CLONES, T, V, M, LOAD, IS_NAN)                                                                           \
        DEFINE_EXTREME(greatest_##name, CLONES, T, V, M, LOAD, GREATER, IS_NAN)                                                    \
        DEFINE_EXTREME(least_##name, CLONES, T, V, M, LOAD, SMALLER, IS_NAN)                                                       \
        DEFINE_ARG(greatest_##name, CLONES, T, V, M, LOAD, GREATER, IS_NAN)                                                        \
        DEFINE_ARG(least_##name, CLONES, T, V, M, LOAD, SMALLER, IS_NAN)

DEFINE_ARG(greatest_f32, SL_CPU_CLONES, float, float, int32_t, AS_IT_LIES, GREATER, IS_NAN)
DEFINE_ARG(least_f32, SL_CPU_CLONES, float, float, int32_t, AS_IT_LIES, SMALLER, IS_NAN)
DEFINE_ARGS(f64, PLAIN, double, double, int64_t, AS_IT_LIES, IS_NAN)
DEFINE_ARGS(f16, PLAIN, uint16_t, float, int32_t, sl_widen_f16, IS_NAN)
DEFINE_ARGS(bf16, PLAIN, uint16_t, float, int32_t, sl_widen_bf16, IS_NAN)
DEFINE_ARGS(i32, SL_CPU_CLONES, int32_t, int32_t, int32_t, AS_IT_LIES, NEVER)
DEFINE_ARGS(i64, SL_CPU_CLONES, int64_t, int64_t, int64_t, AS_IT_LIES, NEVER)
DEFINE_ARGS(u8, SL_CPU_CLONES, uint8_t, uint8_t, int8_t, AS_IT_LIES, NEVER)
DEFINE_ARGS(i8, PLAIN, int8_t, int8_t, int8_t, AS_IT_LIES, NEVER)

#define ROW(name)                                                                                                                  \
        {                                                                                                                          \
                {greatest_##name, careful_greatest_##name},                                                                        \
                {                                                                                                                  \
                        least_##name, careful_least_##name                                                                         \
                }                                                                                                                  \
        }

static arg_fn *const finders[SL_DTYPE_LIMIT][2][2] = {
        [SL_DTYPE_F32] = ROW(f32),
        [SL_DTYPE_F64] = ROW(f64),
        [SL_DTYPE_F16] = ROW(f16),
        [SL_DTYPE_BF16] = ROW(bf16),
        [SL_DTYPE_I32] = ROW(i32),
        [SL_DTYPE_I64] = ROW(i64),
        [SL_DTYPE_U8] = ROW(u8),
        [SL_DTYPE_I8] = ROW(i8),
};

static bool arg_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *x = &node->inputs[0];
        bool least = node->op == SL_OP_ARG_MIN;
        struct arg *a = state;
        uint32_t axis;

        (void)sizes;
        if (x->layout != SL_LAYOUT_PLAIN || node->outputs[0].layout != SL_LAYOUT_PLAIN || sl_cpu_is_empty(x) ||
                sl_axis_resolve(sl_attrs_int(&node->attrs, SL_ATTR_AXIS, 0), x->shape.rank, &axis, NULL))
                return false;
        a->outer = a->inner = 1;
        for (uint32_t d = 0; d < x->shape.rank; d++) {
                a->outer *= d < axis ? x->shape.dims[d] : 1;
                a->inner *= d > axis ? x->shape.dims[d] : 1;
        }
        a->count = x->shape.dims[axis];
        a->bytes = (int64_t)sl_dtype_bytes(x->dtype);
        a->last = sl_attrs_int(&node->attrs, SL_ATTR_MODE, 0);
        a->find = finders[x->dtype][least][0];
        a->find_carefully = finders[x->dtype][least][1];
        return a->find && a->count <= INT32_MAX;
}

static void find_places(
        const struct arg *a, const struct sl_binding *binding, int64_t row, int64_t step, int width, int64_t at, int64_t to)
{
        const char *x = (const char *)binding->inputs[0] + at * a->bytes;
        int64_t *places = (int64_t *)binding->outputs[0] + to;

        if (!a->find(a, row, step, width, x, places))
                a->find_carefully(a, row, step, width, x, places);
}

static int64_t inner_units(const struct arg *a)
{
        return (a->inner + COLUMNS - 1) / COLUMNS;
}

static int arg_run(const void *state, const struct sl_binding *binding)
{
        const struct arg *a = state;
        struct sl_part rows = sl_part_along(binding->part, SL_AXIS_ROWS, a->outer);
        struct sl_part columns = sl_part_along(binding->part, SL_AXIS_COLUMNS, inner_units(a));
        int64_t together = a->count >= SHORT ? 1 : TOGETHER;

        for (int64_t r = rows.first, n; r < rows.end && a->inner == 1 && columns.end > columns.first; r += n) {
                n = rows.end - r < together ? rows.end - r : together;
                find_places(a, binding, 1, a->count, (int)n, r * a->count, r);
        }
        for (int64_t r = rows.first; r < rows.end && a->inner > 1; r++)
                for (int64_t c = columns.first * COLUMNS; c < columns.end * COLUMNS && c < a->inner; c += COLUMNS) {
                        int width = (int)(a->inner - c < COLUMNS ? a->inner - c : COLUMNS);

                        find_places(a, binding, a->inner, 1, width, r * a->count * a->inner + c, r * a->inner + c);
                }
        return 0;
}

static int64_t arg_units(const void *state, uint32_t axis)
{
        const struct arg *a = state;

        return axis == SL_AXIS_ROWS ? a->outer : inner_units(a);
}

static bool arg_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct arg *a = state;
        int64_t bytes = operand == SL_REACH_OUTPUT ? (int64_t)sizeof(int64_t) : a->bytes;
        int64_t count = operand == SL_REACH_OUTPUT ? 1 : a->count;

        if (part->axis == SL_AXIS_ROWS)
                return sl_reach_rows(part, count * a->inner * bytes, ret_reach);
        return sl_reach_columns(part, COLUMNS * bytes, a->inner * bytes, a->outer * count, ret_reach);
}

const struct sl_cpu_loop sl_cpu_arg = {
        .state_bytes = sizeof(struct arg), .plan = arg_plan, .run = arg_run, .units = arg_units, .reach = arg_reach};
