/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where, Cast, IsNaN and IsInf: element by element, in any layout.
 */
#include "cpu/base/bfloat16.h"
#include "cpu/base/walk.h"
#include "cpu/elementwise/loops.h"
#include "cpu/elementwise/narrow_piece.h"
#include "cpu/elementwise/short_rows.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define DEFINE_CHOOSE(name, type)                                                                                                  \
        SL_CPU_CLONES static void name(int64_t n, type *y, const uint8_t *condition, const type *yes, const type *no,              \
                const int64_t steps[static SL_WALK_TENSORS])                                                                       \
        {                                                                                                                          \
                if (steps[1] == 1 && steps[2] == 1 && steps[3] == 1) {                                                             \
                        _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++)                                                       \
                        {                                                                                                          \
                                type chosen = yes[i], other = no[i];                                                               \
                                                                                                                                   \
                                y[i] = condition[i] ? chosen : other;                                                              \
                        }                                                                                                          \
                        return;                                                                                                    \
                }                                                                                                                  \
                if (steps[1] == 1 && steps[2] == 1 && steps[3] == 0) {                                                             \
                        type other = no[0];                                                                                        \
                                                                                                                                   \
                        _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++)                                                       \
                        {                                                                                                          \
                                type chosen = yes[i];                                                                              \
                                y[i] = condition[i] ? chosen : other;                                                              \
                        }                                                                                                          \
                        return;                                                                                                    \
                }                                                                                                                  \
                if (steps[1] == 1 && steps[2] == 0 && steps[3] == 1) {                                                             \
                        type other = yes[0];                                                                                       \
                                                                                                                                   \
                        _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++)                                                       \
                        {                                                                                                          \
                                type chosen = no[i];                                                                               \
                                y[i] = condition[i] ? other : chosen;                                                              \
                        }                                                                                                          \
                        return;                                                                                                    \
                }                                                                                                                  \
                if (steps[1] == 0 && steps[2] == 1 && steps[3] == 1) {                                                             \
                        memcpy(y, condition[0] ? yes : no, (size_t)n * sizeof(*y));                                                \
                        return;                                                                                                    \
                }                                                                                                                  \
                for (int64_t i = 0; i < n; i++)                                                                                    \
                        y[i] = condition[i * steps[1]] ? yes[i * steps[2]] : no[i * steps[3]];                                     \
        }

DEFINE_CHOOSE(choose_8, uint8_t)
DEFINE_CHOOSE(choose_16, uint16_t)
DEFINE_CHOOSE(choose_32, uint32_t)
DEFINE_CHOOSE(choose_64, uint64_t)

struct where {
        size_t bytes;
        struct sl_walk walk; /* the result, the condition, the two values */
};

static bool where_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        struct where *where = state;

        (void)sizes;
        where->bytes = sl_dtype_bytes(node->outputs[0].dtype);
        if (node->n_inputs != 3 || node->inputs[0].dtype != SL_DTYPE_BOOL || !where->bytes)
                return false;
        if (node->inputs[1].dtype != node->outputs[0].dtype || node->inputs[2].dtype != node->outputs[0].dtype)
                return false;
        return sl_walk_elements(&where->walk, &node->outputs[0], node->inputs, 3);
}

static void choose_row(size_t bytes, int64_t n, char *y, const uint8_t *condition, const char *yes, const char *no,
        const int64_t steps[static SL_WALK_TENSORS])
{
        switch (bytes) {
        case 1:
                return choose_8(n, (uint8_t *)y, condition, (const uint8_t *)yes, (const uint8_t *)no, steps);
        case 2:
                return choose_16(n, (uint16_t *)y, condition, (const uint16_t *)yes, (const uint16_t *)no, steps);
        case 4:
                return choose_32(n, (uint32_t *)y, condition, (const uint32_t *)yes, (const uint32_t *)no, steps);
        default:
                return choose_64(n, (uint64_t *)y, condition, (const uint64_t *)yes, (const uint64_t *)no, steps);
        }
}

/* Short rows, from @row on. */
static void where_pieces(
        const struct where *where, const struct sl_walk *walk, struct sl_walk_row *row, const struct sl_binding *binding)
{
        int64_t bytes = (int64_t)where->bytes, rows = walk->sizes[walk->rank - 2], n = sl_walk_row_length(walk);
        int64_t piece = sl_short_rows_of_piece(walk);
        struct sl_short_rows operands[3];

        for (uint32_t i = 0; i < 3; i++) {
                operands[i].walk = walk;
                operands[i].tensor = i + 1;
                operands[i].bytes = i ? bytes : 1;
        }
        do {
                for (int64_t at = 0, taken; at < rows; at += taken) {
                        taken = rows - at < piece ? rows - at : piece;
                        for (uint32_t i = 0; i < 3; i++)
                                sl_short_rows_lay(&operands[i],
                                        (const char *)binding->inputs[i] + row->offset[i + 1] * operands[i].bytes, at, taken);
                        choose_row(where->bytes, taken * n, (char *)binding->outputs[0] + (row->offset[0] + at * n) * bytes,
                                operands[0].data, operands[1].data, operands[2].data,
                                (const int64_t[]){1, operands[0].step, operands[1].step, operands[2].step});
                }
        } while (sl_walk_next(walk, row, 2));
}

static int where_run(const void *state, const struct sl_binding *binding)
{
        const struct where *where = state;
        int64_t steps[SL_WALK_TENSORS], bytes = (int64_t)where->bytes;
        struct sl_walk room;
        struct sl_walk_row row;
        const struct sl_walk *walk = sl_walk_take(&where->walk, binding->part, &room, &row);

        if (sl_walk_is_empty(walk))
                return 0;
        if (sl_rows_are_short(walk)) {
                where_pieces(where, walk, &row, binding);
                return 0;
        }
        for (uint32_t t = 0; t < SL_WALK_TENSORS; t++)
                steps[t] = sl_walk_row_stride(walk, t);
        do
                choose_row(where->bytes, sl_walk_row_length(walk), (char *)binding->outputs[0] + row.offset[0] * bytes,
                        (const uint8_t *)binding->inputs[0] + row.offset[1],
                        (const char *)binding->inputs[1] + row.offset[2] * bytes,
                        (const char *)binding->inputs[2] + row.offset[3] * bytes, steps);
        while (sl_walk_next(walk, &row, 1));
        return 0;
}

static int64_t where_units(const void *state, uint32_t axis)
{
        const struct where *where = state;

        return sl_walk_units(&where->walk, axis);
}

static bool where_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct where *where = state;
        int64_t bytes = operand == 0 ? 1 : (int64_t)where->bytes; /* the condition's is one */

        return sl_walk_reach(&where->walk, part, operand == SL_REACH_OUTPUT ? 0 : operand + 1, bytes, ret_reach);
}

const struct sl_cpu_loop sl_cpu_where = {
        .state_bytes = sizeof(struct where), .plan = where_plan, .run = where_run, .units = where_units, .reach = where_reach};

typedef void cast_function(int64_t n, void *result, const void *argument);

/* The types between which casts are written, and the C type of each. */
#define CAST_TYPES(X, from, from_type)                                                                                             \
        X(from, from_type, F32, float)                                                                                             \
        X(from, from_type, F64, double)                                                                                            \
        X(from, from_type, I32, int32_t)                                                                                           \
        X(from, from_type, I64, int64_t)                                                                                           \
        X(from, from_type, U8, uint8_t)                                                                                            \
        X(from, from_type, I8, int8_t)

#define DEFINE_CAST(from, from_type, to, to_type)                                                                                  \
        SL_CPU_CLONES static void cast_##from##_##to(int64_t n, void *result, const void *argument)                                \
        {                                                                                                                          \
                const from_type *x = argument;                                                                                     \
                to_type *y = result;                                                                                               \
                                                                                                                                   \
                for (int64_t i = 0; i < n; i++)                                                                                    \
                        y[i] = (to_type)x[i];                                                                                      \
        }

/* Towards zero; what is out of range becomes the nearest limit, and a NaN 0. @above is the first number that does not fit. */
#define DEFINE_SATURATING_CAST(from, from_type, to, to_type, least, most, above)                                                   \
        SL_CPU_CLONES static void cast_##from##_##to(int64_t n, void *result, const void *argument)                                \
        {                                                                                                                          \
                const from_type *x = argument;                                                                                     \
                to_type *y = result;                                                                                               \
                                                                                                                                   \
                for (int64_t i = 0; i < n; i++)                                                                                    \
                        y[i] = x[i] >= (from_type)(above)   ? (most)                                                               \
                               : x[i] > (from_type)(least)  ? (to_type)x[i]                                                        \
                               : x[i] <= (from_type)(least) ? (least)                                                              \
                                                            : 0;                                                                   \
        }

#define DEFINE_FLOAT_CASTS(from, from_type)                                                                                        \
        DEFINE_CAST(from, from_type, F32, float)                                                                                   \
        DEFINE_CAST(from, from_type, F64, double)                                                                                  \
        DEFINE_SATURATING_CAST(from, from_type, I32, int32_t, INT32_MIN, INT32_MAX, 0x1p31)                                        \
        DEFINE_SATURATING_CAST(from, from_type, I64, int64_t, INT64_MIN, INT64_MAX, 0x1p63)                                        \
        DEFINE_SATURATING_CAST(from, from_type, U8, uint8_t, 0, UINT8_MAX, 256)                                                    \
        DEFINE_SATURATING_CAST(from, from_type, I8, int8_t, INT8_MIN, INT8_MAX, 128)

#define DEFINE_TRUTH(from, from_type)                                                                                              \
        SL_CPU_CLONES static void cast_##from##_BOOL(int64_t n, void *result, const void *argument)                                \
        {                                                                                                                          \
                const from_type *x = argument;                                                                                     \
                uint8_t *y = result;                                                                                               \
                                                                                                                                   \
                for (int64_t i = 0; i < n; i++)                                                                                    \
                        y[i] = x[i] != 0;                                                                                          \
        }

CAST_TYPES(DEFINE_CAST, I32, int32_t)
CAST_TYPES(DEFINE_CAST, I64, int64_t)
CAST_TYPES(DEFINE_CAST, U8, uint8_t)
CAST_TYPES(DEFINE_CAST, I8, int8_t)
DEFINE_FLOAT_CASTS(F32, float)
DEFINE_FLOAT_CASTS(F64, double)
DEFINE_TRUTH(F32, float)
DEFINE_TRUTH(F64, double)
DEFINE_TRUTH(I32, int32_t)
DEFINE_TRUTH(I64, int64_t)
DEFINE_TRUTH(U8, uint8_t)
DEFINE_TRUTH(I8, int8_t)

SL_CPU_CLONES static void cast_F32_BF16(int64_t n, void *result, const void *argument)
{
        const float *x = argument;
        uint16_t *y = result;

        for (int64_t i = 0; i < n; i++)
                y[i] = sl_narrow_bf16(x[i]);
}

SL_CPU_CLONES static void cast_BF16_F32(int64_t n, void *result, const void *argument)
{
        const uint16_t *x = argument;
        float *y = result;

        for (int64_t i = 0; i < n; i++)
                y[i] = sl_widen_bf16(x[i]);
}

static void cast_F32_F16(int64_t n, void *result, const void *argument)
{
        sl_narrow_piece_store(SL_DTYPE_F16, n, result, argument);
}

static void cast_F16_F32(int64_t n, void *result, const void *argument)
{
        sl_narrow_piece_load(SL_DTYPE_F16, n, result, argument, 1);
}

#define CAST_ENTRY(from, from_type, to, to_type) [SL_DTYPE_##from][SL_DTYPE_##to] = cast_##from##_##to,
#define TRUTH_ENTRY(from)                        [SL_DTYPE_##from][SL_DTYPE_BOOL] = cast_##from##_BOOL,

#define CAST_ROW(from, from_type) CAST_TYPES(CAST_ENTRY, from, from_type) TRUTH_ENTRY(from)

static cast_function *const casts[SL_DTYPE_LIMIT][SL_DTYPE_LIMIT] = {
        CAST_ROW(F32, float) CAST_ROW(F64, double) CAST_ROW(I32, int32_t) CAST_ROW(I64, int64_t) CAST_ROW(U8, uint8_t)
                CAST_ROW(I8, int8_t)[SL_DTYPE_F32][SL_DTYPE_BF16] = cast_F32_BF16,
        [SL_DTYPE_BF16][SL_DTYPE_F32] = cast_BF16_F32, [SL_DTYPE_F32][SL_DTYPE_F16] = cast_F32_F16,
        [SL_DTYPE_F16][SL_DTYPE_F32] = cast_F16_F32};

struct cast {
        cast_function *function;
        int64_t elements, from_bytes, to_bytes;
};

static void set_sizes(struct cast *cast, const struct sl_tensor *from, const struct sl_tensor *to)
{
        cast->elements = (int64_t)sl_shape_elements(&from->shape);
        cast->from_bytes = (int64_t)sl_dtype_bytes(from->dtype);
        cast->to_bytes = (int64_t)sl_dtype_bytes(to->dtype);
}

static bool cast_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *x = &node->inputs[0], *y = &node->outputs[0];
        struct cast *cast = state;
        /* A boolean is a byte of 0 or 1. */
        uint32_t from = x->dtype == SL_DTYPE_BOOL ? SL_DTYPE_U8 : x->dtype;

        (void)sizes;
        if (from >= SL_DTYPE_LIMIT || y->dtype >= SL_DTYPE_LIMIT || !sl_cpu_same_place(x, y))
                return false;
        cast->function = casts[from][y->dtype];
        set_sizes(cast, x, y);
        return cast->function != NULL;
}

static int cast_run(const void *state, const struct sl_binding *binding)
{
        const struct cast *cast = state;
        struct sl_part part = sl_flat_part(binding->part, cast->elements);

        cast->function(part.end - part.first, (char *)binding->outputs[0] + part.first * cast->to_bytes,
                (const char *)binding->inputs[0] + part.first * cast->from_bytes);
        return 0;
}

static int64_t cast_units(const void *state, uint32_t axis)
{
        const struct cast *cast = state;

        return sl_flat_units(cast->elements, axis);
}

static bool cast_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct cast *cast = state;

        return sl_flat_reach(part, cast->elements, operand == SL_REACH_OUTPUT ? cast->to_bytes : cast->from_bytes, ret_reach);
}

const struct sl_cpu_loop sl_cpu_cast = {
        .state_bytes = sizeof(struct cast), .plan = cast_plan, .run = cast_run, .units = cast_units, .reach = cast_reach};

#define DEFINE_PREDICATE(name, type, expression)                                                                                   \
        SL_CPU_CLONES static void name(int64_t n, void *result, const void *argument)                                              \
        {                                                                                                                          \
                const type *x = argument;                                                                                          \
                uint8_t *y = result;                                                                                               \
                                                                                                                                   \
                for (int64_t i = 0; i < n; i++)                                                                                    \
                        y[i] = (expression);                                                                                       \
        }

DEFINE_PREDICATE(is_nan_f32, float, x[i] != x[i])
DEFINE_PREDICATE(is_nan_f64, double, x[i] != x[i])
DEFINE_PREDICATE(is_positive_inf_f32, float, x[i] > FLT_MAX)
DEFINE_PREDICATE(is_positive_inf_f64, double, x[i] > DBL_MAX)
DEFINE_PREDICATE(is_negative_inf_f32, float, x[i] < -FLT_MAX)
DEFINE_PREDICATE(is_negative_inf_f64, double, x[i] < -DBL_MAX)
DEFINE_PREDICATE(is_any_inf_f32, float, fabsf(x[i]) > FLT_MAX)
DEFINE_PREDICATE(is_any_inf_f64, double, fabs(x[i]) > DBL_MAX)
DEFINE_PREDICATE(is_no_inf_f32, float, 0 & (x[i] > 0))
DEFINE_PREDICATE(is_no_inf_f64, double, 0 & (x[i] > 0))

static cast_function *find_predicate(const struct sl_node_desc *node, bool wide)
{
        static cast_function *const of_inf[2][4] = {{is_no_inf_f32, is_positive_inf_f32, is_negative_inf_f32, is_any_inf_f32},
                {is_no_inf_f64, is_positive_inf_f64, is_negative_inf_f64, is_any_inf_f64}};
        bool positive = sl_attrs_int(&node->attrs, SL_ATTR_DETECT_POSITIVE, 1);
        bool negative = sl_attrs_int(&node->attrs, SL_ATTR_DETECT_NEGATIVE, 1);

        if (node->op == SL_OP_IS_NAN)
                return wide ? is_nan_f64 : is_nan_f32;
        return of_inf[wide][positive + 2 * negative];
}

static bool predicate_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *x = &node->inputs[0];
        struct cast *cast = state;

        (void)sizes;
        if ((x->dtype != SL_DTYPE_F32 && x->dtype != SL_DTYPE_F64) || !sl_cpu_same_place(x, &node->outputs[0]))
                return false;
        cast->function = find_predicate(node, x->dtype == SL_DTYPE_F64);
        set_sizes(cast, x, &node->outputs[0]);
        return true;
}

const struct sl_cpu_loop sl_cpu_predicate = {
        .state_bytes = sizeof(struct cast), .plan = predicate_plan, .run = cast_run, .units = cast_units};
