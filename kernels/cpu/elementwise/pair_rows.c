/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every type that networks compute with has rows of its own; types of 16 bits and those without a sign are compiled once, the
 * others in clones. float16 and bfloat16 are computed in float32 and rounded once, to the same bits as from double. Integers wrap;
 * a division by zero is 0.
 *
 * Integers of 8 and 16 bits divide in float32 and those of 32 bits in double: with a < 2^53 the rounding of a / b is less than 1 /
 * b, so that cutting it off is exact. Pieces of rows of 64 bits do so where all of their numbers are below 2^50, and one by one
 * else.
 */
#include "cpu/elementwise/pair_rows.h"

#include "cpu/base/bfloat16.h"
#include "cpu/base/operator.h"

#include <math.h>
#include <string.h>

#define PLAIN

#define DEFINE_ROW(CLONES, name, type, result_type, expression)                                                                    \
        CLONES static void name(                                                                                                   \
                int64_t n, void *result, const void *left, int64_t left_step, const void *right, int64_t right_step)               \
        {                                                                                                                          \
                const type *l = left, *r = right;                                                                                  \
                result_type *y = result;                                                                                           \
                                                                                                                                   \
                if (left_step == 1 && right_step == 1) {                                                                           \
                        _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++)                                                       \
                        {                                                                                                          \
                                type a = l[i], b = r[i];                                                                           \
                                y[i] = (result_type)(expression);                                                                  \
                        }                                                                                                          \
                } else if (left_step == 1 && right_step == 0) {                                                                    \
                        type b = r[0];                                                                                             \
                        _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++)                                                       \
                        {                                                                                                          \
                                type a = l[i];                                                                                     \
                                y[i] = (result_type)(expression);                                                                  \
                        }                                                                                                          \
                } else if (left_step == 0 && right_step == 1) {                                                                    \
                        type a = l[0];                                                                                             \
                        _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++)                                                       \
                        {                                                                                                          \
                                type b = r[i];                                                                                     \
                                y[i] = (result_type)(expression);                                                                  \
                        }                                                                                                          \
                } else {                                                                                                           \
                        for (int64_t i = 0; i < n; i++) {                                                                          \
                                type a = l[i * left_step], b = r[i * right_step];                                                  \
                                y[i] = (result_type)(expression);                                                                  \
                        }                                                                                                          \
                }                                                                                                                  \
        }

#define CLONED SL_CPU_CLONES

/* What is greater has its sides the other way round. */
#define DEFINE_SWAPPED(name, of)                                                                                                   \
        static void name(int64_t n, void *result, const void *left, int64_t left_step, const void *right, int64_t right_step)      \
        {                                                                                                                          \
                of(n, result, right, right_step, left, left_step);                                                                 \
        }

#define DEFINE_ORDER(CLONES, name, type)                                                                                           \
        DEFINE_ROW(CLONES, less_##name, type, uint8_t, a < b)                                                                      \
        DEFINE_ROW(CLONES, less_or_equal_##name, type, uint8_t, a <= b)                                                            \
        DEFINE_SWAPPED(greater_##name, less_##name)                                                                                \
        DEFINE_SWAPPED(greater_or_equal_##name, less_or_equal_##name)

/* Minimum and maximum hand a NaN on from either side, as numpy does. */
#define DEFINE_REALS(CLONES, name, type)                                                                                           \
        DEFINE_ROW(CLONES, add_##name, type, type, a + b)                                                                          \
        DEFINE_ROW(CLONES, sub_##name, type, type, a - b)                                                                          \
        DEFINE_ROW(CLONES, mul_##name, type, type, a *b)                                                                           \
        DEFINE_ROW(CLONES, div_##name, type, type, a / b)                                                                          \
        DEFINE_ROW(CLONES, min_##name, type, type, a < b || a != a ? a : b)                                                        \
        DEFINE_ROW(CLONES, max_##name, type, type, a > b || a != a ? a : b)                                                        \
        DEFINE_ROW(CLONES, equal_##name, type, uint8_t, a == b)                                                                    \
        DEFINE_ORDER(CLONES, name, type)

DEFINE_REALS(CLONED, f32, float)
DEFINE_REALS(CLONED, f64, double)
DEFINE_ROW(CLONED, add_bf16, uint16_t, uint16_t, sl_narrow_bf16(sl_widen_bf16(a) + sl_widen_bf16(b)))
DEFINE_ROW(CLONED, sub_bf16, uint16_t, uint16_t, sl_narrow_bf16(sl_widen_bf16(a) - sl_widen_bf16(b)))
DEFINE_ROW(CLONED, mul_bf16, uint16_t, uint16_t, sl_narrow_bf16(sl_widen_bf16(a) * sl_widen_bf16(b)))

DEFINE_ROW(PLAIN, power_f32, float, float, powf(a, b))
DEFINE_ROW(PLAIN, power_f64, double, double, pow(a, b))
DEFINE_ROW(CLONED, prelu_f32, float, float, a < 0.0f ? a * b : a)
DEFINE_ROW(CLONED, prelu_f64, double, double, a < 0.0 ? a * b : a)

/* The remainder has the sign of the divisor. */
static inline double remainder_of(double a, double b)
{
        double rest = fmod(a, b);

        if (rest != rest)
                return rest;
        if (rest == 0.0)
                return copysign(0.0, b);
        return (rest < 0.0) != (b < 0.0) ? rest + b : rest;
}

DEFINE_ROW(PLAIN, truncated_f32, float, float, fmodf(a, b))
DEFINE_ROW(PLAIN, truncated_f64, double, double, fmod(a, b))
DEFINE_ROW(PLAIN, floored_f32, float, float, remainder_of((double)a, (double)b))
DEFINE_ROW(PLAIN, floored_f64, double, double, remainder_of(a, b))

/* Squares are what Pow is mostly used for, and a product gives the same bits. */
#define DEFINE_POWER(name, type)                                                                                                   \
        static void pow_##name(                                                                                                    \
                int64_t n, void *result, const void *left, int64_t left_step, const void *right, int64_t right_step)               \
        {                                                                                                                          \
                if (right_step == 0 && *(const type *)right == 2)                                                                  \
                        mul_##name(n, result, left, left_step, left, left_step);                                                   \
                else                                                                                                               \
                        power_##name(n, result, left, left_step, right, right_step);                                               \
        }

DEFINE_POWER(f32, float)
DEFINE_POWER(f64, double)

/* Of a divisor that is not 0; what does not fit wraps around. */
static inline int32_t quotient_narrow(int32_t a, int32_t b)
{
        return (int32_t)((float)a / (float)b);
}

static inline int32_t quotient_i32(int32_t a, int32_t b)
{
        double quotient = (double)a / (double)b;

        return (int32_t)(quotient >= 0x1p31 ? -0x1p31 : quotient);
}

static inline uint64_t quotient_u64(uint64_t a, uint64_t b)
{
        return a / b;
}

static inline int64_t quotient_i64(int64_t a, int64_t b)
{
        return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

/*
 * T: as it lies; U: without a sign, in which it wraps. A remainder has the sign of the divisor, or where it is truncated that of
 * the dividend, as C's.
 */
#define DEFINE_DIVISIONS(CLONES, name, T, U, QUOTIENT)                                                                             \
        static inline T divided_##name(T a, T b)                                                                                   \
        {                                                                                                                          \
                T quotient = (T)QUOTIENT(a, b ? b : (T)1);                                                                         \
                                                                                                                                   \
                return b ? quotient : (T)0;                                                                                        \
        }                                                                                                                          \
                                                                                                                                   \
        static inline T rest_##name(T a, T b)                                                                                      \
        {                                                                                                                          \
                T rest = (T)((U)a - (U)(1u * (U)divided_##name(a, b) * (U)b));                                                     \
                                                                                                                                   \
                return b ? rest : (T)0;                                                                                            \
        }                                                                                                                          \
                                                                                                                                   \
        DEFINE_ROW(CLONES, div_##name, T, T, divided_##name(a, b))                                                                 \
        DEFINE_ROW(CLONES, truncated_##name, T, T, rest_##name(a, b))

#define DEFINE_SIGNED_DIVISIONS(CLONES, name, T, U, QUOTIENT)                                                                      \
        DEFINE_DIVISIONS(CLONES, name, T, U, QUOTIENT)                                                                             \
                                                                                                                                   \
        static inline T floored_rest_##name(T a, T b)                                                                              \
        {                                                                                                                          \
                T rest = rest_##name(a, b);                                                                                        \
                bool differs = (rest != 0) & ((rest < 0) != (b < 0));                                                              \
                                                                                                                                   \
                return differs ? (T)((U)rest + (U)b) : rest;                                                                       \
        }                                                                                                                          \
                                                                                                                                   \
        DEFINE_ROW(CLONES, floored_##name, T, T, floored_rest_##name(a, b))

#define IS_BELOW_0(b) ((b) < 0)
#define IS_NEVER(b)   false

/* a^b; what is below 1 is 0. */
#define DEFINE_WHOLE_POWER(name, T, U, IS_BELOW)                                                                                   \
        static inline T power_of_##name(T a, T b)                                                                                  \
        {                                                                                                                          \
                U base = (U)a, result = 1, exponent = (U)b;                                                                        \
                                                                                                                                   \
                if (IS_BELOW(b))                                                                                                   \
                        return (T)(a == 1 ? 1 : a != (T)-1 ? 0 : b % 2 != 0 ? -1 : 1);                                             \
                for (; exponent; exponent = (U)(exponent >> 1), base = (U)(1u * base * base))                                      \
                        if (exponent & 1)                                                                                          \
                                result = (U)(1u * result * base);                                                                  \
                return (T)result;                                                                                                  \
        }                                                                                                                          \
                                                                                                                                   \
        DEFINE_ROW(PLAIN, pow_##name, T, T, power_of_##name(a, b))

/* Of so many bits, with a sign or without. */
#define DEFINE_BITS(CLONES, bits)                                                                                                  \
        DEFINE_ROW(CLONES, add_##bits, uint##bits##_t, uint##bits##_t, a + b)                                                      \
        DEFINE_ROW(CLONES, sub_##bits, uint##bits##_t, uint##bits##_t, a - b)                                                      \
        DEFINE_ROW(CLONES, mul_##bits, uint##bits##_t, uint##bits##_t, 1u * a * b)                                                 \
        DEFINE_ROW(CLONES, and_##bits, uint##bits##_t, uint##bits##_t, a &b)                                                       \
        DEFINE_ROW(CLONES, or_##bits, uint##bits##_t, uint##bits##_t, a | b)                                                       \
        DEFINE_ROW(CLONES, xor_##bits, uint##bits##_t, uint##bits##_t, a ^ b)                                                      \
        DEFINE_ROW(CLONES, equal_##bits, uint##bits##_t, uint8_t, a == b)

DEFINE_BITS(CLONED, 64)
DEFINE_BITS(CLONED, 32)
DEFINE_BITS(PLAIN, 16)
DEFINE_BITS(PLAIN, 8)

#define DEFINE_WHOLES(CLONES, name, T, U, IS_BELOW)                                                                                \
        DEFINE_ROW(CLONES, min_##name, T, T, a < b ? a : b)                                                                        \
        DEFINE_ROW(CLONES, max_##name, T, T, a > b ? a : b)                                                                        \
        DEFINE_ORDER(CLONES, name, T)                                                                                              \
        DEFINE_WHOLE_POWER(name, T, U, IS_BELOW)

DEFINE_WHOLES(CLONED, i64, int64_t, uint64_t, IS_BELOW_0)
DEFINE_WHOLES(CLONED, i32, int32_t, uint32_t, IS_BELOW_0)
DEFINE_WHOLES(PLAIN, u8, uint8_t, uint8_t, IS_NEVER)
DEFINE_WHOLES(PLAIN, i8, int8_t, uint8_t, IS_BELOW_0)
DEFINE_WHOLES(PLAIN, u16, uint16_t, uint16_t, IS_NEVER)
DEFINE_WHOLES(PLAIN, i16, int16_t, uint16_t, IS_BELOW_0)
DEFINE_WHOLES(PLAIN, u32, uint32_t, uint32_t, IS_NEVER)
DEFINE_WHOLES(PLAIN, u64, uint64_t, uint64_t, IS_NEVER)

DEFINE_SIGNED_DIVISIONS(CLONED, i32, int32_t, uint32_t, quotient_i32)
DEFINE_DIVISIONS(PLAIN, u8, uint8_t, uint8_t, quotient_narrow)
DEFINE_SIGNED_DIVISIONS(PLAIN, i8, int8_t, uint8_t, quotient_narrow)
DEFINE_DIVISIONS(PLAIN, u16, uint16_t, uint16_t, quotient_narrow)
DEFINE_SIGNED_DIVISIONS(PLAIN, i16, int16_t, uint16_t, quotient_narrow)
DEFINE_DIVISIONS(PLAIN, u32, uint32_t, uint32_t, quotient_u64)
DEFINE_DIVISIONS(PLAIN, u64, uint64_t, uint64_t, quotient_u64)
DEFINE_SIGNED_DIVISIONS(PLAIN, one_by_one_i64, int64_t, uint64_t, quotient_i64)

/* Numbers below 2^51 lie in the last places of doubles that begin with 1.5 * 2^52. */
#define PIECE 256
#define MAGIC 0x1.8p52
#define NEAR  ((uint64_t)1 << 50)

static inline double near_to_double(int64_t x)
{
        double y, magic = MAGIC;
        int64_t bits;

        memcpy(&bits, &magic, sizeof(bits));
        bits += x;
        memcpy(&y, &bits, sizeof(y));
        return y - MAGIC;
}

static inline int64_t near_from_double(double x)
{
        double magic = MAGIC;
        int64_t bits, own;

        x += MAGIC;
        memcpy(&bits, &magic, sizeof(bits));
        memcpy(&own, &x, sizeof(own));
        return own - bits;
}

static inline int64_t quotient_near(int64_t a, int64_t b)
{
        return near_from_double(trunc(near_to_double(a) / near_to_double(b)));
}

DEFINE_SIGNED_DIVISIONS(CLONED, near_i64, int64_t, uint64_t, quotient_near)

/* One piece of an operand, side by side. */
static const int64_t *gather_piece(int64_t n, const int64_t *from, int64_t step, int64_t *room)
{
        if (step == 1)
                return from;
        for (int64_t i = 0; i < n; i++)
                room[i] = from[i * step];
        return room;
}

CLONED static bool all_near(int64_t n, const int64_t *a, const int64_t *b)
{
        uint64_t far = 0;

        for (int64_t i = 0; i < n; i++)
                far |= (((uint64_t)a[i] + NEAR) | ((uint64_t)b[i] + NEAR)) & ~(2 * NEAR - 1);
        return !far;
}

static void divide_pieces(sl_pair_row *near, sl_pair_row *one_by_one, int64_t n, int64_t *y, const int64_t *l, int64_t left_step,
        const int64_t *r, int64_t right_step)
{
        int64_t left_room[PIECE], right_room[PIECE];

        for (int64_t at = 0, m; at < n; at += m) {
                const int64_t *a, *b;

                m = n - at < PIECE ? n - at : PIECE;
                a = gather_piece(m, l + at * left_step, left_step, left_room);
                b = gather_piece(m, r + at * right_step, right_step, right_room);
                (all_near(m, a, b) ? near : one_by_one)(m, y + at, a, 1, b, 1);
        }
}

#define DEFINE_PIECES(name)                                                                                                        \
        static void name##_i64(                                                                                                    \
                int64_t n, void *result, const void *left, int64_t left_step, const void *right, int64_t right_step)               \
        {                                                                                                                          \
                divide_pieces(name##_near_i64, name##_one_by_one_i64, n, result, left, left_step, right, right_step);              \
        }

DEFINE_PIECES(div)
DEFINE_PIECES(truncated)
DEFINE_PIECES(floored)

/* A boolean is whether any bit is set. */
DEFINE_ROW(CLONED, and_bool, uint8_t, uint8_t, (a != 0) & (b != 0))
DEFINE_ROW(CLONED, or_bool, uint8_t, uint8_t, (a != 0) | (b != 0))
DEFINE_ROW(CLONED, xor_bool, uint8_t, uint8_t, (a != 0) ^ (b != 0))
DEFINE_ROW(CLONED, equal_bool, uint8_t, uint8_t, (a != 0) == (b != 0))

#define ARITHMETIC(name, adding)                                                                                                   \
        [SL_OP_ADD] = add_##adding, [SL_OP_SUB] = sub_##adding, [SL_OP_MUL] = mul_##adding, [SL_OP_SUM] = add_##adding,            \
        [SL_OP_DIV] = div_##name, [SL_OP_MIN] = min_##name, [SL_OP_MAX] = max_##name, [SL_OP_POW] = pow_##name,                    \
        [SL_OP_EQUAL] = equal_##adding, [SL_OP_GREATER] = greater_##name, [SL_OP_GREATER_OR_EQUAL] = greater_or_equal_##name,      \
        [SL_OP_LESS] = less_##name, [SL_OP_LESS_OR_EQUAL] = less_or_equal_##name

#define REALS(name)                                                                                                                \
        {                                                                                                                          \
                ARITHMETIC(name, name), [SL_OP_MEAN] = add_##name, [SL_OP_PRELU] = prelu_##name, [SL_OP_MOD] = floored_##name      \
        }

#define WHOLES(name, bits, remainder)                                                                                              \
        {                                                                                                                          \
                ARITHMETIC(name, bits), [SL_OP_MOD] = remainder##_##name, [SL_OP_BITWISE_AND] = and_##bits,                        \
                                        [SL_OP_BITWISE_OR] = or_##bits, [SL_OP_BITWISE_XOR] = xor_##bits                           \
        }

static sl_pair_row *const rows[SL_DTYPE_LIMIT][SL_OP_COUNT] = {
        [SL_DTYPE_F32] = REALS(f32),
        [SL_DTYPE_F64] = REALS(f64),
        [SL_DTYPE_BF16] = {[SL_OP_ADD] = add_bf16, [SL_OP_SUB] = sub_bf16, [SL_OP_MUL] = mul_bf16},
        [SL_DTYPE_I64] = WHOLES(i64, 64, floored),
        [SL_DTYPE_I32] = WHOLES(i32, 32, floored),
        [SL_DTYPE_I16] = WHOLES(i16, 16, floored),
        [SL_DTYPE_I8] = WHOLES(i8, 8, floored),
        [SL_DTYPE_U64] = WHOLES(u64, 64, truncated),
        [SL_DTYPE_U32] = WHOLES(u32, 32, truncated),
        [SL_DTYPE_U16] = WHOLES(u16, 16, truncated),
        [SL_DTYPE_U8] = WHOLES(u8, 8, truncated),
        [SL_DTYPE_BOOL] = {[SL_OP_AND] = and_bool, [SL_OP_OR] = or_bool, [SL_OP_XOR] = xor_bool, [SL_OP_EQUAL] = equal_bool},
};

static sl_pair_row *const truncated[SL_DTYPE_LIMIT] = {
        [SL_DTYPE_F32] = truncated_f32,
        [SL_DTYPE_F64] = truncated_f64,
        [SL_DTYPE_I64] = truncated_i64,
        [SL_DTYPE_I32] = truncated_i32,
        [SL_DTYPE_I16] = truncated_i16,
        [SL_DTYPE_I8] = truncated_i8,
        [SL_DTYPE_U64] = truncated_u64,
        [SL_DTYPE_U32] = truncated_u32,
        [SL_DTYPE_U16] = truncated_u16,
        [SL_DTYPE_U8] = truncated_u8,
};

sl_pair_row *sl_pair_row_of(const struct sl_node_desc *node, uint32_t dtype)
{
        if (dtype >= SL_DTYPE_LIMIT)
                return NULL;
        if (node->op == SL_OP_MOD && sl_attrs_int(&node->attrs, SL_ATTR_FMOD, 0))
                return truncated[dtype];
        return rows[dtype][node->op];
}
