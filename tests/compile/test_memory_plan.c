/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bytes.h"
#include "memory_plan.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdbool.h>

static uint32_t next(uint64_t *state)
{
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        return (uint32_t)(*state >> 33);
}

static bool meet_in_time(const struct sl_block *a, const struct sl_block *b)
{
        return a->first <= b->last && b->first <= a->last;
}

static bool meet_in_memory(const struct sl_block *a, const struct sl_block *b)
{
        return a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

static void fill_randomly(struct sl_block *blocks, uint32_t n, uint64_t *state)
{
        for (uint32_t i = 0; i < n; i++) {
                uint32_t first = next(state) % n;

                blocks[i] = (struct sl_block){
                        .bytes = next(state) % 5000, .first = first, .last = first + next(state) % (1 + next(state) % n)};
        }
}

Test(memory_plan, blocks_that_live_together_never_share_a_byte)
{
        uint64_t state = 1, workspace;
        struct sl_block blocks[60];

        for (uint32_t round = 0; round < 500; round++) {
                uint32_t n = 1 + next(&state) % 60;

                fill_randomly(blocks, n, &state);
                cr_assert_eq(sl_memory_plan(blocks, n, &workspace), 0);
                for (uint32_t i = 0; i < n; i++) {
                        cr_assert(sl_range_inside(blocks[i].offset, blocks[i].bytes, workspace));
                        cr_assert_eq(blocks[i].offset % SL_MEMORY_ALIGNMENT, 0);
                        for (uint32_t k = 0; k < i; k++)
                                cr_assert(!meet_in_time(&blocks[i], &blocks[k]) || !meet_in_memory(&blocks[i], &blocks[k]),
                                        "round %u: blocks %u and %u", round, i, k);
                }
        }
}

Test(memory_plan, workspace_is_never_below_the_lower_bound_and_rarely_far_above)
{
        uint64_t state = 7, workspace, bound, total = 0, total_bound = 0;
        struct sl_block blocks[60];

        for (uint32_t round = 0; round < 200; round++) {
                fill_randomly(blocks, 60, &state);
                cr_assert_eq(sl_memory_plan(blocks, 60, &workspace), 0);
                cr_assert_eq(sl_memory_lower_bound(blocks, 60, &bound), 0);
                cr_assert_geq(workspace, bound);
                total += workspace;
                total_bound += bound;
        }
        cr_assert_leq(total, total_bound + total_bound / 20, "%lu against a bound of %lu", total, total_bound);
}

Test(memory_plan, a_chain_of_equal_blocks_needs_two_of_them)
{
        struct sl_block blocks[32];
        uint64_t workspace;

        for (uint32_t i = 0; i < 32; i++)
                blocks[i] = (struct sl_block){.bytes = 4096, .first = i, .last = i + 1};
        cr_assert_eq(sl_memory_plan(blocks, 32, &workspace), 0);
        cr_assert_eq(workspace, 2 * 4096);
}

Test(memory_plan, a_growing_and_shrinking_chain_meets_the_lower_bound)
{
        static const uint64_t sizes[] = {100, 400, 1600, 6400, 3200, 800, 200};
        uint64_t workspace, bound;
        struct sl_block blocks[7];

        for (uint32_t i = 0; i < 7; i++)
                blocks[i] = (struct sl_block){.bytes = sizes[i] * 64, .first = i, .last = i + 1};
        cr_assert_eq(sl_memory_plan(blocks, 7, &workspace), 0);
        cr_assert_eq(sl_memory_lower_bound(blocks, 7, &bound), 0);
        cr_assert_eq(bound, (6400 + 3200) * 64);
        cr_assert_eq(workspace, bound);
}

Test(memory_plan, no_blocks_need_no_memory)
{
        uint64_t workspace = 1;

        cr_assert_eq(sl_memory_plan(NULL, 0, &workspace), 0);
        cr_assert_eq(workspace, 0);
}

Test(memory_plan, sizes_that_no_file_holds_are_refused)
{
        struct sl_block blocks[2] = {{.bytes = UINT64_MAX - 10}, {.bytes = 64}};
        uint64_t workspace;

        cr_assert_eq(sl_memory_plan(blocks, 2, &workspace), -EOVERFLOW);
        cr_assert_eq(sl_memory_lower_bound(blocks, 2, &workspace), -EOVERFLOW);
}
