/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transforms and products of Winograd's algorithm over lanes.
 */
#include "cpu/base/vector.h"
#include "cpu/conv/laned.h"
#include "cpu/conv/laned_winograd.h"
#include "cpu/conv/winograd_direct.h"

#include <string.h>

#define INLINE    static inline __attribute__((always_inline))
#define VECTOR    SL_VECTOR_FLOATS
#define LANES     16 /* of a panel of weights */
#define POSITIONS SL_LANED_POSITIONS
/* Sums of a tile of the products and its weights have registers, and each input is loaded once. */
#define TILES     (SL_VECTOR_FLOATS == 16 ? 8 : 4)
#define VECTORS   3
#define HIDE(x)   __asm__("" : "+v"(x))

/* Some tiles of one sample, for one vector of lanes. */
struct batch {
        const float *image; /* of the sample, at the vector of lanes */
        const float *zeros; /* as many as a pixel has */
        float *inputs, *products;
        int64_t sample, first, count; /* tiles */
        int64_t block, blocks;        /* which vector of lanes, of how many */
        int64_t vectors;              /* of filters */
};

/* B^T d of four vectors. */
INLINE void transform_four(const sl_vector *d, int stride, sl_vector *ret_values)
{
        ret_values[0] = sl_vector_sub(d[0], d[2 * stride]);
        ret_values[1] = sl_vector_add(d[stride], d[2 * stride]);
        ret_values[2] = sl_vector_sub(d[2 * stride], d[stride]);
        ret_values[3] = sl_vector_sub(d[stride], d[3 * stride]);
}

/* A^T m of four vectors. */
INLINE void gather_four(const sl_vector *m, int stride, sl_vector *ret_values)
{
        ret_values[0] = sl_vector_add(sl_vector_add(m[0], m[stride]), m[2 * stride]);
        ret_values[1] = sl_vector_sub(sl_vector_sub(m[stride], m[2 * stride]), m[3 * stride]);
}

/* The pixels under a tile; zeros outside of the image. */
static void find_pixels(const struct sl_laned_winograd *w, const struct batch *b, int64_t tile, const float *ret_pixels[16])
{
        const struct sl_conv_shape *c = &w->shape;
        int64_t top = tile / w->tiles_across * 2 - c->window.pad_begin[0],
                left = tile % w->tiles_across * 2 - c->window.pad_begin[1];

        for (int64_t i = 0; i < 16; i++) {
                int64_t row = top + i / 4, column = left + i % 4;
                bool inside = row >= 0 && row < c->height && column >= 0 && column < c->width;

                ret_pixels[i] = inside ? b->image + (row * c->width + column) * c->channels * c->groups : b->zeros;
        }
}

struct lane_order {
        sl_order order;
        sl_lanes mask;
};

static struct lane_order order_lanes(const struct sl_laned_winograd *w)
{
        int64_t lanes = w->shape.groups;

        return (struct lane_order){sl_order_repeat((int)(lanes < VECTOR ? lanes : VECTOR)), sl_lanes_first(lanes)};
}

/* @few: fewer lanes than a vector has, over and over. */
INLINE sl_vector load_pixel(const struct lane_order *order, const float *from, bool few)
{
        return few ? sl_vector_order(sl_vector_load_lanes(order->mask, from), order->order) : sl_vector_load(from);
}

INLINE void transform_tile(const struct sl_laned_winograd *w, const struct batch *b, int64_t at, bool few)
{
        const int64_t lanes = w->shape.groups, channels = w->shape.channels, step = w->input_floats;
        const struct lane_order order = order_lanes(w);
        const float *pixels[16];
        float *to = b->inputs + at * VECTOR;

        find_pixels(w, b, b->first + at, pixels);
        for (int64_t c = 0; c < channels; c++, to += w->tiles * VECTOR) {
                sl_vector d[16], rows[16], values[4];

#pragma GCC unroll 16
                for (int i = 0; i < 16; i++)
                        d[i] = load_pixel(&order, pixels[i] + c * lanes, few);
#pragma GCC unroll 4
                for (int x = 0; x < 4; x++) {
                        transform_four(d + x, 4, values);
#pragma GCC unroll 4
                        for (int y = 0; y < 4; y++)
                                rows[y * 4 + x] = values[y];
                }
#pragma GCC unroll 4
                for (int y = 0; y < 4; y++) {
                        transform_four(rows + y * 4, 1, values);
#pragma GCC unroll 4
                        for (int x = 0; x < 4; x++)
                                sl_vector_store(to + (y * 4 + x) * step, values[x]);
                }
        }
}

/* Some tiles by some vectors of filters at one position; both numbers are constants in each call. */
INLINE void multiply(
        const struct sl_laned_winograd *w, const float *x, const float *const *weights, float *y, int tiles, int vectors)
{
        const int64_t channels = w->shape.channels, step = w->tiles * VECTOR;
        sl_vector sums[TILES][VECTORS], f[VECTORS];

#pragma GCC unroll 8
        for (int t = 0; t < tiles; t++)
#pragma GCC unroll 3
                for (int v = 0; v < vectors; v++)
                        sums[t][v] = sl_vector_zero();
        for (int64_t c = 0; c < channels; c++, x += step) {
#pragma GCC unroll 3
                for (int v = 0; v < vectors; v++)
                        f[v] = sl_vector_load(weights[v] + c * LANES);
#pragma GCC unroll 8
                for (int t = 0; t < tiles; t++) {
                        sl_vector value = sl_vector_load(x + t * VECTOR);

                        HIDE(value);
#pragma GCC unroll 3
                        for (int v = 0; v < vectors; v++)
                                sums[t][v] = sl_vector_fma(value, f[v], sums[t][v]);
                }
        }
#pragma GCC unroll 8
        for (int t = 0; t < tiles; t++)
#pragma GCC unroll 3
                for (int v = 0; v < vectors; v++)
                        sl_vector_store(y + v * step + t * VECTOR, sums[t][v]);
}

typedef void multiply_function(const struct sl_laned_winograd *w, const float *x, const float *const *weights, float *y);

#define DEFINE(tiles, vectors)                                                                                                     \
        static void multiply_##tiles##_##vectors(                                                                                  \
                const struct sl_laned_winograd *w, const float *x, const float *const *weights, float *y)                          \
        {                                                                                                                          \
                multiply(w, x, weights, y, tiles, vectors);                                                                        \
        }
#define DEFINE_ALL(tiles) DEFINE(tiles, 1) DEFINE(tiles, 2) DEFINE(tiles, 3)
#define ROW(tiles)                                                                                                                 \
        {                                                                                                                          \
                multiply_##tiles##_1, multiply_##tiles##_2, multiply_##tiles##_3                                                   \
        }

DEFINE_ALL(1)
DEFINE_ALL(2)
DEFINE_ALL(4)
#if SL_VECTOR_FLOATS == 16
DEFINE_ALL(8)
#define LARGEST , ROW(8)
#else
#define LARGEST
#endif

/* By the logarithm of the number of tiles, and the vectors of filters. */
static multiply_function *const functions[][VECTORS] = {ROW(1), ROW(2), ROW(4) LARGEST};

/* All products of one position by @count vectors of filters from @first on. */
static void multiply_filters(
        const struct sl_laned_winograd *w, const struct batch *b, const float *packed, int64_t position, int64_t first, int count)
{
        const int64_t step = w->tiles * VECTOR, panels = (w->outputs + LANES - 1) / LANES;
        const float *weights[VECTORS], *x = b->inputs + position * w->input_floats;
        float *y = b->products + position * w->product_floats + first * step;

        for (int v = 0; v < count; v++) {
                int64_t at = (b->block + (first + v) * b->blocks) * VECTOR;

                weights[v] = packed + (position * panels + at / LANES) * w->shape.channels * LANES + at % LANES;
        }
        for (int64_t at = 0; at < b->count;) {
                int size = TILES == 8 ? 3 : 2;

                while (1 << size > b->count - at)
                        size--;
                functions[size][count - 1](w, x + at * VECTOR, weights, y + at * VECTOR);
                at += 1 << size;
        }
}

/* Of one vector of filters and one tile: the sums of its four pixels. */
INLINE void restore_tile(
        const struct sl_laned_winograd *w, const struct batch *b, int64_t vector, int64_t at, sl_vector ret_sums[4])
{
        const float *from = b->products + (vector * w->tiles + at) * VECTOR;
        sl_vector m[16], rows[8], values[2];

#pragma GCC unroll 16
        for (int i = 0; i < 16; i++)
                m[i] = sl_vector_load(from + i * w->product_floats);
#pragma GCC unroll 4
        for (int x = 0; x < 4; x++) {
                gather_four(m + x, 4, values);
                rows[x] = values[0];
                rows[4 + x] = values[1];
        }
#pragma GCC unroll 2
        for (int y = 0; y < 2; y++)
                gather_four(rows + y * 4, 1, ret_sums + y * 2);
}

/* Bias, residual, and what of the four pixels is inside. */
INLINE void store_tile(const struct sl_laned_winograd *w, const struct batch *b, const struct sl_binding *binding, int64_t vector,
        int64_t at, const sl_vector sums[4])
{
        const struct sl_conv_shape *c = &w->shape;
        const float *bias = c->has_bias ? binding->inputs[2] : NULL, *residual = c->residual ? binding->inputs[c->residual] : NULL;
        const int64_t place = (b->block + vector * b->blocks) * VECTOR;
        const int64_t tile = b->first + at, top = tile / w->tiles_across * 2, left = tile % w->tiles_across * 2;
        const sl_lanes lanes = sl_lanes_first(w->outputs - place);
        const sl_vector added = bias ? sl_vector_load_lanes(lanes, bias + place) : sl_vector_zero();

#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
                int64_t row = top + i / 2, column = left + i % 2;
                int64_t to = ((b->sample * c->out_height + row) * c->out_width + column) * w->outputs + place;
                sl_vector sum = sl_vector_add(sums[i], added);

                if (row >= c->out_height || column >= c->out_width)
                        continue;
                if (residual)
                        sum = sl_vector_add(sum, sl_vector_load_lanes(lanes, residual + to));
                sl_vector_store_lanes((float *)binding->outputs[0] + to, lanes,
                        sl_vector_clip(sum, sl_vector_set(c->epilogue.least), sl_vector_set(c->epilogue.most)));
        }
}

/* The taps of one channel, [row][column], from what transform_filter() made of them; a weight of a few ulps of the largest was 0.
 */
INLINE void recover_taps(const float *weights, int64_t matrix, sl_vector ret_taps[9])
{
        sl_vector rows[3][4], largest = sl_vector_zero();

#pragma GCC unroll 4
        for (int x = 0; x < 4; x++) {
                rows[0][x] = sl_vector_load(weights + x * matrix);
                rows[1][x] = sl_vector_sub(sl_vector_load(weights + (4 + x) * matrix), sl_vector_load(weights + (8 + x) * matrix));
                rows[2][x] = sl_vector_load(weights + (12 + x) * matrix);
        }
#pragma GCC unroll 3
        for (int y = 0; y < 3; y++) {
                ret_taps[y * 3] = rows[y][0];
                ret_taps[y * 3 + 1] = sl_vector_sub(rows[y][1], rows[y][2]);
                ret_taps[y * 3 + 2] = rows[y][3];
        }
        for (int i = 0; i < 9; i++)
                largest = sl_vector_max(largest, sl_vector_abs(ret_taps[i]));
        largest = sl_vector_mul(largest, sl_vector_set(SL_WINOGRAD_NOTHING));
        for (int i = 0; i < 9; i++)
                ret_taps[i] = sl_vector_where(sl_vector_less(sl_vector_abs(ret_taps[i]), largest), sl_vector_zero(), ret_taps[i]);
}

/* As restore_tile(), by the windows themselves. */
static __attribute__((noinline)) void convolve_tile(const struct sl_laned_winograd *w, const struct batch *b, const float *packed,
        int64_t vector, int64_t at, sl_vector ret_sums[4])
{
        const int64_t channels = w->shape.channels, place = (b->block + vector * b->blocks) * VECTOR;
        const int64_t matrix = (w->outputs + LANES - 1) / LANES * channels * LANES;
        const float *weights = packed + place / LANES * channels * LANES + place % LANES;
        const struct lane_order order = order_lanes(w);
        const float *pixels[16];

        find_pixels(w, b, b->first + at, pixels);
        for (int i = 0; i < 4; i++)
                ret_sums[i] = sl_vector_zero();
        for (int64_t c = 0; c < channels; c++) {
                sl_vector d[16], taps[9];

                for (int i = 0; i < 16; i++)
                        d[i] = load_pixel(&order, pixels[i] + c * w->shape.groups, w->shape.groups < VECTOR);
                recover_taps(weights + c * LANES, matrix, taps);
                for (int i = 0; i < 4; i++)
                        for (int tap = 0; tap < 9; tap++)
                                ret_sums[i] = sl_vector_fma(d[(i / 2 + tap / 3) * 4 + i % 2 + tap % 3], taps[tap], ret_sums[i]);
        }
}

/*
 * A NaN or an infinity under one of the windows makes one of the positions of its lane none, of each filter, and so all that is
 * made of it. In such lanes the tile is convolved by its windows. With @watch: false where there were some.
 */
INLINE bool finish_tile(const struct sl_laned_winograd *w, const struct batch *b, const struct sl_binding *binding, int64_t vector,
        int64_t at, bool watch)
{
        const sl_vector zero = sl_vector_zero();
        sl_vector sums[4], nothing = zero, direct[4];
        bool finite = true;

        restore_tile(w, b, vector, at, sums);
        if (watch) {
                for (int i = 0; i < 4; i++)
                        nothing = sl_vector_fma(zero, sums[i], nothing);
                finite = sl_vector_sum(nothing) == 0;
        }
        if (!finite) {
                convolve_tile(w, b, binding->inputs[1], vector, at, direct);
                for (int i = 0; i < 4; i++)
                        sums[i] = sl_vector_where(sl_vector_equal(nothing, zero), sums[i], direct[i]);
        }
        store_tile(w, b, binding, vector, at, sums);
        return finite;
}

/* What one vector of filters sees in all lanes of the batch, the others do. */
static void finish_batch(const struct sl_laned_winograd *w, const struct batch *b, const struct sl_binding *binding)
{
        bool finite = true;

        for (int64_t at = 0; at < b->count; at++)
                finite = finish_tile(w, b, binding, 0, at, true) && finite;
        for (int64_t vector = 1; vector < b->vectors; vector++)
                for (int64_t at = 0; at < b->count; at++)
                        if (finite)
                                finish_tile(w, b, binding, vector, at, false);
                        else
                                finish_tile(w, b, binding, vector, at, true);
}

static void run_batch(const struct sl_laned_winograd *w, const struct batch *b, const struct sl_binding *binding)
{
        for (int64_t at = 0; at < b->count; at++)
                if (w->shape.groups < VECTOR)
                        transform_tile(w, b, at, true);
                else
                        transform_tile(w, b, at, false);
        for (int64_t position = 0; position < POSITIONS; position++)
                for (int64_t first = 0, count; first < b->vectors; first += count) {
                        count = sl_laned_next(b->vectors - first, VECTORS);
                        multiply_filters(w, b, binding->inputs[1], position, first, (int)count);
                }
        finish_batch(w, b, binding);
}

static void run_sample(const struct sl_laned_winograd *w, const struct sl_binding *binding, int64_t sample)
{
        const struct sl_conv_shape *c = &w->shape;
        const int64_t blocks = c->groups > VECTOR ? c->groups / VECTOR : 1, all = w->tiles_down * w->tiles_across;
        const struct sl_part mine = sl_laned_blocks(c, binding->part, VECTOR);
        float *scratch = binding->scratch;
        struct batch b = {.zeros = scratch + w->zeros_offset,
                .inputs = scratch,
                .products = scratch + w->products_offset,
                .sample = sample,
                .blocks = blocks,
                .vectors = (w->outputs + VECTOR - 1) / VECTOR / blocks};

        for (b.block = mine.first; b.block < mine.end; b.block++) {
                b.image = (const float *)binding->inputs[0] + sample * c->height * c->width * c->channels * c->groups +
                          b.block * VECTOR;
                for (b.first = 0; b.first < all; b.first += w->tiles) {
                        b.count = all - b.first < w->tiles ? all - b.first : w->tiles;
                        run_batch(w, &b, binding);
                }
        }
}

static void activate(const struct sl_laned_winograd *w, const struct sl_binding *binding)
{
        const struct sl_conv_shape *c = &w->shape;
        const struct sl_part mine = sl_laned_blocks(c, binding->part, VECTOR);
        int64_t pixels = c->batch * c->out_height * c->out_width, width = (mine.end - mine.first) * VECTOR;
        float *y = binding->outputs[0];

        if (!c->epilogue.activation)
                return;
        if (width >= c->groups)
                sl_cpu_epilogue_activate(&c->epilogue, y, w->outputs, pixels, w->outputs);
        else
                sl_cpu_epilogue_activate(&c->epilogue, y + mine.first * VECTOR, c->groups, pixels * c->filters, width);
}

int SL_TILE(sl_laned_winograd_run)(const struct sl_laned_winograd *w, const struct sl_binding *binding)
{
        const struct sl_conv_shape *c = &w->shape;

        memset((float *)binding->scratch + w->zeros_offset, 0, (size_t)(c->channels * c->groups + LANES) * sizeof(float));
        for (int64_t sample = 0; sample < c->batch; sample++)
                run_sample(w, binding, sample);
        activate(w, binding);
        return 0;
}
