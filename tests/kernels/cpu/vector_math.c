/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vector functions against the C library in double precision, over all magnitudes, and the two widths against each other.
 */
#include "cpu/vector_math.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdbool.h>

/* Floats from 2^-30 to @largest, both signs, some 16 million over their bits. */
#define FOR_EACH_FLOAT(x, largest)                                                                                                 \
        for (uint32_t at = 0x30800000u; at < 0x48000000u; at += 97)                                                                \
                for (int side = 0; side < 2; side++)                                                                               \
                        for (float x = float_of(at | (side ? 0x80000000u : 0)), once = 1; once != 0 && fabsf(x) <= (largest);      \
                                once = 0)

static float float_of(uint32_t bits)
{
        float x;

        memcpy(&x, &bits, sizeof(x));
        return x;
}

/* Infinite for NaN, which fmax() would drop. */
static double distance(double got, double want)
{
        return isnan(got) ? INFINITY : fabs(got - want);
}

static double relative(double got, double want)
{
        return distance(got, want) / fabs(want);
}

Test(vector_math, exp_is_within_two_ulp)
{
        double worst = 0;

        FOR_EACH_FLOAT(x, 87)
        worst = fmax(worst, relative((double)sl_exp(x), exp((double)x)));
        cr_assert_lt(worst, 1.3e-7, "%g", worst);
        cr_assert_eq(sl_exp(-105.0f), 0.0f);
        cr_assert_eq(sl_exp(-INFINITY), 0.0f);
        cr_assert_eq(sl_exp(88.8f), INFINITY);
        cr_assert_eq(sl_exp(INFINITY), INFINITY);
        cr_assert_eq(sl_exp(0.0f), 1.0f);
        cr_assert_lt(fabs((double)sl_exp(-95.0f) - exp(-95)), 3e-45);
}

Test(vector_math, erf_and_tanh_are_close_and_never_above_one)
{
        double worst_erf = 0, worst_tanh = 0;

        FOR_EACH_FLOAT(x, 100)
        {
                float e = sl_erf(x), t = sl_tanh(x);

                worst_erf = fmax(worst_erf, relative((double)e, erf((double)x)));
                worst_tanh = fmax(worst_tanh, relative((double)t, tanh((double)x)));
                cr_assert(fabsf(e) <= 1 && fabsf(t) <= 1);
        }
        cr_assert_lt(worst_erf, 4.5e-7, "%g", worst_erf);
        cr_assert_lt(worst_tanh, 4.5e-7, "%g", worst_tanh);
}

Test(vector_math, sigmoid_swish_and_gelu_are_close)
{
        double worst_sigmoid = 0, worst_swish = 0, worst_gelu = 0, worst_tanh = 0;

        FOR_EACH_FLOAT(x, 80)
        {
                double d = (double)x, unit = fmax(1, fabs(d));
                double t = 0.5 * d * (1 + tanh(0.7978845608028654 * (d + 0.044715 * d * d * d)));

                worst_sigmoid = fmax(worst_sigmoid, relative((double)sl_sigmoid(x), 1 / (1 + exp(-d))));
                worst_swish = fmax(worst_swish, distance((double)sl_swish(x, 1.0f), d / (1 + exp(-d))) / unit);
                worst_gelu = fmax(worst_gelu, distance((double)sl_gelu(x), 0.5 * d * (1 + erf(d * M_SQRT1_2))) / unit);
                worst_tanh = fmax(worst_tanh, distance((double)sl_gelu_tanh(x), t) / unit);
        }
        cr_assert_lt(worst_sigmoid, 3e-7, "%g", worst_sigmoid);
        cr_assert_lt(worst_swish, 3e-7, "%g", worst_swish);
        cr_assert_lt(worst_gelu, 4e-7, "%g", worst_gelu);
        cr_assert_lt(worst_tanh, 4e-7, "%g", worst_tanh);
}

Test(vector_math, a_nan_stays_one)
{
        cr_assert(isnan(sl_exp(NAN)));
        cr_assert(isnan(sl_erf(NAN)));
        cr_assert(isnan(sl_tanh(NAN)));
        cr_assert(isnan(sl_sigmoid(NAN)));
        cr_assert(isnan(sl_gelu(NAN)));
        cr_assert(isnan(sl_swish(NAN, 1.0f)));
        cr_assert(isnan(sl_hard_swish(NAN)));
}

#if defined(__x86_64__)
#define COMPARE(one, sixteen)                                                                                                      \
        do {                                                                                                                       \
                _mm512_storeu_ps(wide, sixteen);                                                                                   \
                for (int i = 0; i < 16; i++) {                                                                                     \
                        float x = in[i], narrow = one;                                                                             \
                        same = same && (!memcmp(&narrow, &wide[i], sizeof(narrow)) || (narrow != narrow && wide[i] != wide[i]));   \
                }                                                                                                                  \
        } while (0)

SL_AVX512 static bool both_widths_agree(const float *in)
{
        __m512 v = _mm512_loadu_ps(in);
        float wide[16];
        bool same = true;

        COMPARE(sl_exp(x), sl_exp_16(v));
        COMPARE(sl_erf(x), sl_erf_16(v));
        COMPARE(sl_tanh(x), sl_tanh_16(v));
        COMPARE(sl_sigmoid(x), sl_sigmoid_16(v));
        COMPARE(sl_swish(x, 1.5f), sl_swish_16(v, _mm512_set1_ps(1.5f)));
        COMPARE(sl_gelu(x), sl_gelu_16(v));
        COMPARE(sl_gelu_tanh(x), sl_gelu_tanh_16(v));
        COMPARE(sl_hard_swish(x), sl_hard_swish_16(v));
        return same;
}

Test(vector_math, sixteen_at_once_have_the_bits_of_one)
{
        float in[16];

        if (!__builtin_cpu_supports("avx512f"))
                cr_skip_test("this processor has no AVX-512");
        for (uint32_t at = 0; at < 0x7f800000u; at += 16 * 4099) {
                for (uint32_t i = 0; i < 16; i++)
                        in[i] = float_of((at + i * 4099) | (i & 1 ? 0x80000000u : 0));
                cr_assert(both_widths_agree(in), "from %g", (double)in[0]);
        }
}
#endif
