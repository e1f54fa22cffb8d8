/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/conv/laned_winograd.h"

#include "cpu/base/cost.h"
#include "cpu/base/isa.h"
#include "cpu/conv/laned.h"
#include "cpu/conv/loops.h"

#define LANES     16
#define POSITIONS SL_LANED_POSITIONS

static bool takes_window(const struct sl_window *w)
{
        for (int i = 0; i < 2; i++)
                if (w->kernel[i] != 3 || w->stride[i] != 1 || w->dilation[i] != 1 || w->pad_begin[i] > 2 || w->pad_end[i] > 2)
                        return false;
        return true;
}

/* The vectors of filters that a vector of lanes has, however wide vectors are. */
static int64_t filter_vectors(const struct sl_conv_shape *c)
{
        return c->groups >= LANES ? c->filters : (c->filters * c->groups + 7) / 8;
}

/* As many tiles as let their inputs and products take half of the L2 cache: the weights pass by them. */
static int64_t choose_tiles(const struct sl_laned_winograd *w)
{
        int64_t all = w->tiles_down * w->tiles_across;
        int64_t one = POSITIONS * (w->shape.channels + filter_vectors(&w->shape)) * LANES * (int64_t)sizeof(float);
        int64_t tiles = sl_cpu_l2_bytes() / 2 / one / 8 * 8;

        tiles = tiles < 8 ? 8 : tiles;
        return tiles < all ? tiles : all;
}

static bool laned_winograd_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        struct sl_laned_winograd *w = state;
        const struct sl_conv_shape *c = &w->shape;

        if (!sl_cpu_has_avx2() || !sl_conv_shape_read(node, &w->shape) || !sl_cpu_is_nhwc_f32(&node->inputs[0]))
                return false;
        if (!sl_laned_takes(c->groups) || !takes_window(&c->window))
                return false;
        w->outputs = c->groups * c->filters;
        w->tiles_down = (c->out_height + 1) / 2;
        w->tiles_across = (c->out_width + 1) / 2;
        w->tiles = choose_tiles(w);
        w->input_floats = c->channels * w->tiles * LANES + SL_LANED_GAP;
        w->product_floats = filter_vectors(c) * w->tiles * LANES + SL_LANED_GAP;
        w->products_offset = POSITIONS * w->input_floats;
        w->zeros_offset = w->products_offset + POSITIONS * w->product_floats;
        sizes->scratch_bytes = (size_t)(w->zeros_offset + c->channels * c->groups + LANES) * sizeof(float);
        return true;
}

static int64_t packed_floats(const int64_t dims[4])
{
        return POSITIONS * ((dims[0] + LANES - 1) / LANES * LANES) * dims[1];
}

static bool laned_winograd_form(const struct sl_node_desc *node, uint32_t index, struct sl_packed *ret_packed)
{
        const int64_t *f = node->inputs[1].shape.dims;

        if (index == 1)
                sl_cpu_form(ret_packed, "laned winograd", f, packed_floats(f));
        return index == 1;
}

/* G g of one column of three taps, which are @stride apart. */
static void transform_three(const double *g, int stride, double *ret_values)
{
        double sum = g[0] + g[2 * stride], middle = g[stride];

        ret_values[0] = g[0];
        ret_values[1] = 0.5 * (sum + middle);
        ret_values[2] = 0.5 * (sum - middle);
        ret_values[3] = g[2 * stride];
}

/* G g G^T */
static void transform_filter(const float *taps, double *ret_values)
{
        double g[9], columns[3][4], row[4];

        for (int i = 0; i < 9; i++)
                g[i] = taps[i];
        for (int x = 0; x < 3; x++)
                transform_three(g + x, 3, columns[x]);
        for (int y = 0; y < 4; y++) {
                const double line[] = {columns[0][y], columns[1][y], columns[2][y]};

                transform_three(line, 1, row);
                for (int x = 0; x < 4; x++)
                        ret_values[y * 4 + x] = row[x];
        }
}

static int laned_winograd_repack(const struct sl_node_desc *node, uint32_t index, const void *plain, void *ret_data)
{
        const int64_t *f = node->inputs[1].shape.dims, panels = (f[0] + LANES - 1) / LANES;
        float *to = ret_data;

        (void)index;
        for (int64_t filter = 0; filter < panels * LANES; filter++)
                for (int64_t c = 0; c < f[1]; c++) {
                        double values[POSITIONS] = {0};

                        if (filter < f[0])
                                transform_filter((const float *)plain + (filter * f[1] + c) * 9, values);
                        for (int64_t i = 0; i < POSITIONS; i++)
                                to[((i * panels + filter / LANES) * f[1] + c) * LANES + filter % LANES] = (float)values[i];
                }
        return 0;
}

/* The products, the weights from whichever cache holds them, and what the transforms move. */
static double laned_winograd_seconds(const struct sl_core_figures *core, const void *state)
{
        const struct sl_laned_winograd *w = state;
        const struct sl_conv_shape *c = &w->shape;
        double tiles = (double)(c->batch * w->tiles_down * w->tiles_across);
        double weights = (double)(POSITIONS * c->channels) * (double)w->outputs;
        double inputs = POSITIONS * tiles * (double)(c->channels * c->groups), products = POSITIONS * tiles * (double)w->outputs;
        double outputs = (double)(c->batch * c->out_height * c->out_width) * (double)w->outputs;

        return sl_cost_activation(core, c->epilogue.activation, outputs, false) + 2 * tiles * weights / core->flops / 0.85 +
               sl_cost_traffic(core, 4 * weights) + sl_cost_traffic(core, 2 * 4 * (inputs + products));
}

/* Samples are not cut: their tiles share what is transformed. */
static int64_t laned_winograd_units(const void *state, uint32_t axis)
{
        const struct sl_laned_winograd *w = state;

        return axis == SL_AXIS_COLUMNS ? sl_laned_columns(&w->shape) : 0;
}

static bool laned_winograd_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct sl_conv_shape *c = &((const struct sl_laned_winograd *)state)->shape;
        bool is_result = operand == SL_REACH_OUTPUT || (c->residual && operand == c->residual);

        return part->axis == SL_AXIS_COLUMNS && (is_result || operand == 0) &&
               sl_laned_reach_columns(c, part, is_result, ret_reach);
}

static int laned_winograd_run(const void *state, const struct sl_binding *binding)
{
        return sl_laned_winograd_run(state, binding);
}

const struct sl_cpu_loop sl_cpu_laned_winograd = {.state_bytes = sizeof(struct sl_laned_winograd),
        .plan = laned_winograd_plan,
        .run = laned_winograd_run,
        .units = laned_winograd_units,
        .reach = laned_winograd_reach,
        .form = laned_winograd_form,
        .repack = laned_winograd_repack,
        .seconds = laned_winograd_seconds,
        .fuses_epilogue = true};
