/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RoiAlign of float32. For 64 cells of a region and one of the samples of each, which four pixels belong to it and by which weights
 * is worked out once, in double; then every channel adds that sample, or keeps the largest of its four parts. Regions are data:
 * what they name is checked where it is used.
 */
#include "cpu/movement/loops.h"
#include "pace.h"

#include <errno.h>
#include <math.h>

#define CELLS       64
#define SAMPLES_MAX 4096 /* along an axis of a cell; more is a region far larger than any image */

struct roi_align {
        int64_t images, channels, size[2], regions, pooled[2];
        int64_t ratio; /* samples along an axis; 0: as many as a cell has pixels */
        double scale;
        bool half_pixel, largest;
};

/* Of one sample of each cell: its pixels, and whether it lies in the image at all. */
struct samples {
        float weights[4][CELLS];
        int32_t pixels[4][CELLS];
        int32_t there[CELLS];
};

struct region {
        double start[2], cell[2];
        int64_t samples[2];
};

static bool roi_align_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *x = &node->inputs[0], *y = &node->outputs[0];
        struct roi_align *a = state;

        if (!sl_cpu_is_f32(x) || !sl_cpu_is_f32(&node->inputs[1]) || node->inputs[2].dtype != SL_DTYPE_I64 ||
                x->layout != SL_LAYOUT_PLAIN || y->layout != SL_LAYOUT_PLAIN || sl_cpu_is_empty(x) || sl_cpu_is_empty(y))
                return false;
        a->images = x->shape.dims[0];
        a->channels = x->shape.dims[1];
        a->regions = y->shape.dims[0];
        for (int d = 0; d < 2; d++) {
                a->size[d] = x->shape.dims[2 + d];
                a->pooled[d] = y->shape.dims[2 + d];
        }
        a->ratio = sl_attrs_int(&node->attrs, SL_ATTR_SAMPLING_RATIO, 0);
        a->scale = sl_attrs_float(&node->attrs, SL_ATTR_SPATIAL_SCALE, 1);
        a->half_pixel = sl_attrs_int(&node->attrs, SL_ATTR_TRANSFORM, 0) == 0;
        a->largest = sl_attrs_int(&node->attrs, SL_ATTR_MODE, 0) == 1;
        sizes->scratch_bytes = sizeof(struct samples);
        return a->size[0] * a->size[1] <= INT32_MAX;
}

/* -ERANGE: a region that is not finite, or far larger than images are. */
static int read_region(const struct roi_align *a, const float *corners, struct region *ret_region)
{
        double shift = a->half_pixel ? 0.5 : 0;

        for (int d = 0; d < 2; d++) {
                double start = (double)corners[1 - d] * a->scale - shift, end = (double)corners[3 - d] * a->scale - shift, samples;

                ret_region->start[d] = start;
                ret_region->cell[d] = (a->half_pixel ? end - start : fmax(end - start, 1)) / (double)a->pooled[d];
                samples = a->ratio ? (double)a->ratio : ceil(ret_region->cell[d]);
                if (!isfinite(start) || !isfinite(end) || samples > SAMPLES_MAX)
                        return -ERANGE;
                ret_region->samples[d] = samples > 0 ? (int64_t)samples : 0;
        }
        return 0;
}

/* The two pixels around @x and the weight of the second. False: it is more than one pixel outside. */
static bool neighbours(double x, int64_t size, int64_t pixels[2], double *ret_weight)
{
        if (x < -1 || x > (double)size)
                return false;
        x = x < 0 ? 0 : x;
        pixels[0] = (int64_t)x;
        pixels[1] = pixels[0] + 1;
        *ret_weight = x - (double)pixels[0];
        if (pixels[0] < size - 1)
                return true;
        pixels[0] = pixels[1] = size - 1;
        *ret_weight = 0;
        return true;
}

static double place_of(const struct region *region, int d, int64_t cell, int64_t sample)
{
        return region->start[d] + ((double)cell + ((double)sample + 0.5) / (double)region->samples[d]) * region->cell[d];
}

static void fill_samples(
        const struct roi_align *a, const struct region *region, int64_t sample, int64_t first, int64_t n, struct samples *samples)
{
        for (int64_t i = 0; i < n; i++) {
                int64_t rows[2] = {0}, columns[2] = {0}, cell = first + i;
                double y = 0, x = 0;
                bool there =
                        neighbours(place_of(region, 0, cell / a->pooled[1], sample / region->samples[1]), a->size[0], rows, &y);

                there = there &&
                        neighbours(place_of(region, 1, cell % a->pooled[1], sample % region->samples[1]), a->size[1], columns, &x);
                samples->there[i] = there;
                for (int k = 0; k < 4; k++) {
                        samples->weights[k][i] = (float)((k / 2 ? y : 1 - y) * (k % 2 ? x : 1 - x));
                        samples->pixels[k][i] = there ? (int32_t)(rows[k / 2] * a->size[1] + columns[k % 2]) : 0;
                }
        }
}

SL_CPU_CLONES static void add_samples(int64_t n, const struct samples *samples, const float *x, float *restrict y)
{
        for (int64_t i = 0; i < n; i++) {
                float sum = samples->weights[0][i] * x[samples->pixels[0][i]];

                for (int k = 1; k < 4; k++)
                        sum += samples->weights[k][i] * x[samples->pixels[k][i]];
                y[i] += samples->there[i] ? sum : 0;
        }
}

/* A NaN is larger than every number. */
static inline float larger(float a, float b)
{
        float most = a > b ? a : b;

        return a != a ? a : most;
}

/* What is no number, and has no weight, is not there. */
SL_CPU_CLONES static void keep_samples(int64_t n, const struct samples *samples, const float *x, float *restrict y)
{
        for (int64_t i = 0; i < n; i++) {
                float parts[4], most;

                for (int k = 0; k < 4; k++) {
                        float v = x[samples->pixels[k][i]], weight = samples->weights[k][i], part = weight * v;

                        parts[k] = weight == 0 && !(v - v == 0) ? -INFINITY : part;
                }
                most = larger(larger(parts[0], parts[1]), larger(parts[2], parts[3]));
                y[i] = larger(y[i], samples->there[i] ? most : 0);
        }
}

static void fill_cells(const struct roi_align *a, int64_t n, float value, float *y)
{
        for (int64_t c = 0; c < a->channels; c++)
                for (int64_t i = 0; i < n; i++)
                        y[c * a->pooled[0] * a->pooled[1] + i] = value;
}

/* @n cells from @first on, of all channels. How many samples they have the data say: a run may be ended between two. */
static void align_cells(const struct roi_align *a, const struct region *region, int64_t first, int64_t n, const float *image,
        float *y, const struct sl_binding *binding)
{
        int64_t count = region->samples[0] * region->samples[1], cells = a->pooled[0] * a->pooled[1];
        struct samples *samples = binding->scratch;

        fill_cells(a, n, a->largest && count ? -INFINITY : 0, y + first);
        for (int64_t s = 0; s < count && sl_pace_on(binding->pace, (uint64_t)(4 * n * a->channels)); s++) {
                fill_samples(a, region, s, first, n, samples);
                for (int64_t c = 0; c < a->channels; c++)
                        (a->largest ? keep_samples : add_samples)(
                                n, samples, image + c * a->size[0] * a->size[1], y + c * cells + first);
        }
        for (int64_t c = 0; c < a->channels && count > 1 && !a->largest; c++)
                for (int64_t i = 0; i < n; i++)
                        y[c * cells + first + i] /= (float)count;
}

static int roi_align_run(const void *state, const struct sl_binding *binding)
{
        const struct roi_align *a = state;
        struct sl_part regions = sl_part_along(binding->part, SL_AXIS_ROWS, a->regions);
        int64_t cells = a->pooled[0] * a->pooled[1];
        struct region region;

        for (int64_t r = regions.first; r < regions.end; r++) {
                int64_t image = ((const int64_t *)binding->inputs[2])[r];

                if (image < 0 || image >= a->images || read_region(a, (const float *)binding->inputs[1] + 4 * r, &region) < 0)
                        return -ERANGE;
                for (int64_t first = 0; first < cells; first += CELLS)
                        align_cells(a, &region, first, cells - first < CELLS ? cells - first : CELLS,
                                (const float *)binding->inputs[0] + image * a->channels * a->size[0] * a->size[1],
                                (float *)binding->outputs[0] + r * a->channels * cells, binding);
        }
        return 0;
}

/* Parts have no pace: where the data say how many samples there are, it is not cut. */
static int64_t roi_align_units(const void *state, uint32_t axis)
{
        const struct roi_align *a = state;

        return axis == SL_AXIS_ROWS && a->ratio ? a->regions : 0;
}

/* Of the images any pixel is read. */
static bool roi_align_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct roi_align *a = state;

        if (operand == SL_REACH_OUTPUT)
                return sl_reach_rows(part, a->channels * a->pooled[0] * a->pooled[1] * (int64_t)sizeof(float), ret_reach);
        return operand == 1 && sl_reach_rows(part, 4 * (int64_t)sizeof(float), ret_reach);
}

const struct sl_cpu_loop sl_cpu_roi_align = {.state_bytes = sizeof(struct roi_align),
        .plan = roi_align_plan,
        .run = roi_align_run,
        .units = roi_align_units,
        .reach = roi_align_reach};
