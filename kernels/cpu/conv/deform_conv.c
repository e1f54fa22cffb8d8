/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DeformConv of float32 images. For 64 neighbouring outputs the displaced taps of all channels of a group are sampled into columns
 * in scratch, and its filters are multiplied by them, six filters at a time. Which pixels a tap lies between is the same for the
 * channels of an offset group, and worked out once for them.
 */
#include "cpu/base/isa.h"
#include "cpu/conv/loops.h"
#include "shape/window.h"

#include <math.h>
#include <string.h>

#define PIXELS  64
#define FILTERS 6

struct deform_conv {
        struct sl_window window;
        int64_t images, channels, size[2], filters, out[2];
        int64_t groups, offset_groups, taps;
        bool biased, masked;
};

/* A tap of each output. A pixel that is not there has no weight, and is the first. */
struct tap {
        float weights[4][PIXELS];
        int32_t pixels[4][PIXELS];
        float masks[PIXELS];
};

struct scratch {
        struct tap tap;
        float columns[][PIXELS]; /* by channel of the group and tap */
};

static bool all_plain_f32(const struct sl_node_desc *node)
{
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (node->inputs[i].dtype != SL_DTYPE_NONE &&
                        (!sl_cpu_is_f32(&node->inputs[i]) || node->inputs[i].layout != SL_LAYOUT_PLAIN ||
                                sl_cpu_is_empty(&node->inputs[i])))
                        return false;
        return node->outputs[0].layout == SL_LAYOUT_PLAIN && node->inputs[0].shape.rank == 4 && !sl_cpu_is_empty(&node->outputs[0]);
}

static bool deform_conv_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_shape *x = &node->inputs[0].shape, *w = &node->inputs[1].shape, *y = &node->outputs[0].shape;
        struct deform_conv *d = state;

        /* Without it a fused product is a call of a function. */
        if (!sl_cpu_has_avx2() || !all_plain_f32(node) || sl_window_read(node, &d->window, NULL) || d->window.rank != 2)
                return false;
        d->images = x->dims[0];
        d->channels = x->dims[1];
        d->filters = w->dims[0];
        for (int i = 0; i < 2; i++) {
                d->size[i] = x->dims[2 + i];
                d->out[i] = y->dims[2 + i];
        }
        d->groups = sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1);
        d->offset_groups = sl_attrs_int(&node->attrs, SL_ATTR_OFFSET_GROUP, 1);
        d->taps = d->window.kernel[0] * d->window.kernel[1];
        d->biased = sl_cpu_input(node, 3);
        d->masked = sl_cpu_input(node, 4);
        sizes->scratch_bytes = sizeof(struct scratch) + (size_t)(w->dims[1] * d->taps) * sizeof(float[PIXELS]);
        return d->size[0] * d->size[1] <= INT32_MAX;
}

/* Where the tap lies that @offsets displace: y, and one plane behind it x. */
static void place_tap(const struct deform_conv *d, int64_t k, int64_t pixel, const float *offsets, int64_t plane, double ret_at[2])
{
        const struct sl_window *w = &d->window;

        ret_at[0] = (double)(pixel / d->out[1] * w->stride[0] - w->pad_begin[0] + k / w->kernel[1] * w->dilation[0]);
        ret_at[1] = (double)(pixel % d->out[1] * w->stride[1] - w->pad_begin[1] + k % w->kernel[1] * w->dilation[1]);
        ret_at[0] += (double)offsets[pixel];
        ret_at[1] += (double)offsets[plane + pixel];
}

/* Tap @k of @n outputs from @first on. */
static void fill_tap(
        const struct deform_conv *d, int64_t k, int64_t first, int64_t n, const float *offsets, const float *masks, struct tap *tap)
{
        int64_t plane = d->out[0] * d->out[1];

        for (int64_t p = 0; p < n; p++) {
                double at[2];

                place_tap(d, k, first + p, offsets + 2 * k * plane, plane, at);
                bool inside = at[0] > -1 && at[0] < (double)d->size[0] && at[1] > -1 && at[1] < (double)d->size[1];

                tap->masks[p] = masks ? masks[k * plane + first + p] : 1;
                for (int i = 0; i < 4; i++) {
                        int64_t row = inside ? (int64_t)floor(at[0]) + i / 2 : -1,
                                column = inside ? (int64_t)floor(at[1]) + i % 2 : -1;
                        bool there = row >= 0 && row < d->size[0] && column >= 0 && column < d->size[1];

                        tap->weights[i][p] =
                                there ? (float)((1 - fabs(at[0] - (double)row)) * (1 - fabs(at[1] - (double)column))) : 0;
                        tap->pixels[i][p] = there ? (int32_t)(row * d->size[1] + column) : -1;
                }
        }
        for (int64_t p = n; p < PIXELS; p++)
                for (int i = 0; i < 4; i++) {
                        tap->weights[i][p] = tap->masks[p] = 0;
                        tap->pixels[i][p] = -1;
                }
}

SL_CPU_CLONES static void sample_tap(const struct tap *tap, const float *x, float *restrict column)
{
        for (int p = 0; p < PIXELS; p++) {
                float sum = 0;

                for (int i = 0; i < 4; i++) {
                        int32_t pixel = tap->pixels[i][p];
                        float part = tap->weights[i][p] * x[pixel < 0 ? 0 : pixel];

                        sum += pixel < 0 ? 0 : part;
                }
                column[p] = tap->masks[p] * sum;
        }
}

static inline __attribute__((always_inline)) void multiply(
        int filters, int64_t depth, const float *w, const float *bias, const float (*columns)[PIXELS], float (*sums)[PIXELS])
{
        for (int f = 0; f < filters; f++)
                for (int p = 0; p < PIXELS; p++)
                        sums[f][p] = bias ? bias[f] : 0;
        for (int64_t k = 0; k < depth; k++)
                for (int f = 0; f < filters; f++)
                        for (int p = 0; p < PIXELS; p++)
                                sums[f][p] = __builtin_fmaf(w[f * depth + k], columns[k][p], sums[f][p]);
}

/* @filters at most six filters, each with its row of @depth weights. */
SL_CPU_CLONES static void multiply_filters(int64_t filters, int64_t depth, const float *w, const float *bias,
        const float (*columns)[PIXELS], float *y, int64_t pitch, int64_t n)
{
        float sums[FILTERS][PIXELS];

        if (filters == FILTERS)
                multiply(FILTERS, depth, w, bias, columns, sums);
        else
                for (int64_t f = 0; f < filters; f++)
                        multiply(1, depth, w + f * depth, bias ? bias + f : NULL, columns, sums + f);
        for (int64_t f = 0; f < filters; f++)
                memcpy(y + f * pitch, sums[f], (size_t)n * sizeof(float));
}

/* The columns of group @g of image @image, of @n outputs from @first on. */
static void fill_columns(const struct deform_conv *d, const struct sl_binding *binding, int64_t image, int64_t g, int64_t first,
        int64_t n, struct scratch *scratch)
{
        int64_t plane = d->out[0] * d->out[1], of_group = d->channels / d->groups, of_offsets = d->channels / d->offset_groups;
        const float *x = (const float *)binding->inputs[0] + (image * d->channels + g * of_group) * d->size[0] * d->size[1];

        for (int64_t k = 0; k < d->taps; k++) {
                int64_t filled = -1;

                for (int64_t c = 0; c < of_group; c++) {
                        int64_t o = image * d->offset_groups + (g * of_group + c) / of_offsets;

                        if (o != filled)
                                fill_tap(d, k, first, n, (const float *)binding->inputs[2] + 2 * o * d->taps * plane,
                                        d->masked ? (const float *)binding->inputs[4] + o * d->taps * plane : NULL, &scratch->tap);
                        filled = o;
                        sample_tap(&scratch->tap, x + c * d->size[0] * d->size[1], scratch->columns[c * d->taps + k]);
                }
        }
}

static int64_t blocks_of(const struct deform_conv *d)
{
        return (d->out[0] * d->out[1] + PIXELS - 1) / PIXELS;
}

/* A block of outputs after the other, and of each all groups. */
static int deform_conv_run(const void *state, const struct sl_binding *binding)
{
        const struct deform_conv *d = state;
        struct sl_part blocks = sl_part_along(binding->part, SL_AXIS_ROWS, d->images * blocks_of(d));
        int64_t plane = d->out[0] * d->out[1], depth = d->channels / d->groups * d->taps, of_group = d->filters / d->groups;
        const float *w = binding->inputs[1], *bias = d->biased ? binding->inputs[3] : NULL;
        struct scratch *scratch = binding->scratch;

        for (int64_t b = blocks.first; b < blocks.end; b++) {
                int64_t image = b / blocks_of(d), first = b % blocks_of(d) * PIXELS;
                int64_t n = plane - first < PIXELS ? plane - first : PIXELS;
                float *y = (float *)binding->outputs[0] + image * d->filters * plane + first;

                for (int64_t g = 0; g < d->groups; g++) {
                        fill_columns(d, binding, image, g, first, n, scratch);
                        for (int64_t m = g * of_group; m < (g + 1) * of_group; m += FILTERS) {
                                int64_t filters = (g + 1) * of_group - m < FILTERS ? (g + 1) * of_group - m : FILTERS;

                                multiply_filters(filters, depth, w + m * depth, bias ? bias + m : NULL,
                                        (const float(*)[PIXELS])scratch->columns, y + m * plane, plane, n);
                        }
                }
        }
        return 0;
}

static int64_t deform_conv_units(const void *state, uint32_t axis)
{
        const struct deform_conv *d = state;

        return axis == SL_AXIS_ROWS ? d->images * blocks_of(d) : 0;
}

const struct sl_cpu_loop sl_cpu_deform_conv = {
        .state_bytes = sizeof(struct deform_conv), .plan = deform_conv_plan, .run = deform_conv_run, .units = deform_conv_units};
