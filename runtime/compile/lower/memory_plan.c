/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_plan.h"

#include "base/bytes.h"
#include "base/cleanup.h"
#include "format.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* How long one order is repaired: placing is quadratic in the blocks. */
#define ROUNDS_MAX     200u
#define PLACEMENTS_MAX 30000000u

static uint64_t padded_bytes(const struct sl_block *block)
{
        return sl_align_up(block->bytes, SL_MEMORY_ALIGNMENT);
}

static bool lifetimes_meet(const struct sl_block *a, const struct sl_block *b)
{
        return a->first <= b->last && b->first <= a->last;
}

typedef int sl_block_order(const void *left, const void *right);

static int compare(uint64_t a, uint64_t b)
{
        return (a > b) - (a < b);
}

static uint64_t area(const struct sl_block *block)
{
        return (block->bytes >> 6) * (1ull + block->last - block->first);
}

/* Blocks lie in one array, so their addresses settle what is left. */
static int by_size(const void *left, const void *right)
{
        const struct sl_block *a = *(struct sl_block *const *)left, *b = *(struct sl_block *const *)right;
        int order = compare(b->bytes, a->bytes);

        order = order ? order : compare(a->first, b->first);
        return order ? order : compare((uintptr_t)a, (uintptr_t)b);
}

static int by_area(const void *left, const void *right)
{
        const struct sl_block *a = *(struct sl_block *const *)left, *b = *(struct sl_block *const *)right;
        int order = compare(area(b), area(a));

        return order ? order : by_size(left, right);
}

static int by_time(const void *left, const void *right)
{
        const struct sl_block *a = *(struct sl_block *const *)left, *b = *(struct sl_block *const *)right;
        int order = compare(a->first, b->first);

        return order ? order : by_size(left, right);
}

static sl_block_order *const orders[] = {by_size, by_area, by_time};

/*
 * @placed is sorted by offset. Walks the gaps between those blocks that live with @block and takes the smallest that holds it.
 * Blocks that overlap each other (they live at different times) are walked by the highest end seen so far.
 */
static uint64_t best_offset(const struct sl_block *block, struct sl_block *const *placed, uint32_t n_placed)
{
        uint64_t wanted = padded_bytes(block), end = 0, best = 0, best_gap = UINT64_MAX;

        for (uint32_t i = 0; i < n_placed; i++) {
                const struct sl_block *other = placed[i];

                if (!lifetimes_meet(block, other))
                        continue;
                if (other->offset >= end + wanted && other->offset - end < best_gap) {
                        best = end;
                        best_gap = other->offset - end;
                }
                if (other->offset + padded_bytes(other) > end)
                        end = other->offset + padded_bytes(other);
        }
        return best_gap == UINT64_MAX ? end : best;
}

static void insert_by_offset(struct sl_block **placed, uint32_t n_placed, struct sl_block *block)
{
        uint32_t at = n_placed;

        for (; at > 0 && placed[at - 1]->offset > block->offset; at--)
                placed[at] = placed[at - 1];
        placed[at] = block;
}

/* Also guards the sums of the planner: all blocks side by side still fit into the largest workspace. */
static int check_sizes(const struct sl_block *blocks, uint32_t n_blocks)
{
        uint64_t sum = 0;

        for (uint32_t i = 0; i < n_blocks; i++) {
                if (blocks[i].bytes > SL_PLAN_BYTES_MAX || sl_add_overflows(sum, padded_bytes(&blocks[i]), &sum))
                        return -EOVERFLOW;
        }
        return 0;
}

struct planner {
        struct sl_block *blocks;
        uint32_t n_blocks;
        struct sl_block **order, **placed, **best; /* the best order so far */
        uint64_t least;                            /* bytes that it takes */
};

/* In the order at hand. Return: bytes of the workspace. */
static uint64_t place(struct planner *planner)
{
        uint64_t workspace = 0;

        for (uint32_t i = 0; i < planner->n_blocks; i++) {
                struct sl_block *block = planner->order[i];

                block->offset = best_offset(block, planner->placed, i);
                insert_by_offset(planner->placed, i, block);
                if (block->offset + padded_bytes(block) > workspace)
                        workspace = block->offset + padded_bytes(block);
        }
        return workspace;
}

static uint64_t try_order(struct planner *planner)
{
        uint64_t bytes = place(planner);

        if (bytes < planner->least) {
                planner->least = bytes;
                memcpy(planner->best, planner->order, planner->n_blocks * sizeof(*planner->best));
        }
        return bytes;
}

/* A block that ends at the top came too late: it goes to the front of the order. False when it is there already. */
static bool promote_top(struct planner *planner, uint64_t top)
{
        struct sl_block *block;
        uint32_t at = 0;

        while (planner->order[at]->offset + padded_bytes(planner->order[at]) != top)
                at++;
        block = planner->order[at];
        memmove(planner->order + 1, planner->order, at * sizeof(*planner->order));
        planner->order[0] = block;
        return at > 0;
}

static uint32_t rounds_for(uint32_t n_blocks)
{
        uint64_t rounds = PLACEMENTS_MAX / ((uint64_t)n_blocks * n_blocks + 1);

        return rounds < ROUNDS_MAX ? (uint32_t)rounds : ROUNDS_MAX;
}

static void sort_order(struct planner *planner, sl_block_order *compare_blocks)
{
        for (uint32_t i = 0; i < planner->n_blocks; i++)
                planner->order[i] = &planner->blocks[i];
        qsort(planner->order, planner->n_blocks, sizeof(*planner->order), compare_blocks);
}

/* The best order is placed last, so that its offsets stay. */
static uint64_t place_best(struct planner *planner)
{
        uint32_t n_orders = sizeof(orders) / sizeof(orders[0]), rounds = rounds_for(planner->n_blocks);
        uint64_t bound = 0;

        if (sl_memory_lower_bound(planner->blocks, planner->n_blocks, &bound) < 0)
                bound = 0;
        planner->least = UINT64_MAX;
        for (uint32_t i = 0; i < n_orders && planner->least > bound; i++) {
                sort_order(planner, orders[i]);
                try_order(planner);
        }
        for (uint32_t i = 0; i < n_orders && planner->least > bound; i++) {
                uint64_t top;

                sort_order(planner, orders[i]);
                top = place(planner);
                for (uint32_t round = 0; round < rounds && planner->least > bound && promote_top(planner, top); round++)
                        top = try_order(planner);
        }
        memcpy(planner->order, planner->best, planner->n_blocks * sizeof(*planner->order));
        return place(planner);
}

int sl_memory_plan(struct sl_block *blocks, uint32_t n_blocks, uint64_t *ret_bytes)
{
        SL_CLEANUP(sl_cleanup_free) struct sl_block **tables = NULL;
        struct planner planner = {.blocks = blocks, .n_blocks = n_blocks};
        uint64_t workspace;

        if (check_sizes(blocks, n_blocks) < 0)
                return -EOVERFLOW;
        tables = calloc(n_blocks + 1u, 3 * sizeof(*tables));
        if (!tables)
                return -ENOMEM;
        planner.order = tables;
        planner.placed = tables + n_blocks;
        planner.best = tables + 2 * (size_t)n_blocks;
        workspace = place_best(&planner);
        if (workspace > SL_PLAN_BYTES_MAX)
                return -EOVERFLOW;
        *ret_bytes = workspace;
        return 0;
}

struct edge {
        uint64_t step; /* the first at which the block is alive, or no longer */
        uint64_t bytes;
        bool begins;
};

/* At one step the dead go before the new ones come. */
static int by_step(const void *left, const void *right)
{
        const struct edge *a = left, *b = right;

        if (a->step != b->step)
                return a->step < b->step ? -1 : 1;
        return (int)a->begins - (int)b->begins;
}

int sl_memory_lower_bound(const struct sl_block *blocks, uint32_t n_blocks, uint64_t *ret_bytes)
{
        SL_CLEANUP(sl_cleanup_free) struct edge *edges = calloc(2 * (size_t)n_blocks + 1, sizeof(*edges));
        uint64_t alive = 0, most = 0;

        if (!edges)
                return -ENOMEM;
        if (check_sizes(blocks, n_blocks) < 0)
                return -EOVERFLOW;
        for (uint32_t i = 0; i < n_blocks; i++) {
                uint64_t bytes = padded_bytes(&blocks[i]);

                edges[2 * i] = (struct edge){.step = blocks[i].first, .bytes = bytes, .begins = true};
                edges[2 * i + 1] = (struct edge){.step = blocks[i].last + 1ull, .bytes = bytes, .begins = false};
        }
        qsort(edges, 2 * (size_t)n_blocks, sizeof(*edges), by_step);
        for (uint32_t i = 0; i < 2 * n_blocks; i++) {
                alive = edges[i].begins ? alive + edges[i].bytes : alive - edges[i].bytes;
                most = alive > most ? alive : most;
        }
        *ret_bytes = most;
        return 0;
}
