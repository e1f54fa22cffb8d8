/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a convolution's product, and their way through it.
 */
#include "cpu/base/vector.h"
#include "cpu/conv/im2col_gemm.h"
#include "cpu/gemm/gemm.h"

static void copy_floats(float *to, const float *from, int64_t n)
{
        int64_t i = 0;

        for (; i + SL_VECTOR_FLOATS <= n; i += SL_VECTOR_FLOATS)
                sl_vector_store(to + i, sl_vector_load(from + i));
        if (i < n)
                sl_vector_store_lanes(to + i, sl_lanes_first(n - i), sl_vector_load_lanes(sl_lanes_first(n - i), from + i));
}

static void clear_floats(float *to, int64_t n)
{
        for (int64_t i = 0; i < n; i += SL_VECTOR_FLOATS)
                sl_vector_store_lanes(to + i, sl_lanes_first(n - i), sl_vector_zero());
}

/* One scanline of the window: what lies left and right of the image is 0. Neighbours are copied in one piece. */
static void copy_scanline(const struct sl_im2col_gemm *p, const float *scanline, int64_t left, float *to)
{
        int64_t taps = p->shape.window.kernel[1], step = p->shape.window.dilation[1], c = p->shape.channels;

        if (step == 1 && left >= 0 && left + taps <= p->shape.width) {
                copy_floats(to, scanline + left * c, taps * c);
                return;
        }
        for (int64_t i = 0; i < taps; i++) {
                int64_t x = left + i * step;

                if (x >= 0 && x < p->shape.width)
                        copy_floats(to + i * c, scanline + x * c, c);
                else
                        clear_floats(to + i * c, c);
        }
}

static void copy_row(const struct sl_im2col_gemm *p, const float *x, int64_t row, float *to)
{
        const struct sl_window *w = &p->shape.window;
        int64_t pixels = p->shape.out_height * p->shape.out_width, scanline_floats = w->kernel[1] * p->shape.channels;
        const float *image = x + row / pixels * p->shape.height * p->shape.width * p->shape.channels;
        int64_t top = row % pixels / p->shape.out_width * w->stride[0] - w->pad_begin[0];
        int64_t left = row % p->shape.out_width * w->stride[1] - w->pad_begin[1];

        for (int64_t i = 0; i < w->kernel[0]; i++) {
                int64_t y = top + i * w->dilation[0];

                if (y >= 0 && y < p->shape.height)
                        copy_scanline(p, image + y * p->shape.width * p->shape.channels, left, to + i * scanline_floats);
                else
                        clear_floats(to + i * scanline_floats, scanline_floats);
        }
}

/* The filters of the launch's part: whole panels but for the last. */
static struct sl_part filters_of(const struct sl_im2col_gemm *p, const struct sl_binding *binding)
{
        const struct sl_part *part = p->shape.groups == 1 ? binding->part : NULL;
        struct sl_part panels = sl_part_along(part, SL_AXIS_COLUMNS, sl_gemm_panels(p->shape.filters));
        int64_t end = panels.end * SL_GEMM_PANEL;

        return (struct sl_part){.first = panels.first * SL_GEMM_PANEL, .end = end < p->shape.filters ? end : p->shape.filters};
}

/* The groups of the launch's part; one has panels that may be cut. */
static struct sl_part groups_of(const struct sl_im2col_gemm *p, const struct sl_binding *binding)
{
        return sl_part_along(p->shape.groups > 1 ? binding->part : NULL, SL_AXIS_COLUMNS, p->shape.groups);
}

static struct sl_gemm make_gemm(const struct sl_im2col_gemm *p, const struct sl_binding *binding)
{
        struct sl_part filters = filters_of(p, binding);
        int64_t packed = filters.first * p->depth;

        return (struct sl_gemm){.a = binding->inputs[0],
                .b = p->narrow ? NULL : (const float *)binding->inputs[1] + packed,
                .narrow = p->narrow ? (const uint16_t *)binding->inputs[1] + packed : NULL,
                .narrow_dtype = p->narrow,
                .depth = p->depth,
                .columns = filters.end - filters.first,
                .a_stride = p->depth,
                .c_stride = p->shape.filters * p->shape.groups,
                .bias = p->shape.has_bias ? (const float *)binding->inputs[2] + filters.first : NULL,
                .residual_stride = p->shape.filters * p->shape.groups,
                .streams = p->streams,
                .epilogue = &p->shape.epilogue};
}

/* Where row @row of the output lies, from the first filter of group @group on. */
static void aim(const struct sl_im2col_gemm *p, const struct sl_binding *binding, int64_t row, int64_t group, struct sl_gemm *g)
{
        int64_t at = row * p->shape.filters * p->shape.groups + group * p->shape.filters + filters_of(p, binding).first;

        g->c = (float *)binding->outputs[0] + at;
        g->residual = p->shape.residual ? (const float *)binding->inputs[p->shape.residual] + at : NULL;
}

static void run_input(const struct sl_im2col_gemm *p, const struct sl_binding *binding)
{
        struct sl_gemm gemm = make_gemm(p, binding);

        struct sl_part rows = sl_part_along(binding->part, SL_AXIS_ROWS, p->rows);

        gemm.a += rows.first * gemm.a_stride;
        gemm.rows = rows.end - rows.first;
        aim(p, binding, rows.first, 0, &gemm);
        sl_gemm_run(&gemm);
}

static void run_copied(const struct sl_im2col_gemm *p, const struct sl_binding *binding)
{
        struct sl_part rows = sl_part_along(binding->part, SL_AXIS_ROWS, p->rows);
        struct sl_gemm gemm = make_gemm(p, binding);

        gemm.a = binding->scratch;
        for (int64_t first = rows.first; first < rows.end; first += p->block_rows) {
                gemm.rows = rows.end - first < p->block_rows ? rows.end - first : p->block_rows;
                aim(p, binding, first, 0, &gemm);
                for (int64_t i = 0; i < gemm.rows; i++)
                        copy_row(p, binding->inputs[0], first + i, (float *)binding->scratch + i * p->depth);
                sl_gemm_run(&gemm);
        }
}

/* The pieces and strides of rows that lie in scanlines of so many pixels. */
static void lay_scanlines(const struct sl_im2col_gemm *p, struct sl_gemm *g)
{
        const struct sl_window *w = &p->shape.window;
        int64_t scanline = p->frame_pixels * p->shape.channels;

        g->a_stride = w->stride[1] * p->shape.channels;
        g->scanline_rows = p->shape.out_width;
        g->scanline_stride = w->stride[0] * scanline;
        g->image_scanlines = p->block_scanlines;
        g->image_stride = p->frame_scanlines * scanline;
        if (w->dilation[1] > 1) {
                g->piece = p->shape.channels;
                g->piece_stride = w->dilation[1] * p->shape.channels;
        } else {
                g->piece = w->kernel[1] * p->shape.channels;
                g->piece_stride = w->dilation[0] * scanline;
        }
        if (p->clips) {
                g->clip_left = w->pad_begin[1] * p->shape.channels;
                g->clip_right = (p->shape.width + w->pad_begin[1]) * p->shape.channels;
                g->clip_step = g->a_stride;
        }
}

/* Scanlines @first to @end of the output: where they begin or end within an image, image by image. */
static void run_scanlines(const struct sl_im2col_gemm *p, const struct sl_binding *binding)
{
        struct sl_part lines = sl_part_along(binding->part, SL_AXIS_ROWS, p->shape.batch * p->shape.out_height);
        struct sl_gemm gemm = make_gemm(p, binding);
        int64_t height = p->shape.out_height;

        lay_scanlines(p, &gemm);
        for (int64_t first = lines.first, end; first < lines.end; first = end) {
                end = first % height ? first - first % height + height : lines.end - lines.end % height;
                end = end <= first || end > lines.end ? lines.end : end;
                gemm.a = (const float *)binding->inputs[0] + first / height * gemm.image_stride +
                         first % height * gemm.scanline_stride;
                gemm.rows = (end - first) * p->shape.out_width;
                aim(p, binding, first * p->shape.out_width, 0, &gemm);
                sl_gemm_run(&gemm);
        }
}

/* Where the frames of groups begin, one behind the other. */
struct frames {
        struct sl_part groups;
        int64_t group_floats;
};

/* One scanline of the input, group by group; NULL: zeros. */
static void frame_scanline(const struct sl_im2col_gemm *p, const float *scanline, float *first, const struct frames *frames)
{
        int64_t left = p->shape.window.pad_begin[1], all = p->frame_pixels, own, c = p->shape.channels;

        own = all - left < p->shape.width ? all - left : p->shape.width;
        for (int64_t group = frames->groups.first; group < frames->groups.end; group++) {
                float *to = first + group * frames->group_floats;

                if (!scanline || left >= all) {
                        clear_floats(to, all * c);
                        continue;
                }
                clear_floats(to, left * c);
                if (p->shape.groups == 1)
                        copy_floats(to + left * c, scanline, own * c);
                for (int64_t i = 0; i < own && p->shape.groups > 1; i++)
                        copy_floats(to + (left + i) * c, scanline + (i * p->shape.groups + group) * c, c);
                clear_floats(to + (left + own) * c, (all - left - own) * c);
        }
}

/* Scanlines of the output whose rows are multiplied at once: of some images all, or some of one. */
struct block {
        int64_t image, images, first, scanlines;
};

/* What they see of the input. */
static void make_frame(
        const struct sl_im2col_gemm *p, const struct sl_binding *binding, const struct block *block, const struct frames *frames)
{
        int64_t scanline_floats = p->frame_pixels * p->shape.channels, pixels = p->shape.groups * p->shape.channels;
        int64_t top = block->first * p->shape.window.stride[0] - p->shape.window.pad_begin[0];
        int64_t seen = p->frame_scanlines - (p->block_scanlines - block->scanlines) * p->shape.window.stride[0];
        float *to = binding->scratch;

        for (int64_t k = 0; k < block->images; k++) {
                const float *x = (const float *)binding->inputs[0] + (block->image + k) * p->shape.height * p->shape.width * pixels;

                for (int64_t i = 0; i < seen; i++, to += scanline_floats) {
                        bool inside = top + i >= 0 && top + i < p->shape.height;

                        frame_scanline(p, inside ? x + (top + i) * p->shape.width * pixels : NULL, to, frames);
                }
        }
}

static void run_block(const struct sl_im2col_gemm *p, const struct sl_binding *binding, const struct block *block)
{
        const struct frames frames = {
                groups_of(p, binding), p->block_images * p->frame_scanlines * p->frame_pixels * p->shape.channels};
        int64_t packed = sl_gemm_packed_floats(p->depth, p->shape.filters);
        struct sl_gemm gemm = make_gemm(p, binding);

        make_frame(p, binding, block, &frames);
        lay_scanlines(p, &gemm);
        gemm.rows = block->images * block->scanlines * p->shape.out_width;
        for (int64_t group = frames.groups.first; group < frames.groups.end; group++) {
                struct sl_gemm one = gemm;

                one.a = (const float *)binding->scratch + group * frames.group_floats;
                one.b = gemm.b + group * packed;
                one.next = gemm.b + (group + 1) % p->shape.groups * packed;
                one.bias = gemm.bias ? gemm.bias + group * p->shape.filters : NULL;
                aim(p, binding, (block->image * p->shape.out_height + block->first) * p->shape.out_width, group, &one);
                sl_gemm_run(&one);
        }
}

/* Whole images, as many as a block has; else scanlines of one image. */
static struct block next_block(const struct sl_im2col_gemm *p, int64_t first, int64_t end)
{
        int64_t height = p->shape.out_height, images = (end - first) / height, left = height - first % height;
        struct block block = {.image = first / height, .images = 1, .first = first % height};

        if (!block.first && images && p->block_scanlines == height) {
                block.images = images < p->block_images ? images : p->block_images;
                block.scanlines = height;
                return block;
        }
        left = left < end - first ? left : end - first;
        block.scanlines = left < p->block_scanlines ? left : p->block_scanlines;
        return block;
}

static void run_framed(const struct sl_im2col_gemm *p, const struct sl_binding *binding)
{
        struct sl_part lines = sl_part_along(binding->part, SL_AXIS_ROWS, p->shape.batch * p->shape.out_height);

        for (int64_t first = lines.first; first < lines.end;) {
                struct block block = next_block(p, first, lines.end);

                run_block(p, binding, &block);
                first += block.images * block.scanlines;
        }
}

int SL_TILE(sl_im2col_gemm_run)(const struct sl_im2col_gemm *p, const struct sl_binding *binding)
{
        switch (p->source) {
        case SL_IM2COL_INPUT:
                run_input(p, binding);
                break;
        case SL_IM2COL_LINES:
                run_scanlines(p, binding);
                break;
        case SL_IM2COL_FRAME:
                run_framed(p, binding);
                break;
        case SL_IM2COL_COPIED:
                run_copied(p, binding);
                break;
        }
        return 0;
}
