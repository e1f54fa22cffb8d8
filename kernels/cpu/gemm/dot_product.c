/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products and convolutions of bytes with VNNI. Each is a convolution: a product of matrices is one over an image of width 1. Rows
 * are read where they lie in the input; with zeros around it, or int8, or pieces that are no whole fours, a block of scanlines is
 * copied into a frame in scratch first, where what is padded holds the zero point. All rows of a block pass by one panel after the
 * other (dot_tile.h), and leave the registers as what is stored; a function that is more than a limit goes over real numbers in the
 * L1 cache, and numbers that 32 bits might not hold over sums there (byte_epilogue.h). A sum is exact, so a sample has the same
 * bits in any batch and part.
 *
 * The zero point of the source is taken off with the sums of the weights, which stand in the panels; int8 is read as uint8 with a
 * zero point that is 128 higher.
 */
#include "base/bytes.h"
#include "cpu/base/isa.h"
#include "cpu/gemm/byte_epilogue.h"
#include "cpu/gemm/dot_tile.h"
#include "cpu/gemm/epilogue.h"
#include "cpu/gemm/loops.h"
#include "shape/window.h"

#include <math.h>
#include <string.h>

#define AXES             2
#define GROUP_MIN        16 /* filters of a group: fewer would leave most of a panel empty */
#define BLOCK_ROWS_MAX   8192
#define FRAME_BYTES_MAX  0x1p30
#define FACTOR_MAX       0.5f    /* of a step of the result: what a sum is in steps stays within 32 bits */
#define ADDEND_SCALE_MAX 0x1p20f /* as well */

/* What the packed form depends on, never on the batch. */
struct weights {
        int64_t groups, filters, channels; /* of a group */
        int64_t kernel[AXES];
        int64_t filter_stride, channel_stride, tap_strides[AXES]; /* of plain ones, in elements */
        int64_t panels;                                           /* of a group */
        int64_t piece;                                            /* bytes that follow each other */
        struct sl_dot_depth depth;                                /* but for the strides */
};

struct dot_product {
        struct weights weights;
        struct sl_byte_epilogue epilogue;
        struct sl_dot_result result;
        struct sl_cpu_epilogue function;        /* over real numbers, which become what is stored after it; activation 0: none */
        int64_t batch, height, width, channels; /* of the input, all groups */
        int64_t out_height, out_width;
        int64_t pad[AXES], stride[AXES], reach[AXES]; /* reach: pixels that a window covers */
        int64_t pixels;                               /* of a scanline as rows see it */
        int64_t block_lines;                          /* scanlines of the output, of all images, at a time */
        size_t rows_offset, sums_offset;              /* of scratch */
        uint32_t residual;                            /* node input; 0: none */
        int32_t zero;                                 /* of the bytes as they are read */
        uint8_t flip;                                 /* 0x80: int8 is turned on the way into the frame */
        bool framed;
};

static int64_t divide_up(int64_t a, int64_t b)
{
        return (a + b - 1) / b;
}

static void lay_depth(struct weights *w, bool joins)
{
        w->piece = joins ? w->kernel[1] * w->channels : w->channels;
        w->depth =
                (struct sl_dot_depth){.scanlines = w->kernel[0], .taps = joins ? 1 : w->kernel[1], .steps = divide_up(w->piece, 4)};
        w->panels = divide_up(w->filters, SL_DOT_PANEL);
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

/* Column @column of a panel that begins with filter @first of all; what the panel has too many are zeros. */
static void pack_column(const struct weights *w, const int8_t *plain, int64_t first, int64_t column, int8_t *panel)
{
        const int8_t *from = plain + (first + column) * w->filter_stride;
        bool inside = column < w->filters - first % w->filters;
        int8_t *to = panel + SL_DOT_PANEL * (int64_t)sizeof(int32_t) + column * 4;
        int32_t sum = 0;

        for (int64_t scanline = 0; scanline < w->depth.scanlines; scanline++)
                for (int64_t tap = 0; tap < w->depth.taps; tap++)
                        for (int64_t k = 0; k < 4 * w->depth.steps; k++) {
                                int64_t at = scanline * w->tap_strides[0] + (tap + k / w->channels) * w->tap_strides[1] +
                                             k % w->channels * w->channel_stride;

                                to[k % 4] = inside && k < w->piece ? from[at] : 0;
                                sum += to[k % 4];
                                to += k % 4 == 3 ? 4 * SL_DOT_PANEL : 0;
                        }
        memcpy(panel + column * (int64_t)sizeof(sum), &sum, sizeof(sum));
}

static bool is_plain_node(const struct sl_node_desc *node)
{
        const struct sl_tensor *x = &node->inputs[0], *w = sl_cpu_input(node, 1), *y = &node->outputs[0];

        if (!sl_cpu_is_byte(x) || !w || w->layout != SL_LAYOUT_PLAIN || sl_cpu_is_empty(x) || sl_cpu_is_empty(w) ||
                sl_cpu_is_empty(y))
                return false;
        if (node->op == SL_OP_QUANTIZED_MATMUL)
                return x->layout == SL_LAYOUT_PLAIN && y->layout == SL_LAYOUT_PLAIN;
        return x->shape.rank == 4 && x->layout == SL_LAYOUT_CHANNELS_LAST && y->layout == SL_LAYOUT_CHANNELS_LAST;
}

static void lay_rows(struct dot_product *p, int64_t rows)
{
        p->batch = p->width = p->out_width = 1;
        p->height = p->out_height = rows;
        for (uint32_t i = 0; i < AXES; i++)
                p->stride[i] = p->reach[i] = 1;
}

static bool lay_image(const struct sl_node_desc *node, struct dot_product *p)
{
        const int64_t *x = node->inputs[0].shape.dims, *y = node->outputs[0].shape.dims;
        bool pointwise = true;
        struct sl_window w;

        if (sl_window_read(node, &w, NULL))
                return false;
        for (uint32_t i = 0; i < AXES; i++) {
                pointwise = pointwise && w.kernel[i] == 1 && w.stride[i] == 1 && !w.pad_begin[i] && !w.pad_end[i];
                p->framed |= w.pad_begin[i] || w.pad_end[i];
                p->pad[i] = w.pad_begin[i];
                p->stride[i] = w.stride[i];
                p->reach[i] = (w.kernel[i] - 1) * w.dilation[i] + 1;
        }
        p->batch = x[0];
        p->channels = x[1];
        p->height = x[2];
        p->width = x[3];
        p->out_height = y[2];
        p->out_width = y[3];
        if (pointwise)
                lay_rows(p, x[0] * x[2] * x[3]);
        p->weights.depth.tap_stride = w.dilation[1] * p->channels;
        p->weights.depth.scanline_stride = w.dilation[0]; /* of scanlines: how long one is comes later */
        return true;
}

/* Bytes of a frame for so many scanlines of the output, wherever images begin among them. */
static double frame_bytes(const struct dot_product *p, int64_t lines)
{
        double images = (double)(lines / p->out_height + 2);
        double scanlines = (double)lines * (double)p->stride[0] + images * (double)p->reach[0];

        return scanlines * (double)p->pixels * (double)p->channels;
}

/* As many scanlines as leave half of the cache to the weights and the results, in blocks of one size. */
static bool choose_block(struct dot_product *p)
{
        int64_t all = p->batch * p->out_height;
        int64_t results = p->out_width * p->weights.groups * p->weights.filters * (p->residual ? 2 : 1);
        int64_t line = p->stride[0] * p->pixels * p->channels + results;
        int64_t lines = sl_cpu_l2_bytes() / 2 / line, most = BLOCK_ROWS_MAX / p->out_width;

        lines = lines < most ? lines : most;
        lines = lines > SL_DOT_ROWS ? lines / SL_DOT_ROWS * SL_DOT_ROWS : lines > 1 ? lines : 1;
        p->block_lines = divide_up(all, divide_up(all, lines));
        if (p->out_width == 1)
                p->block_lines = divide_up(p->block_lines, SL_DOT_ROWS) * SL_DOT_ROWS;
        p->block_lines = p->block_lines < all ? p->block_lines : all;
        return p->out_width <= BLOCK_ROWS_MAX && frame_bytes(p, p->block_lines) < FRAME_BYTES_MAX;
}

static bool choose_frame(struct dot_product *p)
{
        p->framed |= p->flip || p->weights.piece % 4;
        p->pixels = p->framed ? (p->out_width - 1) * p->stride[1] + p->reach[1] : p->width;
        p->weights.depth.scanline_stride *= p->pixels * p->channels;
        return choose_block(p);
}

/* What a sum can be at most stays within 32 bits; a bias may have the rest. */
static bool limit_sums(struct dot_product *p)
{
        const struct weights *w = &p->weights;
        double products = (double)w->depth.scanlines * (double)w->depth.taps * (double)w->piece;
        double most = products * -INT8_MIN * (p->zero > UINT8_MAX - p->zero ? p->zero : UINT8_MAX - p->zero);

        p->epilogue.bias_limit = most < INT32_MAX ? INT32_MAX - (int32_t)most : 0;
        return most < INT32_MAX;
}

static uint8_t sign_of(uint32_t dtype)
{
        return dtype == SL_DTYPE_I8 ? 0x80 : 0;
}

static void choose_result(struct dot_product *p)
{
        const struct sl_byte_epilogue *e = &p->epilogue;
        bool bytes = e->y_dtype != SL_DTYPE_F32, adds_bytes = e->addend_dtype == SL_DTYPE_U8 || e->addend_dtype == SL_DTYPE_I8;
        uint8_t sign = sign_of(e->y_dtype), addend_sign = adds_bytes ? sign_of(e->addend_dtype) : 0;

        p->result =
                (struct sl_dot_result){.has_addend = e->addend_dtype != SL_DTYPE_NONE, .sign = sign, .addend_sign = addend_sign};
        if (p->result.has_addend && (bytes != adds_bytes || (bytes && e->activation)))
                return;
        p->result.kind = bytes && !e->activation ? SL_DOT_BYTES : SL_DOT_REALS;
        p->result.least = bytes ? -INFINITY : e->low;
        p->result.most = bytes ? INFINITY : e->high;
        p->function = (struct sl_cpu_epilogue){.activation = e->activation, .act_a = e->act_a};
        if (!bytes)
                return;
        p->result.zero = (int16_t)(e->y_zero + (float)sign);
        p->result.low = (uint8_t)(e->low + (float)sign);
        p->result.high = (uint8_t)(e->high + (float)sign);
        p->result.addend_scale = e->addend_scale * e->y_factor;
        p->result.addend_constant = -(e->addend_zero + (float)addend_sign) * p->result.addend_scale;
        if (p->result.has_addend && !(p->result.addend_scale < ADDEND_SCALE_MAX))
                p->result.kind = SL_DOT_SUMS;
}

static bool dot_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        struct dot_product *p = state;

        if (!sl_cpu_has_vnni() || !is_plain_node(node) || !sl_byte_epilogue_plan(node, &p->epilogue))
                return false;
        read_weights(node, &p->weights);
        if (p->weights.groups > 1 && p->weights.filters < GROUP_MIN)
                return false;
        p->flip = sign_of(node->inputs[0].dtype);
        p->zero = (int32_t)sl_attrs_int(&node->attrs, SL_ATTR_X_ZERO, 0) + p->flip;
        p->residual = node->epilogue.has_residual ? node->n_inputs - 1 : 0;
        if (node->op == SL_OP_QUANTIZED_MATMUL) {
                p->channels = p->weights.channels;
                lay_rows(p, (int64_t)sl_shape_elements(&node->inputs[0].shape) / p->channels);
        } else if (!lay_image(node, p)) {
                return false;
        }
        if (!limit_sums(p) || !choose_frame(p))
                return false;
        choose_result(p);
        p->rows_offset = sl_align_up((size_t)(p->framed ? frame_bytes(p, p->block_lines) : 0) + SL_DOT_SLACK, SL_LINE_BYTES);
        p->sums_offset =
                sl_align_up(p->rows_offset + (size_t)(p->block_lines * p->out_width) * sizeof(const uint8_t *), SL_LINE_BYTES);
        sizes->scratch_bytes = p->sums_offset + SL_DOT_ROWS * SL_DOT_PANEL * sizeof(int32_t);
        return true;
}

static void copy_bytes(const struct dot_product *p, uint8_t *to, const uint8_t *from, int64_t n)
{
        if (!p->flip)
                memcpy(to, from, (size_t)n);
        for (int64_t i = 0; p->flip && i < n; i++)
                to[i] = from[i] ^ 0x80;
}

/* One scanline of the frame; NULL: outside of the image. What a window sees there stands for 0. */
static void make_scanline(const struct dot_product *p, const uint8_t *scanline, uint8_t *to)
{
        int64_t c = p->channels, first = p->pad[1] < p->pixels ? p->pad[1] : p->pixels, end = first + p->width;

        end = end < p->pixels ? end : p->pixels;
        if (!scanline)
                first = end = p->pixels;
        memset(to, p->zero, (size_t)(first * c));
        if (scanline)
                copy_bytes(p, to + first * c, scanline, (end - first) * c);
        memset(to + end * c, p->zero, (size_t)((p->pixels - end) * c));
}

/* What the windows of scanlines @first to @end of an image's output see of it; where the next may follow. */
static uint8_t *make_frame(const struct dot_product *p, const uint8_t *image, int64_t first, int64_t end, uint8_t *frame)
{
        int64_t n = (end - first - 1) * p->stride[0] + p->reach[0], bytes = p->pixels * p->channels;

        for (int64_t i = 0; i < n; i++, frame += bytes) {
                int64_t y = first * p->stride[0] + i - p->pad[0];

                make_scanline(p, y >= 0 && y < p->height ? image + y * p->width * p->channels : NULL, frame);
        }
        return frame;
}

/* Where the rows of scanlines @first to @end of the output, of all images, begin. */
static void find_rows(
        const struct dot_product *p, const struct sl_binding *binding, int64_t first, int64_t end, const uint8_t **ret_rows)
{
        const uint8_t *x = binding->inputs[0];
        uint8_t *frame = binding->scratch;

        for (int64_t line = first; line < end;) {
                int64_t y = line % p->out_height, last = y + end - line < p->out_height ? y + end - line : p->out_height;
                const uint8_t *image = x + line / p->out_height * p->height * p->width * p->channels;
                const uint8_t *from = p->framed ? frame : image + y * p->stride[0] * p->width * p->channels;

                if (p->framed)
                        frame = make_frame(p, image, y, last, frame);
                line += last - y;
                for (; y < last; y++, from += p->stride[0] * p->pixels * p->channels)
                        for (int64_t i = 0; i < p->out_width; i++)
                                *ret_rows++ = from + i * p->stride[1] * p->channels;
        }
}

/* A panel with its columns, and how far along in a row of the result they are. */
struct panel {
        struct sl_dot_columns columns;
        struct sl_dot_result result;
        const int8_t *weights;
        int64_t column, n_columns, offset;
};

/* False: a number that the registers' way might not hold. */
static bool fill_columns(const struct dot_product *p, const struct sl_binding *binding, struct panel *panel)
{
        const float *scales = binding->inputs[2];
        const int32_t *bias = p->epilogue.has_bias ? binding->inputs[3] : NULL;
        float unit = p->result.kind == SL_DOT_BYTES ? p->epilogue.y_factor : 1.0f;
        bool fits = true;

        for (int64_t i = 0; i < panel->n_columns; i++) {
                int32_t own = bias ? bias[panel->column + i] : 0, sum;
                float factor = scales[p->epilogue.has_scales ? panel->column + i : 0] * unit;

                memcpy(&sum, panel->weights + i * (int64_t)sizeof(sum), sizeof(sum));
                fits = fits && own <= p->epilogue.bias_limit && own >= -p->epilogue.bias_limit &&
                       (p->result.kind == SL_DOT_REALS || fabsf(factor) <= FACTOR_MAX);
                panel->columns.starts[i] = (int32_t)((uint32_t)own - (uint32_t)(sum * p->zero));
                panel->columns.factors[i] = factor;
        }
        return fits;
}

/* The bias comes with the epilogue then. */
static void start_without_bias(const struct dot_product *p, struct panel *panel)
{
        for (int64_t i = 0; i < panel->n_columns; i++) {
                int32_t sum;

                memcpy(&sum, panel->weights + i * (int64_t)sizeof(sum), sizeof(sum));
                panel->columns.starts[i] = -sum * p->zero;
        }
        panel->result.kind = SL_DOT_SUMS;
}

static void take_panel(const struct dot_product *p, const struct sl_binding *binding, int64_t index, struct panel *panel)
{
        const struct weights *w = &p->weights;
        int64_t first = index % w->panels * SL_DOT_PANEL;

        memset(&panel->columns, 0, sizeof(panel->columns));
        panel->weights = (const int8_t *)binding->inputs[1] + index * sl_dot_panel_bytes(&w->depth);
        panel->column = index / w->panels * w->filters + first;
        panel->n_columns = w->filters - first < SL_DOT_PANEL ? w->filters - first : SL_DOT_PANEL;
        panel->offset = index / w->panels * w->channels;
        panel->result = p->result;
        if (!fill_columns(p, binding, panel) || p->result.kind == SL_DOT_SUMS)
                start_without_bias(p, panel);
}

/* Where element @at of a tensor lies. */
static void *element(const void *tensor, uint32_t dtype, int64_t at)
{
        return tensor ? (char *)(uintptr_t)tensor + at * (dtype == SL_DTYPE_F32 ? (int64_t)sizeof(float) : 1) : NULL;
}

/* Rows of a block: where they begin, how many there are, which the first one is of the result. */
struct rows {
        const uint8_t *const *begins;
        int64_t n, n_next, row;
};

/* What the registers left in scratch becomes what is stored. */
static void finish_tile(const struct dot_product *p, const struct panel *panel, const struct rows *rows, void *room, void *y)
{
        int64_t stride = p->weights.groups * p->weights.filters;

        if (p->epilogue.y_dtype == SL_DTYPE_F32) {
                sl_cpu_epilogue_activate(&p->function, y, stride, rows->n, panel->n_columns);
                return;
        }
        sl_cpu_epilogue_activate(&p->function, room, SL_DOT_PANEL, rows->n, panel->n_columns);
        sl_dot_round(&p->result, p->epilogue.y_factor, room, rows->n, panel->n_columns, y, stride);
}

static void run_tile(
        const struct dot_product *p, const struct sl_binding *binding, const struct panel *panel, const struct rows *rows)
{
        const struct sl_byte_epilogue *e = &p->epilogue;
        int64_t channels = p->weights.groups * p->weights.filters, at = rows->row * channels + panel->column;
        const void *addend = p->residual ? binding->inputs[p->residual] : NULL;
        void *room = (char *)binding->scratch + p->sums_offset, *y = element(binding->outputs[0], e->y_dtype, at);
        bool sums = panel->result.kind == SL_DOT_SUMS;
        bool passes = sums || (p->function.activation && e->y_dtype != SL_DTYPE_F32);
        struct sl_byte_sums block = {room, SL_DOT_PANEL, rows->n, panel->n_columns, rows->row, panel->column, channels};
        struct sl_dot_tile tile = {.rows = rows->begins,
                .n_rows = rows->n,
                .n_next = rows->n_next,
                .offset = panel->offset,
                .panel = panel->weights,
                .columns = &panel->columns,
                .n_columns = panel->n_columns,
                .y = passes ? room : y,
                .addend = element(addend, e->addend_dtype, at),
                .y_stride = passes ? SL_DOT_PANEL : channels};

        sl_dot_tile(&p->weights.depth, &panel->result, &tile);
        if (sums)
                sl_byte_epilogue(
                        e, &block, binding->inputs[2], e->has_bias ? binding->inputs[3] : NULL, addend, binding->outputs[0]);
        else if (p->function.activation)
                finish_tile(p, panel, rows, room, y);
}

/* All rows of a block, the first of which is @row of the result, by one panel. */
static void run_panel(
        const struct dot_product *p, const struct sl_binding *binding, const struct panel *panel, int64_t n, int64_t row)
{
        const uint8_t *const *begins = (const uint8_t *const *)((char *)binding->scratch + p->rows_offset);

        for (int64_t i = 0; i < n; i += SL_DOT_ROWS) {
                int64_t own = n - i < SL_DOT_ROWS ? n - i : SL_DOT_ROWS;

                run_tile(p, binding, panel, &(struct rows){begins + i, own, n - i - own, row + i});
        }
}

static int dot_run(const void *state, const struct sl_binding *binding)
{
        const struct dot_product *p = state;
        struct sl_part lines = sl_part_along(binding->part, SL_AXIS_ROWS, p->batch * p->out_height);
        struct sl_part panels = sl_part_along(binding->part, SL_AXIS_COLUMNS, p->weights.groups * p->weights.panels);
        const uint8_t **begins = (const uint8_t **)((char *)binding->scratch + p->rows_offset);
        struct panel panel;

        for (int64_t first = lines.first; first < lines.end; first += p->block_lines) {
                int64_t end = lines.end - first < p->block_lines ? lines.end : first + p->block_lines;
                int64_t n = (end - first) * p->out_width;

                find_rows(p, binding, first, end, begins);
                for (int64_t i = panels.first; i < panels.end; i++) {
                        take_panel(p, binding, i, &panel);
                        run_panel(p, binding, &panel, n, first * p->out_width);
                }
        }
        return 0;
}

static int64_t dot_units(const void *state, uint32_t axis)
{
        const struct dot_product *p = state;

        return axis == SL_AXIS_ROWS ? p->batch * p->out_height : p->weights.groups * p->weights.panels;
}

static bool dot_form(const struct sl_node_desc *node, uint32_t index, struct sl_packed *ret_packed)
{
        struct weights w;

        if (index != 1)
                return false;
        read_weights(node, &w);
        sl_cpu_form(ret_packed, "dot panels", (int64_t[]){w.groups, w.filters, w.depth.scanlines * w.depth.taps, w.piece},
                w.groups * w.panels * sl_dot_panel_bytes(&w.depth) / (int64_t)sizeof(float));
        return true;
}

static int dot_repack(const struct sl_node_desc *node, uint32_t index, const void *plain, void *ret_data)
{
        struct weights w;

        (void)index;
        read_weights(node, &w);
        for (int64_t panel = 0; panel < w.groups * w.panels; panel++)
                for (int64_t column = 0; column < SL_DOT_PANEL; column++)
                        pack_column(&w, plain, panel / w.panels * w.filters + panel % w.panels * SL_DOT_PANEL, column,
                                (int8_t *)ret_data + panel * sl_dot_panel_bytes(&w.depth));
        return 0;
}

/* Of the weights' time what the products do not hide. */
static double dot_seconds(const struct sl_core_figures *core, const void *state)
{
        const struct dot_product *p = state;
        double panels = (double)(p->weights.groups * p->weights.panels),
               bytes = panels * (double)sl_dot_panel_bytes(&p->weights.depth);
        double rows = (double)p->batch * (double)p->out_height * (double)p->out_width;
        double products = 2 * bytes * rows / core->bytes, weights = bytes / core->weights;

        return (products > weights ? products : weights) + rows * panels * SL_DOT_PANEL * core->store * 0.1 / core->flops;
}

static void dot_narrow(void *state, const struct sl_part *part)
{
        struct dot_product *p = state;

        if (part->axis == SL_AXIS_COLUMNS) {
                p->weights.groups = 1;
                p->weights.panels = part->end - part->first;
                return;
        }
        p->batch = 1;
        p->out_height = part->end - part->first;
}

static bool is_of_rows(const struct dot_product *p)
{
        return p->width == 1 && p->reach[0] == 1 && p->stride[0] == 1 && p->height == p->out_height;
}

/* Windows of neighbouring rows lie over each other, but for those of one pixel. */
static bool dot_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct dot_product *p = state;
        uint32_t dtype = operand == SL_REACH_OUTPUT ? p->epilogue.y_dtype : p->epilogue.addend_dtype;
        int64_t element = dtype == SL_DTYPE_F32 ? sizeof(float) : 1, row = p->weights.groups * p->weights.filters * element;
        bool is_result = operand == SL_REACH_OUTPUT || (p->residual && operand == p->residual);

        if (is_result && part->axis == SL_AXIS_COLUMNS)
                return p->weights.groups == 1 &&
                       sl_reach_columns(part, SL_DOT_PANEL * element, row, p->batch * p->out_height * p->out_width, ret_reach);
        if (is_result)
                return sl_reach_rows(part, row * p->out_width, ret_reach);
        return operand == 0 && part->axis == SL_AXIS_ROWS && is_of_rows(p) && sl_reach_rows(part, p->channels, ret_reach);
}

const struct sl_cpu_loop sl_cpu_dot_product = {.state_bytes = sizeof(struct dot_product),
        .plan = dot_plan,
        .run = dot_run,
        .units = dot_units,
        .reach = dot_reach,
        .form = dot_form,
        .repack = dot_repack,
        .seconds = dot_seconds,
        .narrow = dot_narrow,
        .fuses_epilogue = true};
