/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane is a walk that is under way. Trees are of uneven depth, so a vector of which half the lanes have come to their leaves puts
 * these away and takes on walks that wait; four vectors take turns, so that the loads of one hide behind those of the others.
 */
#include "cpu/ml/trees.h"

#include <immintrin.h>
#include <stdbool.h>

#define LANES   16
#define VECTORS 4
#define REFILL  8 /* lanes that are done */

struct lanes {
        __m512i at, rows, walks; /* which walk each lane is */
        __mmask16 on;            /* lanes that are a walk */
};

struct queue {
        int32_t *at;
        const int32_t *rows;
        int next, end;
};

/* One node down. Returns the lanes that were at leaves already, where they stay. */
static inline __mmask16 step(const struct sl_tree_walk *walk, struct lanes *lanes, __m512i columns, __m128i bits)
{
        const __m512i keys_of = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        const __m512i words_of = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
        __m512i low = _mm512_i32gather_epi64(_mm512_castsi512_si256(lanes->at), walk->nodes, 8);
        __m512i high = _mm512_i32gather_epi64(_mm512_extracti64x4_epi64(lanes->at, 1), walk->nodes, 8);
        __m512i word = _mm512_permutex2var_epi32(low, words_of, high), key = _mm512_permutex2var_epi32(low, keys_of, high);
        __m512i place = _mm512_add_epi32(lanes->rows, _mm512_and_si512(word, columns));
        __m512i x = _mm512_i32gather_epi32(place, walk->keys, 4), offset = _mm512_srl_epi32(word, bits);
        __m512i base = _mm512_add_epi32(lanes->at, offset);

        lanes->at = _mm512_mask_sub_epi32(base, _mm512_cmple_epi32_mask(x, key), base, _mm512_set1_epi32(-1));
        return _mm512_testn_epi32_mask(offset, offset);
}

/* The lowest @n of the lanes. */
static inline __mmask16 lowest(__mmask16 lanes, int n)
{
        uint32_t left = lanes;

        while (__builtin_popcount(left) > n)
                left &= ~(1u << (31 - __builtin_clz(left)));
        return (__mmask16)left;
}

/* Walks that wait take the place of those that are done. */
static inline void refill(struct queue *queue, struct lanes *lanes, __mmask16 done)
{
        __mmask16 away = done & lanes->on;
        int room = __builtin_popcount(done), n = queue->end - queue->next < room ? queue->end - queue->next : room;
        __mmask16 taken = lowest(done, n);
        const __m512i count = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);

        _mm512_mask_i32scatter_epi32(queue->at, away, lanes->walks, lanes->at, 4);
        lanes->at = _mm512_mask_expandloadu_epi32(lanes->at, taken, queue->at + queue->next);
        lanes->rows = _mm512_mask_expandloadu_epi32(lanes->rows, taken, queue->rows + queue->next);
        lanes->walks = _mm512_mask_expand_epi32(lanes->walks, taken, _mm512_add_epi32(count, _mm512_set1_epi32(queue->next)));
        lanes->on = (__mmask16)((lanes->on & ~done) | taken);
        queue->next += n;
}

void sl_tree_walk_narrow_avx512(const struct sl_tree_walk *walk, int32_t *at, const int32_t *rows, int walks)
{
        const __m512i columns = _mm512_set1_epi32((int32_t)((1u << walk->column_bits) - 1));
        const __m128i bits = _mm_cvtsi32_si128((int32_t)walk->column_bits);
        struct queue queue = {at, rows, 0, walks};
        struct lanes v[VECTORS];
        bool any = true;

        for (int i = 0; i < VECTORS; i++) {
                v[i] = (struct lanes){_mm512_set1_epi32(at[0]), _mm512_set1_epi32(rows[0]), _mm512_setzero_si512(), 0};
                refill(&queue, &v[i], (__mmask16)-1);
        }
        while (any) {
                any = false;
                for (int i = 0; i < VECTORS; i++) {
                        __mmask16 done;

                        if (!v[i].on)
                                continue;
                        done = step(walk, &v[i], columns, bits);
                        if (queue.next < queue.end ? __builtin_popcount(done) >= REFILL : !(v[i].on & ~done))
                                refill(&queue, &v[i], done);
                        any |= v[i].on != 0;
                }
        }
}
