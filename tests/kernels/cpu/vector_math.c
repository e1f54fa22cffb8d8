/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vector functions against the C library in double precision, over all magnitudes, and the three widths against each other.
 */
#include "cpu/base/vector_math.h"

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
static bool same_bits(float narrow, float wide)
{
        return !memcmp(&narrow, &wide, sizeof(narrow)) || (narrow != narrow && wide != wide);
}

#define COMPARE(lanes, store, one, many)                                                                                           \
        do {                                                                                                                       \
                store(wide, many);                                                                                                 \
                for (int i = 0; i < (lanes); i++) {                                                                                \
                        float x = in[i];                                                                                           \
                                                                                                                                   \
                        same = same && same_bits(one, wide[i]);                                                                    \
                }                                                                                                                  \
        } while (0)

/* Each function of a width against that of one float. */
#define DEFINE_AGREE(name, target, lanes, type, load, store, set)                                                                  \
        target static bool name(const float *in)                                                                                   \
        {                                                                                                                          \
                type v = load(in);                                                                                                 \
                float wide[lanes];                                                                                                 \
                bool same = true;                                                                                                  \
                                                                                                                                   \
                COMPARE(lanes, store, sl_exp(x), sl_exp_##lanes(v));                                                               \
                COMPARE(lanes, store, sl_erf(x), sl_erf_##lanes(v));                                                               \
                COMPARE(lanes, store, sl_tanh(x), sl_tanh_##lanes(v));                                                             \
                COMPARE(lanes, store, sl_sigmoid(x), sl_sigmoid_##lanes(v));                                                       \
                COMPARE(lanes, store, sl_swish(x, 1.5f), sl_swish_##lanes(v, set(1.5f)));                                          \
                COMPARE(lanes, store, sl_gelu(x), sl_gelu_##lanes(v));                                                             \
                COMPARE(lanes, store, sl_gelu_tanh(x), sl_gelu_tanh_##lanes(v));                                                   \
                COMPARE(lanes, store, sl_hard_swish(x), sl_hard_swish_##lanes(v));                                                 \
                return same;                                                                                                       \
        }

DEFINE_AGREE(sixteen_agree, SL_AVX512, 16, __m512, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_set1_ps)
DEFINE_AGREE(eight_agree, SL_AVX2, 8, __m256, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_set1_ps)

/* Of all magnitudes, some infinite or not a number. */
static void expect_agreement(bool (*agree)(const float *in), uint32_t lanes)
{
        float in[16];

        for (uint32_t at = 0; at < 0x7f900000u; at += lanes * 4099) {
                for (uint32_t i = 0; i < lanes; i++)
                        in[i] = float_of((at + i * 4099) | (i & 1 ? 0x80000000u : 0));
                cr_assert(agree(in), "from %g", (double)in[0]);
        }
}

Test(vector_math, sixteen_at_once_have_the_bits_of_one)
{
        if (!__builtin_cpu_supports("avx512f"))
                cr_skip_test("this processor has no AVX-512");
        expect_agreement(sixteen_agree, 16);
}

Test(vector_math, eight_at_once_have_the_bits_of_one)
{
        if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
                cr_skip_test("this processor has no AVX2");
        expect_agreement(eight_agree, 8);
}
#endif
