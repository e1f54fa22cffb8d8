#include "cpu/finish.h"
#include "cpu/vector.h"

/*
 * 1 / (1 + 2^t), for t = -x / ln 2: within 3e-7 of the value. With fewer instructions than the functions of vector_math.h, of which
 * there are too many here rather than too slow ones. Beyond +-126 the result is that at the bound, below 2e-38 or 1. The polynomial
 * is that of the least relative error of 2^r, |r| <= 1/2, with 1 at 0.
 */
static inline __attribute__((always_inline)) __m512 sigmoid_of_power(__m512 t)
{
        __m512 bounded = _mm512_min_ps(sl_vector_set(126.0f), _mm512_max_ps(sl_vector_set(-126.0f), t));
        __m512 magic = _mm512_add_ps(bounded, sl_vector_set(0x1.8p23f));
        __m512 r = _mm512_sub_ps(bounded, _mm512_sub_ps(magic, sl_vector_set(0x1.8p23f)));
        __m512 p = _mm512_fmadd_ps(sl_vector_set(0x1.5bba14p-10f), r, sl_vector_set(0x1.3cea88p-7f));

        p = _mm512_fmadd_ps(p, r, sl_vector_set(0x1.c6b752p-5f));
        p = _mm512_fmadd_ps(p, r, sl_vector_set(0x1.ebf9bcp-3f));
        p = _mm512_fmadd_ps(p, r, sl_vector_set(0x1.62e42ap-1f));
        p = _mm512_fmadd_ps(p, r, sl_vector_set(1.0f));
        /* The low bits of magic are the exponent. */
        p = _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p), _mm512_slli_epi32(_mm512_castps_si512(magic), 23)));
        return sl_vector_reciprocal(_mm512_add_ps(sl_vector_set(1.0f), p));
}

static inline __attribute__((always_inline)) __m512 activate(uint32_t activation, __m512 a, __m512 x)
{
        const __m512 zero = _mm512_setzero_ps(), one = sl_vector_set(1.0f);

        switch (activation) {
        case SL_ACT_SIGMOID:
                return sigmoid_of_power(_mm512_mul_ps(x, sl_vector_set(-0x1.715476p+0f)));
        case SL_ACT_TANH:
                return sl_tanh_16(x);
        case SL_ACT_LEAKY_RELU:
                return _mm512_mask_mul_ps(x, _mm512_cmp_ps_mask(x, zero, _CMP_LT_OQ), x, a);
        case SL_ACT_HARD_SWISH:
                return sl_hard_swish_16(x);
        case SL_ACT_GELU_ERF:
                return sl_gelu_16(x);
        case SL_ACT_SWISH:
                return _mm512_mul_ps(x, sigmoid_of_power(_mm512_mul_ps(x, a)));
        case SL_ACT_ELU:
                return _mm512_mask_mul_ps(x, _mm512_cmp_ps_mask(x, zero, _CMP_LT_OQ), a, _mm512_sub_ps(sl_exp_16(x), one));
        default:
                return x;
        }
}

static inline __attribute__((always_inline)) void activate_block(
        uint32_t activation, float act_a, float *data, int64_t stride, int64_t rows, int64_t columns)
{
        /* Swish takes its slope as a power of 2. */
        const __m512 a = sl_vector_set(activation == SL_ACT_SWISH ? act_a * -0x1.715476p+0f : act_a);

        for (int64_t row = 0; row < rows; row++)
                for (int64_t column = 0; column < columns; column += SL_VECTOR_FLOATS) {
                        float *at = data + row * stride + column;
                        __mmask16 mask = sl_vector_mask(columns - column);

                        _mm512_mask_storeu_ps(at, mask, activate(activation, a, _mm512_maskz_loadu_ps(mask, at)));
                }
}

void sl_finish_activate(const struct sl_finish *finish, float *data, int64_t stride, int64_t rows, int64_t columns)
{
#define CASE(name)                                                                                                                 \
        case name:                                                                                                                 \
                return activate_block(name, finish->act_a, data, stride, rows, columns)
        switch (finish->activation) {
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
