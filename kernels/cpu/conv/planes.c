/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/conv/planes.h"

#include "base/bytes.h"
#include "cpu/base/cost.h"
#include "cpu/base/isa.h"
#include "cpu/conv/loops.h"
#include "cpu/gemm/gemm.h"

#define LINE_FLOATS (SL_LINE_BYTES / sizeof(float))

/* Lines of a block: they stay in the first-level cache beside a panel of filters. */
#define BLOCK_BYTES (28 << 10)

/* What the second-level cache of no processor holds. */
#define CHANNELS_MAX    (1 << 12)
#define LINES_MAX       (1 << 12)
#define LINE_FLOATS_MAX (1 << 20)

static bool is_convolution(const struct sl_node_desc *node)
{
        const struct sl_tensor *x = &node->inputs[0], *y = &node->outputs[0], *f = sl_cpu_input(node, 1);

        if (!f || x->shape.rank != 4 || !sl_cpu_is_f32(x) || !sl_cpu_is_nhwc_f32(y) || !sl_cpu_is_f32(f))
                return false;
        /* One channel lies the same in both layouts. */
        if (x->layout != SL_LAYOUT_PLAIN && x->shape.dims[1] != 1)
                return false;
        return !sl_cpu_is_empty(x) && !sl_cpu_is_empty(y) && !sl_cpu_is_empty(f) && !node->epilogue.has_residual &&
               sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1) == 1;
}

static int64_t count_lines(const struct sl_planes *p, int64_t rows)
{
        return (rows - 1) * p->window.stride[0] + (p->window.kernel[0] - 1) * p->window.dilation[0] + 1;
}

/* From what the first pixel's window begins with to what the last one's reaches. */
static int64_t count_floats(const struct sl_planes *p)
{
        const struct sl_window *w = &p->window;

        return p->left - w->pad_begin[1] + (p->out_width - 1) * w->stride[1] + (w->kernel[1] - 1) * w->dilation[1] + 1;
}

/* False: one row's lines are too many. */
static bool choose_block(struct sl_planes *p)
{
        int64_t line_bytes;

        p->left = (int64_t)sl_align_up((uint64_t)p->window.pad_begin[1], LINE_FLOATS);
        p->line_floats = (int64_t)sl_align_up((uint64_t)count_floats(p), LINE_FLOATS);
        if (p->line_floats > LINE_FLOATS_MAX || p->channels > CHANNELS_MAX)
                return false;
        line_bytes = p->channels * p->line_floats * (int64_t)sizeof(float);
        for (p->block_rows = 1; p->block_rows < p->out_height; p->block_rows++)
                if (count_lines(p, p->block_rows + 1) * line_bytes > BLOCK_BYTES)
                        break;
        p->lines = count_lines(p, p->block_rows);
        return p->lines <= LINES_MAX && p->lines * line_bytes <= sl_cpu_cache_bytes() / 4;
}

static bool plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const int64_t *x = node->inputs[0].shape.dims, *y = node->outputs[0].shape.dims;
        struct sl_planes *p = state;

        if (!sl_cpu_has_avx2() || !is_convolution(node) || sl_window_read(node, &p->window, NULL) ||
                !sl_finish_plan(node, &p->finish))
                return false;
        if (p->window.stride[1] != 1 && p->window.stride[1] != 2 && p->window.stride[1] != 4)
                return false;
        p->batch = x[0];
        p->channels = x[1];
        p->height = x[2];
        p->width = x[3];
        p->filters = y[1];
        p->out_height = y[2];
        p->out_width = y[3];
        p->has_bias = sl_cpu_input(node, 2) != NULL;
        if (!choose_block(p))
                return false;
        p->lines_offset = (int64_t)sl_align_up(
                (uint64_t)(p->channels * p->window.kernel[0] * p->window.kernel[1]) * sizeof(int64_t), SL_LINE_BYTES);
        sizes->scratch_bytes = (size_t)(p->lines_offset + p->channels * p->lines * p->line_floats * (int64_t)sizeof(float));
        return true;
}

static bool form(const struct sl_node_desc *node, uint32_t index, struct sl_packed *ret_packed)
{
        const int64_t *f = node->inputs[1].shape.dims;

        if (index == 1)
                sl_cpu_form(ret_packed, "planes", f, sl_gemm_packed_floats(f[1] * f[2] * f[3], f[0]));
        return index == 1;
}

static int repack(const struct sl_node_desc *node, uint32_t index, const void *plain, void *ret_data)
{
        const int64_t *f = node->inputs[1].shape.dims;
        int64_t depth = f[1] * f[2] * f[3];

        (void)index;
        sl_gemm_pack(plain, depth, f[0], 1, depth, ret_data);
        return 0;
}

static double seconds(const struct sl_core_figures *core, const void *state)
{
        const struct sl_planes *p = state;
        int64_t depth = p->channels * p->window.kernel[0] * p->window.kernel[1];
        double weights = (double)sl_gemm_packed_floats(depth, p->filters), rows = (double)(p->batch * p->out_height);
        double lines = 2 * 4 * rows * (double)(p->channels * p->window.stride[0] * p->line_floats);

        return sl_cost_activation(core, p->finish.activation, rows * (double)(p->out_width * p->filters), false) +
               SL_COST_STORE * rows * (double)(p->out_width * p->filters) / core->flops +
               2 * weights * rows * (double)p->out_width / core->flops / 0.95 + lines / core->near;
}

static int run(const void *state, const struct sl_binding *binding)
{
        return sl_planes_run(state, binding);
}

const struct sl_cpu_loop sl_cpu_planes = {.state_bytes = sizeof(struct sl_planes),
        .plan = plan,
        .run = run,
        .form = form,
        .repack = repack,
        .seconds = seconds,
        .finishes = true};
