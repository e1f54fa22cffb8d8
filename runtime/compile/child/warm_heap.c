/* SPDX-License-Identifier: Apache-2.0 */
#include "warm_heap.h"

#include "base/bytes.h"

#include <stdlib.h>

#define GROWN_AT_ONCE ((1u << 20) / SL_WARM_PIECE)
#define PIECES_MAX    (SL_WARM_HEAP_BYTES / SL_WARM_PIECE)

static bool add_piece(struct sl_warm_heap *heap)
{
        volatile char *piece = heap->n < PIECES_MAX ? malloc(SL_WARM_PIECE) : NULL;

        if (!piece)
                return false;
        for (uint32_t i = 0; i < SL_WARM_PIECE; i += SL_PAGE_BYTES)
                piece[i] = 0;
        heap->pieces[heap->n++] = (void *)piece;
        return true;
}

bool sl_warm_heap_grow(struct sl_warm_heap *heap)
{
        bool more = true;

        for (uint32_t i = 0; i < GROWN_AT_ONCE && more; i++)
                more = add_piece(heap);
        return more;
}

void sl_warm_heap_open(struct sl_warm_heap *heap)
{
        for (uint32_t i = 0; i + 1 < heap->n; i++)
                free(heap->pieces[i]);
}
