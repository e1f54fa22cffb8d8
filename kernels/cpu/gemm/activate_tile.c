/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Activations over a block that was just summed. Four vectors, of two rows, go through every step together: a vector's own steps
 * wait for each other.
 */
#include "cpu/base/bfloat16.h"
#include "cpu/base/vector.h"
#include "cpu/gemm/epilogue.h"

#define GROUP 4

#define INLINE static inline __attribute__((always_inline))

#define PRAGMA(text) _Pragma(#text)
#define EACH         PRAGMA(GCC unroll 4) for (int i = 0; i < GROUP; i++)

/*
 * t = 1 / (1 + 2^t), for t = -x / ln 2: within 3e-7 of the value. With fewer instructions than the functions of vector_math.h, of
 * which there are too many here rather than too slow ones: 2^t is the power of the fraction, scaled by the whole part. Above 126
 * the result is 0, so that the product with -infinity is NaN. The polynomial is that of the least relative error of 2^r, 0 <= r <
 * 1, with 1 at 0.
 */
INLINE void sigmoids_of_powers(sl_vector t[GROUP])
{
        static const float factors[] = {0x1.277854p-7f, 0x1.c91ce6p-5f, 0x1.ebdb56p-3f, 0x1.62e4bap-1f, 1.0f};
        const sl_vector bound = sl_vector_set(126.0f);
        sl_vector r[GROUP], p[GROUP];
        sl_lanes none[GROUP];

        EACH none[i] = sl_vector_less(bound, t[i]);
        EACH t[i] = sl_vector_min(bound, t[i]);
        EACH r[i] = sl_vector_fraction(t[i]);
        EACH p[i] = sl_vector_set(0x1.e974fcp-10f);
#pragma GCC unroll 5
        for (int k = 0; k < 5; k++)
                EACH p[i] = sl_vector_fma(p[i], r[i], sl_vector_set(factors[k]));
        EACH p[i] = sl_vector_add(sl_vector_set(1.0f), sl_vector_scale(p[i], t[i]));
        EACH t[i] = sl_vector_where(none[i], sl_vector_zero(), sl_vector_reciprocal(p[i]));
}

/*
 * x * (1/2 + h), where h = erf(x / sqrt(2)) / 2 is x * P(x^2) up to 5.1: within 4e-7 of the larger of 1 and |x|. A division would
 * take longer than the whole polynomial, which stands in the variable of Chebyshev's and was fitted for the least error of the
 * result.
 */
INLINE void gelus(sl_vector x[GROUP])
{
        static const float factors[] = {-0x1.0e2f9ep-9f, 0x1.13175ap-9f, -0x1.8745ccp-9f, 0x1.d363p-8f, -0x1.90b642p-7f,
                0x1.1c64dp-6f, -0x1.8848a0p-6f, 0x1.03f7a6p-5f, -0x1.498eap-5f, 0x1.a0015ep-5f, -0x1.1aa2bcp-4f, 0x1.1bdd18p-3f};
        const sl_vector half = sl_vector_set(0.5f);
        sl_vector v[GROUP], p[GROUP];

        EACH v[i] = sl_vector_min(sl_vector_set(0x1.a028f6p+4f), sl_vector_mul(x[i], x[i]));
        EACH v[i] = sl_vector_fma(v[i], sl_vector_set(0x1.3af4aep-4f), sl_vector_set(-1.0f));
        EACH p[i] = sl_vector_set(0x1.98b568p-11f);
#pragma GCC unroll 12
        for (int k = 0; k < 12; k++)
                EACH p[i] = sl_vector_fma(p[i], v[i], sl_vector_set(factors[k]));
        EACH p[i] = sl_vector_clip(sl_vector_mul(x[i], p[i]), sl_vector_set(-0.5f), half);
        EACH x[i] = sl_vector_mul(x[i], sl_vector_add(half, p[i]));
}

INLINE void activate(uint32_t activation, sl_vector a, sl_vector x[GROUP])
{
        const sl_vector zero = sl_vector_zero(), one = sl_vector_set(1.0f);
        sl_vector t[GROUP];

        switch (activation) {
        case SL_ACT_SIGMOID:
                EACH x[i] = sl_vector_mul(x[i], sl_vector_set(-0x1.715476p+0f));
                sigmoids_of_powers(x);
                return;
        case SL_ACT_TANH:
                EACH x[i] = sl_vector_tanh(x[i]);
                return;
        case SL_ACT_LEAKY_RELU:
                EACH x[i] = sl_vector_where(sl_vector_less(x[i], zero), sl_vector_mul(x[i], a), x[i]);
                return;
        case SL_ACT_HARD_SWISH:
                EACH x[i] = sl_vector_hard_swish(x[i]);
                return;
        case SL_ACT_GELU_ERF:
                gelus(x);
                return;
        case SL_ACT_SWISH:
                EACH t[i] = sl_vector_mul(x[i], a);
                sigmoids_of_powers(t);
                EACH x[i] = sl_vector_mul(x[i], t[i]);
                return;
        case SL_ACT_ELU:
                EACH t[i] = sl_vector_sub(sl_vector_exp(x[i]), one);
                /* Of numbers so small it is the number itself, and the difference 0. */
                EACH t[i] = sl_vector_where(sl_vector_less(x[i], sl_vector_set(-0x1p-24f)), t[i], x[i]);
                EACH x[i] = sl_vector_where(sl_vector_less(x[i], zero), sl_vector_mul(a, t[i]), x[i]);
                return;
        default:
                return;
        }
}

INLINE void activate_group(uint32_t activation, sl_vector a, float *const at[2], sl_lanes first, sl_lanes second)
{
        sl_vector x[GROUP];

        EACH x[i] = sl_vector_load_lanes(i % 2 ? second : first, at[i / 2] + i % 2 * SL_VECTOR_FLOATS);
        activate(activation, a, x);
        EACH sl_vector_store_lanes(at[i / 2] + i % 2 * SL_VECTOR_FLOATS, i % 2 ? second : first, x[i]);
}

/* A last row that has no other beside it goes through both halves of the group. */
INLINE void activate_block(uint32_t activation, float act_a, float *data, int64_t stride, int64_t rows, int64_t columns)
{
        /* Swish takes its slope as a power of 2. */
        const sl_vector a = sl_vector_set(activation == SL_ACT_SWISH ? act_a * -0x1.715476p+0f : act_a);
        const int64_t width = 2 * SL_VECTOR_FLOATS;

        for (int64_t row = 0; row < rows; row += 2) {
                float *at[2] = {data + row * stride, data + (row + 1 < rows ? row + 1 : row) * stride};
                int64_t left = columns;

                for (; left >= width; left -= width, at[0] += width, at[1] += width)
                        activate_group(activation, a, at, sl_lanes_all(), sl_lanes_all());
                if (left > 0)
                        activate_group(activation, a, at, sl_lanes_first(left),
                                sl_lanes_first(left > SL_VECTOR_FLOATS ? left - SL_VECTOR_FLOATS : 0));
        }
}

void SL_TILE(sl_cpu_epilogue_activate)(
        const struct sl_cpu_epilogue *epilogue, float *data, int64_t stride, int64_t rows, int64_t columns)
{
#define CASE(name)                                                                                                                 \
        case name:                                                                                                                 \
                return activate_block(name, epilogue->act_a, data, stride, rows, columns)
        switch (epilogue->activation) {
                CASE(SL_ACT_SIGMOID);
                CASE(SL_ACT_TANH);
                CASE(SL_ACT_LEAKY_RELU);
                CASE(SL_ACT_GELU_ERF);
                CASE(SL_ACT_HARD_SWISH);
                CASE(SL_ACT_SWISH);
                CASE(SL_ACT_ELU);
        default:
                return;
        }
#undef CASE
}

/* As two rows, which lie in the L1 cache with their halves. */
#define BLOCK 1024

void SL_TILE(sl_cpu_epilogue_activate_bf16)(const struct sl_cpu_epilogue *epilogue, uint16_t *data, int64_t n)
{
        float block[BLOCK] = {0};

        for (int64_t i = 0; i < n; i += BLOCK) {
                int64_t columns = n - i < BLOCK ? n - i : BLOCK;

                for (int64_t k = 0; k < columns; k++)
                        block[k] = sl_widen_bf16(data[i + k]);
                SL_TILE(sl_cpu_epilogue_activate)(epilogue, block, BLOCK / 2, 2, BLOCK / 2);
                for (int64_t k = 0; k < columns; k++)
                        data[i + k] = sl_narrow_bf16(block[k]);
        }
}
