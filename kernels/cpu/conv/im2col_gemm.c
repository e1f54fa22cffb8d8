/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/conv/im2col_gemm.h"

#include "cpu/base/cost.h"
#include "cpu/base/isa.h"
#include "cpu/base/narrow.h"
#include "cpu/conv/loops.h"
#include "cpu/gemm/gemm.h"

/* That do not make up for waiting for the weights at first. */
#define FEW_ROWS 1024

/* Rows of a scanline below which blocks of them are too short; floats of a piece of a row below which too much is done around it.
 */
#define SCANLINE_ROWS_MIN 7
#define PIECE_MIN         8
#define GROUP_MIN         8
#define CLIPPED_MIN       16 /* taps */
#define CLIP_ROWS         14
#define CLIPPED_ROWS_MAX  (1 << 16)
#define FRAME_FLOATS_MAX  0x1p40

static bool is_pointwise(const struct sl_window *w)
{
        for (uint32_t i = 0; i < 2; i++)
                if (w->kernel[i] != 1 || w->stride[i] != 1 || w->pad_begin[i] || w->pad_end[i])
                        return false;
        return true;
}

/* Pixels, or scanlines, that so many windows cover. */
static int64_t reach(const struct sl_window *w, uint32_t i, int64_t windows)
{
        return (windows - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] + 1;
}

/* Rows of a scanline lie as far apart as a stride; pieces of a row are scanlines of its window, or with a hole between them its
 * pixels. */
static bool lies_in_scanlines(const struct sl_im2col_gemm *p)
{
        const struct sl_window *w = &p->shape.window;
        int64_t piece = (w->dilation[1] == 1 ? w->kernel[1] : 1) * p->shape.channels;

        if (w->dilation[1] > 1 && w->kernel[0] > 1)
                return false;
        return piece >= PIECE_MIN && (p->shape.out_width >= SCANLINE_ROWS_MIN || p->rows == p->shape.out_width);
}

/* What pads and strides of any size do not make overflow. */
static bool is_frame_possible(const struct sl_im2col_gemm *p)
{
        double scanlines = (double)reach(&p->shape.window, 0, p->shape.out_height),
               pixels = (double)reach(&p->shape.window, 1, p->shape.out_width);

        return (double)p->shape.batch * scanlines * pixels * (double)(p->shape.channels * p->shape.groups) < FRAME_FLOATS_MAX;
}

static bool stays_inside(const struct sl_im2col_gemm *p)
{
        const struct sl_window *w = &p->shape.window;

        for (uint32_t i = 0; i < 2; i++)
                if (w->pad_begin[i] || w->pad_end[i])
                        return false;
        return p->shape.groups == 1;
}

static enum sl_im2col_rows choose_source(const struct sl_im2col_gemm *p)
{
        if (p->shape.groups == 1 && is_pointwise(&p->shape.window))
                return SL_IM2COL_INPUT;
        if (!lies_in_scanlines(p) || !is_frame_possible(p))
                return SL_IM2COL_COPIED;
        return stays_inside(p) ? SL_IM2COL_LINES : SL_IM2COL_FRAME;
}

/* Floats that stay in the L2 cache beside a panel of weights, or more when the weights themselves do not. */
static int64_t resident_floats(const struct sl_im2col_gemm *p)
{
        return sl_cpu_l2_bytes() / (int64_t)sizeof(float) * (p->streams ? 5 : 2) / 8;
}

/* How many times @least go into @room, but once; then as many as make equal blocks of @all. */
static int64_t choose_block(int64_t room, int64_t each, int64_t least, int64_t all)
{
        int64_t fitting = room / each > least ? room / each : least, blocks = (all + fitting - 1) / fitting;

        return (all + blocks - 1) / blocks;
}

/* Every block reads all of the weights. */
static void choose_frame(struct sl_im2col_gemm *p)
{
        int64_t room = resident_floats(p), scanline, image;

        p->frame_pixels = reach(&p->shape.window, 1, p->shape.out_width);
        scanline = p->frame_pixels * p->shape.channels * p->shape.groups;
        image = reach(&p->shape.window, 0, p->shape.out_height) * scanline;
        p->block_scanlines = p->shape.out_height;
        p->block_images = choose_block(room, image, 1, p->shape.batch);
        if (image > room) {
                int64_t more = room / scanline - reach(&p->shape.window, 0, 1);

                p->block_scanlines = choose_block(more > 0 ? more / p->shape.window.stride[0] : 0, 1, 1, p->shape.out_height);
        }
        p->frame_scanlines = reach(&p->shape.window, 0, p->block_scanlines);
        p->clips = p->shape.window.kernel[0] == 1 && p->shape.window.dilation[1] == 1 && p->shape.window.kernel[1] >= CLIPPED_MIN &&
                   p->shape.out_width <= CLIPPED_ROWS_MAX;
}

static void choose_rows(struct sl_im2col_gemm *p)
{
        p->source = choose_source(p);
        switch (p->source) {
        case SL_IM2COL_INPUT:
                p->streams |= p->rows <= FEW_ROWS;
                break;
        case SL_IM2COL_LINES:
                p->frame_scanlines = p->shape.height;
                p->frame_pixels = p->shape.width;
                p->block_images = p->shape.batch;
                p->block_scanlines = p->shape.out_height;
                break;
        case SL_IM2COL_FRAME:
                choose_frame(p);
                break;
        case SL_IM2COL_COPIED:
                p->block_rows = choose_block(resident_floats(p), p->depth, CLIP_ROWS, p->rows);
                break;
        }
}

/* A convolution over one pixel waits for its filters alone: they may lie in halves. */
static uint32_t narrow_of(const struct sl_node_desc *node)
{
        const int64_t *x = node->inputs[0].shape.dims, *f = node->inputs[1].shape.dims;
        struct sl_conv_shape shape;

        if (node->inputs[0].shape.rank != 4 || x[2] * x[3] != 1 || !sl_conv_shape_read(node, &shape) || shape.groups != 1 ||
                !is_pointwise(&shape.window))
                return SL_DTYPE_NONE;
        return sl_narrow_dtype(node, 1, sl_gemm_packed_floats(f[1], f[0]));
}

static int64_t scratch_floats(const struct sl_im2col_gemm *p)
{
        if (p->source == SL_IM2COL_FRAME)
                return p->block_images * p->frame_scanlines * p->frame_pixels * p->shape.channels * p->shape.groups;
        return p->block_rows * p->depth;
}

static bool im2col_gemm_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        struct sl_im2col_gemm *p = state;
        const struct sl_conv_shape *c = &p->shape;

        if (!sl_cpu_has_avx2() || !sl_conv_shape_read(node, &p->shape) || !sl_cpu_is_nhwc_f32(&node->inputs[0]))
                return false;
        if (c->groups > 1 && (c->channels < GROUP_MIN || c->filters < GROUP_MIN))
                return false;
        p->rows = c->batch * c->out_height * c->out_width;
        p->depth = c->window.kernel[0] * c->window.kernel[1] * c->channels;
        p->streams = p->depth * c->filters * c->groups * (int64_t)sizeof(float) > sl_cpu_l2_bytes() / 4;
        choose_rows(p);
        p->narrow = narrow_of(node);
        if (p->source == SL_IM2COL_COPIED && c->groups > 1)
                return false;
        sizes->scratch_bytes = (size_t)scratch_floats(p) * sizeof(float);
        return true;
}

static bool im2col_gemm_form(const struct sl_node_desc *node, uint32_t index, struct sl_packed *ret_packed)
{
        int64_t groups = sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1);
        const int64_t *f = node->inputs[1].shape.dims;

        if (index == 1)
                sl_cpu_form_narrow(ret_packed, "im2col gemm", f, groups * sl_gemm_packed_floats(f[1] * f[2] * f[3], f[0] / groups),
                        narrow_of(node));
        return index == 1;
}

/* [filter][channel][tap] to panels of [tap][channel]. */
static float *repack_group(const char *from, int64_t filters, int64_t channels, int64_t taps, float *to)
{
        for (int64_t first = 0; first < filters; first += SL_GEMM_PANEL) {
                int64_t own = filters - first < SL_GEMM_PANEL ? filters - first : SL_GEMM_PANEL;
                int64_t width = sl_gemm_packed_floats(1, own);

                for (int64_t tap = 0; tap < taps; tap++, to += channels * width)
                        sl_gemm_pack(from + (first * channels * taps + tap) * (int64_t)sizeof(float), channels, own, taps,
                                channels * taps, to);
        }
        return to;
}

static int im2col_gemm_repack(const struct sl_node_desc *node, uint32_t index, const void *plain, void *ret_data)
{
        int64_t groups = sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1);
        const int64_t *f = node->inputs[1].shape.dims;
        int64_t group_bytes = f[0] / groups * f[1] * f[2] * f[3] * (int64_t)sizeof(float);
        const char *from = plain;
        float *to = ret_data;

        (void)index;
        if (narrow_of(node))
                return sl_gemm_pack_narrow(plain, f[1], f[0], 1, f[1], narrow_of(node), ret_data);
        for (int64_t group = 0; group < groups; group++, from += group_bytes)
                to = repack_group(from, f[0] / groups, f[1], f[2] * f[3], to);
        return 0;
}

/* The share of a scanline's products that are left, by blocks of rows. */
static double clipped_share(const struct sl_im2col_gemm *p)
{
        int64_t taps = 0, kernel = p->shape.window.kernel[1], stride = p->shape.window.stride[1],
                pad = p->shape.window.pad_begin[1];

        for (int64_t x = 0; p->clips && x < p->shape.out_width; x += CLIP_ROWS) {
                int64_t n = p->shape.out_width - x < CLIP_ROWS ? p->shape.out_width - x : CLIP_ROWS;
                int64_t first = pad - (x + n - 1) * stride, end = p->shape.width + pad - x * stride;

                first = first > 0 ? first : 0;
                end = end < kernel ? end : kernel;
                taps += end > first ? n * (end - first) : 0;
        }
        return p->clips ? (double)taps / ((double)p->shape.out_width * (double)kernel) : 1;
}

/* Floats that are copied, and of what the products then reach of a core. */
static double copied_floats(const struct sl_im2col_gemm *p)
{
        double scanlines =
                (double)(p->shape.out_height + p->block_scanlines - 1) / (double)p->block_scanlines * (double)p->frame_scanlines;

        switch (p->source) {
        case SL_IM2COL_COPIED:
                return (double)p->rows * (double)p->depth;
        case SL_IM2COL_FRAME:
                return (double)p->shape.batch * scanlines * (double)(p->frame_pixels * p->shape.channels * p->shape.groups);
        default:
                return 0;
        }
}

/*
 * What is copied is written where it is made and read again; nothing for the call; half filled panels count whole. Nobody has
 * fetched the first panel ahead.
 */
static double im2col_gemm_seconds(const struct sl_core_figures *core, const void *state)
{
        const struct sl_im2col_gemm *p = state;
        double weights = (double)p->shape.groups * (double)sl_gemm_packed_floats(p->depth, p->shape.filters),
               rows = (double)p->rows, element = (double)sl_dtype_bytes(p->narrow ? p->narrow : SL_DTYPE_F32);
        double elements = rows * (double)(p->shape.filters * p->shape.groups), copied = 2 * 4 * copied_floats(p);
        double products = 2 * weights * rows * clipped_share(p) / core->flops /
                          (p->source == SL_IM2COL_COPIED         ? core->copied
                                  : p->source == SL_IM2COL_INPUT ? core->product
                                                                 : core->frame);
        double first =
                4 * (double)sl_gemm_packed_floats(p->depth, p->shape.filters < SL_GEMM_PANEL ? p->shape.filters : SL_GEMM_PANEL) /
                core->weights;

        return sl_cost_activation(core, p->shape.epilogue.activation, elements, false) +
               (p->shape.residual ? sl_cost_residual(core, elements) : 0) + elements * core->store / core->flops +
               copied / core->near + sl_cost_longer(products + first, element * weights / core->weights);
}

/* Panels of filters; of several groups those, each of which has a frame of its own. */
static int64_t im2col_gemm_units(const void *state, uint32_t axis)
{
        const struct sl_im2col_gemm *p = state;

        if (axis == SL_AXIS_COLUMNS)
                return p->shape.groups == 1 ? sl_gemm_panels(p->shape.filters) : p->shape.groups;
        return p->source == SL_IM2COL_LINES || p->source == SL_IM2COL_FRAME ? p->shape.batch * p->shape.out_height : p->rows;
}

/* Scanlines of whole images count as images of one scanline. */
static void im2col_gemm_narrow(void *state, const struct sl_part *part)
{
        struct sl_im2col_gemm *p = state;
        int64_t n = part->end - part->first;

        if (part->axis == SL_AXIS_COLUMNS) {
                *(p->shape.groups == 1 ? &p->shape.filters : &p->shape.groups) = p->shape.groups == 1 ? n * SL_GEMM_PANEL : n;
                return;
        }
        p->rows = p->source == SL_IM2COL_LINES || p->source == SL_IM2COL_FRAME ? n * p->shape.out_width : n;
        p->shape.batch = 1;
        p->shape.out_height = n;
        p->frame_scanlines -= (p->block_scanlines > n ? p->block_scanlines - n : 0) * p->shape.window.stride[0];
        p->block_scanlines = p->block_scanlines > n ? n : p->block_scanlines;
}

static int im2col_gemm_run(const void *state, const struct sl_binding *binding)
{
        return sl_im2col_gemm_run(state, binding);
}

/* A group reads its own channels. */
static bool reach_groups(const struct sl_im2col_gemm *p, const struct sl_part *part, bool is_result, struct sl_reach *ret_reach)
{
        const struct sl_conv_shape *c = &p->shape;
        int64_t unit = (is_result ? c->filters : c->channels) * (int64_t)sizeof(float);
        int64_t pixels = c->batch * (is_result ? c->out_height * c->out_width : c->height * c->width);

        return sl_reach_columns(part, unit, unit * c->groups, pixels, ret_reach);
}

/* Windows of neighbouring rows lie over each other, but for those of one pixel. */
static bool im2col_gemm_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct sl_im2col_gemm *p = state;
        int64_t row_bytes = p->shape.groups * p->shape.filters * (int64_t)sizeof(float);
        bool scanlines = p->source == SL_IM2COL_LINES || p->source == SL_IM2COL_FRAME;
        bool is_result = operand == SL_REACH_OUTPUT || (p->shape.residual && operand == p->shape.residual);

        if (p->shape.groups > 1 && part->axis == SL_AXIS_COLUMNS)
                return (is_result || operand == 0) && reach_groups(p, part, is_result, ret_reach);
        if (is_result && part->axis == SL_AXIS_COLUMNS)
                return sl_reach_columns(part, SL_GEMM_PANEL * (int64_t)sizeof(float), row_bytes, p->rows, ret_reach);
        if (is_result)
                return sl_reach_rows(part, row_bytes * (scanlines ? p->shape.out_width : 1), ret_reach);
        return operand == 0 && part->axis == SL_AXIS_ROWS && p->source == SL_IM2COL_INPUT && p->shape.groups == 1 &&
               sl_reach_rows(part, p->depth * (int64_t)sizeof(float), ret_reach);
}

const struct sl_cpu_loop sl_cpu_im2col_gemm = {.state_bytes = sizeof(struct sl_im2col_gemm),
        .plan = im2col_gemm_plan,
        .run = im2col_gemm_run,
        .units = im2col_gemm_units,
        .reach = im2col_gemm_reach,
        .form = im2col_gemm_form,
        .repack = im2col_gemm_repack,
        .reads_anywhere = true,
        .seconds = im2col_gemm_seconds,
        .narrow = im2col_gemm_narrow,
        .fuses_epilogue = true};
