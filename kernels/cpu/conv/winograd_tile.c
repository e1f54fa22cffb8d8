/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path of a block of tiles: transformed, multiplied panel by panel, transformed back; a vector of channels at a time. What a
 * node reads and writes may be bfloat16: it is widened when a tile is read and rounded when it is stored, between which all is
 * float32, with the same bits.
 */
#include "base/assert.h"
#include "cpu/base/vector_bf16.h"
#include "cpu/conv/winograd.h"
#include "cpu/conv/winograd_direct.h"
#include "cpu/conv/winograd_line.h"
#include "cpu/gemm/gemm.h"

#define INLINE        SL_VECTOR_INLINE
#define POSITIONS_MAX 36
#define OUTPUTS_MAX   SL_WINOGRAD_OUTPUTS_MAX

/* A tile as the compiler sees it: positions and outputs, down and across; and what the tensors of the node hold. */
struct shape {
        int down, across, out_down, out_across, stride;
        uint32_t dtype; /* SL_DTYPE_F32, SL_DTYPE_BF16 */
};

/* Of a tensor of the node, from element @index on. */
INLINE sl_vector load_elements(struct shape s, sl_lanes lanes, const void *tensor, int64_t index)
{
        return s.dtype == SL_DTYPE_BF16 ? sl_vector_load_lanes_bf16(lanes, (const uint16_t *)tensor + index)
                                        : sl_vector_load_lanes(lanes, (const float *)tensor + index);
}

INLINE void store_elements(struct shape s, sl_lanes lanes, void *tensor, int64_t index, sl_vector x)
{
        if (s.dtype == SL_DTYPE_BF16)
                sl_vector_store_lanes_bf16((uint16_t *)tensor + index, lanes, x);
        else
                sl_vector_store_lanes((float *)tensor + index, lanes, x);
}

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

/* From element @image of @x on. */
INLINE void transform_vector(struct shape s, const void *x, int64_t image, const struct span *rows, const struct span *columns,
        bool whole, sl_lanes mask, float *to, int64_t position_floats)
{
        sl_vector half[POSITIONS_MAX], line[SL_WINOGRAD_SIDE_MAX], turned[SL_WINOGRAD_SIDE_MAX];

#pragma GCC unroll 8
        for (int j = 0; j < s.across; j++) {
#pragma GCC unroll 8
                for (int i = 0; i < s.down; i++) {
                        bool inside = whole || (rows->inside[i] && columns->inside[j]);

                        line[i] = load_elements(
                                s, inside ? mask : sl_lanes_first(0), x, image + rows->offset[i] + columns->offset[j]);
                }
                sl_winograd_transform_line(s.down, line, turned);
#pragma GCC unroll 8
                for (int i = 0; i < s.down; i++)
                        half[i * s.across + j] = turned[i];
        }
#pragma GCC unroll 8
        for (int i = 0; i < s.down; i++) {
                sl_winograd_transform_line(s.across, half + i * s.across, turned);
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

INLINE void transform_tile(const struct sl_winograd *w, struct shape s, const void *x, int64_t tile, float *to)
{
        struct place place = find_place(w, tile);
        int64_t image = place.sample * w->shape.height * w->shape.width * w->shape.channels;
        int64_t top = place.row * s.stride - w->shape.window.pad_begin[0],
                left = place.column * s.stride - w->shape.window.pad_begin[1];
        bool whole = top >= 0 && left >= 0 && top + s.down <= w->shape.height && left + s.across <= w->shape.width;
        struct span rows, columns;

        set_span(&rows, top, w->shape.height, w->shape.width * w->shape.channels, s.down);
        set_span(&columns, left, w->shape.width, w->shape.channels, s.across);
        for (int64_t c = 0; c < w->shape.channels; c += SL_VECTOR_FLOATS) {
                sl_lanes mask = sl_lanes_first(w->shape.channels - c);

                if (whole)
                        transform_vector(s, x, image + c, &rows, &columns, true, mask, to + c, w->position_floats);
                else
                        transform_vector(s, x, image + c, &rows, &columns, false, mask, to + c, w->position_floats);
        }
}

/* What the way back needs beside the sums: tensors of the node, and which filters this step has. */
struct target {
        void *y;
        const void *x, *residual, *bias;
        const float *weights; /* of the first of the filters */
        int64_t first, filters;
};

/* The outputs of a tile in float32, [pixel][filter of this step], for an activation that comes before they are rounded. */
#define BLOCK_FLOATS (OUTPUTS_MAX * OUTPUTS_MAX * SL_WINOGRAD_STEP_MAX)

/*
 * Filters from @first of the step on, to @block, or to the output if that is NULL. With @watch: false where a NaN or an infinity is
 * under one of the windows, for then one of the positions is none, of each filter, and so is what is made of it.
 */
INLINE bool restore_vector(const struct sl_winograd *w, struct shape s, const float *sums, const struct target *t, int64_t at,
        int64_t first, int64_t rows, int64_t columns, sl_lanes mask, float *block, bool watch)
{
        sl_vector nothing[OUTPUTS_MAX] = {sl_vector_zero(), sl_vector_zero(), sl_vector_zero(), sl_vector_zero()},
                  half[OUTPUTS_MAX * SL_WINOGRAD_SIDE_MAX], line[SL_WINOGRAD_SIDE_MAX], turned[OUTPUTS_MAX];
        sl_vector bias = t->bias ? load_elements(s, mask, t->bias, t->first + first) : sl_vector_zero();
        sl_vector least = sl_vector_set(w->shape.epilogue.least), most = sl_vector_set(w->shape.epilogue.most);

#pragma GCC unroll 8
        for (int j = 0; j < s.across; j++) {
#pragma GCC unroll 8
                for (int i = 0; i < s.down; i++)
                        line[i] = sl_vector_load(sums + (i * s.across + j) * w->sum_floats + first);
                sl_winograd_restore_line(s.down, s.out_down, line, turned);
#pragma GCC unroll 4
                for (int i = 0; i < s.out_down; i++)
                        half[i * s.across + j] = turned[i];
        }
#pragma GCC unroll 4
        for (int i = 0; i < s.out_down; i++) {
                if (i >= rows)
                        break;
                sl_winograd_restore_line(s.across, s.out_across, half + i * s.across, turned);
#pragma GCC unroll 4
                for (int j = 0; j < s.out_across; j++) {
                        int64_t pixel = at + (i * w->shape.out_width + j) * w->shape.filters + first;
                        sl_lanes there = j < columns ? mask : sl_lanes_first(0);
                        sl_vector sum = sl_vector_add(turned[j], bias);

                        if (watch)
                                nothing[j] = sl_vector_fma(sl_vector_zero(), turned[j], nothing[j]);
                        if (t->residual)
                                sum = sl_vector_add(sum, load_elements(s, there, t->residual, pixel));
                        sum = sl_vector_clip(sum, least, most);
                        if (block)
                                sl_vector_store_lanes(block + (i * s.out_across + j) * t->filters + first, there, sum);
                        else
                                store_elements(s, there, t->y, pixel, sum);
                }
        }
        if (!watch)
                return true;
        nothing[0] = sl_vector_add(sl_vector_add(nothing[0], nothing[1]), sl_vector_add(nothing[2], nothing[3]));
        return sl_vector_sum(sl_vector_where(mask, nothing[0], sl_vector_zero())) == 0;
}

/* As restore_vector(), by the windows themselves. */
static __attribute__((noinline)) void restore_directly(const struct sl_winograd *w, struct shape s, const struct target *t,
        struct place place, int64_t at, int64_t first, int64_t rows, int64_t columns, float *block)
{
        int64_t panel = first / SL_GEMM_PANEL, own = t->filters - panel * SL_GEMM_PANEL, left = t->filters - first;
        int64_t width = sl_gemm_packed_floats(1, own < SL_GEMM_PANEL ? own : SL_GEMM_PANEL);
        const struct sl_winograd_weights weights = {
                t->weights + panel * w->weights * w->shape.channels * SL_GEMM_PANEL + first % SL_GEMM_PANEL, width, left};
        sl_lanes mask = sl_lanes_first(left);
        sl_vector bias = t->bias ? load_elements(s, mask, t->bias, t->first + first) : sl_vector_zero();
        float sums[SL_WINOGRAD_PIXELS_MAX][16];

        SL_TILE(sl_winograd_direct)(w, t->x, place.sample, place.row, place.column, &weights, sums);
        for (int64_t i = 0; i < rows; i++)
                for (int64_t j = 0; j < columns; j++) {
                        int64_t of_tile = i * s.out_across + j,
                                pixel = at + (i * w->shape.out_width + j) * w->shape.filters + first;
                        sl_vector sum = sl_vector_add(sl_vector_load(sums[of_tile]), bias);

                        if (t->residual)
                                sum = sl_vector_add(sum, load_elements(s, mask, t->residual, pixel));
                        sum = sl_vector_clip(sum, sl_vector_set(w->shape.epilogue.least), sl_vector_set(w->shape.epilogue.most));
                        if (block)
                                sl_vector_store_lanes(block + of_tile * t->filters + first, mask, sum);
                        else
                                store_elements(s, mask, t->y, pixel, sum);
                }
}

/* Rounds what lies in a block, @rows x @columns pixels of the tile. */
static void store_block(const struct sl_winograd *w, struct shape s, const float *block, const struct target *t, int64_t at,
        int64_t rows, int64_t columns)
{
        for (int64_t i = 0; i < rows; i++)
                for (int64_t j = 0; j < columns; j++) {
                        const float *from = block + (i * s.out_across + j) * t->filters;
                        int64_t pixel = at + (i * w->shape.out_width + j) * w->shape.filters;

                        for (int64_t first = 0; first < t->filters; first += SL_VECTOR_FLOATS) {
                                sl_lanes lanes = sl_lanes_first(t->filters - first);

                                store_elements(s, lanes, t->y, pixel + first, sl_vector_load_lanes(lanes, from + first));
                        }
                }
}

INLINE int64_t least_of(int64_t a, int64_t b)
{
        return a < b ? a : b;
}

INLINE void restore_tile(const struct sl_winograd *w, struct shape s, const float *sums, const struct target *t, int64_t tile)
{
        struct place place = find_place(w, tile);
        int64_t at = ((place.sample * w->shape.out_height + place.row) * w->shape.out_width + place.column) * w->shape.filters +
                     t->first;
        int64_t rows = least_of(w->shape.out_height - place.row, s.out_down),
                columns = least_of(w->shape.out_width - place.column, s.out_across);
        bool apart = s.dtype != SL_DTYPE_F32 && w->shape.epilogue.activation;
        float room[BLOCK_FLOATS], *block = apart ? room : NULL;

        bool finite = restore_vector(w, s, sums, t, at, 0, rows, columns, sl_lanes_first(t->filters), block, true);

        for (int64_t first = SL_VECTOR_FLOATS; first < t->filters && finite; first += SL_VECTOR_FLOATS)
                restore_vector(w, s, sums, t, at, first, rows, columns, sl_lanes_first(t->filters - first), block, false);
        for (int64_t first = 0; first < t->filters && !finite; first += SL_VECTOR_FLOATS)
                restore_directly(w, s, t, place, at, first, rows, columns, block);
        if (!w->shape.epilogue.activation)
                return;
        for (int64_t row = 0; row < rows; row++)
                sl_cpu_epilogue_activate(&w->shape.epilogue,
                        apart ? room + row * s.out_across * t->filters
                              : (float *)t->y + at + row * w->shape.out_width * w->shape.filters,
                        apart ? t->filters : w->shape.filters, columns, t->filters);
        if (apart)
                store_block(w, s, room, t, at, rows, columns);
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
                        SL_ASSERT(step <= SL_WINOGRAD_STEP_MAX);
                        struct target t = {.y = binding->outputs[0],
                                .x = binding->inputs[0],
                                .weights = weights,
                                .residual = w->shape.residual ? binding->inputs[w->shape.residual] : NULL,
                                .bias = w->shape.has_bias ? binding->inputs[2] : NULL,
                                .first = filter,
                                .filters = step};

                        run_step(w, s, tiles, weights, &t, first, n);
                        weights += w->weights * sl_gemm_packed_floats(w->shape.channels, t.filters);
                }
        }
}

#define DEFINE(name, ...)                                                                                                          \
        static void name##_f32(const struct sl_winograd *w, const struct sl_binding *binding)                                      \
        {                                                                                                                          \
                run_tiles(w, (struct shape){__VA_ARGS__, SL_DTYPE_F32}, binding);                                                  \
        }                                                                                                                          \
        static void name##_bf16(const struct sl_winograd *w, const struct sl_binding *binding)                                     \
        {                                                                                                                          \
                run_tiles(w, (struct shape){__VA_ARGS__, SL_DTYPE_BF16}, binding);                                                 \
        }                                                                                                                          \
        static void name(const struct sl_winograd *w, const struct sl_binding *binding)                                            \
        {                                                                                                                          \
                (w->shape.dtype == SL_DTYPE_BF16 ? name##_bf16 : name##_f32)(w, binding);                                          \
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
