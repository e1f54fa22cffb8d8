/*
 * The path of a block of tiles: transformed, multiplied panel by panel, transformed back. For AVX-512; sixteen channels at a time.
 */
#include "cpu/gemm.h"
#include "cpu/vector.h"
#include "cpu/winograd.h"

#define INLINE        static inline __attribute__((always_inline))
#define POSITIONS_MAX (SL_WINOGRAD_SIDE_MAX * SL_WINOGRAD_SIDE_MAX)

/* The inner points of 4x4, +-A and +-B. */
#define A 0.625f
#define B 1.5f

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

/* One line of the transform of an input tile. */
INLINE void transform_line(int side, const __m512 d[SL_WINOGRAD_SIDE_MAX], __m512 t[SL_WINOGRAD_SIDE_MAX])
{
        if (side == 2) {
                t[0] = _mm512_sub_ps(d[2], d[0]);
                t[1] = _mm512_add_ps(d[2], d[1]);
                t[2] = _mm512_sub_ps(d[2], d[1]);
                t[3] = _mm512_sub_ps(d[3], d[1]);
                return;
        }
        const __m512 aa = sl_vector_set(A * A), bb = sl_vector_set(B * B), sum = sl_vector_set(A * A + B * B);
        const __m512 product = sl_vector_set(A * A * B * B), a = sl_vector_set(A), b = sl_vector_set(B);
        __m512 even_a = _mm512_fnmadd_ps(bb, d[2], d[4]), odd_a = _mm512_fnmadd_ps(bb, d[1], d[3]);
        __m512 even_b = _mm512_fnmadd_ps(aa, d[2], d[4]), odd_b = _mm512_fnmadd_ps(aa, d[1], d[3]);

        t[0] = _mm512_fmadd_ps(product, d[0], _mm512_fnmadd_ps(sum, d[2], d[4]));
        t[1] = _mm512_fmadd_ps(a, odd_a, even_a);
        t[2] = _mm512_fnmadd_ps(a, odd_a, even_a);
        t[3] = _mm512_fmadd_ps(b, odd_b, even_b);
        t[4] = _mm512_fnmadd_ps(b, odd_b, even_b);
        t[5] = _mm512_fmadd_ps(product, d[1], _mm512_fnmadd_ps(sum, d[3], d[5]));
}

/* One line of the way back. */
INLINE void restore_line(int side, const __m512 m[SL_WINOGRAD_SIDE_MAX], __m512 y[4])
{
        __m512 even_a = _mm512_add_ps(m[1], m[2]), odd_a = _mm512_sub_ps(m[1], m[2]);

        if (side == 2) {
                y[0] = _mm512_add_ps(m[0], even_a);
                y[1] = _mm512_add_ps(odd_a, m[3]);
                return;
        }
        __m512 even_b = _mm512_add_ps(m[3], m[4]), odd_b = _mm512_sub_ps(m[3], m[4]);

        y[0] = _mm512_add_ps(_mm512_add_ps(m[0], even_a), even_b);
        y[1] = _mm512_fmadd_ps(sl_vector_set(A), odd_a, _mm512_mul_ps(sl_vector_set(B), odd_b));
        y[2] = _mm512_fmadd_ps(sl_vector_set(A * A), even_a, _mm512_mul_ps(sl_vector_set(B * B), even_b));
        y[3] = _mm512_fmadd_ps(sl_vector_set(A * A * A), odd_a, _mm512_fmadd_ps(sl_vector_set(B * B * B), odd_b, m[5]));
}

INLINE void transform_vector(int side, const float *image, const struct span *rows, const struct span *columns, bool whole,
        __mmask16 mask, float *to, int64_t position_floats)
{
        const int inner = side + 2;
        __m512 half[POSITIONS_MAX], line[SL_WINOGRAD_SIDE_MAX], turned[SL_WINOGRAD_SIDE_MAX];

#pragma GCC unroll 6
        for (int j = 0; j < inner; j++) {
#pragma GCC unroll 6
                for (int i = 0; i < inner; i++) {
                        const float *at = image + rows->offset[i] + columns->offset[j];
                        bool inside = whole || (rows->inside[i] && columns->inside[j]);

                        line[i] = _mm512_maskz_loadu_ps(inside ? mask : 0, at);
                }
                transform_line(side, line, turned);
#pragma GCC unroll 6
                for (int i = 0; i < inner; i++)
                        half[i * inner + j] = turned[i];
        }
#pragma GCC unroll 6
        for (int i = 0; i < inner; i++) {
                transform_line(side, half + i * inner, turned);
#pragma GCC unroll 6
                for (int j = 0; j < inner; j++)
                        _mm512_storeu_ps(to + (i * inner + j) * position_floats, turned[j]);
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
                .row = tile % of_sample / w->tiles_across * w->output_side,
                .column = tile % w->tiles_across * w->output_side};
}

INLINE void transform_tile(const struct sl_winograd *w, int side, const float *x, int64_t tile, float *to)
{
        struct place place = find_place(w, tile);
        const float *image = x + place.sample * w->height * w->width * w->channels;
        int64_t top = place.row - w->pad_top, left = place.column - w->pad_left;
        bool whole = top >= 0 && left >= 0 && top + side + 2 <= w->height && left + side + 2 <= w->width;
        struct span rows, columns;

        set_span(&rows, top, w->height, w->width * w->channels, side + 2);
        set_span(&columns, left, w->width, w->channels, side + 2);
        for (int64_t c = 0; c < w->channels; c += SL_VECTOR_FLOATS) {
                __mmask16 mask = sl_vector_mask(w->channels - c);

                if (whole)
                        transform_vector(side, image + c, &rows, &columns, true, mask, to + c, w->position_floats);
                else
                        transform_vector(side, image + c, &rows, &columns, false, mask, to + c, w->position_floats);
        }
}

/* What the way back needs beside the sums. */
struct target {
        float *y;
        const float *residual, *bias;
        int64_t filters; /* of this step */
};

INLINE void restore_vector(const struct sl_winograd *w, int side, const float *sums, const struct target *t, int64_t at,
        int64_t first, int64_t rows, int64_t columns, __mmask16 mask)
{
        const int inner = side + 2;
        __m512 half[4 * SL_WINOGRAD_SIDE_MAX], line[SL_WINOGRAD_SIDE_MAX], turned[4];
        __m512 bias = t->bias ? _mm512_maskz_loadu_ps(mask, t->bias + first) : _mm512_setzero_ps();
        __m512 least = sl_vector_set(w->finish.least), most = sl_vector_set(w->finish.most);

#pragma GCC unroll 6
        for (int j = 0; j < inner; j++) {
#pragma GCC unroll 6
                for (int i = 0; i < inner; i++)
                        line[i] = _mm512_loadu_ps(sums + (i * inner + j) * w->sum_floats + first);
                restore_line(side, line, turned);
#pragma GCC unroll 4
                for (int i = 0; i < side; i++)
                        half[i * inner + j] = turned[i];
        }
#pragma GCC unroll 4
        for (int i = 0; i < side; i++) {
                if (i >= rows)
                        return;
                restore_line(side, half + i * inner, turned);
#pragma GCC unroll 4
                for (int j = 0; j < side; j++) {
                        int64_t pixel = at + (i * w->out_width + j) * w->filters + first;
                        __mmask16 there = j < columns ? mask : 0;
                        __m512 sum = _mm512_add_ps(turned[j], bias);

                        if (t->residual)
                                sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(there, t->residual + pixel));
                        _mm512_mask_storeu_ps(t->y + pixel, there, sl_vector_clip(sum, least, most));
                }
        }
}

INLINE void restore_tile(const struct sl_winograd *w, int side, const float *sums, const struct target *t, int64_t tile)
{
        struct place place = find_place(w, tile);
        int64_t at = ((place.sample * w->out_height + place.row) * w->out_width + place.column) * w->filters;
        int64_t rows = w->out_height - place.row, columns = w->out_width - place.column;

        for (int64_t first = 0; first < t->filters; first += SL_VECTOR_FLOATS)
                restore_vector(w, side, sums, t, at, first, rows, columns, sl_vector_mask(t->filters - first));
        if (!w->finish.activation)
                return;
        for (int64_t row = 0; row < side && row < rows; row++)
                sl_finish_activate(&w->finish, t->y + at + row * w->out_width * w->filters, w->filters,
                        columns < side ? columns : side, t->filters);
}

/* All positions of a block under some panels of filters, and the way back. */
INLINE void run_step(const struct sl_winograd *w, int side, float *tiles, const float *weights, const struct target *t,
        int64_t first_tile, int64_t n_tiles)
{
        const int positions = (side + 2) * (side + 2);
        int64_t first_panel = t->filters < SL_GEMM_PANEL ? t->filters : SL_GEMM_PANEL;
        float *sums = tiles + w->sums_offset;
        struct sl_gemm gemm = {.rows = n_tiles,
                .depth = w->channels,
                .columns = t->filters,
                .a_stride = w->channel_floats,
                .c_stride = w->step_filters,
                .streams = w->streams,
                .panel_stride = positions * w->channels * SL_GEMM_PANEL};

        for (int position = 0; position < positions; position++) {
                gemm.a = tiles + position * w->position_floats;
                gemm.b = weights + position * sl_gemm_packed_floats(w->channels, first_panel);
                gemm.next = weights + (position + 1) * sl_gemm_packed_floats(w->channels, first_panel);
                gemm.c = sums + position * w->sum_floats;
                sl_gemm_run(&gemm);
        }
        for (int64_t i = 0; i < n_tiles; i++)
                restore_tile(w, side, sums + i * w->step_filters, t, first_tile + i);
}

/* Whole panels, or a narrow last one by itself: in it, positions lie nearer to each other. */
static int64_t next_filters(const struct sl_winograd *w, int64_t left)
{
        int64_t tail = left % SL_GEMM_PANEL;

        if (left > w->step_filters)
                return w->step_filters;
        return left > SL_GEMM_PANEL && tail && tail <= SL_VECTOR_FLOATS ? left - tail : left;
}

INLINE void run_tiles(const struct sl_winograd *w, int side, const struct sl_binding *binding)
{
        float *tiles = binding->scratch;

        for (int64_t first = 0; first < w->tiles; first += w->block_tiles) {
                int64_t n = w->tiles - first < w->block_tiles ? w->tiles - first : w->block_tiles;
                const float *weights = binding->inputs[1];

                for (int64_t i = 0; i < n; i++)
                        transform_tile(w, side, binding->inputs[0], first + i, tiles + i * w->channel_floats);
                for (int64_t filter = 0, step; filter < w->filters; filter += step) {
                        step = next_filters(w, w->filters - filter);
                        struct target t = {.y = (float *)binding->outputs[0] + filter,
                                .residual = w->residual ? (const float *)binding->inputs[w->residual] + filter : NULL,
                                .bias = w->has_bias ? (const float *)binding->inputs[2] + filter : NULL,
                                .filters = step};

                        run_step(w, side, tiles, weights, &t, first, n);
                        weights += (side + 2) * (side + 2) * sl_gemm_packed_floats(w->channels, t.filters);
                }
        }
}

int sl_winograd_run(const struct sl_winograd *w, const struct sl_binding *binding)
{
        if (w->output_side == 2)
                run_tiles(w, 2, binding);
        else
                run_tiles(w, 4, binding);
        return 0;
}
