/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arena: memory that both sides map, and its growth.
 */
#include "world.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

Test(arena, memory_is_aligned_and_distinct)
{
        struct world w;
        char *blocks[50];

        world_enter(&w);
        for (int i = 0; i < 50; i++) {
                blocks[i] = starling_alloc(w.client, 100 + (uint64_t)i);
                cr_assert_not_null(blocks[i]);
                cr_assert_eq((uintptr_t)blocks[i] % STARLING_ALIGNMENT, 0);
                memset(blocks[i], i, 100 + (size_t)i);
        }
        for (int i = 0; i < 50; i++) {
                cr_assert_eq(blocks[i][99 + i], i);
                cr_assert_eq(starling_free(w.client, blocks[i]), 0);
        }
        cr_assert_eq(starling_free(w.client, blocks[0]), -EINVAL);
        cr_assert_eq(starling_free(w.client, &w), -EINVAL);
        cr_assert_eq(starling_free(w.client, NULL), 0);
        world_leave(&w);
}

Test(arena, grows_by_regions_until_the_quota)
{
        struct world w;
        struct starling_client_info info;
        int n = 0;

        world_place(&w);
        w.fake.arena_limit_bytes = 8 << 20;
        world_start(&w);
        world_join(&w);
        while (starling_alloc(w.client, 256 << 10))
                n++;
        cr_assert_eq(errno, EDQUOT);
        cr_assert_geq(n, 24);
        cr_assert_eq(starling_client_describe(w.client, &info), 0);
        cr_assert_gt(info.regions, 1);
        cr_assert_leq(info.arena_bytes, 8 << 20);
        cr_assert_geq(info.arena_used_bytes, (uint64_t)n * (256 << 10));
        world_leave(&w);
}

/* One at a time, each a little larger than the last: nothing is in use when the next is asked for. */
Test(arena, blocks_that_grow_find_room_up_to_a_third_of_the_limit)
{
        const uint64_t limit = 256 << 20, step = 512 << 10;
        struct world w;
        struct starling_client_info info;

        world_place(&w);
        w.fake.arena_limit_bytes = limit;
        world_start(&w);
        world_join(&w);
        for (uint64_t bytes = step; bytes < limit / 3; bytes += step) {
                void *block = starling_alloc(w.client, bytes);

                cr_assert_not_null(block, "%lu bytes", (unsigned long)bytes);
                cr_assert_eq(starling_free(w.client, block), 0);
        }
        cr_assert_eq(starling_client_describe(w.client, &info), 0);
        cr_assert_leq(info.arena_bytes, limit);
        cr_assert_eq(info.arena_used_bytes, 0);
        world_leave(&w);
}

Test(arena, what_there_is_no_room_for_is_said_with_the_figures)
{
        struct world w;
        struct starling_error error;
        struct starling_client_info info;
        char text[STARLING_TEXT_BYTES];
        void *block;

        world_place(&w);
        w.fake.arena_limit_bytes = 8 << 20;
        world_start(&w);
        world_join(&w);
        block = starling_alloc(w.client, 256 << 10);
        cr_assert_null(starling_alloc(w.client, 64 << 20));
        cr_assert_eq(errno, EDQUOT);
        starling_alloc_error(w.client, 64 << 20, -EDQUOT, &error);
        cr_assert_eq(starling_client_describe(w.client, &info), 0);
        snprintf(text, sizeof(text),
                "67108864 bytes of arena: %s: 262144 of %lu bytes in %u regions are in use, the largest free run has %lu; "
                "limits.client.arena_bytes is 8388608, regions are at most 64; the runtime refused ",
                starling_strerror(-EDQUOT), (unsigned long)info.arena_bytes, info.regions,
                (unsigned long)(info.arena_bytes - 262144));
        cr_assert_eq(strncmp(error.text, text, strlen(text)), 0, "%s\n%s", error.text, text);
        starling_alloc_error(w.client, 0, -EINVAL, &error);
        cr_assert_null(strstr(error.text, "in use"), "%s", error.text);
        starling_free(w.client, block);
        world_leave(&w);
}

Test(arena, a_block_larger_than_a_region_gets_one_of_its_own)
{
        struct world w;
        struct echo e;
        struct starling_tensor tensor;

        world_enter(&w);
        cr_assert_eq(starling_tensor_alloc(w.client, STARLING_U8, 1, (uint32_t[]){50 << 20}, &tensor), 0);
        memset(tensor.data, 1, tensor.bytes);
        cr_assert_eq(tensor.bytes, 50 << 20);
        echo_prepare(&w, 5, &e);
        e.output.data = tensor.data;
        cr_assert_eq(starling_infer(w.queue, &e.request, NULL), 0);
        cr_assert_arr_eq(e.output.data, e.input.data, 80);
        world_leave(&w);
}

Test(arena, impossible_tensors_are_refused)
{
        struct world w;
        struct starling_tensor t;
        uint32_t huge[8] = {1u << 31, 1u << 31, 1u << 31, 1, 1, 1, 1, 1};

        world_enter(&w);
        cr_assert_eq(starling_tensor_alloc(w.client, (enum starling_dtype)8, 1, (uint32_t[]){1}, &t), -EINVAL);
        cr_assert_eq(starling_tensor_alloc(w.client, STARLING_F32, 9, huge, &t), -EINVAL);
        cr_assert_eq(starling_tensor_alloc(w.client, STARLING_F32, 2, (uint32_t[]){1, 0}, &t), -EINVAL);
        cr_assert_eq(starling_tensor_alloc(w.client, STARLING_F32, 3, huge, &t), -EOVERFLOW);
        cr_assert_lt(starling_tensor_alloc(w.client, STARLING_F32, 2, huge, &t), 0);
        cr_assert_null(starling_alloc(w.client, 0));
        cr_assert_eq(errno, EINVAL);
        cr_assert_null(starling_alloc(w.client, UINT64_MAX));
        cr_assert_eq(starling_tensor_alloc(w.client, STARLING_F64, 0, NULL, &t), 0);
        cr_assert_eq(t.bytes, 8);
        world_leave(&w);
}
