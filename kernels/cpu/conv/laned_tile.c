/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tiles of starling.LanedConv: some neighbouring pixels of a row of the output, by up to three vectors of filters that have the
 * same lanes.
 */
#include "cpu/base/vector.h"
#include "cpu/conv/grouped.h"
#include "cpu/conv/laned.h"

#define INLINE  static inline __attribute__((always_inline))
#define VECTOR  SL_VECTOR_FLOATS
/* Sums of a tile and the weights of a tap have registers, and each input of a tap is loaded once. */
#define PIXELS  (SL_VECTOR_FLOATS == 16 ? 8 : 4)
#define VECTORS 3
#define HIDE(x) __asm__("" : "+v"(x))

/* Where the inputs of one vector of lanes lie: a frame, or the image itself. In floats. */
struct source {
        const float *data; /* the first row that is there */
        int64_t row, channel, pixel;
        int64_t first_row; /* of the image */
};

/* Some filters of one vector of lanes: vectors first, first + step, ... of a pixel of the output. */
struct filters {
        int64_t first, step;
        int count;
        const float *weights[VECTORS]; /* sixteen floats from one tap to the next */
        sl_vector bias[VECTORS];
        sl_lanes lanes; /* of the last one, which may stand over the end */
};

struct tile {
        const float *x; /* under the first pixel, at the first tap that is inside of the image */
        int64_t tap;    /* that tap */
        int64_t rows;   /* of the window, inside of the image */
        float *y;
        const float *residual;
};

INLINE void store_tile(const struct sl_laned *l, const struct tile *t, const struct filters *f, int pixels, int vectors,
        sl_vector (*sums)[VECTORS])
{
        const sl_vector least = sl_vector_set(l->shape.epilogue.least), most = sl_vector_set(l->shape.epilogue.most);

#pragma GCC unroll 8
        for (int p = 0; p < pixels; p++)
#pragma GCC unroll 3
                for (int v = 0; v < vectors; v++) {
                        int64_t at = p * l->outputs + (f->first + v * f->step) * VECTOR;
                        sl_lanes lanes = v + 1 == vectors ? f->lanes : sl_lanes_all();
                        sl_vector sum = sums[p][v];

                        if (t->residual)
                                sum = sl_vector_add(sum, sl_vector_load_lanes(lanes, t->residual + at));
                        sl_vector_store_lanes(t->y + at, lanes, sl_vector_clip(sum, least, most));
                }
}

INLINE void start_sums(const struct filters *f, int pixels, int vectors, sl_vector (*sums)[VECTORS])
{
#pragma GCC unroll 8
        for (int p = 0; p < pixels; p++)
#pragma GCC unroll 3
                for (int v = 0; v < vectors; v++)
                        sums[p][v] = f->bias[v];
}

/* One tap of one channel. */
INLINE void add_tap(
        const float *const *weights, int64_t at, const float *x, int64_t step, int pixels, int vectors, sl_vector (*sums)[VECTORS])
{
        sl_vector w[VECTORS];

#pragma GCC unroll 3
        for (int v = 0; v < vectors; v++)
                w[v] = sl_vector_load(weights[v] + at);
#pragma GCC unroll 8
        for (int p = 0; p < pixels; p++) {
                sl_vector value = sl_vector_load(x + p * step);

                HIDE(value);
#pragma GCC unroll 3
                for (int v = 0; v < vectors; v++)
                        sums[p][v] = sl_vector_fma(value, w[v], sums[p][v]);
        }
}

/* @pixels, @vectors and @across are constants in each call; the latter is the width of the window, 0 for any. */
INLINE void sum_tile(const struct sl_laned *l, const struct source *s, const struct tile *t, const struct filters *f, int pixels,
        int vectors, int across)
{
        const int64_t width = across ? across : l->shape.window.kernel[1], taps = l->shape.window.kernel[0] * width;
        const int64_t step = l->shape.window.stride[1] * s->pixel, to_channel = s->channel, to_row = s->row, to_pixel = s->pixel;
        const int64_t channels = l->shape.channels, rows = t->rows;
        const float *x = t->x, *weights[VECTORS];
        int64_t first = t->tap * SL_GROUPED_LANES;
        sl_vector sums[PIXELS][VECTORS];

#pragma GCC unroll 3
        for (int v = 0; v < vectors; v++)
                weights[v] = f->weights[v];
        start_sums(f, pixels, vectors, sums);
        for (int64_t c = 0; c < channels; c++, x += to_channel, first += taps * SL_GROUPED_LANES) {
                const float *line = x;
                int64_t at = first;

                for (int64_t row = 0; row < rows; row++, line += to_row, at += width * SL_GROUPED_LANES)
#pragma GCC unroll 3
                        for (int64_t tap = 0; tap < width; tap++)
                                add_tap(weights, at + tap * SL_GROUPED_LANES, line + tap * to_pixel, step, pixels, vectors, sums);
        }
        store_tile(l, t, f, pixels, vectors, sums);
}

typedef void tile_function(const struct sl_laned *l, const struct source *s, const struct tile *t, const struct filters *f);

#define DEFINE(pixels, vectors, across)                                                                                            \
        static void tile_##pixels##_##vectors##_##across(                                                                          \
                const struct sl_laned *l, const struct source *s, const struct tile *t, const struct filters *f)                   \
        {                                                                                                                          \
                sum_tile(l, s, t, f, pixels, vectors, across);                                                                     \
        }
#define DEFINE_ALL(pixels, across) DEFINE(pixels, 1, across) DEFINE(pixels, 2, across) DEFINE(pixels, 3, across)
#define ROW(pixels, across)                                                                                                        \
        {                                                                                                                          \
                tile_##pixels##_1_##across, tile_##pixels##_2_##across, tile_##pixels##_3_##across                                 \
        }
#if SL_VECTOR_FLOATS == 16
#define DEFINE_WIDTH(across) DEFINE_ALL(1, across) DEFINE_ALL(2, across) DEFINE_ALL(4, across) DEFINE_ALL(8, across)
#define WIDTH(across)                                                                                                              \
        {                                                                                                                          \
                ROW(1, across), ROW(2, across), ROW(4, across), ROW(8, across)                                                     \
        }
#else
#define DEFINE_WIDTH(across) DEFINE_ALL(1, across) DEFINE_ALL(2, across) DEFINE_ALL(4, across)
#define WIDTH(across)                                                                                                              \
        {                                                                                                                          \
                ROW(1, across), ROW(2, across), ROW(4, across)                                                                     \
        }
#endif

DEFINE_WIDTH(0)
DEFINE_WIDTH(1)
DEFINE_WIDTH(3)

/* By the width of the window (any, 1, 3), the logarithm of the number of pixels, and how many vectors of filters there are. */
static tile_function *const functions[3][4][VECTORS] = {WIDTH(0), WIDTH(1), WIDTH(3)};

static tile_function *find_function(const struct sl_laned *l, int size, int count)
{
        const int64_t *kernel = l->shape.window.kernel;

        return functions[kernel[1] == 3 ? 2 : kernel[1] == 1][size][count - 1];
}

/* A row of the output, of which @t is the first pixel. */
static void run_row(const struct sl_laned *l, const struct source *s, const struct filters *f, struct tile t, int64_t width)
{
        const int64_t step = l->shape.window.stride[1] * s->pixel;

        for (int64_t at = 0; at < width;) {
                int size = PIXELS == 8 ? 3 : 2;

                while (1 << size > width - at)
                        size--;
                find_function(l, size, f->count)(l, s, &t, f);
                at += 1 << size;
                t.x += step << size;
                t.y += l->outputs << size;
                t.residual = t.residual ? t.residual + (l->outputs << size) : NULL;
        }
}

/* Rows of one sample. */
struct rows {
        int64_t sample, first, end;
};

/* The part of the window that is over rows of the image, at row @row of the output. */
static void place_window(const struct sl_laned *l, const struct source *s, int64_t row, struct tile *t)
{
        int64_t top = row * l->shape.window.stride[0] - l->shape.window.pad_begin[0], height = l->shape.window.kernel[0];
        int64_t above = top < 0 ? (-top < height ? -top : height) : 0, end = top + height;

        end = end < l->shape.height ? end : l->shape.height;
        t->rows = end - top - above > 0 ? end - top - above : 0;
        t->tap = above * l->shape.window.kernel[1];
        t->x = t->rows ? s->data + (top + above - s->first_row) * s->row : s->data;
}

static void run_filters(const struct sl_laned *l, const struct source *s, const struct filters *f, const struct sl_binding *binding,
        const struct rows *rows)
{
        const float *residual = l->shape.residual ? binding->inputs[l->shape.residual] : NULL;
        bool flat = !l->frame_columns;
        int64_t lines = flat ? 1 : rows->end - rows->first;
        int64_t width = flat ? (rows->end - rows->first) * l->shape.out_width : l->shape.out_width;

        for (int64_t i = 0; i < lines; i++) {
                int64_t row = rows->first + i;
                int64_t at = (rows->sample * l->shape.out_height + row) * l->shape.out_width * l->outputs;
                struct tile t = {.y = (float *)binding->outputs[0] + at, .residual = residual ? residual + at : NULL};

                place_window(l, s, row, &t);
                run_row(l, s, f, t, width);
        }
}

/* The vector of lanes at @lane: with fewer lanes than that, all of them over and over. */
INLINE sl_vector load_lanes(const struct sl_laned *l, const float *from, int64_t lane, sl_order order)
{
        if (l->shape.groups >= VECTOR)
                return sl_vector_load(from + lane);
        return sl_vector_order(sl_vector_load_lanes(sl_lanes_first(l->shape.groups), from), order);
}

static void frame_row(const struct sl_laned *l, const float *image, int64_t lane, float *to)
{
        const int64_t lanes = l->shape.groups, pixel = l->shape.channels * lanes, columns = l->frame_columns;
        const int64_t left = l->shape.window.pad_begin[1] < columns ? l->shape.window.pad_begin[1] : columns;
        const int64_t end = left + l->shape.width < columns ? left + l->shape.width : columns;
        const sl_order order = sl_order_repeat((int)(lanes < VECTOR ? lanes : VECTOR));

        for (int64_t c = 0; c < l->shape.channels; c++, to += columns * VECTOR) {
                for (int64_t i = 0; i < left; i++)
                        sl_vector_store(to + i * VECTOR, sl_vector_zero());
                for (int64_t i = left; i < end; i++)
                        sl_vector_store(to + i * VECTOR, load_lanes(l, image + (i - left) * pixel + c * lanes, lane, order));
                for (int64_t i = end; i < columns; i++)
                        sl_vector_store(to + i * VECTOR, sl_vector_zero());
        }
}

static struct source find_source(const struct sl_laned *l, const struct sl_binding *binding, const struct rows *rows, int64_t lane)
{
        const int64_t lanes = l->shape.groups, row = l->shape.width * l->shape.channels * lanes;
        const float *image = (const float *)binding->inputs[0] + rows->sample * l->shape.height * row;
        const int64_t top = rows->first * l->shape.window.stride[0] - l->shape.window.pad_begin[0];
        const int64_t bottom =
                (rows->end - 1) * l->shape.window.stride[0] - l->shape.window.pad_begin[0] + l->shape.window.kernel[0];
        struct source s = {.first_row = top > 0 ? top : 0};

        if (!l->frame_columns)
                return (struct source){.data = image + lane, .row = row, .channel = lanes, .pixel = l->shape.channels * lanes};
        s.data = binding->scratch;
        s.pixel = VECTOR;
        s.channel = l->frame_columns * VECTOR;
        s.row = l->shape.channels * s.channel;
        for (int64_t i = s.first_row; i < bottom && i < l->shape.height; i++)
                frame_row(l, image + i * row, lane, (float *)binding->scratch + (i - s.first_row) * s.row);
        return s;
}

static void take_filters(const struct sl_laned *l, const struct sl_binding *binding, struct filters *f)
{
        const int64_t panel = l->shape.channels * l->shape.window.kernel[0] * l->shape.window.kernel[1] * SL_GROUPED_LANES;
        const float *bias = l->shape.has_bias ? binding->inputs[2] : NULL;

        for (int v = 0; v < f->count; v++) {
                int64_t at = (f->first + v * f->step) * VECTOR;
                sl_lanes lanes = sl_lanes_first(l->outputs - at);

                f->weights[v] = (const float *)binding->inputs[1] + at / SL_GROUPED_LANES * panel + at % SL_GROUPED_LANES;
                f->bias[v] = bias ? sl_vector_load_lanes(lanes, bias + at) : sl_vector_zero();
                f->lanes = lanes;
        }
}

static void run_lanes(const struct sl_laned *l, const struct sl_binding *binding, const struct rows *rows, int64_t block)
{
        const int64_t blocks = l->shape.groups > VECTOR ? l->shape.groups / VECTOR : 1;
        const int64_t count = (l->outputs + VECTOR - 1) / VECTOR / blocks;
        const struct source s = find_source(l, binding, rows, block * VECTOR);

        for (int64_t i = 0, next; i < count; i += next) {
                struct filters f = {.first = block + i * blocks, .step = blocks};

                next = sl_laned_next(count - i, VECTORS);
                f.count = (int)next;
                take_filters(l, binding, &f);
                run_filters(l, &s, &f, binding, rows);
        }
}

/* Of so many pixels, the lanes of the part's vectors; all of them lie in one piece. */
static void activate(const struct sl_laned *l, const struct sl_part *blocks, int64_t pixels, float *y)
{
        int64_t width = (blocks->end - blocks->first) * VECTOR;

        if (!l->shape.epilogue.activation)
                return;
        if (width >= l->shape.groups)
                sl_cpu_epilogue_activate(&l->shape.epilogue, y, l->outputs, pixels, l->outputs);
        else
                sl_cpu_epilogue_activate(
                        &l->shape.epilogue, y + blocks->first * VECTOR, l->shape.groups, pixels * l->shape.filters, width);
}

int SL_TILE(sl_laned_run)(const struct sl_laned *l, const struct sl_binding *binding)
{
        const int64_t height = l->shape.out_height;
        const struct sl_part blocks = sl_laned_blocks(&l->shape, binding->part, VECTOR);
        struct sl_part part = sl_part_along(binding->part, SL_AXIS_ROWS, l->shape.batch * height);

        for (int64_t unit = part.first; unit < part.end;) {
                int64_t sample = unit / height, end = (sample + 1) * height < part.end ? (sample + 1) * height : part.end;
                struct rows rows = {.sample = sample, .first = unit % height, .end = end - sample * height};
                int64_t pixels = (end - unit) * l->shape.out_width;

                for (int64_t block = blocks.first; block < blocks.end; block++)
                        run_lanes(l, binding, &rows, block);
                activate(l, &blocks, pixels, (float *)binding->outputs[0] + unit * l->shape.out_width * l->outputs);
                unit = end;
        }
        return 0;
}
