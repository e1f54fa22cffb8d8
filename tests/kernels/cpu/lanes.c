/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes from and to bfloat16 in memory have the bits of bfloat16.h, and touch nothing beside what is there.
 */
#include "lanes_tile.h"

#include "cpu/base/bfloat16.h"
#include "cpu/base/isa.h"
#include "guarded.h"

#include <criterion/criterion.h>
#include <string.h>

#define HALVES 0x10000

/* What lies behind the upper half of a number: nothing, below, at and above the middle, all. */
static const uint32_t lower[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};

static void check_narrow(void (*narrow)(const float *, int64_t, uint16_t *))
{
        static float numbers[HALVES];
        static uint16_t halves[HALVES];

        for (size_t l = 0; l < sizeof(lower) / sizeof(lower[0]); l++) {
                for (uint32_t i = 0; i < HALVES; i++) {
                        uint32_t bits = i << 16 | lower[l];

                        memcpy(&numbers[i], &bits, sizeof(bits));
                }
                narrow(numbers, HALVES, halves);
                for (uint32_t i = 0; i < HALVES; i++)
                        cr_expect_eq(halves[i], sl_narrow_bf16(numbers[i]), "%#x%04x is %#x", i, lower[l], halves[i]);
        }
}

static void check_widen(void (*widen)(const uint16_t *, int64_t, float *))
{
        static float numbers[HALVES];
        static uint16_t halves[HALVES];

        for (uint32_t i = 0; i < HALVES; i++)
                halves[i] = (uint16_t)i;
        widen(halves, HALVES, numbers);
        for (uint32_t i = 0; i < HALVES; i++) {
                float number = sl_widen_bf16((uint16_t)i);

                cr_expect(!memcmp(&numbers[i], &number, sizeof(number)), "%#x", i);
        }
}

/* Memory that ends behind the last one. */
static void check_edges(void (*narrow)(const float *, int64_t, uint16_t *), void (*widen)(const uint16_t *, int64_t, float *))
{
        for (int64_t n = 1; n <= 33; n++) {
                uint16_t *halves = guarded_alloc((size_t)n * sizeof(*halves));
                float *numbers = guarded_alloc((size_t)n * sizeof(*numbers));

                for (int64_t i = 0; i < n; i++)
                        halves[i] = (uint16_t)(0x3f80 + i);
                widen(halves, n, numbers);
                memset(halves, 0, (size_t)n * sizeof(*halves));
                narrow(numbers, n, halves);
                for (int64_t i = 0; i < n; i++)
                        cr_expect_eq(halves[i], 0x3f80 + i, "%d of %d", (int)i, (int)n);
                cr_expect(guarded_stands(halves, (size_t)n * sizeof(*halves)), "%d", (int)n);
                guarded_free(halves);
                guarded_free(numbers);
        }
}

Test(cpu_lanes, of_avx512_round_to_the_nearest_and_keep_what_is_no_number)
{
        if (!sl_cpu_has_avx512())
                cr_skip_test("this processor has no AVX-512");
        check_narrow(narrow_lanes_avx512);
        check_widen(widen_lanes_avx512);
        check_edges(narrow_lanes_avx512, widen_lanes_avx512);
}

Test(cpu_lanes, of_avx2_round_to_the_nearest_and_keep_what_is_no_number)
{
        if (!sl_cpu_has_avx2())
                cr_skip_test("this processor has no AVX2");
        check_narrow(narrow_lanes_avx2);
        check_widen(widen_lanes_avx2);
        check_edges(narrow_lanes_avx2, widen_lanes_avx2);
}
