/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arena: memory that both sides map, and its growth.
 */
#include "world.h"

#include <stdint.h>

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
