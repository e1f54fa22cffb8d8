#include "cpu/finish.h"
#include "cpu/vector.h"

static inline __attribute__((always_inline)) __m512 activate(uint32_t activation, __m512 a, __m512 x)
{
        const __m512 zero = _mm512_setzero_ps(), one = sl_vector_set(1.0f);

        switch (activation) {
        case SL_ACT_SIGMOID:
                return sl_sigmoid_16(x);
        case SL_ACT_TANH:
                return sl_tanh_16(x);
        case SL_ACT_LEAKY_RELU:
                return _mm512_mask_mul_ps(x, _mm512_cmp_ps_mask(x, zero, _CMP_LT_OQ), x, a);
        case SL_ACT_HARD_SWISH:
                return sl_hard_swish_16(x);
        case SL_ACT_GELU_ERF:
                return sl_gelu_16(x);
        case SL_ACT_SWISH:
                return sl_swish_16(x, a);
        case SL_ACT_ELU:
                return _mm512_mask_mul_ps(x, _mm512_cmp_ps_mask(x, zero, _CMP_LT_OQ), a, _mm512_sub_ps(sl_exp_16(x), one));
        default:
                return x;
        }
}

static inline __attribute__((always_inline)) void activate_block(
        uint32_t activation, float act_a, float *data, int64_t stride, int64_t rows, int64_t columns)
{
        const __m512 a = sl_vector_set(act_a);

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
