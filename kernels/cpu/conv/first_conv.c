/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/conv/first_conv.h"

#include "base/bytes.h"
#include "cpu/base/cost.h"
#include "cpu/base/isa.h"
#include "cpu/conv/loops.h"
#include "cpu/gemm/gemm.h"

#define LINE_FLOATS (SL_LINE_BYTES / sizeof(float))

/* Scanlines of a block: they stay in the L1 cache beside a panel of filters. */
static int64_t block_bytes(void)
{
        return sl_cpu_l1_bytes() / 8 * 7;
}

/* What the L2 cache of no processor holds. */
#define CHANNELS_MAX        (1 << 12)
#define SCANLINES_MAX       (1 << 12)
#define SCANLINE_FLOATS_MAX (1 << 20)

/* One channel lies the same in both layouts. */
static bool reads_planes(const struct sl_tensor *x)
{
        return x->layout == SL_LAYOUT_PLAIN || x->shape.dims[1] == 1;
}

static int64_t count_scanlines(const struct sl_first_conv *p, int64_t rows)
{
        return (rows - 1) * p->shape.window.stride[0] + (p->shape.window.kernel[0] - 1) * p->shape.window.dilation[0] + 1;
}

/* From what the first pixel's window begins with to what the last one's reaches. */
static int64_t count_floats(const struct sl_first_conv *p)
{
        const struct sl_window *w = &p->shape.window;

        return p->left - w->pad_begin[1] + (p->shape.out_width - 1) * w->stride[1] + (w->kernel[1] - 1) * w->dilation[1] + 1;
}

/* False: one row's scanlines are too many. */
static bool choose_block(struct sl_first_conv *p)
{
        int64_t scanline_bytes;

        p->left = (int64_t)sl_align_up((uint64_t)p->shape.window.pad_begin[1], LINE_FLOATS);
        p->scanline_floats = (int64_t)sl_align_up((uint64_t)count_floats(p), LINE_FLOATS);
        if (p->scanline_floats > SCANLINE_FLOATS_MAX || p->shape.channels > CHANNELS_MAX)
                return false;
        scanline_bytes = p->shape.channels * p->scanline_floats * (int64_t)sizeof(float);
        for (p->block_rows = 1; p->block_rows < p->shape.out_height; p->block_rows++)
                if (count_scanlines(p, p->block_rows + 1) * scanline_bytes > block_bytes())
                        break;
        p->scanlines = count_scanlines(p, p->block_rows);
        return p->scanlines <= SCANLINES_MAX && p->scanlines * scanline_bytes <= sl_cpu_l2_bytes() / 4;
}

static bool first_conv_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        struct sl_first_conv *p = state;
        const struct sl_conv_shape *c = &p->shape;

        if (!sl_cpu_has_avx2() || !sl_conv_shape_read(node, &p->shape) || !reads_planes(&node->inputs[0]))
                return false;
        if (c->groups != 1 || c->residual || (c->window.stride[1] != 1 && c->window.stride[1] != 2 && c->window.stride[1] != 4))
                return false;
        if (!choose_block(p))
                return false;
        p->scanlines_offset = (int64_t)sl_align_up(
                (uint64_t)(c->channels * c->window.kernel[0] * c->window.kernel[1]) * sizeof(int64_t), SL_LINE_BYTES);
        sizes->scratch_bytes =
                (size_t)(p->scanlines_offset + c->channels * p->scanlines * p->scanline_floats * (int64_t)sizeof(float));
        return true;
}

static bool first_conv_form(const struct sl_node_desc *node, uint32_t index, struct sl_packed *ret_packed)
{
        const int64_t *f = node->inputs[1].shape.dims;

        if (index == 1)
                sl_cpu_form(ret_packed, "first conv", f, sl_gemm_packed_floats(f[1] * f[2] * f[3], f[0]));
        return index == 1;
}

static int first_conv_repack(const struct sl_node_desc *node, uint32_t index, const void *plain, void *ret_data)
{
        const int64_t *f = node->inputs[1].shape.dims;
        int64_t depth = f[1] * f[2] * f[3];

        (void)index;
        sl_gemm_pack(plain, depth, f[0], 1, depth, ret_data);
        return 0;
}

static double first_conv_seconds(const struct sl_core_figures *core, const void *state)
{
        const struct sl_first_conv *p = state;
        int64_t depth = p->shape.channels * p->shape.window.kernel[0] * p->shape.window.kernel[1];
        double weights = (double)sl_gemm_packed_floats(depth, p->shape.filters),
               rows = (double)(p->shape.batch * p->shape.out_height);
        double scanlines = 2 * 4 * rows * (double)(p->shape.channels * p->shape.window.stride[0] * p->scanline_floats);

        return sl_cost_activation(
                       core, p->shape.epilogue.activation, rows * (double)(p->shape.out_width * p->shape.filters), false) +
               core->store * rows * (double)(p->shape.out_width * p->shape.filters) / core->flops +
               2 * weights * rows * (double)p->shape.out_width / core->flops / core->first + scanlines / core->near;
}

static int64_t first_conv_units(const void *state, uint32_t axis)
{
        const struct sl_first_conv *p = state;

        return axis == SL_AXIS_ROWS ? p->shape.batch * p->shape.out_height : 0;
}

static int first_conv_run(const void *state, const struct sl_binding *binding)
{
        return sl_first_conv_run(state, binding);
}

/* Windows of neighbouring rows lie over each other. */
static bool first_conv_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct sl_first_conv *p = state;

        return operand == SL_REACH_OUTPUT &&
               sl_reach_rows(part, p->shape.out_width * p->shape.filters * (int64_t)sizeof(float), ret_reach);
}

const struct sl_cpu_loop sl_cpu_first_conv = {.state_bytes = sizeof(struct sl_first_conv),
        .plan = first_conv_plan,
        .run = first_conv_run,
        .units = first_conv_units,
        .reach = first_conv_reach,
        .form = first_conv_form,
        .repack = first_conv_repack,
        .seconds = first_conv_seconds,
        .fuses_epilogue = true};
