/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Some lanes of a vector of floats (vector.h) from and to bfloat16 in memory, with the bits of bfloat16.h. Lanes that are not there
 * are 0, and are not read or written.
 */
#pragma once

#include "cpu/base/vector.h"

#include <string.h>

#ifdef __AVX512F__

#define sl_vector_load_lanes_bf16(lanes, p)                                                                                        \
        _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes, p)), 16))

/* VCVTNEPS2BF16 would make subnormal numbers 0. */
SL_VECTOR_INLINE void sl_vector_store_lanes_bf16(uint16_t *p, sl_lanes lanes, sl_vector x)
{
        __m512i bits = _mm512_castps_si512(x), high = _mm512_srli_epi32(bits, 16);
        __m512i even = _mm512_and_si512(high, _mm512_set1_epi32(1));
        __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), even), 16);
        __m512i quiet = _mm512_or_si512(high, _mm512_set1_epi32(0x40));

        rounded = _mm512_mask_mov_epi32(rounded, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), quiet);
        _mm256_mask_storeu_epi16(p, lanes, _mm512_cvtepi32_epi16(rounded));
}

#else

/* The first so many are there. */
SL_VECTOR_INLINE size_t sl_lanes_count(sl_lanes lanes)
{
        return (size_t)__builtin_popcount((unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(lanes)));
}

SL_VECTOR_INLINE sl_vector sl_vector_load_lanes_bf16(sl_lanes lanes, const uint16_t *p)
{
        size_t n = sl_lanes_count(lanes);
        uint16_t halves[SL_VECTOR_FLOATS] = {0};

        if (n == SL_VECTOR_FLOATS)
                return sl_vector_load_bf16(p);
        memcpy(halves, p, n * sizeof(*p));
        return sl_vector_load_bf16(halves);
}

SL_VECTOR_INLINE void sl_vector_store_lanes_bf16(uint16_t *p, sl_lanes lanes, sl_vector x)
{
        size_t n = sl_lanes_count(lanes);
        __m256i bits = _mm256_castps_si256(x), high = _mm256_srli_epi32(bits, 16);
        __m256i even = _mm256_and_si256(high, _mm256_set1_epi32(1));
        __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), even), 16);
        __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
        __m128i halves;

        rounded = _mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)));
        halves = _mm_packus_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1));
        if (n == SL_VECTOR_FLOATS)
                _mm_storeu_si128((__m128i *)(void *)p, halves);
        else
                memcpy(p, &halves, n * sizeof(*p));
}

#endif
