/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators that move elements without computing any: exact, in every type, and an index outside its bounds is refused.
 */
#include "case.h"

#include "compare.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

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
        "Concat 3000x1 3000x1 3000x1 axis=1",
        "Concat 3000x1:int64 3000x2:int64 axis=1",
        "Concat 900x3:uint8 900x4:uint8 900x17:uint8 axis=1",
        "Concat 900x3:uint8 900x4:uint8 900x16:uint8 axis=1",
        "Concat 70x0 70x1 70x3 70x4 axis=1",
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
        "Transpose 8x16",
        "Transpose 24x17",
        "Transpose 3x40x25 perm=0,2,1",
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
        "Expand 3x1 shape=3,57",
        "Expand 3x1:uint8 shape=3,57",
        "Tile 30x2 shape=1,31",
        "Tile 30x5:int64 shape=1,3",
        "Slice 3x57 starts=0,1 ends=3,57 steps=1,2",
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
        "TensorScatter 2x3x10x4 2x3x4x4 2:int64 below:6",
        "TensorScatter 3x10x2 3x4x2 3:int64 axis=1 mode=1 below:50",
        "TensorScatter 3x10x2 3x10x2 3:int64 axis=1 mode=1 below:50",
        "TensorScatter 2x2x5x3:uint8 2x2x2x3:uint8 _ axis=-2 below:9",
        "TensorScatter 2x5x2x3:int64 2x5x2x2:int64 2:int64 axis=3 below:1",
        "GatherElements 10x4 3x4:int64 axis=0 below:10",
        "GatherElements 10x4 3x2:int32 axis=0 below:10",
        "GatherElements 3x10x4 3x5x4:int64 axis=1 below:10",
        "GatherElements 3x10x4:int64 2x7x3:int32 axis=1 below:10",
        "GatherElements 3x5x10:uint8 3x5x12:int64 axis=-1 below:10",
        "GatherElements 3x10:bool 3x6:int32 axis=1 below:10",
        "GatherElements 2x10x4x5:bfloat16 2x3x4x5:int64 axis=1 below:10 nhwc",
        "GatherElements 10 0:int64 axis=0 below:10",
        "GatherND 10x4 3x1:int64 below:10",
        "GatherND 10x10 7x2:int32 below:10",
        "GatherND 10x10x3:uint8 2x5x2:int64 below:10",
        "GatherND 3x10x2 3x5x1:int64 batch_dims=1 below:10",
        "GatherND 2x3x10:int64 2x3x1:int32 batch_dims=2 below:10",
        "GatherND 10x33:float16 1x1:int64 below:10",
        "GatherND 10x10x10:bool 65x3:int64 below:10",
        "OneHot 3x5:int64 2 depth=7 below:9",
        "OneHot 3x5:int64 2:int64 depth=7 axis=0 below:9",
        "OneHot 3x5:int32 2:uint8 depth=7 axis=1 below:9",
        "OneHot 3x5:int64 2:float64 depth=1 below:3",
        "OneHot scalar:int64 2:float16 depth=33 below:9",
        "OneHot 4x1:int32 2:bool depth=2 axis=1 below:9",
        "Trilu 5x7",
        "Trilu 5x7 upper=0",
        "Trilu 2x3x7x5:int64 k=2",
        "Trilu 3x5x5:uint8 upper=0 k=-1",
        "Trilu 4x4:bool k=4",
        "Trilu 4x6:float16 upper=0 k=-4",
        "Trilu 1x1 k=-100",
        "Trilu 2x1x33 upper=0 k=9000000000",
};

/* Whatever the reduction, several updates meet one place in the order of the reference: floats agree to the bit. */
static const char *const updates[] = {
        "ScatterElements 10x4 %s3x4:int64 3x4 axis=0 below:10",
        "ScatterElements 10x64 %s33x64:int32 33x64 axis=0 below:10",
        "ScatterElements 10x130 %s7x129:int64 7x129 axis=0 below:10",
        "ScatterElements 5x10 %s3x20:int64 3x20 axis=1 below:10",
        "ScatterElements 3x4x10x5 %s2x3x9x5:int32 2x3x9x5 axis=2 below:10",
        "ScatterElements 3x10x2x65 %s3x5x2x65:int64 3x5x2x65 axis=1 below:10",
        "ScatterElements 10 %s65:int64 65 axis=0 below:10",
        "ScatterElements 10x70 %s9x70:int64 9x70 axis=0 below:1",
        "ScatterND 10x4 %s13x1:int64 13x4 below:10",
        "ScatterND 10x10 %s40x2:int32 40 below:10",
        "ScatterND 10x10x130 %s3x5x2:int64 3x5x130 below:10",
        "ScatterND 10x64 %s20x1:int64 20x64 below:10",
};
static const char *const update_types[] = {"", ":float64", ":float16", ":bfloat16", ":int32", ":int64"};
static const char *const moved_types[] = {"", ":float16", ":uint8", ":bool", ":int64"};

/* The form with the type behind its first and its third shape. */
static void write_update(char line[200], const char *form, const char *type, int reduction)
{
        const char *mark = strstr(form, "%s"), *indices = mark + 2, *third = strchr(indices, ' ') + 1;
        int third_length = (int)strcspn(third, " ");

        snprintf(line, 200, "%.*s%s %.*s %.*s%s%s reduction=%d loose:1e-30", (int)(mark - form) - 1, form, type,
                (int)(third - indices) - 1, indices, third_length, third, type, third + third_length, reduction);
}

Test(cpu_movement, updates_go_to_their_places_in_their_order)
{
        char line[200];
        size_t round = 0;

        for (size_t f = 0; f < sizeof(updates) / sizeof(updates[0]); f++)
                for (int reduction = 0; reduction <= 4; reduction++) {
                        const char *const *types = reduction ? update_types : moved_types;
                        size_t n = reduction ? sizeof(update_types) / sizeof(update_types[0])
                                             : sizeof(moved_types) / sizeof(moved_types[0]);

                        for (size_t t = 0; t < n; t++) {
                                write_update(line, updates[f], types[t], reduction);
                                cr_expect(case_is_taken(line), "%s falls to the reference", line);
                                if (case_is_for_this_set(round++))
                                        case_check(line);
                        }
                }
}

/* An index outside of its axis, as the last of all. */
static void check_outside(const char *line, bool is_wide)
{
        struct test_case test;
        struct test_kernel cpu;

        case_parse(line, &test);
        cr_assert(test_kernel_init(&cpu, &sl_backend_cpu, &test));
        cr_assert_eq(test_kernel_launch(&cpu), 0, "%s", line);
        for (int64_t wrong = -11; wrong <= 10; wrong += 21) {
                uint64_t last = sl_shape_elements(&test.node.inputs[1].shape) - 1;

                if (is_wide)
                        ((int64_t *)cpu.tensors.inputs[1])[last] = wrong;
                else
                        ((int32_t *)cpu.tensors.inputs[1])[last] = (int32_t)wrong;
                cr_expect_eq(test_kernel_launch(&cpu), -ERANGE, "%s with %ld", line, (long)wrong);
        }
        test_kernel_deinit(&cpu);
}

Test(cpu_movement, an_index_outside_its_axis_is_refused_wherever_it_leads)
{
        check_outside("GatherND 10x10 7x2:int32 below:10", false);
        check_outside("GatherND 3x10x2 3x5x1:int64 batch_dims=1 below:10", true);
        check_outside("ScatterElements 10x4 3x4:int64 3x4 axis=0 below:10", true);
        check_outside("ScatterElements 10 1:int32 1 axis=0 below:10 reduction=1", false);
        check_outside("ScatterND 10x4 13x1:int64 13x4 below:10", true);
        check_outside("ScatterND 10x10 40x2:int32 40 below:10 reduction=3", false);
}

/* A row whose indices name one place is joined at once, unless that is none. */
Test(cpu_movement, a_row_of_one_index_outside_its_axis_is_refused)
{
        struct test_case test;
        struct test_kernel cpu;

        case_parse("ScatterElements 10x9 2x9:int64 2x9 axis=0 below:1 reduction=1", &test);
        cr_assert(test_kernel_init(&cpu, &sl_backend_cpu, &test));
        for (int i = 9; i < 18; i++)
                ((int64_t *)cpu.tensors.inputs[1])[i] = 10;
        cr_expect_eq(test_kernel_launch(&cpu), -ERANGE);
        for (int i = 9; i < 18; i++)
                ((int64_t *)cpu.tensors.inputs[1])[i] = -10;
        cr_expect_eq(test_kernel_launch(&cpu), 0);
        test_kernel_deinit(&cpu);
}

/* Of float indices whole numbers from -depth to depth - 1 are places. */
Test(cpu_movement, a_float_that_is_no_place_leaves_its_row_off)
{
        static const float indices[] = {2, -1, 0.5f, 3, -4, -3};
        static const int places[] = {2, 2, -1, -1, -1, 0};
        struct test_case test;
        struct test_kernel cpu;

        case_parse("OneHot 6 2 depth=3", &test);
        cr_assert(test_kernel_init(&cpu, &sl_backend_cpu, &test));
        memcpy(cpu.tensors.inputs[0], indices, sizeof(indices));
        cr_assert_eq(test_kernel_launch(&cpu), 0);
        for (int i = 0; i < 18; i++)
                cr_expect_eq(
                        ((float *)cpu.tensors.outputs[0])[i], ((float *)cpu.tensors.inputs[1])[i % 3 == places[i / 3]], "%d", i);
        test_kernel_deinit(&cpu);
}

/* mode 0 is linear, 1 nearest, 2 cubic; padding_mode 0 zeros, 1 border, 2 reflection. Half of the places lie outside. */
Test(cpu_movement, an_image_is_sampled_along_a_grid)
{
        static const char *const forms[] = {"GridSample 2x3x5x7 2x9x8x2", "GridSample 1x1x1x1 1x1x3x2",
                "GridSample 1x17x4x5 1x13x10x2", "GridSample 1x2x9x1 1x1x64x2"};
        char line[200];

        for (size_t f = 0; f < sizeof(forms) / sizeof(forms[0]); f++)
                for (int i = 0; i < 18; i++) {
                        snprintf(line, sizeof(line), "%s mode=%d padding_mode=%d align_corners=%d wide:2", forms[f], i % 3,
                                i / 3 % 3, i / 9);
                        cr_expect(case_is_taken(line), "%s falls to the reference", line);
                        if (case_is_for_this_set((size_t)i))
                                case_check(line);
                }
}

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

/* The last sample's update of four begins at @place of a cache of ten. */
static void check_place(int mode, int64_t place, int expected)
{
        char line[] = "TensorScatter 3x10x2 3x4x2 3:int64 axis=1 mode=0 below:6";
        struct test_case test;
        struct test_kernel cpu;

        strstr(line, "mode=")[5] = (char)('0' + mode);
        case_parse(line, &test);
        cr_assert(test_kernel_init(&cpu, &sl_backend_cpu, &test));
        ((int64_t *)cpu.tensors.inputs[2])[2] = place;
        cr_expect_eq(test_kernel_launch(&cpu), expected, "mode %d: place %ld", mode, (long)place);
        test_kernel_deinit(&cpu);
}

Test(cpu_movement, a_place_beyond_the_cache_is_refused_where_it_is_not_circular)
{
        for (int mode = 0; mode < 2; mode++) {
                check_place(mode, 6, 0);
                check_place(mode, 7, mode ? 0 : -ERANGE);
                check_place(mode, INT64_MAX, mode ? 0 : -ERANGE);
                check_place(mode, -1, -ERANGE);
                check_place(mode, INT64_MIN, -ERANGE);
        }
}

/* Regions as detectors have them: two corners, some beside the image, one empty, one of a single point. */
static void check_regions(const char *line)
{
        static const float corners[] = {1, 2, 9, 7, -3, -2, 4, 5, 5, 5, 40, 30, 6, 6, 6, 6, 9, 7, 1, 2};
        struct test_case test;
        struct test_kernel cpu, ref;

        case_parse(line, &test);
        cr_assert(test_kernel_init(&cpu, &sl_backend_cpu, &test));
        cr_assert(test_kernel_init(&ref, &sl_backend_ref, &test));
        for (int k = 0; k < 2; k++) {
                struct test_kernel *own = k ? &ref : &cpu;

                memcpy(own->tensors.inputs[1], corners, sizeof(corners));
                for (int64_t r = 0; r < 5; r++)
                        ((int64_t *)own->tensors.inputs[2])[r] = r % 2;
                cr_assert_eq(test_kernel_launch(own), 0, "%s", line);
        }
        case_compare(&test, 0, &ref.node.outputs[0], cpu.tensors.outputs[0], ref.tensors.outputs[0]);
        ((int64_t *)cpu.tensors.inputs[2])[4] = 2;
        cr_expect_eq(test_kernel_launch(&cpu), -ERANGE, "%s", line);
        ((int64_t *)cpu.tensors.inputs[2])[4] = 0;
        ((float *)cpu.tensors.inputs[1])[19] = (float)INFINITY;
        cr_expect_eq(test_kernel_launch(&cpu), -ERANGE, "%s", line);
        test_kernel_deinit(&cpu);
        test_kernel_deinit(&ref);
}

/* coordinate_transformation_mode 0 is half_pixel. */
Test(cpu_movement, a_region_is_aligned_to_its_cells)
{
        static const char *const forms[] = {"RoiAlign 2x3x10x12 5x4 5:int64 output_height=7 output_width=7 sampling_ratio=2",
                "RoiAlign 2x3x10x12 5x4 5:int64 output_height=1 output_width=1 sampling_ratio=0",
                "RoiAlign 2x1x1x1 5x4 5:int64 output_height=3 output_width=2 sampling_ratio=1 spatial_scale=0.5",
                "RoiAlign 2x2x9x8 5x4 5:int64 output_height=9 output_width=8 sampling_ratio=3 coordinate_transformation_mode=1",
                "RoiAlign 2x2x9x8 5x4 5:int64 output_height=2 output_width=3 sampling_ratio=0 coordinate_transformation_mode=1",
                "RoiAlign 2x3x10x12 5x4 5:int64 output_height=7 output_width=7 sampling_ratio=2 mode=1",
                "RoiAlign 2x2x9x8 5x4 5:int64 output_height=2 output_width=3 sampling_ratio=0 mode=1"};

        for (size_t f = 0; f < sizeof(forms) / sizeof(forms[0]); f++) {
                cr_expect(case_is_taken(forms[f]), "%s falls to the reference", forms[f]);
                check_regions(forms[f]);
        }
        case_check("RoiAlign 1x3x10x12 70x4 70:int64 output_height=2 output_width=3 sampling_ratio=2 below:0 wide:9 positive");
}
