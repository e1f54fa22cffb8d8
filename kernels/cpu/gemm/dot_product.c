/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products and convolutions of bytes with VNNI, or AMX where the core has it and its figures say that it is faster. Each is a
 * convolution: a product of matrices is one over an image of width 1. Rows are read where they lie in the input; with zeros around
 * it, or int8, or pieces that are no whole fours, a block of scanlines is copied into a frame in scratch first, where what is
 * padded holds the zero point. All rows of a block pass by one panel after the other (dot_tile.h, amx_panel.h), and become what is
 * stored; a function that is more than a limit goes over real numbers in the L1 cache, and numbers that 32 bits might not hold over
 * sums there (byte_epilogue.h). A sum is exact, so a sample has the same bits in any batch and part, and by either instruction.
 *
 * The zero point of the source is taken off with the sums of the weights, which stand in the panels; int8 is read as uint8 with a
 * zero point that is 128 higher.
 */
#include "base/bytes.h"
#include "cpu/base/isa.h"
#include "cpu/gemm/amx_panel.h"
#include "cpu/gemm/byte_epilogue.h"
#include "cpu/gemm/dot_panels.h"
#include "cpu/gemm/epilogue.h"
#include "cpu/gemm/loops.h"
#include "shape/window.h"

#include <math.h>
#include <string.h>

#define AXES             2
#define WAITING_ROWS     5  /* fewer rows of two vectors are not enough sums for two units with a latency of five */
#define GROUP_MIN        16 /* filters of a group: fewer would leave most of a panel empty */
#define BLOCK_ROWS_MAX   8192
#define FRAME_BYTES_MAX  0x1p30
#define FACTOR_MAX       0.5f    /* of a step of the result: what a sum is in steps stays within 32 bits */
#define ADDEND_SCALE_MAX 0x1p20f /* as well */

struct dot_product {
        struct sl_dot_weights weights;
        struct sl_byte_epilogue epilogue;
        struct sl_dot_result result;
        struct sl_cpu_epilogue function;        /* over real numbers, which become what is stored after it; activation 0: none */
        int64_t batch, height, width, channels; /* of the input, all groups */
        int64_t out_height, out_width;
        int64_t pad[AXES], stride[AXES], reach[AXES];    /* reach: pixels that a window covers */
        int64_t pixels;                                  /* of a scanline as rows see it */
        int64_t block_lines;                             /* scanlines of the output, of all images, at a time */
        size_t rows_offset, sums_offset;                 /* of scratch */
        size_t tiles_offset, tail_offset, panels_offset; /* by AMX: rows of tiles, a copy of the last ones, panels */
        uint32_t residual;                               /* node input; 0: none */
        int32_t zero;                                    /* of the bytes as they are read */
        uint8_t flip;                                    /* 0x80: int8 is turned on the way into the frame */
        bool framed, amx;
};

/* A panel with its columns, and how far along in a row of the result they are. */
struct panel {
        struct sl_dot_columns columns;
        struct sl_dot_result result;
        const int8_t *weights;
        int64_t column, n_columns, offset;
};

static int64_t divide_up(int64_t a, int64_t b)
{
        return (a + b - 1) / b;
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

static int64_t element_bytes(uint32_t dtype)
{
        return dtype == SL_DTYPE_F32 ? sizeof(float) : 1;
}

/*
 * By tiles, products take less time than what they read and write beyond the L1 cache: as many rows as lie there with their results
 * and addends, a few tiles at least, pass by all weights, if those stay in the L2 cache meanwhile. 0: they do not.
 */
static int64_t near_rows(const struct dot_product *p)
{
        const struct sl_byte_epilogue *e = &p->epilogue;
        int64_t result = element_bytes(e->y_dtype) + (p->residual ? element_bytes(e->addend_dtype) : 0);
        int64_t row = p->channels + p->weights.groups * p->weights.filters * result;
        int64_t rows = sl_cpu_l1_bytes() * 3 / 4 / row / SL_AMX_ROWS * SL_AMX_ROWS;
        bool stay = sl_dot_weights_bytes(&p->weights) <= sl_cpu_l2_bytes() / 4;

        return p->amx && !p->framed && p->out_width == 1 && stay && rows >= 4 * SL_AMX_ROWS ? rows : 0;
}

/* As many scanlines as leave half of the cache to the weights and the results, in blocks of one size. */
static bool choose_block(struct dot_product *p)
{
        int64_t all = p->batch * p->out_height;
        int64_t results = p->out_width * p->weights.groups * p->weights.filters * (p->residual ? 2 : 1);
        int64_t line = p->stride[0] * p->pixels * p->channels + results;
        int64_t lines = sl_cpu_l2_bytes() / 2 / line, most = BLOCK_ROWS_MAX / p->out_width;
        int64_t together = p->amx ? 2 * SL_AMX_ROWS : SL_DOT_ROWS;

        lines = lines < most ? lines : most;
        lines = lines > together ? lines / together * together : lines > 1 ? lines : 1;
        p->block_lines = divide_up(all, divide_up(all, lines));
        if (p->out_width == 1)
                p->block_lines = divide_up(p->block_lines, together) * together;
        if (near_rows(p))
                p->block_lines = near_rows(p);
        p->block_lines = p->block_lines < all ? p->block_lines : all;
        return p->out_width <= BLOCK_ROWS_MAX && frame_bytes(p, p->block_lines) < FRAME_BYTES_MAX;
}

/* What AMX reads behind the last piece of a row, in chunks that are no whole piece. */
static int64_t excess(const struct dot_product *p)
{
        const struct sl_dot_depth *d = &p->weights.depth;

        return p->amx ? 4 * (d->room - d->steps) : 0;
}

/* What follows counts in 64 bits: so far apart no two rows that are read together lie. */
static bool is_near(const struct dot_product *p)
{
        double scanline = (double)p->pixels * (double)p->channels;
        double apart = (double)(p->stride[0] > p->reach[0] ? p->stride[0] : p->reach[0]);

        return scanline * apart < FRAME_BYTES_MAX && (double)p->stride[1] * (double)p->channels < FRAME_BYTES_MAX;
}

/* Rows that are a piece each are copied where they would be read beyond the input (copy_tail()); others are framed then. */
static bool choose_frame(struct dot_product *p)
{
        const struct sl_dot_depth *d = &p->weights.depth;

        p->framed |= p->flip || p->weights.piece % 4 || (excess(p) && (d->scanlines * d->taps > 1 || p->weights.groups > 1));
        p->pixels = p->framed ? (p->out_width - 1) * p->stride[1] + p->reach[1] : p->width;
        if (!is_near(p))
                return false;
        p->weights.depth.scanline_stride *= p->pixels * p->channels;
        return choose_block(p);
}

/* What a sum can be at most stays within 32 bits; a bias may have the rest. */
static bool limit_sums(struct dot_product *p)
{
        const struct sl_dot_weights *w = &p->weights;
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
        p->result.hard_swish = e->activation == SL_ACT_HARD_SWISH && !p->result.has_addend;
        p->result.unit = e->y_factor;
        p->result.kind = bytes && (!e->activation || p->result.hard_swish) ? SL_DOT_BYTES : SL_DOT_REALS;
        p->result.least = bytes ? -INFINITY : e->low;
        p->result.most = bytes ? INFINITY : e->high;
        p->function = (struct sl_cpu_epilogue){.activation = p->result.hard_swish ? SL_ACT_NONE : e->activation, .act_a = e->act_a};
        if (!bytes)
                return;
        p->result.zero = (int16_t)(e->y_zero + (float)sign);
        p->result.low = (uint8_t)(e->low + (float)sign);
        p->result.high = (uint8_t)(e->high + (float)sign);
        p->result.saturates = !p->result.zero && !p->result.low && p->result.high == UINT8_MAX && !sign;
        p->result.addend_scale = e->addend_scale * e->y_factor;
        p->result.addend_constant = -(e->addend_zero + (float)addend_sign) * p->result.addend_scale;
        if (p->result.has_addend && !(p->result.addend_scale < ADDEND_SCALE_MAX))
                p->result.kind = SL_DOT_SUMS;
}

static size_t scratch_after(size_t offset, int64_t bytes)
{
        return sl_align_up(offset + (size_t)bytes, SL_LINE_BYTES);
}

/* Scratch: frame, where rows begin, tiles, the tail, panels, sums. */
static size_t lay_scratch(struct dot_product *p)
{
        int64_t rows = p->block_lines * p->out_width, frame = p->framed ? (int64_t)frame_bytes(p, p->block_lines) : 0;
        int64_t tiles = p->amx ? p->block_lines * sl_amx_tiles(p->out_width) : 0;
        int64_t panels = p->amx ? p->weights.groups * p->weights.panels : 0;
        int64_t tail = excess(p) && !p->framed ? SL_AMX_ROWS * p->stride[1] * p->channels + SL_DOT_SLACK : 0;

        p->rows_offset = scratch_after(0, frame + SL_DOT_SLACK);
        p->tiles_offset = scratch_after(p->rows_offset, rows * (int64_t)sizeof(const uint8_t *));
        p->tail_offset = scratch_after(p->tiles_offset, tiles * (int64_t)sizeof(struct sl_amx_rows));
        p->panels_offset = scratch_after(p->tail_offset, tail);
        p->sums_offset = scratch_after(p->panels_offset, panels * (int64_t)sizeof(struct panel));
        return p->sums_offset + 2 * SL_AMX_ROWS * SL_DOT_PANEL * sizeof(int32_t);
}

static bool prefers_amx(const struct sl_core_figures *core)
{
        core = core ? core : &sl_target_typical.core;
        return sl_cpu_has_amx() && core->tiles >= core->bytes;
}

static bool dot_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        struct dot_product *p = state;

        if (!sl_cpu_has_vnni() || !is_plain_node(node) || !sl_byte_epilogue_plan(node, &p->epilogue))
                return false;
        sl_dot_weights_read(node, &p->weights);
        if (p->weights.groups > 1 && p->weights.filters < GROUP_MIN)
                return false;
        p->amx = prefers_amx(sizes->core);
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
        sizes->scratch_bytes = lay_scratch(p);
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

/* False: a number that the registers' way might not hold. */
static bool fill_columns(const struct dot_product *p, const struct sl_binding *binding, struct panel *panel)
{
        const float *scales = binding->inputs[2];
        const int32_t *bias = p->epilogue.has_bias ? binding->inputs[3] : NULL;
        bool steps = p->result.kind == SL_DOT_BYTES && !p->result.hard_swish;
        float unit = steps ? p->epilogue.y_factor : 1.0f;
        bool fits = true;

        for (int64_t i = 0; i < panel->n_columns; i++) {
                int32_t own = bias ? bias[panel->column + i] : 0, sum;
                float factor = scales[p->epilogue.has_scales ? panel->column + i : 0] * unit;

                memcpy(&sum, panel->weights + i * (int64_t)sizeof(sum), sizeof(sum));
                fits = fits && own <= p->epilogue.bias_limit && own >= -p->epilogue.bias_limit &&
                       (!steps || fabsf(factor) <= FACTOR_MAX);
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
        const struct sl_dot_weights *w = &p->weights;
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
        return tensor ? (char *)(uintptr_t)tensor + at * element_bytes(dtype) : NULL;
}

/* Rows of a block: where they begin, how many there are, which the first one is of the result. */
struct rows {
        const uint8_t *const *begins;
        int64_t n, row;
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

/* The sums of a few rows wait for each other: of @left, a last tile of them shares with the one before. */
static int64_t rows_of_tile(int64_t left)
{
        if (left > SL_DOT_ROWS && left < SL_DOT_ROWS + WAITING_ROWS)
                return 2 * divide_up(left, 4); /* tiles are made for even numbers */
        return left < SL_DOT_ROWS ? left : SL_DOT_ROWS;
}

/* All rows of a block, the first of which is @row of the result, by one panel. */
static void run_panel(
        const struct dot_product *p, const struct sl_binding *binding, const struct panel *panel, int64_t n, int64_t row)
{
        const uint8_t *const *begins = (const uint8_t *const *)((char *)binding->scratch + p->rows_offset);

        for (int64_t i = 0, own; i < n; i += own) {
                own = rows_of_tile(n - i);
                run_tile(p, binding, panel, &(struct rows){begins + i, own, row + i});
        }
}

static bool is_of_rows(const struct dot_product *p)
{
        return p->width == 1 && p->reach[0] == 1 && p->stride[0] == 1 && p->height == p->out_height;
}

/* Tiles of a block: @height rows each, that lie a stride apart. */
struct tiles {
        struct sl_amx_rows *rows;
        int64_t n, height, stride;
        bool first; /* no other block has passed by the weights */
};

/* A row that is read beyond the input's end is its last one: the tile that it is in is read from a copy. */
static void copy_tail(const struct dot_product *p, const struct sl_binding *binding, const struct tiles *tiles)
{
        const uint8_t *end = (const uint8_t *)binding->inputs[0] + p->batch * p->height * p->width * p->channels;
        struct sl_amx_rows *last = &tiles->rows[tiles->n - 1];
        uint8_t *tail = (uint8_t *)binding->scratch + p->tail_offset;

        if (p->framed || last->first + (tiles->height - 1) * tiles->stride + 4 * p->weights.depth.room <= end)
                return;
        for (int64_t i = 0; i < tiles->height; i++)
                memcpy(tail + i * tiles->stride, last->first + i * tiles->stride, (size_t)p->weights.piece);
        last->first = tail;
}

/* The rows of a scanline lie at one distance from each other; where an image is one pixel wide, all of a block. */
static struct tiles find_tiles(const struct dot_product *p, const struct sl_binding *binding, int64_t n, int64_t row)
{
        const uint8_t *const *begins = (const uint8_t *const *)((char *)binding->scratch + p->rows_offset);
        bool all = is_of_rows(p) && p->out_width == 1;
        int64_t run = all ? n : p->out_width, count = sl_amx_tiles(run);
        struct tiles tiles = {.rows = (struct sl_amx_rows *)((char *)binding->scratch + p->tiles_offset),
                .height = sl_amx_height(run),
                .stride = (all ? p->pixels : p->stride[1]) * p->channels};

        for (int64_t first = 0; first < n; first += run)
                for (int64_t i = 0; i < count; i++) {
                        int64_t at = i + 1 < count ? i * tiles.height : run - tiles.height;

                        tiles.rows[tiles.n++] = (struct sl_amx_rows){begins[first + at], row + first + at};
                }
        if (excess(p))
                copy_tail(p, binding, &tiles);
        return tiles;
}

static struct sl_amx_panel describe_panel(
        const struct dot_product *p, const struct sl_binding *binding, const struct panel *panel, const struct tiles *tiles)
{
        const struct sl_byte_epilogue *e = &p->epilogue;
        const void *addend = p->residual ? binding->inputs[p->residual] : NULL;

        return (struct sl_amx_panel){.tiles = tiles->rows,
                .n_tiles = tiles->n,
                .height = tiles->height,
                .row_stride = tiles->stride,
                .offset = panel->offset,
                .panel = panel->weights,
                .columns = &panel->columns,
                .n_columns = panel->n_columns,
                .y = element(binding->outputs[0], e->y_dtype, panel->column),
                .addend = element(addend, e->addend_dtype, panel->column),
                .y_stride = p->weights.groups * p->weights.filters,
                .fetches = tiles->first};
}

/* Sums, or real numbers, of one tile in scratch to what is stored. */
static void finish_amx_tile(const struct dot_product *p, const struct sl_binding *binding, const struct panel *panel, int64_t rows,
        int64_t row, int32_t *room)
{
        const struct sl_byte_epilogue *e = &p->epilogue;
        int64_t channels = p->weights.groups * p->weights.filters;
        struct sl_byte_sums block = {room, SL_DOT_PANEL, rows, panel->n_columns, row, panel->column, channels};
        const void *addend = p->residual ? binding->inputs[p->residual] : NULL;

        if (panel->result.kind == SL_DOT_SUMS)
                sl_byte_epilogue(
                        e, &block, binding->inputs[2], e->has_bias ? binding->inputs[3] : NULL, addend, binding->outputs[0]);
        else
                finish_tile(p, panel, &(struct rows){.n = rows, .row = row}, room,
                        element(binding->outputs[0], e->y_dtype, row * channels + panel->column));
}

/* Two tiles at a time: what has a function is stored, or left in scratch, and finished while it lies in the L1 cache. */
static void run_tiles_apart(
        const struct dot_product *p, const struct sl_binding *binding, const struct panel *panel, const struct tiles *tiles)
{
        bool stays = panel->result.kind == SL_DOT_SUMS || p->epilogue.y_dtype != SL_DTYPE_F32;
        int32_t *room = (int32_t *)((char *)binding->scratch + p->sums_offset);

        for (int64_t i = 0; i < tiles->n; i += 2) {
                const struct sl_amx_rows *two = tiles->rows + i;
                int64_t height = tiles->height, n = i + 1 < tiles->n ? 2 : 1;
                int64_t first = n > 1 && two[1].row < two[0].row + height ? two[1].row - two[0].row : height; /* once each */
                struct sl_amx_rows kept[2] = {{two[0].first, 0}, {two[n - 1].first, height}};
                struct sl_amx_panel part = describe_panel(p, binding, panel, tiles);

                part.tiles = two;
                part.n_tiles = n;
                if (stays) {
                        part.tiles = kept;
                        part.y = room;
                        part.y_stride = SL_DOT_PANEL;
                }
                sl_amx_panel(&p->weights.depth, &panel->result, &part);
                finish_amx_tile(p, binding, panel, first, two[0].row, room);
                if (n > 1)
                        finish_amx_tile(p, binding, panel, height, two[1].row, room + height * SL_DOT_PANEL);
        }
}

static void run_tiles(
        const struct dot_product *p, const struct sl_binding *binding, const struct panel *panel, const struct tiles *tiles)
{
        struct sl_amx_panel whole = describe_panel(p, binding, panel, tiles);

        if (panel->result.kind == SL_DOT_SUMS || p->function.activation)
                run_tiles_apart(p, binding, panel, tiles);
        else
                sl_amx_panel(&p->weights.depth, &panel->result, &whole);
}

/* A block by each panel of the part; @panels: of all. */
static void run_block_by_tiles(const struct dot_product *p, const struct sl_binding *binding, const struct sl_part *part,
        const struct panel *panels, const struct tiles *tiles)
{
        sl_amx_begin(&p->weights.depth, tiles->height);
        for (int64_t i = part->first; i < part->end; i++)
                run_tiles(p, binding, &panels[i], tiles);
        sl_amx_end();
}

/* @n rows, the first of which is @row of the result. */
static void run_block(
        const struct dot_product *p, const struct sl_binding *binding, const struct sl_part *part, int64_t n, int64_t row)
{
        struct panel panel;

        for (int64_t i = part->first; i < part->end; i++) {
                take_panel(p, binding, i, &panel);
                run_panel(p, binding, &panel, n, row);
        }
}

/* Blocks are small by tiles, so that panels are taken once for all of them. */
static struct panel *take_panels(const struct dot_product *p, const struct sl_binding *binding, const struct sl_part *part)
{
        struct panel *panels = (struct panel *)((char *)binding->scratch + p->panels_offset);

        for (int64_t i = part->first; i < part->end && p->amx; i++)
                take_panel(p, binding, i, &panels[i]);
        return panels;
}

static int dot_run(const void *state, const struct sl_binding *binding)
{
        const struct dot_product *p = state;
        struct sl_part lines = sl_part_along(binding->part, SL_AXIS_ROWS, p->batch * p->out_height);
        struct sl_part columns = sl_part_along(binding->part, SL_AXIS_COLUMNS, p->weights.groups * p->weights.panels);
        const uint8_t **begins = (const uint8_t **)((char *)binding->scratch + p->rows_offset);
        struct panel *panels = take_panels(p, binding, &columns);

        for (int64_t first = lines.first; first < lines.end; first += p->block_lines) {
                int64_t end = lines.end - first < p->block_lines ? lines.end : first + p->block_lines;
                int64_t n = (end - first) * p->out_width, row = first * p->out_width;
                struct tiles tiles;

                find_rows(p, binding, first, end, begins);
                if (!p->amx) {
                        run_block(p, binding, &columns, n, row);
                        continue;
                }
                tiles = find_tiles(p, binding, n, row);
                tiles.first = first == lines.first;
                run_block_by_tiles(p, binding, &columns, panels, &tiles);
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
        struct sl_dot_weights w;

        if (index != 1)
                return false;
        sl_dot_weights_read(node, &w);
        sl_cpu_form(ret_packed, "dot panels", (int64_t[]){w.groups, w.filters, w.depth.scanlines * w.depth.taps, w.piece},
                sl_dot_weights_bytes(&w) / (int64_t)sizeof(float));
        return true;
}

static int dot_repack(const struct sl_node_desc *node, uint32_t index, const void *plain, void *ret_data)
{
        struct sl_dot_weights w;

        (void)index;
        sl_dot_weights_read(node, &w);
        sl_dot_weights_pack(&w, plain, ret_data);
        return 0;
}

/* Operations, with those of what tiles have too many. */
static double operations(const struct dot_product *p, double rows)
{
        const struct sl_dot_depth *d = &p->weights.depth;
        double panels = (double)(p->weights.groups * p->weights.panels), pieces = (double)(d->scanlines * d->taps);
        double steps = p->amx ? (double)(d->room / d->chunk) * SL_DOT_CHUNK : (double)d->steps;

        return 2 * panels * SL_DOT_PANEL * 4 * pieces * steps * rows;
}

/* Of the weights' time what the products do not hide. */
static double dot_seconds(const struct sl_core_figures *core, const void *state)
{
        const struct dot_product *p = state;
        double panels = (double)(p->weights.groups * p->weights.panels),
               bytes = panels * (double)sl_dot_panel_bytes(&p->weights.depth);
        double rows = (double)p->batch * (double)p->out_height * (double)p->out_width;
        double products = operations(p, rows) / (p->amx ? core->tiles : core->bytes), weights = bytes / core->weights;

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
