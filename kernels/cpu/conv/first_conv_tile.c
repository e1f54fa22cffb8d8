/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pixels of one row of the output in registers, two vectors of filters at a time.
 */
#include "cpu/base/vector.h"
#include "cpu/conv/first_conv.h"
#include "cpu/gemm/gemm.h"

/* As many as leave registers for two vectors of filters and a pixel. */
#define PIXELS_MAX (SL_VECTOR_FLOATS == 16 ? 14 : 6)

#define FILTERS (2 * SL_VECTOR_FLOATS) /* at a time */

#define INLINE static inline __attribute__((always_inline))

struct tile {
        const float *x;        /* what the first pixel's first tap reads */
        const int64_t *places; /* of the taps, in floats from there */
        const float *filters;  /* packed, of one panel */
        const float *bias;     /* or NULL */
        float *y;
        int64_t depth, y_stride;
        int64_t panel; /* floats from tap to tap of the filters */
        sl_lanes last; /* of the last vector of filters */
        sl_vector least, most;
};

INLINE void run_tile(const struct tile *t, const int n_pixels, const int n_vectors, const int stride)
{
        const float *filters = t->filters;
        sl_vector sums[PIXELS_MAX][2];

#pragma GCC unroll 2
        for (int v = 0; v < n_vectors; v++) {
                sl_lanes mask = v + 1 < n_vectors ? sl_lanes_all() : t->last;
                sl_vector start = t->bias ? sl_vector_load_lanes(mask, t->bias + v * SL_VECTOR_FLOATS) : sl_vector_zero();

#pragma GCC unroll 14
                for (int i = 0; i < n_pixels; i++)
                        sums[i][v] = start;
        }
        for (int64_t k = 0; k < t->depth; k++, filters += t->panel) {
                const float *x = t->x + t->places[k];
                sl_vector factors[2];

#pragma GCC unroll 2
                for (int v = 0; v < n_vectors; v++)
                        factors[v] = sl_vector_load(filters + v * SL_VECTOR_FLOATS);
#pragma GCC unroll 14
                for (int i = 0; i < n_pixels; i++)
#pragma GCC unroll 2
                        for (int v = 0; v < n_vectors; v++)
                                sums[i][v] = sl_vector_fma(sl_vector_set(x[i * stride]), factors[v], sums[i][v]);
        }
#pragma GCC unroll 14
        for (int i = 0; i < n_pixels; i++)
#pragma GCC unroll 2
                for (int v = 0; v < n_vectors; v++)
                        sl_vector_store_lanes(t->y + i * t->y_stride + v * SL_VECTOR_FLOATS,
                                v + 1 < n_vectors ? sl_lanes_all() : t->last, sl_vector_clip(sums[i][v], t->least, t->most));
}

typedef void tile_function(const struct tile *tile);

#define TILE(pixels, vectors, stride)                                                                                              \
        static __attribute__((noinline)) void tile_##pixels##_##vectors##_##stride(const struct tile *tile)                        \
        {                                                                                                                          \
                run_tile(tile, pixels, vectors, stride);                                                                           \
        }
#define ENTRY(pixels, vectors, stride) [pixels] = tile_##pixels##_##vectors##_##stride,
#define SIX_PIXELS(X, vectors, stride)                                                                                             \
        X(1, vectors, stride)                                                                                                      \
        X(2, vectors, stride)                                                                                                      \
        X(3, vectors, stride)                                                                                                      \
        X(4, vectors, stride)                                                                                                      \
        X(5, vectors, stride)                                                                                                      \
        X(6, vectors, stride)
#if SL_VECTOR_FLOATS == 16
#define ALL_PIXELS(X, vectors, stride)                                                                                             \
        SIX_PIXELS(X, vectors, stride)                                                                                             \
        X(7, vectors, stride)                                                                                                      \
        X(8, vectors, stride)                                                                                                      \
        X(9, vectors, stride)                                                                                                      \
        X(10, vectors, stride)                                                                                                     \
        X(11, vectors, stride) X(12, vectors, stride) X(13, vectors, stride) X(14, vectors, stride)
#else
#define ALL_PIXELS SIX_PIXELS
#endif
#define ALL_VECTORS(X, stride)                                                                                                     \
        ALL_PIXELS(X, 1, stride)                                                                                                   \
        ALL_PIXELS(X, 2, stride)

ALL_VECTORS(TILE, 1)
ALL_VECTORS(TILE, 2)
ALL_VECTORS(TILE, 4)

/* By stride (1, 2, 4), vectors and pixels. */
static tile_function *const tiles[3][2][PIXELS_MAX + 1] = {
        {{ALL_PIXELS(ENTRY, 1, 1)}, {ALL_PIXELS(ENTRY, 2, 1)}},
        {{ALL_PIXELS(ENTRY, 1, 2)}, {ALL_PIXELS(ENTRY, 2, 2)}},
        {{ALL_PIXELS(ENTRY, 1, 4)}, {ALL_PIXELS(ENTRY, 2, 4)}},
};

static void clear_floats(float *to, int64_t n)
{
        for (int64_t i = 0; i < n; i += SL_VECTOR_FLOATS)
                sl_vector_store_lanes(to + i, sl_lanes_first(n - i), sl_vector_zero());
}

static void copy_floats(float *to, const float *from, int64_t n)
{
        for (int64_t i = 0; i < n; i += SL_VECTOR_FLOATS)
                sl_vector_store_lanes(to + i, sl_lanes_first(n - i), sl_vector_load_lanes(sl_lanes_first(n - i), from + i));
}

static void copy_scanline(const struct sl_first_conv *p, const float *scanline, float *to)
{
        int64_t own = p->scanline_floats - p->left;

        own = own < p->shape.width ? own : p->shape.width;
        clear_floats(to, p->left);
        copy_floats(to + p->left, scanline, own);
        clear_floats(to + p->left + own, p->scanline_floats - p->left - own);
}

/* The scanlines under @p->block_rows rows of the output from @row on. */
static void copy_scanlines(const struct sl_first_conv *p, const float *image, int64_t row, float *to)
{
        int64_t top = row * p->shape.window.stride[0] - p->shape.window.pad_begin[0];

        for (int64_t c = 0; c < p->shape.channels; c++)
                for (int64_t y = top; y < top + p->scanlines; y++, to += p->scanline_floats)
                        if (y >= 0 && y < p->shape.height)
                                copy_scanline(p, image + (c * p->shape.height + y) * p->shape.width, to);
                        else
                                clear_floats(to, p->scanline_floats);
}

/* All pixels of a row of the output by @width filters, in tiles that differ by one pixel at most. */
static void run_row(const struct sl_first_conv *p, struct tile *t, const float *scanlines, float *y, int64_t width)
{
        int64_t left = (p->shape.out_width + PIXELS_MAX - 1) / PIXELS_MAX, pixel = 0, stride = p->shape.window.stride[1];
        int vectors = width > SL_VECTOR_FLOATS ? 2 : 1;
        tile_function *const *functions = tiles[stride / 2][vectors - 1];

        t->last = sl_lanes_first(width - (vectors - 1) * SL_VECTOR_FLOATS);
        for (; left > 0; left--) {
                int64_t pixels = (p->shape.out_width - pixel) / left;

                t->x = scanlines + pixel * stride;
                t->y = y + pixel * p->shape.filters;
                functions[pixels](t);
                if (p->shape.epilogue.activation)
                        sl_cpu_epilogue_activate(&p->shape.epilogue, t->y, p->shape.filters, pixels, width);
                pixel += pixels;
        }
}

/* @rows rows of the output, whose scanlines lie at @scanlines. */
static void run_rows(
        const struct sl_first_conv *p, const struct sl_binding *binding, const float *scanlines, int64_t rows, float *y)
{
        struct tile t = {.places = binding->scratch,
                .depth = p->shape.channels * p->shape.window.kernel[0] * p->shape.window.kernel[1],
                .y_stride = p->shape.filters,
                .least = sl_vector_set(p->shape.epilogue.least),
                .most = sl_vector_set(p->shape.epilogue.most)};

        for (int64_t first = 0; first < p->shape.filters; first += FILTERS) {
                int64_t width = p->shape.filters - first < FILTERS ? p->shape.filters - first : FILTERS;
                int64_t panel = first / SL_GEMM_PANEL * SL_GEMM_PANEL;

                t.panel = p->shape.filters - panel <= SL_GEMM_PANEL / 2 ? SL_GEMM_PANEL / 2 : SL_GEMM_PANEL;
                t.filters = (const float *)binding->inputs[1] + panel * t.depth + (first - panel);
                t.bias = p->shape.has_bias ? (const float *)binding->inputs[2] + first : NULL;
                for (int64_t i = 0; i < rows; i++)
                        run_row(p, &t, scanlines + i * p->shape.window.stride[0] * p->scanline_floats,
                                y + i * p->shape.out_width * p->shape.filters + first, width);
        }
}

static void place_taps(const struct sl_first_conv *p, int64_t *ret_places)
{
        const struct sl_window *w = &p->shape.window;

        for (int64_t c = 0; c < p->shape.channels; c++)
                for (int64_t i = 0; i < w->kernel[0]; i++)
                        for (int64_t j = 0; j < w->kernel[1]; j++)
                                *ret_places++ = (c * p->scanlines + i * w->dilation[0]) * p->scanline_floats + p->left -
                                                w->pad_begin[1] + j * w->dilation[1];
}

int SL_TILE(sl_first_conv_run)(const struct sl_first_conv *p, const struct sl_binding *binding)
{
        float *scanlines = (float *)((char *)binding->scratch + p->scanlines_offset), *y = binding->outputs[0];
        int64_t image_floats = p->shape.channels * p->shape.height * p->shape.width, height = p->shape.out_height;
        struct sl_part part = sl_part_along(binding->part, SL_AXIS_ROWS, p->shape.batch * height);

        place_taps(p, binding->scratch);
        for (int64_t first = part.first, rows; first < part.end; first += rows) {
                int64_t row = first % height, left = height - row < part.end - first ? height - row : part.end - first;

                rows = left < p->block_rows ? left : p->block_rows;
                copy_scanlines(p, (const float *)binding->inputs[0] + first / height * image_floats, row, scanlines);
                run_rows(p, binding, scanlines, rows, y + first * p->shape.out_width * p->shape.filters);
        }
        return 0;
}
