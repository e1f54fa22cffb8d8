/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tiles of a convolution with groups.
 */
#include "cpu/base/vector.h"
#include "cpu/conv/grouped.h"

#include <string.h>

#define INLINE       static inline __attribute__((always_inline))
#define ROWS_MAX     SL_GROUPED_ROWS_MAX
#define COLUMNS      SL_GROUPED_COLUMNS
/* Sums of a tile with groups: as many as there are registers for. */
#define GROUPED_ROWS (SL_VECTOR_FLOATS == 16 ? 4 : 2)
#define TAPS_MAX     (7 * 7)
#define PIXELS_MAX   (9 * 13) /* of the input under a tile: 7x7 with stride 2 */

/* One tile: where its pixels lie, at the first channel of the chunk. */
struct tile {
        const float *pixels[PIXELS_MAX]; /* of a ring: the first of each row */
        const float *weights, *bias, *residual;
        float *y;
        int64_t row_floats; /* of the output */
        int64_t channels;   /* of the chunk */
};

INLINE void store_tile(const struct sl_grouped *d, const struct tile *t, int rows, const sl_vector *sums, int64_t c, sl_lanes mask)
{
        const sl_vector least = sl_vector_set(d->shape.epilogue.least), most = sl_vector_set(d->shape.epilogue.most);

#pragma GCC unroll 4
        for (int row = 0; row < rows; row++)
#pragma GCC unroll 4
                for (int column = 0; column < COLUMNS; column++) {
                        int64_t at = row * t->row_floats + column * d->out_channels + c;
                        sl_vector sum = sums[row * COLUMNS + column];

                        if (t->residual)
                                sum = sl_vector_add(sum, sl_vector_load_lanes(mask, t->residual + at));
                        sl_vector_store_lanes(t->y + at, mask, sl_vector_clip(sum, least, most));
                }
}

/* Adds one pixel of the input to every output of the tile that it touches. */
INLINE void add_pixel(
        int side, int stride, int rows, sl_vector *sums, const sl_vector *weights, sl_vector x, int in_row, int in_column)
{
#pragma GCC unroll 4
        for (int row = 0; row < rows; row++)
#pragma GCC unroll 4
                for (int column = 0; column < COLUMNS; column++) {
                        int y = in_row - row * stride, z = in_column - column * stride;

                        if (y >= 0 && y < side && z >= 0 && z < side)
                                sums[row * COLUMNS + column] =
                                        sl_vector_fma(x, weights[y * side + z], sums[row * COLUMNS + column]);
                }
}

/* How the input lies: in an image; the same with channels to be spread over their groups, or over the filters that read them; in a
 * ring. */
enum source { IMAGE, GROUPS, FILTERS, RING };

INLINE const float *pixel_at(const struct tile *t, enum source source, int in_columns, int row, int column)
{
        return source == RING ? t->pixels[row] + column * SL_GROUPED_PANEL : t->pixels[row * in_columns + column];
}

/* One channel of each group: every pixel under the tile, and all that it touches; @c: of the input, with @mask. */
INLINE void add_channel(const struct tile *t, int side, int stride, int rows, enum source source, sl_order order, sl_vector *sums,
        const float *packed, int64_t c, sl_lanes mask)
{
        const int in_rows = (rows - 1) * stride + side, in_columns = (COLUMNS - 1) * stride + side;
        sl_vector weights[TAPS_MAX];

#pragma GCC unroll 49
        for (int tap = 0; tap < side * side; tap++)
                weights[tap] = sl_vector_load(packed + tap * SL_GROUPED_LANES);
#pragma GCC unroll 9
        for (int row = 0; row < in_rows; row++)
#pragma GCC unroll 13
                for (int column = 0; column < in_columns; column++) {
                        sl_vector x = sl_vector_load_lanes(mask, pixel_at(t, source, in_columns, row, column) + c);

                        add_pixel(side, stride, rows, sums, weights,
                                source == GROUPS || source == FILTERS ? sl_vector_order(x, order) : x, row, column);
                }
}

INLINE void sum_vector(const struct sl_grouped *d, const struct tile *t, int side, int stride, int rows, enum source source,
        const float *packed, int64_t c, sl_lanes mask)
{
        sl_vector bias = t->bias ? sl_vector_load_lanes(mask, t->bias + c) : sl_vector_zero(), sums[ROWS_MAX * COLUMNS];

#pragma GCC unroll 16
        for (int i = 0; i < rows * COLUMNS; i++)
                sums[i] = bias;
        if (source == GROUPS) {
                /* Lane n takes channel k of its own group. */
                sl_order order = sl_order_groups((int)d->shape.channels);

                for (int64_t k = 0; k < d->shape.channels; k++, packed += side * side * SL_GROUPED_LANES) {
                        add_channel(t, side, stride, rows, source, order, sums, packed, c, mask);
                        order = sl_order_next(order);
                }
        } else if (source == FILTERS) {
                int64_t left = (t->channels - c) / d->multiplier;

                add_channel(t, side, stride, rows, source, sl_order_spread((int)d->multiplier), sums, packed, c / d->multiplier,
                        sl_lanes_first(left < SL_VECTOR_FLOATS / d->multiplier ? left : SL_VECTOR_FLOATS / d->multiplier));
        } else {
                add_channel(t, side, stride, rows, source, sl_order_groups(1), sums, packed, c, mask);
        }
        store_tile(d, t, rows, sums, c, mask);
}

/* Of the vector of channels from @c on; @panel: floats of a panel. */
INLINE const float *weights_at(const struct tile *t, int64_t panel, int64_t c)
{
        return t->weights + c / SL_GROUPED_LANES * panel + c % SL_GROUPED_LANES;
}

INLINE void run_tile(const struct sl_grouped *d, const struct tile *t, int side, int stride, int rows, enum source source)
{
        const int64_t panel = d->shape.channels * side * side * SL_GROUPED_LANES;
        int64_t c = 0;

        for (; c + SL_VECTOR_FLOATS <= t->channels; c += SL_VECTOR_FLOATS)
                sum_vector(d, t, side, stride, rows, source, weights_at(t, panel, c), c, sl_lanes_all());
        if (c < t->channels)
                sum_vector(d, t, side, stride, rows, source, weights_at(t, panel, c), c, sl_lanes_first(t->channels - c));
        for (int row = 0; row < rows && d->shape.epilogue.activation; row++)
                sl_cpu_epilogue_activate(&d->shape.epilogue, t->y + row * t->row_floats, d->out_channels, COLUMNS, t->channels);
}

/* How far each pixel under a tile lies from the first. */
INLINE void find_offsets(const struct sl_grouped *d, int in_rows, int in_columns, int64_t *ret_offsets)
{
        for (int i = 0; i < in_rows; i++)
                for (int j = 0; j < in_columns; j++)
                        ret_offsets[i * in_columns + j] = (i * d->shape.width + j) * d->in_channels;
}

/* Pointers to all pixels under the tile whose first output is (row, column). */
INLINE void find_pixels(const struct sl_grouped *d, const float *image, const float *zeros, const int64_t *offsets, int64_t row,
        int64_t column, int in_rows, int in_columns, struct tile *t)
{
        int64_t top = row * d->stride - d->shape.window.pad_begin[0], left = column * d->stride - d->shape.window.pad_begin[1];
        const float *first = image + (top * d->shape.width + left) * d->in_channels;

        if (top >= 0 && left >= 0 && top + in_rows <= d->shape.height && left + in_columns <= d->shape.width) {
                for (int i = 0; i < in_rows * in_columns; i++)
                        t->pixels[i] = first + offsets[i];
                return;
        }
        for (int i = 0; i < in_rows; i++)
                for (int j = 0; j < in_columns; j++) {
                        bool inside = top + i >= 0 && top + i < d->shape.height && left + j >= 0 && left + j < d->shape.width;

                        t->pixels[i * in_columns + j] = inside ? first + offsets[i * in_columns + j] : zeros;
                }
}

/* Some rows of the output of one sample, and some of its channels. */
struct area {
        struct sl_grouped_rows rows;
        int64_t channel, end_channel;
};

INLINE void run_area(const struct sl_grouped *d, const struct sl_binding *binding, int side, int stride, int rows,
        enum source source, const struct area *area)
{
        const int in_rows = (rows - 1) * stride + side, in_columns = (COLUMNS - 1) * stride + side;
        const int64_t sample = area->rows.sample, first = area->channel;
        const float *image = (const float *)binding->inputs[0] + sample * d->shape.height * d->shape.width * d->in_channels +
                             first / d->multiplier;
        struct tile t = {.weights = (const float *)binding->inputs[1] + first * d->shape.channels * side * side,
                .bias = d->shape.has_bias ? (const float *)binding->inputs[2] + first : NULL,
                .row_floats = d->shape.out_width * d->out_channels,
                .channels = area->end_channel - first};
        int64_t offsets[PIXELS_MAX];

        find_offsets(d, in_rows, in_columns, offsets);
        for (int64_t row = area->rows.first; row < area->rows.end; row += rows) {
                int64_t top = row + rows <= area->rows.end ? row : area->rows.end - rows;

                for (int64_t column = 0; column < d->shape.out_width; column += COLUMNS) {
                        int64_t left = column + COLUMNS <= d->shape.out_width ? column : d->shape.out_width - COLUMNS;
                        int64_t at = ((sample * d->shape.out_height + top) * d->shape.out_width + left) * d->out_channels + first;

                        find_pixels(d, image, binding->scratch, offsets, top, left, in_rows, in_columns, &t);
                        t.y = (float *)binding->outputs[0] + at;
                        t.residual = d->shape.residual ? (const float *)binding->inputs[d->shape.residual] + at : NULL;
                        run_tile(d, &t, side, stride, rows, source);
                }
        }
}

typedef void area_function(const struct sl_grouped *d, const struct sl_binding *binding, const struct area *area);

/* What the launch has to compute, sample by sample, and chunk by chunk of the channels. */
static void walk_areas(const struct sl_grouped *d, const struct sl_binding *binding, area_function *function)
{
        struct sl_part units = sl_part_along(binding->part, SL_AXIS_ROWS, sl_grouped_units(d, SL_AXIS_ROWS));
        struct sl_part panels = sl_part_along(binding->part, SL_AXIS_COLUMNS, sl_grouped_units(d, SL_AXIS_COLUMNS));
        int64_t channels = panels.end * SL_GROUPED_LANES;

        channels = channels < d->out_channels ? channels : d->out_channels;
        for (int64_t unit = units.first; unit < units.end;) {
                struct area area = {.rows = sl_grouped_rows_of(d, unit, units.end), .channel = panels.first * SL_GROUPED_LANES};

                for (; area.channel < channels; area.channel = area.end_channel) {
                        area.end_channel = area.channel + d->chunk_channels;
                        area.end_channel = area.end_channel < channels ? area.end_channel : channels;
                        function(d, binding, &area);
                }
                unit += area.rows.units;
        }
}

#define DEFINE(name, side, stride, rows, source)                                                                                   \
        static void name(const struct sl_grouped *d, const struct sl_binding *binding, const struct area *area)                    \
        {                                                                                                                          \
                run_area(d, binding, side, stride, rows, source, area);                                                            \
        }

DEFINE(depthwise_3_1, 3, 1, 2, IMAGE)
DEFINE(depthwise_3_2, 3, 2, 2, IMAGE)
DEFINE(depthwise_5_1, 5, 1, 2, IMAGE)
DEFINE(depthwise_5_2, 5, 2, 2, IMAGE)
DEFINE(depthwise_7_1, 7, 1, 2, IMAGE)
DEFINE(depthwise_7_2, 7, 2, 2, IMAGE)
DEFINE(filters_3_1, 3, 1, 2, FILTERS)
DEFINE(filters_3_2, 3, 2, 2, FILTERS)
DEFINE(filters_5_1, 5, 1, 2, FILTERS)
DEFINE(filters_5_2, 5, 2, 2, FILTERS)
DEFINE(filters_7_1, 7, 1, 2, FILTERS)
DEFINE(filters_7_2, 7, 2, 2, FILTERS)
DEFINE(grouped_3_1, 3, 1, GROUPED_ROWS, GROUPS)
DEFINE(grouped_3_2, 3, 2, 2, GROUPS)

/* Of depthwise ones: by whether several filters read a channel, the side of the window (3, 5, 7) and the stride. */
static area_function *const functions[2][3][2] = {
        {{depthwise_3_1, depthwise_3_2}, {depthwise_5_1, depthwise_5_2}, {depthwise_7_1, depthwise_7_2}},
        {{filters_3_1, filters_3_2}, {filters_5_1, filters_5_2}, {filters_7_1, filters_7_2}},
};

int SL_TILE(sl_grouped_run)(const struct sl_grouped *d, const struct sl_binding *binding)
{
        memset(binding->scratch, 0, (size_t)d->in_channels * sizeof(float));
        if (d->shape.channels > 1)
                walk_areas(d, binding, d->stride == 1 ? grouped_3_1 : grouped_3_2);
        else
                walk_areas(d, binding, functions[d->multiplier > 1][d->side / 2 - 1][d->stride - 1]);
        return 0;
}

/* The rows of the ring that are under the tiles whose first row of the input is @top. */
INLINE void find_rows(
        const struct sl_grouped *d, const struct sl_grouped_strip *s, int64_t top, int in_rows, const float **ret_rows)
{
        for (int i = 0; i < in_rows; i++) {
                bool inside = top + i >= 0 && top + i < d->shape.height;

                ret_rows[i] = inside ? s->ring + (top + i) % s->slots * s->row_floats : s->zeros;
        }
}

INLINE void run_strip(const struct sl_grouped *d, const struct sl_grouped_strip *s, int side, int stride)
{
        const int rows = 2, in_rows = (rows - 1) * stride + side;
        struct tile t = {.weights = s->weights,
                .bias = s->bias,
                .row_floats = d->shape.out_width * d->out_channels,
                .channels = s->channels};
        const float *scanlines[ROWS_MAX * 2 + 5];

        for (int64_t row = 0; row < s->rows; row += rows) {
                int64_t own = row + rows <= s->rows ? row : s->rows - rows;

                find_rows(d, s, (s->first + own) * stride - d->shape.window.pad_begin[0], in_rows, scanlines);
                for (int64_t column = 0; column < d->shape.out_width; column += COLUMNS) {
                        int64_t left = column + COLUMNS <= d->shape.out_width ? column : d->shape.out_width - COLUMNS;
                        int64_t at = (own * d->shape.out_width + left) * d->out_channels;

                        for (int i = 0; i < in_rows; i++)
                                t.pixels[i] = scanlines[i] + left * stride * SL_GROUPED_PANEL;
                        t.y = s->y + at;
                        t.residual = s->residual ? s->residual + at : NULL;
                        run_tile(d, &t, side, stride, rows, RING);
                }
        }
}

#define DEFINE_STRIP(name, side, stride)                                                                                           \
        static void name(const struct sl_grouped *d, const struct sl_grouped_strip *s)                                             \
        {                                                                                                                          \
                run_strip(d, s, side, stride);                                                                                     \
        }

DEFINE_STRIP(strip_3_1, 3, 1)
DEFINE_STRIP(strip_3_2, 3, 2)
DEFINE_STRIP(strip_5_1, 5, 1)
DEFINE_STRIP(strip_5_2, 5, 2)

void SL_TILE(sl_grouped_run_strip)(const struct sl_grouped *d, const struct sl_grouped_strip *strip)
{
        if (d->side == 3)
                (d->stride == 1 ? strip_3_1 : strip_3_2)(d, strip);
        else
                (d->stride == 1 ? strip_5_1 : strip_5_2)(d, strip);
}
