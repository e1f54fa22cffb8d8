/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path of a block of tiles: transformed, multiplied panel by panel, transformed back; a vector of channels at a time.
 */
#include "cpu/base/vector.h"
#include "cpu/conv/winograd.h"
#include "cpu/gemm/gemm.h"

#define INLINE        static inline __attribute__((always_inline))
#define POSITIONS_MAX 36
#define OUTPUTS_MAX   4

/* The inner points of 6 positions, +-A and +-B. */
#define A 0.625f
#define B 1.5f

/* A tile as the compiler sees it: positions and outputs, down and across. */
struct shape {
        int down, across, out_down, out_across, stride;
};

/* Rows or columns of a tile: of each, how far it lies from the first of the image, and whether it lies inside. */
struct span {
        int64_t offset[SL_WINOGRAD_SIDE_MAX];
        bool inside[SL_WINOGRAD_SIDE_MAX];
};

static void set_span(struct span *span, int64_t first, int64_t size, int64_t step, int inner)
{
        for (int i = 0; i < inner; i++) {
                int64_t at = first + i;

                span->inside[i] = at >= 0 && at < size;
                span->offset[i] = span->inside[i] ? at * step : 0;
        }
}

/* Eight positions: the pair +-p of points has the other two squares, whose sum and product are given. */
INLINE void transform_pair(float p, float sum, float product, const sl_vector d[8], sl_vector t[2])
{
        const sl_vector s = sl_vector_set(sum), m = sl_vector_set(product);
        sl_vector even = sl_vector_fma(m, d[2], sl_vector_fnma(s, d[4], d[6]));
        sl_vector odd = sl_vector_fma(m, d[1], sl_vector_fnma(s, d[3], d[5]));

        t[0] = sl_vector_fma(sl_vector_set(p), odd, even);
        t[1] = sl_vector_fnma(sl_vector_set(p), odd, even);
}

INLINE void transform_eight(const sl_vector d[8], sl_vector t[8])
{
        const sl_vector sum = sl_vector_set(5.25f);

        t[0] = sl_vector_fma(sum, sl_vector_sub(d[2], d[4]), sl_vector_sub(d[6], d[0]));
        transform_pair(0.5f, 5.0f, 4.0f, d, t + 1);
        transform_pair(1.0f, 4.25f, 1.0f, d, t + 3);
        transform_pair(2.0f, 1.25f, 0.25f, d, t + 5);
        t[7] = sl_vector_fma(sum, sl_vector_sub(d[3], d[5]), sl_vector_sub(d[7], d[1]));
}

INLINE void transform_six(const sl_vector d[6], sl_vector t[6])
{
        const sl_vector aa = sl_vector_set(A * A), bb = sl_vector_set(B * B), sum = sl_vector_set(A * A + B * B);
        const sl_vector product = sl_vector_set(A * A * B * B), a = sl_vector_set(A), b = sl_vector_set(B);
        sl_vector even_a = sl_vector_fnma(bb, d[2], d[4]), odd_a = sl_vector_fnma(bb, d[1], d[3]);
        sl_vector even_b = sl_vector_fnma(aa, d[2], d[4]), odd_b = sl_vector_fnma(aa, d[1], d[3]);

        t[0] = sl_vector_fma(product, d[0], sl_vector_fnma(sum, d[2], d[4]));
        t[1] = sl_vector_fma(a, odd_a, even_a);
        t[2] = sl_vector_fnma(a, odd_a, even_a);
        t[3] = sl_vector_fma(b, odd_b, even_b);
        t[4] = sl_vector_fnma(b, odd_b, even_b);
        t[5] = sl_vector_fma(product, d[1], sl_vector_fnma(sum, d[3], d[5]));
}

/* One line of the transform of an input tile. */
INLINE void transform_line(int positions, const sl_vector d[SL_WINOGRAD_SIDE_MAX], sl_vector t[SL_WINOGRAD_SIDE_MAX])
{
        switch (positions) {
        case 1:
                t[0] = d[0];
                break;
        case 4:
                t[0] = sl_vector_sub(d[2], d[0]);
                t[1] = sl_vector_add(d[2], d[1]);
                t[2] = sl_vector_sub(d[2], d[1]);
                t[3] = sl_vector_sub(d[3], d[1]);
                break;
        case 5:
                t[0] = sl_vector_sub(d[0], d[2]);
                t[1] = d[2];
                t[2] = sl_vector_sub(d[4], d[2]);
                t[3] = d[1];
                t[4] = d[3];
                break;
        case 6:
                transform_six(d, t);
                break;
        default:
                transform_eight(d, t);
        }
}

INLINE void restore_six(int outputs, const sl_vector m[6], sl_vector y[OUTPUTS_MAX])
{
        sl_vector even_a = sl_vector_add(m[1], m[2]), odd_a = sl_vector_sub(m[1], m[2]);
        sl_vector even_b = sl_vector_add(m[3], m[4]), odd_b = sl_vector_sub(m[3], m[4]);

        y[0] = sl_vector_add(sl_vector_add(m[0], even_a), even_b);
        if (outputs == 2) {
                y[1] = sl_vector_fma(sl_vector_set(A), odd_a, sl_vector_fma(sl_vector_set(B), odd_b, m[5]));
                return;
        }
        y[1] = sl_vector_fma(sl_vector_set(A), odd_a, sl_vector_mul(sl_vector_set(B), odd_b));
        y[2] = sl_vector_fma(sl_vector_set(A * A), even_a, sl_vector_mul(sl_vector_set(B * B), even_b));
        y[3] = sl_vector_fma(sl_vector_set(A * A * A), odd_a, sl_vector_fma(sl_vector_set(B * B * B), odd_b, m[5]));
}

INLINE void restore_eight(const sl_vector m[8], sl_vector y[OUTPUTS_MAX])
{
        sl_vector even = sl_vector_add(sl_vector_add(m[1], m[2]), sl_vector_add(m[3], m[4]));
        sl_vector odd = sl_vector_fma(sl_vector_set(0.5f), sl_vector_sub(m[1], m[2]), sl_vector_sub(m[3], m[4]));

        y[0] = sl_vector_add(sl_vector_add(m[0], even), sl_vector_add(m[5], m[6]));
        y[1] = sl_vector_fma(sl_vector_set(2.0f), sl_vector_sub(m[5], m[6]), sl_vector_add(odd, m[7]));
}

/* One line of the way back. */
INLINE void restore_line(int positions, int outputs, const sl_vector m[SL_WINOGRAD_SIDE_MAX], sl_vector y[OUTPUTS_MAX])
{
        switch (positions) {
        case 1:
                y[0] = m[0];
                break;
        case 4:
                y[0] = sl_vector_add(m[0], sl_vector_add(m[1], m[2]));
                y[1] = sl_vector_add(sl_vector_sub(m[1], m[2]), m[3]);
                break;
        case 5:
                y[0] = sl_vector_add(sl_vector_add(m[0], m[1]), m[3]);
                y[1] = sl_vector_add(sl_vector_add(m[1], m[2]), m[4]);
                break;
        case 6:
                restore_six(outputs, m, y);
                break;
        default:
                restore_eight(m, y);
        }
}

INLINE void transform_vector(struct shape s, const float *image, const struct span *rows, const struct span *columns, bool whole,
        sl_lanes mask, float *to, int64_t position_floats)
{
        sl_vector half[POSITIONS_MAX], line[SL_WINOGRAD_SIDE_MAX], turned[SL_WINOGRAD_SIDE_MAX];

#pragma GCC unroll 8
        for (int j = 0; j < s.across; j++) {
#pragma GCC unroll 8
                for (int i = 0; i < s.down; i++) {
                        const float *at = image + rows->offset[i] + columns->offset[j];
                        bool inside = whole || (rows->inside[i] && columns->inside[j]);

                        line[i] = sl_vector_load_lanes(inside ? mask : sl_lanes_first(0), at);
                }
                transform_line(s.down, line, turned);
#pragma GCC unroll 8
                for (int i = 0; i < s.down; i++)
                        half[i * s.across + j] = turned[i];
        }
#pragma GCC unroll 8
        for (int i = 0; i < s.down; i++) {
                transform_line(s.across, half + i * s.across, turned);
#pragma GCC unroll 8
                for (int j = 0; j < s.across; j++)
                        sl_vector_store(to + (i * s.across + j) * position_floats, turned[j]);
        }
}

/* Where a tile lies. */
struct place {
        int64_t sample, row, column; /* of its first pixel of the output */
};

static struct place find_place(const struct sl_winograd *w, int64_t tile)
{
        int64_t of_sample = w->tiles_down * w->tiles_across;

        return (struct place){.sample = tile / of_sample,
                .row = tile % of_sample / w->tiles_across * w->down.outputs,
                .column = tile % w->tiles_across * w->across.outputs};
}

INLINE void transform_tile(const struct sl_winograd *w, struct shape s, const float *x, int64_t tile, float *to)
{
        struct place place = find_place(w, tile);
        const float *image = x + place.sample * w->shape.height * w->shape.width * w->shape.channels;
        int64_t top = place.row * s.stride - w->shape.window.pad_begin[0],
                left = place.column * s.stride - w->shape.window.pad_begin[1];
        bool whole = top >= 0 && left >= 0 && top + s.down <= w->shape.height && left + s.across <= w->shape.width;
        struct span rows, columns;

        set_span(&rows, top, w->shape.height, w->shape.width * w->shape.channels, s.down);
        set_span(&columns, left, w->shape.width, w->shape.channels, s.across);
        for (int64_t c = 0; c < w->shape.channels; c += SL_VECTOR_FLOATS) {
                sl_lanes mask = sl_lanes_first(w->shape.channels - c);

                if (whole)
                        transform_vector(s, image + c, &rows, &columns, true, mask, to + c, w->position_floats);
                else
                        transform_vector(s, image + c, &rows, &columns, false, mask, to + c, w->position_floats);
        }
}

/* What the way back needs beside the sums. */
struct target {
        float *y;
        const float *residual, *bias;
        int64_t filters; /* of this step */
};

INLINE void restore_vector(const struct sl_winograd *w, struct shape s, const float *sums, const struct target *t, int64_t at,
        int64_t first, int64_t rows, int64_t columns, sl_lanes mask)
{
        sl_vector half[OUTPUTS_MAX * SL_WINOGRAD_SIDE_MAX], line[SL_WINOGRAD_SIDE_MAX], turned[OUTPUTS_MAX];
        sl_vector bias = t->bias ? sl_vector_load_lanes(mask, t->bias + first) : sl_vector_zero();
        sl_vector least = sl_vector_set(w->shape.epilogue.least), most = sl_vector_set(w->shape.epilogue.most);

#pragma GCC unroll 8
        for (int j = 0; j < s.across; j++) {
#pragma GCC unroll 8
                for (int i = 0; i < s.down; i++)
                        line[i] = sl_vector_load(sums + (i * s.across + j) * w->sum_floats + first);
                restore_line(s.down, s.out_down, line, turned);
#pragma GCC unroll 4
                for (int i = 0; i < s.out_down; i++)
                        half[i * s.across + j] = turned[i];
        }
#pragma GCC unroll 4
        for (int i = 0; i < s.out_down; i++) {
                if (i >= rows)
                        return;
                restore_line(s.across, s.out_across, half + i * s.across, turned);
#pragma GCC unroll 4
                for (int j = 0; j < s.out_across; j++) {
                        int64_t pixel = at + (i * w->shape.out_width + j) * w->shape.filters + first;
                        sl_lanes there = j < columns ? mask : sl_lanes_first(0);
                        sl_vector sum = sl_vector_add(turned[j], bias);

                        if (t->residual)
                                sum = sl_vector_add(sum, sl_vector_load_lanes(there, t->residual + pixel));
                        sl_vector_store_lanes(t->y + pixel, there, sl_vector_clip(sum, least, most));
                }
        }
}

INLINE void restore_tile(const struct sl_winograd *w, struct shape s, const float *sums, const struct target *t, int64_t tile)
{
        struct place place = find_place(w, tile);
        int64_t at = ((place.sample * w->shape.out_height + place.row) * w->shape.out_width + place.column) * w->shape.filters;
        int64_t rows = w->shape.out_height - place.row, columns = w->shape.out_width - place.column;

        for (int64_t first = 0; first < t->filters; first += SL_VECTOR_FLOATS)
                restore_vector(w, s, sums, t, at, first, rows, columns, sl_lanes_first(t->filters - first));
        if (!w->shape.epilogue.activation)
                return;
        for (int64_t row = 0; row < s.out_down && row < rows; row++)
                sl_cpu_epilogue_activate(&w->shape.epilogue, t->y + at + row * w->shape.out_width * w->shape.filters,
                        w->shape.filters, columns < s.out_across ? columns : s.out_across, t->filters);
}

/* Which of the matrices of weights a position is multiplied with: with stride 2, the last of a line with that of the one before. */
INLINE int weights_of(struct shape s, int position)
{
        int i = position / s.across, j = position % s.across;

        if (s.stride == 1)
                return position;
        if (i == s.down)
                return (s.down - 1) * (s.across - 1);
        return (i < s.down - 1 ? i : i - 1) * (s.across - 1) + (j < s.across - 1 ? j : j - 1);
}

/* All positions of a block under some panels of filters, and the way back. */
INLINE void run_step(const struct sl_winograd *w, struct shape s, float *tiles, const float *weights, const struct target *t,
        int64_t first_tile, int64_t n_tiles)
{
        const int positions = s.down * s.across;
        int64_t first_panel = t->filters < SL_GEMM_PANEL ? t->filters : SL_GEMM_PANEL;
        float *sums = tiles + w->sums_offset;
        struct sl_gemm gemm = {.rows = n_tiles,
                .depth = w->shape.channels,
                .columns = t->filters,
                .a_stride = w->channel_floats,
                .c_stride = w->step_filters,
                .streams = w->streams,
                .panel_stride = w->weights * w->shape.channels * SL_GEMM_PANEL};

        for (int position = 0; position < positions; position++) {
                gemm.a = tiles + position * w->position_floats;
                gemm.b = weights + weights_of(s, position) * sl_gemm_packed_floats(w->shape.channels, first_panel);
                gemm.next = weights + weights_of(s, position + 1) * sl_gemm_packed_floats(w->shape.channels, first_panel);
                gemm.c = sums + position * w->sum_floats;
                sl_gemm_run(&gemm);
        }
        for (int64_t i = 0; i < n_tiles; i++)
                restore_tile(w, s, sums + i * w->step_filters, t, first_tile + i);
}

/* Whole panels, or a narrow last one by itself: in it, positions lie nearer to each other. */
static int64_t next_filters(const struct sl_winograd *w, int64_t left)
{
        int64_t tail = left % SL_GEMM_PANEL;

        if (left > w->step_filters)
                return w->step_filters;
        return left > SL_GEMM_PANEL && tail && tail <= SL_GEMM_PANEL / 2 ? left - tail : left;
}

INLINE void run_tiles(const struct sl_winograd *w, struct shape s, const struct sl_binding *binding)
{
        struct sl_part part = sl_part_along(binding->part, SL_AXIS_ROWS, w->tiles);
        struct sl_part panels = sl_part_along(binding->part, SL_AXIS_COLUMNS, sl_gemm_panels(w->shape.filters));
        int64_t blocks = (part.end - part.first + w->block_tiles - 1) / w->block_tiles;
        int64_t filters = panels.end * SL_GEMM_PANEL < w->shape.filters ? panels.end * SL_GEMM_PANEL : w->shape.filters;
        float *tiles = binding->scratch;

        for (int64_t first = part.first, n; blocks > 0; first += n, blocks--) {
                const float *weights =
                        (const float *)binding->inputs[1] + panels.first * w->weights * w->shape.channels * SL_GEMM_PANEL;

                n = (part.end - first + blocks - 1) / blocks;
                for (int64_t i = 0; i < n; i++)
                        transform_tile(w, s, binding->inputs[0], first + i, tiles + i * w->channel_floats);
                for (int64_t filter = panels.first * SL_GEMM_PANEL, step; filter < filters; filter += step) {
                        step = next_filters(w, filters - filter);
                        struct target t = {.y = (float *)binding->outputs[0] + filter,
                                .residual = w->shape.residual ? (const float *)binding->inputs[w->shape.residual] + filter : NULL,
                                .bias = w->shape.has_bias ? (const float *)binding->inputs[2] + filter : NULL,
                                .filters = step};

                        run_step(w, s, tiles, weights, &t, first, n);
                        weights += w->weights * sl_gemm_packed_floats(w->shape.channels, t.filters);
                }
        }
}

#define DEFINE(name, ...)                                                                                                          \
        static void name(const struct sl_winograd *w, const struct sl_binding *binding)                                            \
        {                                                                                                                          \
                run_tiles(w, (struct shape){__VA_ARGS__}, binding);                                                                \
        }

DEFINE(run_small_3x3, 4, 4, 2, 2, 1)
DEFINE(run_3x3, 6, 6, 4, 4, 1)
DEFINE(run_5x5, 6, 6, 2, 2, 1)
DEFINE(run_1x3, 1, 6, 1, 4, 1)
DEFINE(run_3x1, 6, 1, 4, 1, 1)
DEFINE(run_1x7, 1, 8, 1, 2, 1)
DEFINE(run_7x1, 8, 1, 2, 1, 1)
DEFINE(run_strided, 5, 5, 2, 2, 2)

int SL_TILE(sl_winograd_run)(const struct sl_winograd *w, const struct sl_binding *binding)
{
        if (w->down.stride == 2)
                run_strided(w, binding);
        else if (w->down.taps == 1)
                (w->across.taps == 3 ? run_1x3 : run_1x7)(w, binding);
        else if (w->across.taps == 1)
                (w->down.taps == 3 ? run_3x1 : run_7x1)(w, binding);
        else if (w->down.taps == 5)
                run_5x5(w, binding);
        else
                (w->down.outputs == 2 ? run_small_3x3 : run_3x3)(w, binding);
        return 0;
}
