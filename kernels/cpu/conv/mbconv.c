/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inverted bottleneck, strip by strip. The rows of the expanded image that a strip of the output needs are made once, panel of
 * channels by panel, in a ring in scratch, where the depthwise convolution reads them while they are in the L1 cache; what
 * it makes is projected as soon as all panels have gone by. So what lies between the convolutions never leaves the L2
 * cache. The parts are planned, packed and summed as the convolutions that they are by themselves (grouped.h, im2col_gemm.h), to
 * the same bits.
 *
 * CHANNELS_LAST, AVX2, constant weights, something to expand.
 *
 * Sources: on layers that are fused strip by strip M. Alwani, H. Chen, M. Ferdman, P. Milder, "Fused-Layer CNN Accelerators", MICRO
 * 2016.
 */
#include "shape/mbconv.h"

#include "base/bytes.h"
#include "base/error.h"
#include "cpu/base/isa.h"
#include "cpu/conv/grouped.h"
#include "cpu/conv/im2col_gemm.h"
#include "cpu/conv/loops.h"
#include "cpu/gemm/gemm.h"
#include "cpu/gemm/small_k.h"

#include <string.h>

#define STRIP_PIXELS 56 /* whole blocks of rows of gemm.h for images whose width is a multiple of 7 */

struct mbconv {
        struct sl_im2col_gemm expand, project;
        struct sl_grouped depthwise;
        bool projects;
        uint32_t residual;                /* node input; 0: none */
        int64_t strip_rows;               /* of the output */
        int64_t slots, row_floats;        /* rows of the ring, and their floats */
        int64_t panel_floats;             /* of the ring: each panel has one */
        size_t ring_offset, strip_offset; /* floats in scratch, behind a row of zeros */
};

static const struct sl_cpu_loop *loop_of(int part)
{
        return part == SL_MBCONV_DEPTHWISE ? &sl_cpu_grouped : &sl_cpu_im2col_gemm;
}

static bool plan_part(const struct sl_node_desc *node, struct mbconv *s, int part, struct sl_tensor *ret_output)
{
        void *states[SL_MBCONV_PARTS] = {&s->expand, &s->depthwise, &s->project};
        struct sl_cpu_sizes sizes = {0};
        struct sl_node_desc conv;

        if (sl_mbconv_conv(node, part, &conv, NULL) || !loop_of(part)->plan(&conv, states[part], &sizes))
                return false;
        *ret_output = conv.outputs[0];
        return true;
}

static bool plan_parts(const struct sl_node_desc *node, struct mbconv *s)
{
        struct sl_tensor output = {0};

        for (int part = 0; part < SL_MBCONV_PARTS; part++)
                if (sl_mbconv_has(node, part) && !plan_part(node, s, part, &output))
                        return false;
        s->projects = sl_mbconv_has(node, SL_MBCONV_PROJECT);
        return sl_mbconv_has(node, SL_MBCONV_EXPAND) && s->depthwise.shape.channels == 1 && s->depthwise.multiplier == 1 &&
               s->depthwise.side <= SL_GROUPED_STRIP_SIDE_MAX && !s->expand.block_rows && !s->project.block_rows &&
               sl_cpu_same_place(&output, &node->outputs[0]);
}

/* Few rows, so that they stay near; enough pixels for whole blocks of the products; strips of about the same height. */
static void choose_strip(struct mbconv *s)
{
        const struct sl_grouped *d = &s->depthwise;
        int64_t tile = sl_grouped_rows(d), rows = (STRIP_PIXELS + d->shape.out_width - 1) / d->shape.out_width, strips;

        strips = (d->shape.out_height + rows - 1) / rows;
        rows = (d->shape.out_height + strips - 1) / strips;
        rows = (rows + tile - 1) / tile * tile;
        s->strip_rows = rows < d->shape.out_height ? rows : d->shape.out_height;
        s->slots = (s->strip_rows - 1) * d->stride + d->side;
        s->slots = s->slots < d->shape.height ? s->slots : d->shape.height;
}

/* As wide as the image with its padding, as far as windows reach. */
static void plan_ring(struct mbconv *s)
{
        const struct sl_grouped *d = &s->depthwise;
        int64_t reach = (d->shape.out_width - 1) * d->stride + d->side, pixels = d->shape.window.pad_begin[1] + d->shape.width;

        s->row_floats = (pixels > reach ? pixels : reach) * SL_GROUPED_PANEL;
        s->panel_floats = s->slots * s->row_floats;
}

static bool mbconv_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        struct mbconv *s = state;
        const struct sl_grouped *d = &s->depthwise;
        int64_t panels, strip_floats;

        if (!sl_cpu_has_avx2() || !plan_parts(node, s))
                return false;
        s->residual = node->epilogue.has_residual ? node->n_inputs - 1 : 0;
        choose_strip(s);
        plan_ring(s);
        panels = (d->out_channels + SL_GROUPED_PANEL - 1) / SL_GROUPED_PANEL;
        strip_floats = s->projects ? s->strip_rows * d->shape.out_width * d->out_channels : 0;
        s->ring_offset = (size_t)s->row_floats;
        s->strip_offset = s->ring_offset + (size_t)(panels * s->panel_floats);
        sizes->scratch_bytes = (s->strip_offset + (size_t)strip_floats) * sizeof(float);
        return true;
}

/* The part whose weights are input @index, or -1. */
static int part_of(const struct sl_node_desc *node, uint32_t index)
{
        for (int part = 0; part < SL_MBCONV_PARTS; part++)
                if ((uint32_t)sl_mbconv_weights(part) == index && sl_mbconv_has(node, part))
                        return part;
        return -1;
}

static bool mbconv_form(const struct sl_node_desc *node, uint32_t index, struct sl_packed *ret_packed)
{
        int part = part_of(node, index);
        struct sl_node_desc conv;

        return part >= 0 && !sl_mbconv_conv(node, part, &conv, NULL) && loop_of(part)->form(&conv, 1, ret_packed);
}

static int mbconv_repack(const struct sl_node_desc *node, uint32_t index, const void *plain, void *ret_data)
{
        int part = part_of(node, index);
        struct sl_node_desc conv;

        if (part < 0 || sl_mbconv_conv(node, part, &conv, NULL))
                return -ENOTSUP;
        return loop_of(part)->repack(&conv, 1, plain, ret_data);
}

static double mbconv_seconds(const struct sl_core_figures *core, const void *state)
{
        const struct mbconv *s = state;

        return sl_cpu_im2col_gemm.seconds(core, &s->expand) + sl_cpu_grouped.seconds(core, &s->depthwise) +
               (s->projects ? sl_cpu_im2col_gemm.seconds(core, &s->project) : 0);
}

/* How many times as many channels the first part makes at least: else its sums take so long that reading them hardly counts. */
#define EXPANSION 3

/* Each strip reads all weights: they stay in the L2 cache beside it. */
static bool weights_stay(const struct sl_node_desc *node, enum sl_mbconv_part part)
{
        return !sl_mbconv_has(node, part) ||
               sl_tensor_bytes(&node->inputs[sl_mbconv_weights(part)]) <= (uint64_t)sl_cpu_l2_bytes() / 4;
}

/* What lies between the convolutions of one sample is more than the L2 cache holds beside the rest: with less it stays there
 * anyway.
 */
bool sl_cpu_mbconv_gains(const struct sl_node_desc *node)
{
        struct sl_node_desc depthwise;

        if (node->inputs[0].shape.dims[0] < 1 || !sl_mbconv_has(node, SL_MBCONV_EXPAND) ||
                sl_mbconv_conv(node, SL_MBCONV_DEPTHWISE, &depthwise, NULL))
                return false;
        return weights_stay(node, SL_MBCONV_EXPAND) && weights_stay(node, SL_MBCONV_PROJECT) &&
               depthwise.inputs[0].shape.dims[1] / EXPANSION >= node->inputs[0].shape.dims[1] &&
               sl_tensor_bytes(&depthwise.inputs[0]) / (uint64_t)node->inputs[0].shape.dims[0] >=
                       (uint64_t)sl_cpu_l2_bytes() / 16 * 9;
}

/* One sample on its way, or some rows of its output. */
struct pass {
        const struct mbconv *s;
        const struct sl_binding *binding;
        const float *x, *residual;
        float *y, *zeros, *ring, *strip;
        int64_t made; /* rows of the expanded image, from its top on */
};

/* Columns @first to @first + columns of a pointwise part. */
static struct sl_gemm product_of(const struct sl_im2col_gemm *p, const struct sl_binding *binding, enum sl_mbconv_input weights,
        int64_t first, int64_t columns)
{
        const float *bias = p->shape.has_bias ? binding->inputs[weights + 1] : NULL;

        return (struct sl_gemm){.b = (const float *)binding->inputs[weights] + first * p->depth,
                .depth = p->depth,
                .columns = columns,
                .a_stride = p->depth,
                .bias = bias ? bias + first : NULL,
                .streams = p->streams,
                .epilogue = &p->shape.epilogue};
}

/* Adds rows up to @end of a panel to its ring. */
static void expand(const struct pass *pass, int64_t first, int64_t channels, int64_t end)
{
        const struct mbconv *s = pass->s;
        const struct sl_im2col_gemm *p = &s->expand;
        struct sl_gemm gemm = product_of(p, pass->binding, SL_MBCONV_EXPAND_WEIGHTS, first, channels);
        float *ring =
                pass->ring + first / SL_GROUPED_PANEL * s->panel_floats + s->depthwise.shape.window.pad_begin[1] * SL_GROUPED_PANEL;

        gemm.rows = p->shape.width;
        gemm.c_stride = SL_GROUPED_PANEL;
        for (int64_t row = pass->made; row < end; row++) {
                gemm.a = pass->x + row * p->shape.width * p->shape.channels;
                gemm.c = ring + row % s->slots * s->row_floats;
                (sl_small_k_takes(p->depth) ? sl_small_k_run : sl_gemm_run)(&gemm);
        }
}

/* The rows of the input above the end of the windows of the output's rows up to @end. */
static int64_t rows_under(const struct sl_grouped *d, int64_t end)
{
        int64_t under = (end - 1) * d->stride - d->shape.window.pad_begin[0] + d->side;

        return under < d->shape.height ? under : d->shape.height;
}

/* Rows @first to @end of the output, all panels of the depthwise part. */
static void filter(struct pass *pass, int64_t first, int64_t end)
{
        const struct mbconv *s = pass->s;
        const struct sl_grouped *d = &s->depthwise;
        const float *weights = pass->binding->inputs[SL_MBCONV_DEPTHWISE_WEIGHTS];
        const float *bias = d->shape.has_bias ? pass->binding->inputs[SL_MBCONV_DEPTHWISE_BIAS] : NULL;
        int64_t at = s->projects ? 0 : first * d->shape.out_width * d->out_channels, under = rows_under(d, end);
        struct sl_grouped_strip strip = {
                .zeros = pass->zeros, .slots = s->slots, .row_floats = s->row_floats, .first = first, .rows = end - first};

        for (int64_t c = 0; c < d->out_channels; c += SL_GROUPED_PANEL) {
                strip.channels = d->out_channels - c < SL_GROUPED_PANEL ? d->out_channels - c : SL_GROUPED_PANEL;
                expand(pass, c, strip.channels, under);
                strip.ring = pass->ring + c / SL_GROUPED_PANEL * s->panel_floats;
                strip.weights = weights + c * d->side * d->side;
                strip.bias = bias ? bias + c : NULL;
                strip.y = (s->projects ? pass->strip : pass->y + at) + c;
                strip.residual = pass->residual && !s->projects ? pass->residual + at + c : NULL;
                sl_grouped_run_strip(d, &strip);
        }
        pass->made = under > pass->made ? under : pass->made;
}

static void project(const struct pass *pass, int64_t first, int64_t end)
{
        const struct sl_im2col_gemm *p = &pass->s->project;
        struct sl_gemm gemm = product_of(p, pass->binding, SL_MBCONV_PROJECT_WEIGHTS, 0, p->shape.filters);
        int64_t at = first * p->shape.width * p->shape.filters;

        gemm.a = pass->strip;
        gemm.c = pass->y + at;
        gemm.residual = pass->residual ? pass->residual + at : NULL;
        gemm.rows = (end - first) * p->shape.width;
        gemm.c_stride = gemm.residual_stride = p->shape.filters;
        sl_gemm_run(&gemm);
}

/* Rows @top to @bottom. What is left for the last strip may be less than a tile: it lies over the one before it. */
static void run_rows(struct pass *pass, int64_t top, int64_t bottom)
{
        const struct sl_grouped *d = &pass->s->depthwise;
        int64_t tile = sl_grouped_rows(d), rows = pass->s->strip_rows, above = top * d->stride - d->shape.window.pad_begin[0];

        pass->made = above > 0 ? above : 0;
        for (int64_t first = top; first < bottom; first += rows) {
                int64_t end = first + rows < bottom ? first + rows : bottom;
                int64_t begin = end - first < tile ? end - tile : first;

                filter(pass, begin, end);
                if (pass->s->projects)
                        project(pass, begin, end);
        }
}

/* The pixels left and right of the image, in every row of the ring. */
static void clear_padding(const struct mbconv *s, float *ring)
{
        const struct sl_grouped *d = &s->depthwise;
        int64_t left = d->shape.window.pad_begin[1] * SL_GROUPED_PANEL, image = d->shape.width * SL_GROUPED_PANEL;
        int64_t rows = (d->out_channels + SL_GROUPED_PANEL - 1) / SL_GROUPED_PANEL * s->slots;

        for (; rows > 0; rows--, ring += s->row_floats) {
                memset(ring, 0, (size_t)left * sizeof(float));
                memset(ring + left + image, 0, (size_t)(s->row_floats - left - image) * sizeof(float));
        }
}

static int mbconv_run(const void *state, const struct sl_binding *binding)
{
        const struct mbconv *s = state;
        const struct sl_grouped *d = &s->depthwise;
        int64_t in_floats = d->shape.height * d->shape.width * s->expand.shape.channels;
        int64_t out_floats = d->shape.out_height * d->shape.out_width * (s->projects ? s->project.shape.filters : d->out_channels);
        float *scratch = binding->scratch;
        struct pass pass = {
                .s = s, .binding = binding, .zeros = scratch, .ring = scratch + s->ring_offset, .strip = scratch + s->strip_offset};
        struct sl_part units = sl_part_along(binding->part, SL_AXIS_ROWS, sl_grouped_units(d, SL_AXIS_ROWS));

        memset(pass.zeros, 0, (size_t)s->row_floats * sizeof(float));
        clear_padding(s, pass.ring);
        for (int64_t first = units.first, end; first < units.end; first = end) {
                struct sl_grouped_rows rows = sl_grouped_rows_of(d, first, units.end);

                end = first + rows.units;
                pass.x = (const float *)binding->inputs[SL_MBCONV_IMAGE] + rows.sample * in_floats;
                pass.y = (float *)binding->outputs[0] + rows.sample * out_floats;
                pass.residual = s->residual ? (const float *)binding->inputs[s->residual] + rows.sample * out_floats : NULL;
                run_rows(&pass, rows.first, rows.end);
        }
        return 0;
}

static int64_t mbconv_units(const void *state, uint32_t axis)
{
        const struct mbconv *s = state;

        return axis == SL_AXIS_ROWS ? sl_grouped_units(&s->depthwise, axis) : 0;
}

/* Windows of neighbouring rows lie over each other. */
static bool mbconv_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct mbconv *s = state;
        struct sl_part lines = sl_grouped_lines(&s->depthwise, part);
        int64_t channels = s->projects ? s->project.shape.filters : s->depthwise.out_channels;

        return (operand == SL_REACH_OUTPUT || (s->residual && operand == s->residual && operand != 0)) &&
               sl_reach_rows(&lines, s->depthwise.shape.out_width * channels * (int64_t)sizeof(float), ret_reach);
}

const struct sl_cpu_loop sl_cpu_mbconv = {.state_bytes = sizeof(struct mbconv),
        .plan = mbconv_plan,
        .run = mbconv_run,
        .units = mbconv_units,
        .reach = mbconv_reach,
        .form = mbconv_form,
        .repack = mbconv_repack,
        .seconds = mbconv_seconds,
        .fuses_epilogue = true};
