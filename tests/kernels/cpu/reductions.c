/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions over any axes and of any type, places of the largest, and sums that run along an axis. Widths are those around lanes,
 * rows that go together, and columns that pass by together.
 */
#include "case.h"

#include "cpu/base/threads.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* What takes integers for `cpu`, and what floats alone. */
static const char *const whole_reductions[] = {
        "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceSumSquare"};
static const char *const real_reductions[] = {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1",
        "ReduceSumSquare", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp"};

/* Of the last, the first, the middle axis; of two with one between them; of the ends. # is a size. */
static const char *const forms[] = {"19x#%s axes=1", "#x5%s axes=0", "3x#x70%s axes=1 keepdims=0", "2x3x#x5%s axes=0,2",
        "3x#x2x17%s axes=1,3 keepdims=0", "2x3x4x#%s axes=0,3", "#%s axes=0", "3x2x#x131%s axes=0,2"};
static const int sizes[] = {1, 2, 15, 17, 31, 32, 33, 63, 65, 130};

static void write_line(char line[200], const char *op, const char *form, const char *type, int size, const char *words)
{
        char sized[120];
        size_t n = 0;

        for (const char *c = form; *c; c++)
                n += (size_t)(*c == '#' ? snprintf(sized + n, sizeof(sized) - n, "%d", size)
                                        : snprintf(sized + n, sizeof(sized) - n, "%c", *c));
        n = (size_t)snprintf(line, 200, "%s ", op);
        for (const char *c = sized; *c; c++) {
                bool typed = !strncmp(c, "%s", 2);

                n += (size_t)snprintf(line + n, 200 - n, "%.*s", typed ? (int)strlen(type) : 1, typed ? type : c);
                c += typed;
        }
        snprintf(line + n, 200 - n, " %s", words);
}

/* Each operator meets some of the sizes, each size some of the operators. */
static void check_reductions(const char *const *ops, size_t n_ops, const char *type, const char *words, size_t step)
{
        char line[200];
        size_t round = 0;

        sl_cpu_use_one_thread();
        for (size_t o = 0; o < n_ops; o++)
                for (size_t f = 0; f < COUNT(forms); f++)
                        for (size_t s = 0; s < COUNT(sizes); s++)
                                if (++round % step == 0 && case_is_for_this_set(round / step)) {
                                        write_line(line, ops[o], forms[f], type, sizes[s], words);
                                        cr_expect(case_is_taken(line), "%s falls to the reference", line);
                                        case_check(line);
                                }
}

Test(cpu_reductions, floats_are_folded_over_any_axes)
{
        check_reductions(real_reductions, COUNT(real_reductions), "", "positive", 3);
        check_reductions(real_reductions, COUNT(real_reductions), ":float64", "positive close:1e-12", 3);
}

/* ReduceLogSumExp of halves is for the reference; a mean of halves may be rounded to the other side. */
Test(cpu_reductions, halves_are_folded_over_any_axes)
{
        check_reductions(real_reductions, COUNT(real_reductions) - 1, ":float16", "positive close:1e-3", 7);
        check_reductions(real_reductions, COUNT(real_reductions) - 1, ":bfloat16", "positive", 7);
}

Test(cpu_reductions, integers_are_folded_to_the_bit)
{
        check_reductions(whole_reductions, COUNT(whole_reductions), ":int32", "below:1000000000", 5);
        check_reductions(whole_reductions, COUNT(whole_reductions), ":int64", "below:4000000000000000", 5);
        check_reductions(whole_reductions + 2, 2, ":uint8", "below:256", 5);
        check_reductions(whole_reductions + 2, 2, ":int8", "below:128", 5);
}

static const char *const extremes[] = {"ArgMax", "ArgMin"};
static const char *const arg_forms[] = {"19x#%s axis=1", "#x5%s axis=0", "3x#x70%s axis=1 keepdims=0", "2x#x33%s axis=-2",
        "#%s axis=0", "3x#%s axis=1 mode=1", "2x#x3%s axis=1 mode=1", "20x#x1%s axis=1"};
static const char *const types[] = {"", ":float64", ":float16", ":bfloat16", ":int32", ":int64", ":uint8", ":int8"};

/* Few different integers, so that equals are many. */
static void check_extremes(size_t type, size_t *round)
{
        char line[200];

        for (size_t o = 0; o < COUNT(extremes); o++)
                for (size_t f = 0; f < COUNT(arg_forms); f++)
                        for (size_t s = 0; s < COUNT(sizes); s++)
                                if (++*round % 3 == 0 && case_is_for_this_set(*round / 3)) {
                                        write_line(line, extremes[o], arg_forms[f], types[type], sizes[s], "below:4");
                                        cr_expect(case_is_taken(line), "%s falls to the reference", line);
                                        case_check(line);
                                }
}

Test(cpu_reductions, the_place_of_the_largest_is_the_first_or_the_last_of_equals)
{
        size_t round = 0;

        sl_cpu_use_one_thread();
        for (size_t t = 0; t < COUNT(types); t++)
                check_extremes(t, &round);
}

static const char *const runs[] = {
        "CumSum 19x33 axis=1",
        "CumSum 7x65 axis=0",
        "CumSum 3x17x70 axis=1 exclusive=1",
        "CumSum 3x17x64 axis=1 reverse=1",
        "CumSum 16x9 axis=1 exclusive=1 reverse=1",
        "CumSum 1x1 axis=1",
        "CumSum 129 axis=0",
        "CumSum 8x33:float64 axis=1",
        "CumSum 5x2x128:float64 axis=1 reverse=1",
        "CumSum 9x33:int32 axis=1 below:1000000000",
        "CumSum 2x9x65:int64 axis=-2 below:4000000000000000000",
        "CumProd 19x33 axis=1 wide:3",
        "CumProd 3x7x64 axis=1 exclusive=1",
        "CumProd 9x33:int32 axis=1 below:9 reverse=1",
        "CumProd 4x9:int64 axis=0 below:5",
        "CumProd 8x5:float64 axis=1",
};

/* In the order of the reference, so floats agree to the bit, too. */
Test(cpu_reductions, a_sum_runs_along_its_axis)
{
        char line[200];

        sl_cpu_use_one_thread();
        for (size_t i = 0; i < COUNT(runs); i++) {
                snprintf(line, sizeof(line), "%s loose:1e-30", runs[i]);
                cr_expect(case_is_taken(line), "%s falls to the reference", line);
                case_check(line);
        }
}

static const char *const images[] = {
        "Col2Im 2x27x16 sizes=4,4 kernel_shape=3,3 pads=1,1,1,1",
        "Col2Im 1x8x15 sizes=6,4 kernel_shape=2,2",
        "Col2Im 1x12x9 sizes=6,6 kernel_shape=2,2 strides=2,2",
        "Col2Im 2x32x16 sizes=7,9 kernel_shape=4,2 strides=2,3 pads=1,2,3,1",
        "Col2Im 1x18x30 sizes=9,10 kernel_shape=3,3 dilations=2,2 pads=0,0,0,0",
        "Col2Im 1x9x56 sizes=17,18 kernel_shape=3,3 strides=2,2 dilations=1,2",
        "Col2Im 1x25x1 sizes=1,1 kernel_shape=5,5 pads=2,2,2,2",
};

Test(cpu_reductions, columns_are_added_up_to_images)
{
        sl_cpu_use_one_thread();
        for (size_t i = 0; i < COUNT(images); i++) {
                cr_expect(case_is_taken(images[i]), "%s falls to the reference", images[i]);
                case_check(images[i]);
        }
}

/* Boxes of both orders of corners, every third twice, scores of which many are equal: the node as it is once its data say how long
 * its output may be.
 */
static void check_boxes(const char *line, float overlap, float least, int score_steps)
{
        struct test_case test;
        struct test_kernel kernels[2];

        case_parse(line, &test);
        test.node.outputs[0].shape.dims[0] = 60;
        for (int k = 0; k < 2; k++) {
                float *scores, *boxes;

                cr_assert(test_kernel_init(&kernels[k], k ? &sl_backend_ref : &sl_backend_cpu, &test), "%s", line);
                scores = kernels[k].tensors.inputs[1];
                boxes = kernels[k].tensors.inputs[0];
                for (int64_t i = 1; i < test.node.inputs[0].shape.dims[1]; i += 3)
                        memcpy(boxes + 4 * i, boxes + 4 * (i - 1), 4 * sizeof(*boxes));
                *(float *)kernels[k].tensors.inputs[3] = overlap;
                *(float *)kernels[k].tensors.inputs[4] = least;
                for (uint64_t i = 0; score_steps && i < sl_shape_elements(&test.node.inputs[1].shape); i++)
                        scores[i] = floorf(scores[i] * (float)score_steps) * (i % 5 ? 1.0f : -0.0f);
                cr_assert_eq(test_kernel_launch(&kernels[k]), 0);
        }
        cr_expect(!memcmp(kernels[0].tensors.outputs[0], kernels[1].tensors.outputs[0], 60 * 3 * sizeof(int64_t)), "%s differs",
                line);
        for (int k = 0; k < 2; k++)
                test_kernel_deinit(&kernels[k]);
}

Test(cpu_reductions, boxes_are_kept_in_the_order_of_their_scores)
{
        sl_cpu_use_one_thread();
        check_boxes("NonMaxSuppression 1x200x4 1x1x200 _ 1 1 max_output_boxes_per_class=50", 0.1f, -1, 0);
        check_boxes("NonMaxSuppression 2x33x4 2x3x33 _ 1 1 max_output_boxes_per_class=5", 0.5f, 0.1f, 0);
        check_boxes("NonMaxSuppression 2x33x4 2x3x33 _ 1 1 max_output_boxes_per_class=7 center_point_box=1", 0.3f, -1, 3);
        check_boxes("NonMaxSuppression 1x300x4 1x1x300 _ 1 1 max_output_boxes_per_class=300", 0.99f, -2, 4);
        check_boxes("NonMaxSuppression 1x60x4 1x1x60 _ 1 1 max_output_boxes_per_class=60", 0.9f, -2, 1);
        check_boxes("NonMaxSuppression 1x50x4 1x1x50 _ 1 1 max_output_boxes_per_class=50", 1, -2, 0);
        check_boxes("NonMaxSuppression 1x1x4 1x1x1 _ scalar scalar max_output_boxes_per_class=1", 0, -2, 0);
        check_boxes("NonMaxSuppression 1x17x4 1x2x17 _ 1 1 max_output_boxes_per_class=0", 0, -2, 0);
        check_boxes("NonMaxSuppression 1x17x4 1x2x17 _ 1 1 max_output_boxes_per_class=20", 0, 5, 0);
}
