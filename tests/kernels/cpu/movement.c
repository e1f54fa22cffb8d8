/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators that move elements without computing any: exact, in every type, and an index outside its bounds is refused.
 */
#include "case.h"

#include <criterion/criterion.h>
#include <errno.h>

static const char *const moves[] = {
        "Identity 3x57",
        "Identity 2x3x4x5 nhwc",
        "Reshape 2x3x4x5 shape=6,20",
        "Reshape 2x3x4x5:int64 shape=-1",
        "Flatten 2x3x4x5 axis=1",
        "Squeeze 2x1x4x1 axes=1,3",
        "Unsqueeze 2x4:uint8 axes=0,2",
        "Reorder 2x3x4x5 tonhwc",
        "Reorder 2x3x4x5 fromnhwc",
        "Reorder 2x67x19x23 tonhwc",
        "Reorder 2x67x19x23 fromnhwc",
        "Reorder 2x3x37x41:uint8 tonhwc",
        "Reorder 2x2x37x41:uint8 tonhwc",
        "Reorder 1x4x37x41:int8 tonhwc",
        "Reorder 3x3x9x11 tonhwc",
        "Reorder 2x3x7 tonhwc",
        "Reorder 2x3x4x5x6 fromnhwc",
        "Reorder 1x1x9x9 tonhwc",
        "Concat 2x3 2x5 axis=1",
        "Concat 2x3:int64 2x5:int64 axis=1",
        "Concat 2x3x4x5 2x1x4x5 2x7x4x5 axis=1",
        "Concat 2x3x4x5 2x1x4x5 2x7x4x5 axis=1 nhwc",
        "Concat 2x3x4x5 2x3x1x5 axis=-2 nhwc",
        "Concat 3x4 axis=0",
        "Concat 0x4 2x4 axis=0",
        "Slice 5x7 starts=1 ends=4 axes=0",
        "Slice 5x7 starts=-3 ends=1000 axes=1",
        "Slice 5x7 starts=6,4 ends=-100,0 axes=1,0 steps=-2,-1",
        "Slice 2x8x6x6 starts=0,1 ends=8,6 axes=1,2 steps=2,3 nhwc",
        "Slice 5x7:int8 starts=3 ends=3 axes=0",
        "Split 6x5 axis=0 outputs:3",
        "Split 6x5 axis=1 split=1,4 outputs:2",
        "Split 2x8x4x4 axis=1 split=3,5 outputs:2 nhwc",
        "Split 2x7:int64 axis=1 outputs:3",
        "ChannelShuffle 2x6x3x5 axis=1 group=3 split=6",
        "ChannelShuffle 2x6x3x5 axis=1 group=3 split=1,5 outputs:2 nhwc",
        "ChannelShuffle 2x6x3x5:uint8 2x3x3x5:uint8 axis=1 group=3 split=4,5 outputs:2 nhwc",
        "ChannelShuffle 2x116x3x5 axis=1 group=2 split=58,58 outputs:2 nhwc",
        "ChannelShuffle 2x58x3x5 2x58x3x5 axis=1 group=2 split=58,58 outputs:2 nhwc",
        "ChannelShuffle 1x58x3x5:int32 1x58x3x5:int32 axis=1 group=2 split=6,110 outputs:2 nhwc",
        "ChannelShuffle 2x5x3 2x5x3 axis=1 group=2 split=3,7 outputs:2 nhwc",
        "ChannelShuffle 2x5x3 2x5x3 axis=1 group=2 split=10",
        "Transpose 5x7",
        "Transpose 67x43",
        "Transpose 2x3x4x5 perm=0,2,3,1",
        "Transpose 2x3x4x5 perm=0,3,1,2",
        "Transpose 2x12x64x32 perm=0,2,1,3",
        "Transpose 2x12x64x32 perm=0,2,3,1",
        "Transpose 2x3x4x5:int64 perm=3,2,1,0",
        "Transpose 2x3x4x5:uint8 perm=1,0,3,2",
        "Pad 3x4 pads=1,2,0,3",
        "Pad 3x4 pads=1,2,0,3 value=1.5",
        "Pad 3x4:int64 pads=1,2,0,3",
        "Pad 3x4 pads=-1,2,0,-1",
        "Pad 3x4 pads=2,3,1,2 mode=1",
        "Pad 7 pads=3,6 mode=1",
        "Pad 3x4 pads=1,2,0,9 mode=2",
        "Pad 3x4 pads=-1,2,3,-2 mode=2",
        "Pad 3x4:int64 pads=4,0,5,7 mode=3",
        "Pad 3x4:uint8 pads=1,-2,1,3 mode=1",
        "Pad 2x3x4x5 pads=0,1,2,1,0,2,2,1 mode=1 nhwc",
        "Pad 2x3x4x5 pads=1,0,0,7,0,2,2,1 mode=2 nhwc",
        "Pad 2x3x4x5 pads=0,0,1,1,0,0,2,1 nhwc",
        "Pad 2x3x4x5 pads=0,1,0,0,0,1,0,0 nhwc value=-1",
        "Expand 3x1 shape=2,3,4",
        "Expand 1x4:int64 shape=3,1",
        "Tile 2x3 shape=2,2",
        "Tile 2x3x4:uint8 shape=1,3,2",
        "Gather 10x4 3:int64 axis=0 below:10",
        "Gather 10x4 3x2:int32 axis=0 below:10",
        "Gather 3x10x4 5:int64 axis=1 below:10",
        "Gather 3x10:int64 scalar:int64 axis=1 below:10",
        "Gather 10x4:uint8 6:int64 axis=-2 below:10",
        "Gather 100x33 5:int64 axis=0 below:100 weights:f16 packed",
        "Gather 100x32 7x2:int32 axis=0 below:100 weights:bf16 packed",
        "Gather 3x10x4 5:int64 axis=1 below:10 weights:f16 packed",
        "Gather 3x10x4 5:int64 axis=1 below:10 weights:f16",
        "GatherElements 10x4 3x4:int64 axis=0 below:10",
        "GatherElements 10x4 3x2:int32 axis=0 below:10",
        "GatherElements 3x10x4 3x5x4:int64 axis=1 below:10",
        "GatherElements 3x10x4:int64 2x7x3:int32 axis=1 below:10",
        "GatherElements 3x5x10:uint8 3x5x12:int64 axis=-1 below:10",
        "GatherElements 3x10:bool 3x6:int32 axis=1 below:10",
        "GatherElements 2x10x4x5:bfloat16 2x3x4x5:int64 axis=1 below:10 nhwc",
        "GatherElements 10 0:int64 axis=0 below:10",
};

Test(cpu_movement, elements_arrive_where_the_reference_puts_them)
{
        case_check_all(moves, sizeof(moves) / sizeof(moves[0]));
}

/* Runs of indices are copied at once, so their ends are checked apart. */
static void check_run(int64_t first, int expected)
{
        struct test_case test;
        struct test_kernel cpu;
        const float *x, *y;

        case_parse("Gather 3x10x4 5:int64 axis=1 below:10", &test);
        cr_assert(test_kernel_init(&cpu, &sl_backend_cpu, &test));
        for (int64_t i = 0; i < 5; i++)
                ((int64_t *)cpu.tensors.inputs[1])[i] = first + i;
        cr_assert_eq(test_kernel_launch(&cpu), expected, "from %ld", (long)first);
        x = cpu.tensors.inputs[0];
        y = cpu.tensors.outputs[0];
        for (int64_t o = 0; o < 3 && !expected; o++)
                for (int64_t i = 0; i < 5; i++) {
                        int64_t row = (first + i + 10) % 10;

                        cr_expect_arr_eq(y + (o * 5 + i) * 4, x + (o * 10 + row) * 4, 4 * sizeof(float));
                }
        test_kernel_deinit(&cpu);
}

Test(cpu_movement, consecutive_indices_are_indices)
{
        check_run(0, 0);
        check_run(3, 0);
        check_run(5, 0);
        check_run(6, -ERANGE);
        check_run(-10, 0);
        check_run(-3, 0);
        check_run(INT64_MAX - 5, -ERANGE);
}

static void check_index(const char *line, int64_t index, int expected)
{
        struct test_case test;
        struct test_kernel cpu;

        case_parse(line, &test);
        cr_assert(test_kernel_init(&cpu, &sl_backend_cpu, &test));
        ((int64_t *)cpu.tensors.inputs[1])[4] = index;
        cr_expect_eq(test_kernel_launch(&cpu), expected, "%s: index %ld", line, (long)index);
        test_kernel_deinit(&cpu);
}

Test(cpu_movement, an_index_outside_its_bounds_is_refused)
{
        const char *const lines[] = {"Gather 3x10x4 5:int64 axis=1 below:10", "GatherElements 3x10x4 2x5x4:int64 axis=1 below:10"};

        for (size_t i = 0; i < 2; i++) {
                check_index(lines[i], 9, 0);
                check_index(lines[i], -10, 0);
                check_index(lines[i], 10, -ERANGE);
                check_index(lines[i], -11, -ERANGE);
                check_index(lines[i], INT64_MAX, -ERANGE);
                check_index(lines[i], INT64_MIN, -ERANGE);
        }
}
