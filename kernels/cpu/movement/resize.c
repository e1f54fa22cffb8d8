/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resize of images, PLAIN or CHANNELS_LAST, by the tables of shape/resize.h, which each launch fills in scratch. An image is rows
 * of pixels of @lanes elements: all channels, or one. Interpolation is in float32: the rows first, then along the row, which has
 * its edges on both sides as far as a filter reaches. The nearest pixel is copied, of any type; a row that comes from the same one
 * as the row above is that row again.
 */
#include "shape/resize.h"

#include "base/bytes.h"
#include "cpu/movement/loops.h"

#include <string.h>

struct resize {
        struct sl_resize form; /* of two axes: rows and columns */
        int64_t images, lanes;
        size_t element_bytes;
        int64_t taps[2];
};

/* One axis of a launch: for each place of the output the first tap, their number, and their weights. */
struct axis {
        int64_t *first, *count;
        float *weights;
        int64_t taps;
};

static bool read_axes(const struct sl_node_desc *node, struct resize *s)
{
        struct sl_resize all;
        uint32_t rank = node->inputs[0].shape.rank;

        if (rank < 3 || rank > 4 || sl_resize_read(node, &all, NULL) || all.transform == SL_RESIZE_TF_CROP_AND_RESIZE)
                return false;
        for (uint32_t i = 0; i < 2; i++)
                if (!sl_resize_keeps(&all, i))
                        return false;
        s->form = all;
        s->form.rank = 2;
        for (uint32_t i = 0; i < 2; i++) {
                bool missing = i == 0 && rank == 3;
                uint32_t from = rank - 2 + i;

                s->form.in[i] = missing ? 1 : all.in[from];
                s->form.out[i] = missing ? 1 : all.out[from];
                s->form.scale[i] = missing ? 1 : all.scale[from];
                s->form.extent[i] = missing ? 1 : all.extent[from];
                s->form.crop_start[i] = 0;
                s->form.crop_end[i] = 1;
        }
        return true;
}

static size_t axis_bytes(const struct resize *s, uint32_t i)
{
        return sl_align_up((size_t)s->form.out[i] * (2 * sizeof(int64_t) + (size_t)s->taps[i] * sizeof(float)), 64);
}

/* What lies beside a row, which itself is aligned. */
static size_t edge_bytes(const struct resize *s)
{
        return sl_align_up((size_t)(SL_RESIZE_OFF_EDGE * s->lanes) * sizeof(float), 64);
}

static bool resize_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *x = &node->inputs[0], *y = &node->outputs[0];
        struct resize *s = state;
        bool last = x->layout == SL_LAYOUT_CHANNELS_LAST;

        if (x->layout != y->layout || x->dtype != y->dtype || !read_axes(node, s) || sl_cpu_is_empty(y))
                return false;
        s->element_bytes = sl_dtype_bytes(x->dtype);
        if (!s->element_bytes || (s->form.mode != SL_RESIZE_NEAREST && !sl_cpu_is_f32(x)))
                return false;
        s->images = x->shape.dims[0] * (last ? 1 : x->shape.dims[1]);
        s->lanes = last ? x->shape.dims[1] : 1;
        for (uint32_t i = 0; i < 2; i++)
                s->taps[i] = (int64_t)sl_align_up((size_t)sl_resize_taps(&s->form, i), 2);
        sizes->scratch_bytes = axis_bytes(s, 0) + axis_bytes(s, 1);
        if (s->form.mode != SL_RESIZE_NEAREST)
                sizes->scratch_bytes += 2 * edge_bytes(s) + (size_t)(s->form.in[1] * s->lanes) * sizeof(float);
        return true;
}

static struct axis fill_axis(const struct resize *s, uint32_t i, char **scratch)
{
        size_t n = (size_t)s->form.out[i];
        struct axis axis = {.taps = s->taps[i]};

        axis.first = (int64_t *)*scratch;
        axis.count = axis.first + n;
        axis.weights = (float *)(axis.count + n);
        *scratch += axis_bytes(s, i);
        for (int64_t at = 0; at < (int64_t)n; at++)
                axis.count[at] = sl_resize_weights(&s->form, i, at, &axis.first[at], axis.weights + at * axis.taps);
        return axis;
}

#define DEFINE_PICK(bits)                                                                                                          \
        static void pick_##bits(const int64_t *first, int64_t n, const uint##bits##_t *from, uint##bits##_t *to)                   \
        {                                                                                                                          \
                for (int64_t i = 0; i < n; i++)                                                                                    \
                        to[i] = from[first[i]];                                                                                    \
        }

DEFINE_PICK(8)
DEFINE_PICK(16)
DEFINE_PICK(32)
DEFINE_PICK(64)

static void pick_row(const struct resize *s, const struct axis *columns, const char *from, char *to)
{
        size_t pixel = s->element_bytes * (size_t)s->lanes;
        int64_t n = s->form.out[1];

        if (s->lanes > 1)
                for (int64_t i = 0; i < n; i++)
                        memcpy(to + (size_t)i * pixel, from + (size_t)columns->first[i] * pixel, pixel);
        else if (pixel == 1)
                pick_8(columns->first, n, (const uint8_t *)from, (uint8_t *)to);
        else if (pixel == 2)
                pick_16(columns->first, n, (const uint16_t *)from, (uint16_t *)to);
        else if (pixel == 4)
                pick_32(columns->first, n, (const uint32_t *)from, (uint32_t *)to);
        else
                pick_64(columns->first, n, (const uint64_t *)from, (uint64_t *)to);
}

/* Rows @first to @end of the output. */
static void nearest_rows(const struct resize *s, const struct axis axes[2], int64_t first, int64_t end, const char *from, char *to)
{
        size_t from_row = s->element_bytes * (size_t)(s->form.in[1] * s->lanes);
        size_t to_row = s->element_bytes * (size_t)(s->form.out[1] * s->lanes);

        to += (size_t)first * to_row;
        for (int64_t y = first; y < end; y++, to += to_row) {
                if (y > first && axes[0].first[y] == axes[0].first[y - 1])
                        memcpy(to, to - to_row, to_row);
                else
                        pick_row(s, &axes[1], from + (size_t)axes[0].first[y] * from_row, to);
        }
}

SL_CPU_CLONES static void scale_row(float *restrict to, const float *restrict from, float weight, int64_t n)
{
        for (int64_t i = 0; i < n; i++)
                to[i] = weight * from[i];
}

SL_CPU_CLONES static void add_row(float *restrict to, const float *restrict from, float weight, int64_t n)
{
        for (int64_t i = 0; i < n; i++)
                to[i] += weight * from[i];
}

/* Along a row of single elements. */
static void blend_elements(const struct axis *columns, int64_t n, const float *from, float *to)
{
        for (int64_t i = 0; i < n; i++) {
                const float *weights = columns->weights + i * columns->taps, *taps = from + columns->first[i];
                float sum = 0;

                for (int64_t k = 0; k < columns->count[i]; k++)
                        sum += weights[k] * taps[k];
                to[i] = sum;
        }
}

static void blend_pixels(const struct axis *columns, int64_t n, int64_t lanes, const float *from, float *to)
{
        for (int64_t i = 0; i < n; i++, to += lanes) {
                const float *weights = columns->weights + i * columns->taps, *taps = from + columns->first[i] * lanes;

                scale_row(to, taps, weights[0], lanes);
                for (int64_t k = 1; k < columns->count[i]; k++)
                        add_row(to, taps + k * lanes, weights[k], lanes);
        }
}

/* Before and behind the @n pixels of @row lies what stands at the edge. */
static void repeat_edges(float *row, int64_t n, int64_t lanes)
{
        const float *last = row + (n - 1) * lanes;

        for (int64_t p = 1; p <= SL_RESIZE_OFF_EDGE; p++)
                for (int64_t i = 0; i < lanes; i++) {
                        row[i - p * lanes] = row[i];
                        row[(n - 1 + p) * lanes + i] = last[i];
                }
}

static void blended_rows(
        const struct resize *s, const struct axis axes[2], int64_t first, int64_t end, const float *from, float *to, float *row)
{
        int64_t from_row = s->form.in[1] * s->lanes, to_row = s->form.out[1] * s->lanes;

        to += first * to_row;
        for (int64_t y = first; y < end; y++, to += to_row) {
                const float *weights = axes[0].weights + y * axes[0].taps;
                int64_t place = axes[0].first[y];

                scale_row(row, from + sl_resize_inside(&s->form, 0, place) * from_row, weights[0], from_row);
                for (int64_t k = 1; k < axes[0].count[y]; k++)
                        add_row(row, from + sl_resize_inside(&s->form, 0, place + k) * from_row, weights[k], from_row);
                if (s->form.mode == SL_RESIZE_CUBIC)
                        repeat_edges(row, s->form.in[1], s->lanes);
                if (s->lanes == 1)
                        blend_elements(&axes[1], s->form.out[1], row, to);
                else
                        blend_pixels(&axes[1], s->form.out[1], s->lanes, row, to);
        }
}

static int resize_run(const void *state, const struct sl_binding *binding)
{
        const struct resize *s = state;
        int64_t from_size = s->form.in[0] * s->form.in[1] * s->lanes, to_size = s->form.out[0] * s->form.out[1] * s->lanes;
        int64_t height = s->form.out[0];
        struct sl_part rows = sl_part_along(binding->part, SL_AXIS_ROWS, s->images * height);
        char *scratch = binding->scratch;
        struct axis axes[2];

        for (uint32_t i = 0; i < 2; i++)
                axes[i] = fill_axis(s, i, &scratch);
        for (int64_t at = rows.first, end; at < rows.end; at = end) {
                int64_t i = at / height, first = at % height;
                const char *from = (const char *)binding->inputs[0] + (size_t)(i * from_size) * s->element_bytes;
                char *to = (char *)binding->outputs[0] + (size_t)(i * to_size) * s->element_bytes;

                end = (i + 1) * height < rows.end ? (i + 1) * height : rows.end;
                if (s->form.mode == SL_RESIZE_NEAREST)
                        nearest_rows(s, axes, first, end - i * height, from, to);
                else
                        blended_rows(s, axes, first, end - i * height, (const float *)from, (float *)to,
                                (float *)(scratch + edge_bytes(s)));
        }
        return 0;
}

static int64_t resize_units(const void *state, uint32_t axis)
{
        const struct resize *s = state;

        return axis == SL_AXIS_ROWS ? s->images * s->form.out[0] : 0;
}

const struct sl_cpu_loop sl_cpu_resize = {
        .state_bytes = sizeof(struct resize), .plan = resize_plan, .run = resize_run, .units = resize_units};
