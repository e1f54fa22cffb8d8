/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces up to PIECE_BYTES_MAX are cut from blocks of BLOCK_BYTES; larger ones have a block of their own. Blocks and adopted
 * things hang on two singly linked lists whose links lie in the blocks themselves. One owner thread.
 */
#include "arena.h"

#include "base/bytes.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES     (64u << 10)
#define PIECE_BYTES_MAX (BLOCK_BYTES / 4)

struct block {
        struct block *next;
        void *memory;        /* that it lies in */
        uint64_t used_bytes; /* of the memory behind this header, which takes one line */
};

struct adopted {
        struct adopted *next;
        void *pointer;
        size_t bytes;
        void (*release)(void *pointer, size_t bytes);
};

struct copy {
        struct copy *next;
        const void *source;
        void *bytes;
};

struct sl_graph_arena {
        struct block *open; /* the block that small pieces are cut from */
        struct block *blocks;
        struct adopted *adopted;
        struct copy *copies;
};

static_assert(sizeof(struct block) <= SL_LINE_BYTES, "a block's header takes one line");

struct sl_graph_arena *sl_graph_arena_new(void)
{
        return calloc(1, sizeof(struct sl_graph_arena));
}

struct sl_graph_arena *sl_graph_arena_free(struct sl_graph_arena *arena)
{
        if (!arena)
                return NULL;
        for (struct adopted *thing = arena->adopted; thing; thing = thing->next)
                thing->release(thing->pointer, thing->bytes);
        for (struct block *block = arena->blocks, *next; block; block = next) {
                next = block->next;
                free(block->memory);
        }
        sl_graph_arena_drop_copies(arena);
        free(arena);
        return NULL;
}

/* @memory: of 2 lines more than the block has room for, or NULL. */
static struct block *add_block(struct sl_graph_arena *arena, void *memory)
{
        struct block *block = (struct block *)sl_align_up((uintptr_t)memory, SL_LINE_BYTES);

        if (!memory)
                return NULL;
        block->memory = memory;
        block->used_bytes = 0;
        block->next = arena->blocks;
        arena->blocks = block;
        return block;
}

static void *cut(struct block *block, uint64_t bytes)
{
        void *piece = (uint8_t *)block + SL_LINE_BYTES + block->used_bytes;

        block->used_bytes += sl_align_up(bytes, SL_LINE_BYTES);
        return piece;
}

/* calloc() does not clear again what is fresh from the kernel, which large pieces are. */
static void *alloc_large(struct sl_graph_arena *arena, uint64_t bytes)
{
        struct block *own =
                bytes > SIZE_MAX / 2 ? NULL : add_block(arena, calloc(1, 2 * SL_LINE_BYTES + sl_align_up(bytes, SL_LINE_BYTES)));

        return own ? cut(own, bytes) : NULL;
}

/* Of a block for small pieces much may never be touched: each piece is cleared when it is cut. */
void *sl_graph_arena_alloc(struct sl_graph_arena *arena, uint64_t bytes)
{
        if (bytes > PIECE_BYTES_MAX)
                return alloc_large(arena, bytes);
        if (!arena->open || arena->open->used_bytes + sl_align_up(bytes, SL_LINE_BYTES) > BLOCK_BYTES) {
                struct block *fresh = add_block(arena, malloc(2 * SL_LINE_BYTES + BLOCK_BYTES));

                if (!fresh)
                        return NULL;
                arena->open = fresh;
        }
        return memset(cut(arena->open, bytes), 0, bytes);
}

static struct copy *add_copy(struct sl_graph_arena *arena, const void *source, uint64_t bytes)
{
        struct copy *copy = calloc(1, sizeof(*copy));

        if (!copy)
                return NULL;
        copy->bytes = aligned_alloc(SL_LINE_BYTES, sl_align_up(bytes, SL_LINE_BYTES));
        if (!copy->bytes) {
                free(copy);
                return NULL;
        }
        copy->source = source;
        memcpy(copy->bytes, source, bytes);
        copy->next = arena->copies;
        arena->copies = copy;
        return copy;
}

const void *sl_graph_arena_align(struct sl_graph_arena *arena, const void *source, uint64_t bytes)
{
        struct copy *copy = arena->copies;

        while (copy && copy->source != source)
                copy = copy->next;
        if (!copy)
                copy = add_copy(arena, source, bytes);
        return copy ? copy->bytes : NULL;
}

void sl_graph_arena_drop_copies(struct sl_graph_arena *arena)
{
        for (struct copy *copy = arena->copies, *next; copy; copy = next) {
                next = copy->next;
                free(copy->bytes);
                free(copy);
        }
        arena->copies = NULL;
}

int sl_graph_arena_adopt(struct sl_graph_arena *arena, void *pointer, size_t bytes, void (*release)(void *pointer, size_t bytes))
{
        struct adopted *thing = sl_graph_arena_alloc(arena, sizeof(*thing));

        if (!thing)
                return -ENOMEM;
        *thing = (struct adopted){.next = arena->adopted, .pointer = pointer, .bytes = bytes, .release = release};
        arena->adopted = thing;
        return 0;
}
