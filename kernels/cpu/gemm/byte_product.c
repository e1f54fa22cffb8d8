/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products and convolutions of bytes, where oneDNN's are not exact (sl_cpu_multiplies_bytes()). Every one is a
 * convolution: a product of matrices is one over an image of width 1. Some scanlines of the image are widened to 16 bits into a
 * frame in scratch, with zeros around them; tiles of rows pass by the packed panels (byte_tile.h), and what they sum up is stored
 * row by row while it lies in the cache (byte_epilogue.h). A sum is exact, so a sample has the same bits in any batch.
 *
 * Weights that are no constants are packed at each launch, panel by panel.
 */
#include "base/bytes.h"
#include "cpu/base/isa.h"
#include "cpu/gemm/byte_epilogue.h"
#include "cpu/gemm/byte_tile.h"
#include "cpu/gemm/loops.h"
#include "shape/window.h"

#include <string.h>

#define BLOCK_ROWS         48 /* a multiple of a tile's, whose sums lie in the L1 and L2 caches */
#define BLOCK_PANELS       (SL_BYTE_COLUMNS_MAX / SL_BYTE_PANEL)
#define SUMS_STRIDE        (SL_BYTE_COLUMNS_MAX + SL_BYTE_PANEL)
#define FRAME_ELEMENTS_MAX 0x1p27
#define AXES               2

/* What the packed form depends on, never on the batch. A group's filters see its channels; with single channels all are one group.
 */
struct weights {
        int64_t groups, filters, channels; /* of a group */
        int64_t kernel[AXES];
        int64_t filter_stride, channel_stride, tap_strides[AXES]; /* of plain ones, in elements */
        int64_t panels;                                           /* of a group */
        struct sl_byte_depth depth;                               /* but for the strides */
};

struct byte_product {
        struct weights weights;
        struct sl_byte_epilogue epilogue;
        int64_t batch, height, width, channels; /* of the input, all groups */
        int64_t out_height, out_width;
        int64_t pad[AXES];
        int64_t pixel_step[AXES];              /* of the input, from pixel to pixel of the frame */
        int64_t row_step[AXES];                /* of the frame, from row to row */
        int64_t reach[AXES];                   /* of the frame, that a window covers */
        int64_t frame_pixels, block_scanlines; /* a scanline of the frame; so many scanlines of the output at a time */
        size_t sums_offset, panel_offset;      /* of scratch */
        uint32_t x_dtype, residual;            /* node input of the residual; 0: none */
        int32_t x_zero;
        bool flat;   /* the frame is the input, widened */
        bool packed; /* else plain */
};

static int64_t divide_up(int64_t a, int64_t b)
{
        return (a + b - 1) / b;
}

static void lay_depth(struct weights *w, bool joins)
{
        bool single = w->channels == 1 && w->filters == 1 && w->groups > 1;

        w->depth =
                (struct sl_byte_depth){.scanlines = w->kernel[0], .taps = w->kernel[1], .piece = w->channels, .channels = single};
        if (single) {
                w->filters = w->groups;
                w->groups = 1;
        } else if (joins) {
                w->depth.taps = 1;
                w->depth.piece = w->kernel[1] * w->channels;
        }
        w->panels = divide_up(w->filters, SL_BYTE_PANEL);
}

/* The taps of a scanline lie behind each other where no other group's channels, and no hole, are between them. */
static void read_filters(const struct sl_node_desc *node, const struct sl_window *window, struct weights *ret_weights)
{
        const int64_t *f = node->inputs[1].shape.dims;
        int64_t groups = sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1), taps = f[2] * f[3];

        *ret_weights = (struct weights){.groups = groups,
                .filters = f[0] / groups,
                .channels = f[1],
                .kernel = {f[2], f[3]},
                .filter_stride = f[1] * taps,
                .channel_stride = taps,
                .tap_strides = {f[3], 1}};
        lay_depth(ret_weights, groups == 1 && window->dilation[1] == 1);
}

static void read_matrix(const struct sl_node_desc *node, struct weights *ret_weights)
{
        bool turned = sl_attrs_int(&node->attrs, SL_ATTR_TRANS_B, 0) != 0;
        int64_t depth = node->inputs[1].shape.dims[turned], columns = node->inputs[1].shape.dims[!turned];

        *ret_weights = (struct weights){.groups = 1,
                .filters = columns,
                .channels = depth,
                .kernel = {1, 1},
                .filter_stride = turned ? depth : 1,
                .channel_stride = turned ? 1 : columns};
        lay_depth(ret_weights, true);
}

static void read_weights(const struct sl_node_desc *node, struct weights *ret_weights)
{
        struct sl_window window;

        if (node->op == SL_OP_QUANTIZED_MATMUL)
                read_matrix(node, ret_weights);
        else if (!sl_window_read(node, &window, NULL))
                read_filters(node, &window, ret_weights);
}

/* Column @column of a panel that begins with filter @first; what the panel has too many are zeros. */
static void pack_column(const struct weights *w, const int8_t *plain, int64_t first, int64_t column, int8_t *to)
{
        const struct sl_byte_depth *d = &w->depth;
        const int8_t *from = plain + (first + column) * w->filter_stride;
        bool inside = column < w->filters - first % w->filters;
        int64_t step = d->channels ? 1 : 2, pieces = d->channels ? 1 : (d->piece + 1) / 2 * 2;

        for (int64_t scanline = 0; scanline < d->scanlines; scanline++)
                for (int64_t tap = 0; tap < d->taps; tap++)
                        for (int64_t k = 0; k < pieces; k++, to += k % step ? 0 : SL_BYTE_PANEL * step) {
                                int64_t at = scanline * w->tap_strides[0] + (tap + k / w->channels) * w->tap_strides[1] +
                                             k % w->channels * w->channel_stride;

                                to[column * step + k % step] = inside && k < d->piece ? from[at] : 0;
                        }
}

static void pack_panel(const struct weights *w, const int8_t *plain, int64_t panel, int8_t *to)
{
        int64_t first = panel / w->panels * w->filters + panel % w->panels * SL_BYTE_PANEL;

        for (int64_t column = 0; column < SL_BYTE_PANEL; column++)
                pack_column(w, plain, first, column, to);
}

static bool is_plain_node(const struct sl_node_desc *node)
{
        const struct sl_tensor *x = &node->inputs[0], *w = sl_cpu_input(node, 1), *y = &node->outputs[0];
        bool is_matrix = node->op == SL_OP_QUANTIZED_MATMUL;

        if (!sl_cpu_is_byte(x) || !w || w->layout != SL_LAYOUT_PLAIN || sl_cpu_is_empty(x) || sl_cpu_is_empty(w) ||
                sl_cpu_is_empty(y))
                return false;
        if (is_matrix)
                return x->layout == SL_LAYOUT_PLAIN && y->layout == SL_LAYOUT_PLAIN;
        return x->shape.rank == 4 && x->layout == SL_LAYOUT_CHANNELS_LAST && y->layout == SL_LAYOUT_CHANNELS_LAST;
}

static void lay_flat(struct byte_product *p, int64_t rows)
{
        p->flat = true;
        p->batch = p->width = p->out_width = p->frame_pixels = 1;
        p->height = p->out_height = rows;
        for (uint32_t i = 0; i < AXES; i++)
                p->pixel_step[i] = p->row_step[i] = p->reach[i] = 1;
}

/* Of a window of one pixel the frame has no others than it sees. */
static bool lay_image(const struct sl_node_desc *node, struct byte_product *p)
{
        const int64_t *x = node->inputs[0].shape.dims, *y = node->outputs[0].shape.dims;
        bool pointwise = true;
        struct sl_window w;

        if (sl_window_read(node, &w, NULL))
                return false;
        for (uint32_t i = 0; i < AXES; i++) {
                pointwise = pointwise && w.kernel[i] == 1 && w.stride[i] == 1 && !w.pad_begin[i] && !w.pad_end[i];
                p->pad[i] = w.pad_begin[i];
                p->pixel_step[i] = w.kernel[i] == 1 ? w.stride[i] : 1;
                p->row_step[i] = w.kernel[i] == 1 ? 1 : w.stride[i];
                p->reach[i] = (w.kernel[i] - 1) * w.dilation[i] + 1;
        }
        p->batch = x[0];
        p->channels = x[1];
        p->height = x[2];
        p->width = x[3];
        p->out_height = y[2];
        p->out_width = y[3];
        if (pointwise)
                lay_flat(p, x[0] * x[2] * x[3]);
        p->frame_pixels = (p->out_width - 1) * p->row_step[1] + p->reach[1];
        if ((double)p->frame_pixels * (double)p->channels * (double)p->reach[0] > FRAME_ELEMENTS_MAX)
                return false;
        p->weights.depth.tap_stride = w.dilation[1] * p->channels;
        p->weights.depth.scanline_stride = w.dilation[0] * p->frame_pixels * p->channels;
        return true;
}

static int64_t frame_scanlines(const struct byte_product *p, int64_t scanlines)
{
        return (scanlines - 1) * p->row_step[0] + p->reach[0];
}

/* As many scanlines as leave half of the cache to the weights and the sums, in blocks of one size. */
static void choose_scanlines(struct byte_product *p)
{
        int64_t scanline = p->frame_pixels * p->channels, room = sl_cpu_l2_bytes() / 2 / (int64_t)sizeof(int16_t) / scanline;
        int64_t scanlines = room > p->reach[0] ? (room - p->reach[0]) / p->row_step[0] + 1 : 1;

        scanlines = scanlines < p->out_height ? divide_up(p->out_height, divide_up(p->out_height, scanlines)) : p->out_height;
        if (p->flat && scanlines < p->out_height)
                scanlines = divide_up(scanlines, BLOCK_ROWS) * BLOCK_ROWS;
        p->block_scanlines = scanlines < p->out_height ? scanlines : p->out_height;
}

/* What a sum can be at most stays within 32 bits; a bias may have the rest. */
static bool limit_sums(struct byte_product *p)
{
        const struct sl_byte_depth *d = &p->weights.depth;
        double least = p->x_dtype == SL_DTYPE_I8 ? INT8_MIN : 0, low = p->x_zero - least, high = least + UINT8_MAX - p->x_zero;
        double most = (double)d->scanlines * (double)d->taps * (double)d->piece * -INT8_MIN * (low > high ? low : high);

        p->epilogue.bias_limit = most < INT32_MAX ? INT32_MAX - (int32_t)most : 0;
        return most < INT32_MAX;
}

static bool product_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        struct byte_product *p = state;

        if (sl_cpu_multiplies_bytes() || !is_plain_node(node) || !sl_byte_epilogue_plan(node, &p->epilogue))
                return false;
        read_weights(node, &p->weights);
        p->x_dtype = node->inputs[0].dtype;
        p->x_zero = (int32_t)sl_attrs_int(&node->attrs, SL_ATTR_X_ZERO, 0);
        p->residual = node->epilogue.has_residual ? node->n_inputs - 1 : 0;
        if (node->op == SL_OP_QUANTIZED_MATMUL) {
                p->channels = p->weights.channels;
                lay_flat(p, (int64_t)sl_shape_elements(&node->inputs[0].shape) / p->channels);
        } else if (!lay_image(node, p)) {
                return false;
        }
        if (!limit_sums(p))
                return false;
        choose_scanlines(p);
        p->sums_offset = sl_align_up(
                (size_t)(frame_scanlines(p, p->block_scanlines) * p->frame_pixels * p->channels + SL_BYTE_SLACK) * sizeof(int16_t),
                SL_LINE_BYTES);
        p->panel_offset = p->sums_offset + BLOCK_ROWS * SUMS_STRIDE * sizeof(int32_t);
        sizes->scratch_bytes = p->panel_offset + (size_t)sl_byte_panel_bytes(&p->weights.depth);
        return true;
}

/* One scanline of the frame; NULL: outside of the image. */
static void make_scanline(const struct byte_product *p, const uint8_t *scanline, int16_t *to)
{
        int64_t step = p->pixel_step[1], c = p->channels, first = divide_up(p->pad[1], step);
        int64_t end = divide_up(p->width + p->pad[1], step);

        end = scanline && end < p->frame_pixels ? end : scanline ? p->frame_pixels : 0;
        first = first < end ? first : end;
        memset(to, 0, (size_t)(first * c) * sizeof(*to));
        if (step == 1 && first < end)
                sl_byte_widen((end - first) * c, to + first * c, scanline + (first - p->pad[1]) * c, p->x_dtype, p->x_zero);
        for (int64_t i = first; i < end && step > 1; i++)
                sl_byte_widen(c, to + i * c, scanline + (i * step - p->pad[1]) * c, p->x_dtype, p->x_zero);
        memset(to + end * c, 0, (size_t)((p->frame_pixels - end) * c) * sizeof(*to));
}

/* What the windows of @scanlines scanlines of the output from @first on see of an image. */
static void make_frame(const struct byte_product *p, const uint8_t *image, int64_t first, int64_t scanlines, int16_t *frame)
{
        int64_t all = frame_scanlines(p, scanlines), pixels = p->width * p->channels;

        if (p->flat) {
                sl_byte_widen(all * p->channels, frame, image + first * p->channels, p->x_dtype, p->x_zero);
                return;
        }
        for (int64_t i = 0; i < all; i++, frame += p->frame_pixels * p->channels) {
                int64_t y = (first * p->row_step[0] + i) * p->pixel_step[0] - p->pad[0];

                make_scanline(p, y >= 0 && y < p->height ? image + y * pixels : NULL, frame);
        }
}

static const int8_t *panel_of(const struct byte_product *p, const struct sl_binding *binding, int64_t panel)
{
        int8_t *room = (int8_t *)binding->scratch + p->panel_offset;

        if (p->packed)
                return (const int8_t *)binding->inputs[1] + panel * sl_byte_panel_bytes(&p->weights.depth);
        pack_panel(&p->weights, binding->inputs[1], panel, room);
        return room;
}

static int64_t column_of(const struct weights *w, int64_t panel)
{
        return panel / w->panels * w->filters + panel % w->panels * SL_BYTE_PANEL;
}

/* Where a group's channels begin in a pixel; those of single channels are their columns'. */
static int64_t channel_of(const struct weights *w, int64_t panel)
{
        return w->depth.channels ? panel * SL_BYTE_PANEL : panel / w->panels * w->channels;
}

/* Panels are written in order: what one has too many columns, the next one or nobody puts right. */
static void run_panels(const struct byte_product *p, const struct sl_binding *binding, const int16_t *const *rows, int64_t first,
        int64_t end, struct sl_byte_sums *block)
{
        const struct weights *w = &p->weights;

        for (int64_t panel = first; panel < end; panel++) {
                const int8_t *packed = panel_of(p, binding, panel);

                for (int64_t row = 0; row < block->rows; row += SL_BYTE_ROWS)
                        sl_byte_tile(&w->depth, rows + row, block->rows - row < SL_BYTE_ROWS ? block->rows - row : SL_BYTE_ROWS,
                                channel_of(w, panel), packed,
                                block->sums + row * SUMS_STRIDE + column_of(w, panel) - column_of(w, first), SUMS_STRIDE);
        }
        block->column = column_of(w, first);
        block->columns = (end < w->groups * w->panels ? column_of(w, end) : w->groups * w->filters) - block->column;
        sl_byte_epilogue(&p->epilogue, block, binding->inputs[2], p->epilogue.has_bias ? binding->inputs[3] : NULL,
                p->residual ? binding->inputs[p->residual] : NULL, binding->outputs[0]);
}

/* Rows @first on of a frame, which are those from @row on of the output. */
static void run_rows(const struct byte_product *p, const struct sl_binding *binding, int64_t first, int64_t n, int64_t row)
{
        const int16_t *frame = binding->scratch, *rows[BLOCK_ROWS];
        int64_t panels = p->weights.groups * p->weights.panels;
        struct sl_byte_sums block = {.sums = (int32_t *)((char *)binding->scratch + p->sums_offset),
                .sums_stride = SUMS_STRIDE,
                .rows = n,
                .row = row,
                .channels = p->weights.groups * p->weights.filters};

        for (int64_t i = 0; i < n; i++) {
                int64_t y = (first + i) / p->out_width * p->row_step[0], x = (first + i) % p->out_width * p->row_step[1];

                rows[i] = frame + (y * p->frame_pixels + x) * p->channels;
        }
        for (int64_t panel = 0; panel < panels; panel += BLOCK_PANELS)
                run_panels(p, binding, rows, panel, panels - panel < BLOCK_PANELS ? panels : panel + BLOCK_PANELS, &block);
}

static int product_run(const void *state, const struct sl_binding *binding)
{
        const struct byte_product *p = state;
        int64_t image_bytes = p->height * p->width * p->channels;

        for (int64_t image = 0; image < p->batch; image++)
                for (int64_t first = 0; first < p->out_height; first += p->block_scanlines) {
                        int64_t scanlines = p->out_height - first < p->block_scanlines ? p->out_height - first : p->block_scanlines;
                        int64_t rows = scanlines * p->out_width, row = (image * p->out_height + first) * p->out_width;

                        make_frame(
                                p, (const uint8_t *)binding->inputs[0] + image * image_bytes, first, scanlines, binding->scratch);
                        for (int64_t i = 0; i < rows; i += BLOCK_ROWS)
                                run_rows(p, binding, i, rows - i < BLOCK_ROWS ? rows - i : BLOCK_ROWS, row + i);
                }
        return 0;
}

static bool product_form(const struct sl_node_desc *node, uint32_t index, struct sl_packed *ret_packed)
{
        struct weights w;

        if (index != 1)
                return false;
        read_weights(node, &w);
        sl_cpu_form(ret_packed, w.depth.channels ? "byte channels" : "byte panels",
                (int64_t[]){w.groups, w.filters, w.depth.scanlines * w.depth.taps, w.depth.piece},
                divide_up(w.groups * w.panels * sl_byte_panel_bytes(&w.depth), sizeof(float)));
        return true;
}

static int product_repack(const struct sl_node_desc *node, uint32_t index, const void *plain, void *ret_data)
{
        struct weights w;

        (void)index;
        read_weights(node, &w);
        for (int64_t panel = 0; panel < w.groups * w.panels; panel++)
                pack_panel(&w, plain, panel, (int8_t *)ret_data + panel * sl_byte_panel_bytes(&w.depth));
        return 0;
}

static void product_weights(void *state, const struct sl_packed *packed)
{
        ((struct byte_product *)state)->packed = packed && packed[1].data_bytes;
}

/* There is no other kernel to compare it with. */
static double product_seconds(const struct sl_core_figures *core, const void *state)
{
        const struct byte_product *p = state;
        double rows = (double)p->batch * (double)p->out_height * (double)p->out_width;

        return rows * 2.0 * (double)(p->weights.groups * p->weights.panels) * (double)sl_byte_panel_bytes(&p->weights.depth) /
               core->flops;
}

const struct sl_cpu_loop sl_cpu_byte_product = {.state_bytes = sizeof(struct byte_product),
        .plan = product_plan,
        .run = product_run,
        .form = product_form,
        .repack = product_repack,
        .weights = product_weights,
        .seconds = product_seconds,
        .fuses_epilogue = true};
