/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/window_product.h"

#include "cpu/cost.h"
#include "cpu/describe.h"
#include "cpu/gemm.h"
#include "cpu/isa.h"

/* That do not make up for waiting for the weights at first. */
#define FEW_ROWS 1024

static bool is_convolution(const struct sl_node_desc *node)
{
        const struct sl_tensor *x = &node->inputs[0], *y = &node->outputs[0], *f = sl_describe_input(node, 1);

        if (!f || x->shape.rank != 4 || !sl_cpu_is_nhwc_f32(x) || !sl_cpu_is_nhwc_f32(y) || !sl_cpu_is_f32(f))
                return false;
        return !sl_cpu_is_empty(x) && !sl_cpu_is_empty(y) && !sl_cpu_is_empty(f) &&
               sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1) == 1;
}

static bool is_pointwise(const struct sl_window *w)
{
        for (uint32_t i = 0; i < 2; i++)
                if (w->kernel[i] != 1 || w->stride[i] != 1 || w->pad_begin[i] || w->pad_end[i])
                        return false;
        return true;
}

/*
 * As many rows as stay in the second-level cache beside a panel of weights, or more when the weights themselves do not: every block
 * reads all of them.
 */
static int64_t choose_block(const struct sl_window_product *p)
{
        int64_t floats = sl_cpu_cache_bytes() / (int64_t)sizeof(float) * (p->streams ? 5 : 2) / 8, fitting = floats / p->depth,
                blocks;

        if (fitting < 14)
                fitting = 14;
        blocks = (p->rows + fitting - 1) / fitting;
        return (p->rows + blocks - 1) / blocks;
}

static bool plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const int64_t *x = node->inputs[0].shape.dims, *y = node->outputs[0].shape.dims;
        struct sl_window_product *p = state;

        if (!sl_cpu_has_avx512() || !is_convolution(node) || sl_window_read(node, &p->window, NULL) ||
                !sl_finish_plan(node, &p->finish))
                return false;
        p->channels = x[1];
        p->height = x[2];
        p->width = x[3];
        p->filters = y[1];
        p->out_height = y[2];
        p->out_width = y[3];
        p->rows = y[0] * y[2] * y[3];
        p->depth = p->window.kernel[0] * p->window.kernel[1] * p->channels;
        p->streams = p->depth * p->filters * (int64_t)sizeof(float) > sl_cpu_cache_bytes() / 4;
        p->block_rows = is_pointwise(&p->window) ? 0 : choose_block(p);
        p->streams |= !p->block_rows && p->rows <= FEW_ROWS;
        p->has_bias = sl_describe_input(node, 2) != NULL;
        p->residual = p->finish.has_residual ? node->n_inputs - 1 : 0;
        sizes->scratch_bytes = (size_t)(p->block_rows * p->depth) * sizeof(float);
        return true;
}

static bool form(const struct sl_node_desc *node, uint32_t index, struct sl_packed *ret_packed)
{
        const int64_t *f = node->inputs[1].shape.dims;

        if (index == 1)
                sl_cpu_form(ret_packed, "window product", f, sl_gemm_packed_floats(f[1] * f[2] * f[3], f[0]));
        return index == 1;
}

/* [filter][channel][tap] to panels of [tap][channel]. */
static int repack(const struct sl_node_desc *node, uint32_t index, const void *plain, void *ret_data)
{
        const int64_t *f = node->inputs[1].shape.dims;
        int64_t filters = f[0], channels = f[1], taps = f[2] * f[3];
        const float *from = plain;
        float *to = ret_data;

        (void)index;
        for (int64_t first = 0; first < filters; first += SL_GEMM_PANEL) {
                int64_t own = filters - first < SL_GEMM_PANEL ? filters - first : SL_GEMM_PANEL;
                int64_t width = sl_gemm_packed_floats(1, own);

                for (int64_t tap = 0; tap < taps; tap++, to += channels * width)
                        sl_gemm_pack(from + first * channels * taps + tap, channels, own, taps, channels * taps, to);
        }
        return 0;
}

/*
 * Two copies of the rows where they are made, and nothing for the call; half filled panels count whole. Nobody has fetched the
 * first panel ahead.
 */
static double seconds(const void *state)
{
        const struct sl_window_product *p = state;
        double weights = (double)sl_gemm_packed_floats(p->depth, p->filters), rows = (double)p->rows;
        double elements = rows * (double)p->filters, copied = p->block_rows ? 2 * 4 * rows * (double)p->depth : 0;
        double products = 2 * weights * rows / SL_COST_FLOPS / (p->block_rows ? 0.86 : 1);
        double first = 4 * (double)sl_gemm_packed_floats(p->depth, p->filters < SL_GEMM_PANEL ? p->filters : SL_GEMM_PANEL) /
                       SL_COST_BYTES;

        return sl_cost_activation(p->finish.activation, elements, false) + (p->residual ? sl_cost_residual(elements) : 0) +
               elements * SL_COST_STORE + copied / SL_COST_NEAR + sl_cost_longer(products + first, 4 * weights / SL_COST_BYTES);
}

static int run(const void *state, const struct sl_binding *binding)
{
        return sl_window_product_run(state, binding);
}

const struct sl_cpu_loop sl_cpu_window_product = {.state_bytes = sizeof(struct sl_window_product),
        .plan = plan,
        .run = run,
        .form = form,
        .repack = repack,
        .seconds = seconds,
        .finishes = true};
