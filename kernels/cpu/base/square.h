/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As many vectors as a vector has lanes: turned, so that rows become columns, or each joined to one lane of one vector. Pure; any
 * thread.
 */
#pragma once

#include "cpu/base/vector.h"

#if SL_VECTOR_FLOATS == 16

/* In four lanes of four: pairs, then squares of four by four, then the squares are moved to their places. */
SL_VECTOR_INLINE void sl_square_transpose(sl_vector a[16])
{
        sl_vector b[16];

#pragma GCC unroll 8
        for (int i = 0; i < 16; i += 2) {
                b[i] = _mm512_unpacklo_ps(a[i], a[i + 1]);
                b[i + 1] = _mm512_unpackhi_ps(a[i], a[i + 1]);
        }
#pragma GCC unroll 4
        for (int i = 0; i < 16; i += 4) {
                a[i] = _mm512_shuffle_ps(b[i], b[i + 2], 0x44);
                a[i + 1] = _mm512_shuffle_ps(b[i], b[i + 2], 0xee);
                a[i + 2] = _mm512_shuffle_ps(b[i + 1], b[i + 3], 0x44);
                a[i + 3] = _mm512_shuffle_ps(b[i + 1], b[i + 3], 0xee);
        }
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
                b[i] = _mm512_shuffle_f32x4(a[i], a[i + 4], 0x88);
                b[i + 4] = _mm512_shuffle_f32x4(a[i], a[i + 4], 0xdd);
                b[i + 8] = _mm512_shuffle_f32x4(a[i + 8], a[i + 12], 0x88);
                b[i + 12] = _mm512_shuffle_f32x4(a[i + 8], a[i + 12], 0xdd);
        }
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
                a[i] = _mm512_shuffle_f32x4(b[i], b[i + 8], 0x88);
                a[i + 8] = _mm512_shuffle_f32x4(b[i], b[i + 8], 0xdd);
                a[i + 4] = _mm512_shuffle_f32x4(b[i + 4], b[i + 12], 0x88);
                a[i + 12] = _mm512_shuffle_f32x4(b[i + 4], b[i + 12], 0xdd);
        }
}

/* Pairs of rows, then four, eight and all of them share a vector. */
#define SL_SQUARE_JOIN(name, join)                                                                                                 \
        SL_VECTOR_INLINE sl_vector name(const sl_vector rows[16])                                                                  \
        {                                                                                                                          \
                sl_vector a[8];                                                                                                    \
                                                                                                                                   \
                _Pragma("GCC unroll 8") for (int i = 0; i < 8; i++) a[i] =                                                         \
                        join(_mm512_unpacklo_ps(rows[2 * i], rows[2 * i + 1]), _mm512_unpackhi_ps(rows[2 * i], rows[2 * i + 1]));  \
                _Pragma("GCC unroll 4") for (int i = 0; i < 4; i++) a[i] =                                                         \
                        join(_mm512_shuffle_ps(a[2 * i], a[2 * i + 1], 0x44), _mm512_shuffle_ps(a[2 * i], a[2 * i + 1], 0xee));    \
                _Pragma("GCC unroll 2") for (int i = 0; i < 2; i++) a[i] = join(                                                   \
                        _mm512_shuffle_f32x4(a[2 * i], a[2 * i + 1], 0x88), _mm512_shuffle_f32x4(a[2 * i], a[2 * i + 1], 0xdd));   \
                return join(_mm512_shuffle_f32x4(a[0], a[1], 0x88), _mm512_shuffle_f32x4(a[0], a[1], 0xdd));                       \
        }

#else

SL_VECTOR_INLINE void sl_square_transpose(sl_vector a[8])
{
        sl_vector b[8];

#pragma GCC unroll 4
        for (int i = 0; i < 8; i += 2) {
                b[i] = _mm256_unpacklo_ps(a[i], a[i + 1]);
                b[i + 1] = _mm256_unpackhi_ps(a[i], a[i + 1]);
        }
#pragma GCC unroll 2
        for (int i = 0; i < 8; i += 4) {
                a[i] = _mm256_shuffle_ps(b[i], b[i + 2], 0x44);
                a[i + 1] = _mm256_shuffle_ps(b[i], b[i + 2], 0xee);
                a[i + 2] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0x44);
                a[i + 3] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0xee);
        }
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
                b[i] = _mm256_permute2f128_ps(a[i], a[i + 4], 0x20);
                b[i + 4] = _mm256_permute2f128_ps(a[i], a[i + 4], 0x31);
        }
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++)
                a[i] = b[i];
}

#define SL_SQUARE_JOIN(name, join)                                                                                                 \
        SL_VECTOR_INLINE sl_vector name(const sl_vector rows[8])                                                                   \
        {                                                                                                                          \
                sl_vector a[4];                                                                                                    \
                                                                                                                                   \
                _Pragma("GCC unroll 4") for (int i = 0; i < 4; i++) a[i] =                                                         \
                        join(_mm256_unpacklo_ps(rows[2 * i], rows[2 * i + 1]), _mm256_unpackhi_ps(rows[2 * i], rows[2 * i + 1]));  \
                _Pragma("GCC unroll 2") for (int i = 0; i < 2; i++) a[i] =                                                         \
                        join(_mm256_shuffle_ps(a[2 * i], a[2 * i + 1], 0x44), _mm256_shuffle_ps(a[2 * i], a[2 * i + 1], 0xee));    \
                return join(_mm256_permute2f128_ps(a[0], a[1], 0x20), _mm256_permute2f128_ps(a[0], a[1], 0x31));                   \
        }

#endif

SL_SQUARE_JOIN(sl_square_largest, sl_vector_max)
SL_SQUARE_JOIN(sl_square_sum, sl_vector_add)
