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

/* A runtime that never releases. One at a time, each a little larger than the last. */
Test(arena, blocks_that_grow_find_room_up_to_a_third_of_the_limit_when_nothing_is_released)
{
        const uint64_t limit = 256 << 20, step = 512 << 10;
        struct world w;
        struct starling_client_info info;

        world_place(&w);
        w.fake.arena_limit_bytes = limit;
        w.fake.keeps_regions = true;
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

/* What stays in use keeps its contents, whatever comes and goes around it. */
Test(arena, blocks_of_any_size_follow_each_other_without_end_below_the_limit)
{
        const uint64_t limit = 32 << 20;
        struct world w;
        struct starling_client_info info;
        uint32_t seed = 5;
        char *kept;

        world_place(&w);
        w.fake.arena_limit_bytes = limit;
        world_start(&w);
        world_join(&w);
        kept = starling_alloc(w.client, 1000);
        memset(kept, 7, 1000);
        for (int i = 0; i < 400; i++) {
                uint64_t bytes;
                char *block;

                seed = seed * 1664525 + 1013904223;
                bytes = 1 + (seed >> 8) % (limit * 3 / 4);
                block = starling_alloc(w.client, bytes);
                cr_assert_not_null(block, "%lu bytes, round %d", (unsigned long)bytes, i);
                block[0] = block[bytes - 1] = 1;
                cr_assert_eq(starling_free(w.client, block), 0);
                cr_assert_eq(starling_free(w.client, block), -EINVAL);
        }
        for (int i = 0; i < 1000; i++)
                cr_assert_eq(kept[i], 7);
        cr_assert_eq(starling_client_describe(w.client, &info), 0);
        cr_assert_leq(info.arena_bytes, limit);
        cr_assert_eq(info.regions, fake_runtime_regions(w.runtime));
        world_leave(&w);
}

/* Four regions, of which the second and the third are given back: the fourth is the second of the next runtime. */
Test(arena, regions_around_those_given_back_are_handed_to_the_next_runtime)
{
        struct world w;
        struct starling_client_info info;
        struct echo e;
        void *blocks[4];

        world_place(&w);
        w.fake.arena_limit_bytes = 64 << 20;
        world_start(&w);
        world_join(&w);
        for (int i = 0; i < 4; i++) {
                blocks[i] = starling_alloc(w.client, (i == 0 ? 700u : 1000u << i) << 10);
                cr_assert_not_null(blocks[i]);
        }
        cr_assert_eq(starling_client_describe(w.client, &info), 0);
        cr_assert_eq(info.regions, 4);
        cr_assert_eq(starling_free(w.client, blocks[1]), 0);
        cr_assert_eq(starling_free(w.client, blocks[2]), 0);
        cr_assert_null(starling_alloc(w.client, 50 << 20));
        cr_assert_eq(starling_client_describe(w.client, &info), 0);
        cr_assert_eq(info.regions, 2);
        memset(blocks[3], 9, 100);
        fake_runtime_kill(w.runtime, 0);
        world_start(&w);
        cr_assert_eq(starling_reconnect(w.client, LIMIT_NS, &w.error), 0, "%s", w.error.text);
        cr_assert_eq(fake_runtime_regions(w.runtime), 2);
        cr_assert_eq(((char *)blocks[3])[99], 9);
        echo_prepare(&w, 5, &e);
        e.output.data = blocks[3];
        cr_assert_eq(starling_infer(w.queue, &e.request, NULL), 0, "%s", starling_queue_error(w.queue));
        cr_assert_arr_eq(e.output.data, e.input.data, 80);
        cr_assert_eq(starling_free(w.client, blocks[3]), 0);
        cr_assert_not_null(starling_alloc(w.client, 20 << 20));
        world_leave(&w);
}

/* What is allocated stays where it is; the rest counts against nobody's limits, and can be had again. */
Test(arena, a_client_that_goes_idle_gives_back_what_it_does_not_need)
{
        struct world w;
        struct starling_client_info info;
        struct echo e;
        char *blocks[3];

        world_place(&w);
        w.fake.arena_limit_bytes = 64 << 20;
        world_start(&w);
        world_join(&w);
        for (int i = 0; i < 3; i++) {
                blocks[i] = starling_alloc(w.client, (i == 0 ? 700u : 1000u << i) << 10);
                cr_assert_not_null(blocks[i]);
        }
        cr_assert_eq(fake_runtime_regions(w.runtime), 3);
        cr_assert_eq(starling_trim(w.client), 0);
        cr_expect_eq(fake_runtime_regions(w.runtime), 3, "all of them are in use");
        memset(blocks[1], 5, 100);
        cr_assert_eq(starling_free(w.client, blocks[0]), 0);
        cr_assert_eq(starling_free(w.client, blocks[2]), 0);
        cr_assert_eq(starling_trim(w.client), 0);
        cr_expect_eq(fake_runtime_regions(w.runtime), 1);
        cr_assert_eq(starling_client_describe(w.client, &info), 0);
        cr_expect_eq(info.regions, 1);
        cr_expect_eq(blocks[1][99], 5);
        cr_assert_eq(starling_free(w.client, blocks[1]), 0);
        cr_assert_eq(starling_trim(w.client), 0);
        cr_expect_eq(fake_runtime_regions(w.runtime), 0);
        cr_assert_eq(starling_trim(w.client), 0);
        echo_prepare(&w, 5, &e);
        cr_assert_eq(starling_infer(w.queue, &e.request, NULL), 0, "%s", starling_queue_error(w.queue));
        w.runtime = fake_runtime_kill(w.runtime, 0);
        starling_free(w.client, e.input.data);
        starling_free(w.client, e.output.data);
        cr_expect_eq(starling_trim(w.client), -EPIPE);
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
        cr_assert_eq(starling_tensor_alloc(w.client, STARLING_F32, 2, (uint32_t[]){1, 0}, &t), 0);
        cr_assert(t.data && t.bytes == 0 && t.dims[1] == 0, "one without elements has a place");
        cr_assert_eq(starling_free(w.client, t.data), 0);
        cr_assert_eq(starling_tensor_alloc(w.client, STARLING_F32, 3, huge, &t), -EOVERFLOW);
        cr_assert_lt(starling_tensor_alloc(w.client, STARLING_F32, 2, huge, &t), 0);
        cr_assert_null(starling_alloc(w.client, 0));
        cr_assert_eq(errno, EINVAL);
        cr_assert_null(starling_alloc(w.client, UINT64_MAX));
        cr_assert_eq(starling_tensor_alloc(w.client, STARLING_F64, 0, NULL, &t), 0);
        cr_assert_eq(t.bytes, 8);
        world_leave(&w);
}
