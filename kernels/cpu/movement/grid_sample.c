/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GridSample of float32 images of two dimensions. For 64 places of the grid at a time, which pixels belong to them and by which
 * weights is worked out once, in double; then every channel is sampled so. A pixel without a weight is not there: a NaN under it
 * stays where it is.
 */
#include "cpu/movement/loops.h"

#include <math.h>
#include <string.h>

#define PLACES   64
#define TAPS_MAX 16

enum { MODE_LINEAR, MODE_NEAREST, MODE_CUBIC };
enum { PADDING_ZEROS, PADDING_BORDER, PADDING_REFLECTION };

struct grid_sample {
        int64_t images, channels, places; /* of the grid, of one image */
        int64_t size[2];
        int64_t mode, padding;
        bool corners;
};

struct taps {
        float weights[TAPS_MAX][PLACES];
        int32_t pixels[TAPS_MAX][PLACES];
};

static bool grid_sample_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *x = &node->inputs[0], *grid = &node->inputs[1], *y = &node->outputs[0];
        struct grid_sample *g = state;

        if (!sl_cpu_is_f32(x) || !sl_cpu_is_f32(grid) || x->layout != SL_LAYOUT_PLAIN || grid->layout != SL_LAYOUT_PLAIN ||
                y->layout != SL_LAYOUT_PLAIN || x->shape.rank != 4 || sl_cpu_is_empty(x) || sl_cpu_is_empty(y))
                return false;
        g->images = x->shape.dims[0];
        g->channels = x->shape.dims[1];
        g->size[0] = x->shape.dims[2];
        g->size[1] = x->shape.dims[3];
        g->places = y->shape.dims[2] * y->shape.dims[3];
        g->mode = sl_attrs_int(&node->attrs, SL_ATTR_MODE, MODE_LINEAR);
        g->padding = sl_attrs_int(&node->attrs, SL_ATTR_PADDING_MODE, PADDING_ZEROS);
        g->corners = sl_attrs_int(&node->attrs, SL_ATTR_ALIGN_CORNERS, 0);
        sizes->scratch_bytes = sizeof(struct taps);
        return g->size[0] * g->size[1] <= INT32_MAX;
}

/* The place between two mirrors. */
static double reflect(double x, double low, double high)
{
        double range = high - low, away = x < low ? low - x : x - high, turns, rest;
        bool odd;

        if (range <= 0)
                return low;
        if (x >= low && x <= high)
                return x;
        turns = floor(away / range);
        rest = away - turns * range;
        odd = fmod(turns, 2) == 1;
        return (x < low) == odd ? high - rest : low + rest;
}

/* From [-1, 1] to pixels; a place off the edge is led back as the padding says. */
static double pixel_of(const struct grid_sample *g, int d, double x)
{
        double size = (double)g->size[d], low = g->corners ? 0 : -0.5, high = g->corners ? size - 1 : size - 0.5;

        x = g->corners ? (x + 1) / 2 * (size - 1) : ((x + 1) * size - 1) / 2;
        x = g->mode == MODE_NEAREST ? nearbyint(x) : x;
        if (g->padding == PADDING_BORDER && (x < low || x > high))
                return fmin(fmax(x, 0), size - 1);
        return g->padding == PADDING_REFLECTION && (x < low || x > high) ? reflect(x, low, high) : x;
}

/* Of a filter's tap; -1: there is none. */
static int64_t index_of(const struct grid_sample *g, int d, double i)
{
        double last = (double)(g->size[d] - 1);

        if (i >= 0 && i <= last)
                return (int64_t)i;
        if (g->padding == PADDING_ZEROS || !isfinite(i))
                return -1;
        if (g->padding == PADDING_REFLECTION)
                i = reflect(i, g->corners ? 0 : -0.5, g->corners ? last : last + 0.5);
        return (int64_t)fmin(fmax(i, 0), last);
}

static double weight_of(const struct grid_sample *g, double distance)
{
        const double a = -0.75;

        distance = fabs(distance);
        if (g->mode == MODE_LINEAR)
                return distance < 1 ? 1 - distance : 0;
        if (distance <= 1)
                return ((a + 2) * distance - (a + 3)) * distance * distance + 1;
        return distance < 2 ? ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a : 0;
}

static int taps_of(const struct grid_sample *g)
{
        return g->mode == MODE_NEAREST ? 1 : g->mode == MODE_LINEAR ? 2 : 4;
}

/* Along dimension @d, from @x on. */
static void list_taps(const struct grid_sample *g, int d, double x, double weights[4], int64_t indices[4])
{
        int n = taps_of(g);
        double begin = n == 1 ? x : floor(x) - (n == 4 ? 1 : 0);

        for (int k = 0; k < n; k++) {
                weights[k] = n == 1 ? 1 : weight_of(g, x - (begin + k));
                indices[k] = isfinite(x) ? index_of(g, d, begin + k) : -1;
        }
}

/* A tap that is not there has no weight, and pixel 0. */
static void fill_taps(const struct grid_sample *g, const float *grid, int64_t n, struct taps *taps)
{
        int each = taps_of(g);

        for (int64_t p = 0; p < n; p++) {
                double weights[2][4];
                int64_t indices[2][4];

                for (int d = 0; d < 2; d++)
                        list_taps(g, d, pixel_of(g, d, (double)grid[2 * p + 1 - d]), weights[d], indices[d]);
                for (int k = 0; k < each * each; k++) {
                        int64_t row = indices[0][k / each], column = indices[1][k % each];
                        bool there = row >= 0 && column >= 0;

                        taps->weights[k][p] = there ? (float)(weights[0][k / each] * weights[1][k % each]) : 0;
                        taps->pixels[k][p] = there ? (int32_t)(row * g->size[1] + column) : 0;
                }
        }
}

static inline __attribute__((always_inline)) void sample(
        int n_taps, int64_t n, const struct taps *taps, const float *x, float *restrict y)
{
        for (int64_t p = 0; p < n; p++) {
                float sum = 0;

                for (int k = 0; k < n_taps; k++) {
                        float weight = taps->weights[k][p], part = weight * x[taps->pixels[k][p]];

                        sum += weight != 0 ? part : 0;
                }
                y[p] = sum;
        }
}

SL_CPU_CLONES static void sample_channel(int n_taps, int64_t n, const struct taps *taps, const float *x, float *restrict y)
{
        if (n_taps == 4 && n == PLACES)
                sample(4, PLACES, taps, x, y);
        else
                sample(n_taps, n, taps, x, y);
}

static int64_t blocks_of(const struct grid_sample *g)
{
        return (g->places + PLACES - 1) / PLACES;
}

static int grid_sample_run(const void *state, const struct sl_binding *binding)
{
        const struct grid_sample *g = state;
        struct sl_part blocks = sl_part_along(binding->part, SL_AXIS_ROWS, g->images * blocks_of(g));
        int64_t pixels = g->size[0] * g->size[1];
        struct taps *taps = binding->scratch;

        for (int64_t b = blocks.first; b < blocks.end; b++) {
                int64_t image = b / blocks_of(g), first = b % blocks_of(g) * PLACES;
                int64_t n = g->places - first < PLACES ? g->places - first : PLACES;

                fill_taps(g, (const float *)binding->inputs[1] + 2 * (image * g->places + first), n, taps);
                for (int64_t c = image * g->channels; c < (image + 1) * g->channels; c++)
                        sample_channel(taps_of(g) * taps_of(g), n, taps, (const float *)binding->inputs[0] + c * pixels,
                                (float *)binding->outputs[0] + c * g->places + first);
        }
        return 0;
}

static int64_t grid_sample_units(const void *state, uint32_t axis)
{
        const struct grid_sample *g = state;

        return axis == SL_AXIS_ROWS ? g->images * blocks_of(g) : 0;
}

const struct sl_cpu_loop sl_cpu_grid_sample = {
        .state_bytes = sizeof(struct grid_sample), .plan = grid_sample_plan, .run = grid_sample_run, .units = grid_sample_units};
