/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/elementwise/narrow_piece.h"

#include "base/dtype.h"
#include "cpu/base/bfloat16.h"
#include "cpu/base/float16.h"
#include "cpu/base/isa.h"
#include "cpu/base/operator.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define DEFINE_PIECE(name)                                                                                                         \
        SL_CPU_CLONES static void load_##name(int64_t n, float *restrict to, const uint16_t *restrict from, int64_t step)          \
        {                                                                                                                          \
                if (step == 1)                                                                                                     \
                        for (int64_t i = 0; i < n; i++)                                                                            \
                                to[i] = sl_widen_##name(from[i]);                                                                  \
                else                                                                                                               \
                        for (int64_t i = 0; i < n; i++)                                                                            \
                                to[i] = sl_widen_##name(from[i * step]);                                                           \
        }                                                                                                                          \
                                                                                                                                   \
        SL_CPU_CLONES static void store_##name(int64_t n, uint16_t *restrict to, const float *restrict from)                       \
        {                                                                                                                          \
                for (int64_t i = 0; i < n; i++)                                                                                    \
                        to[i] = sl_narrow_##name(from[i]);                                                                         \
        }

DEFINE_PIECE(f16)
DEFINE_PIECE(bf16)

#if defined(__x86_64__)
#define WITH_AVX512 __attribute__((target("avx512f")))

WITH_AVX512 static void load_f16_avx512(int64_t n, float *to, const uint16_t *from)
{
        int64_t i = 0;

        for (; i + 16 <= n; i += 16)
                _mm512_storeu_ps(to + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(from + i))));
        load_f16(n - i, to + i, from + i, 1);
}

/* A NaN keeps its sign alone, as in float16.h. */
WITH_AVX512 static void store_f16_avx512(int64_t n, uint16_t *to, const float *from)
{
        const __m512i sign = _mm512_set1_epi32((int32_t)0x80000000u), nan = _mm512_set1_epi32(0x7fc00000);
        int64_t i = 0;

        for (; i + 16 <= n; i += 16) {
                __m512 x = _mm512_loadu_ps(from + i);
                __m512i none = _mm512_or_si512(_mm512_and_si512(_mm512_castps_si512(x), sign), nan);

                x = _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), _mm512_castsi512_ps(none));
                _mm256_storeu_si256((__m256i *)(to + i), _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
        }
        store_f16(n - i, to + i, from + i);
}

static bool load_by_vectors(uint32_t dtype, int64_t n, float *to, const void *from, int64_t step)
{
        if (dtype != SL_DTYPE_F16 || step != 1 || !sl_cpu_has_avx512())
                return false;
        load_f16_avx512(n, to, from);
        return true;
}

static bool store_by_vectors(uint32_t dtype, int64_t n, void *to, const float *from)
{
        if (dtype != SL_DTYPE_F16 || !sl_cpu_has_avx512())
                return false;
        store_f16_avx512(n, to, from);
        return true;
}
#else
static bool load_by_vectors(uint32_t dtype, int64_t n, float *to, const void *from, int64_t step)
{
        (void)dtype, (void)n, (void)to, (void)from, (void)step;
        return false;
}

static bool store_by_vectors(uint32_t dtype, int64_t n, void *to, const float *from)
{
        (void)dtype, (void)n, (void)to, (void)from;
        return false;
}
#endif

void sl_narrow_piece_load(uint32_t dtype, int64_t n, float *to, const void *from, int64_t step)
{
        if (!load_by_vectors(dtype, n, to, from, step))
                (dtype == SL_DTYPE_F16 ? load_f16 : load_bf16)(n, to, from, step);
}

void sl_narrow_piece_store(uint32_t dtype, int64_t n, void *to, const float *from)
{
        if (!store_by_vectors(dtype, n, to, from))
                (dtype == SL_DTYPE_F16 ? store_f16 : store_bf16)(n, to, from);
}
