/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/conv/laned.h"

#include "cpu/base/cost.h"
#include "cpu/base/isa.h"
#include "cpu/conv/grouped.h"
#include "cpu/conv/loops.h"

#define LANES SL_GROUPED_LANES

static bool is_pointwise(const struct sl_conv_shape *c)
{
        const struct sl_window *w = &c->window;

        return w->kernel[0] == 1 && w->kernel[1] == 1 && w->stride[0] == 1 && w->stride[1] == 1 && !w->pad_begin[0] &&
               !w->pad_begin[1] && c->out_height == c->height && c->out_width == c->width;
}

static bool laned_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        struct sl_laned *l = state;
        const struct sl_conv_shape *c = &l->shape;

        if (!sl_cpu_has_avx2() || !sl_conv_shape_read(node, &l->shape) || !sl_cpu_is_nhwc_f32(&node->inputs[0]))
                return false;
        if (!sl_laned_takes(c->groups) || c->window.dilation[0] != 1 || c->window.dilation[1] != 1)
                return false;
        l->outputs = c->groups * c->filters;
        if (is_pointwise(c) && c->groups % LANES == 0)
                return true;
        l->frame_columns = (c->out_width - 1) * c->window.stride[1] + c->window.kernel[1];
        sizes->scratch_bytes =
                (size_t)(sl_laned_frame_rows(l, c->out_height) * c->channels * l->frame_columns * LANES) * sizeof(float);
        return true;
}

static bool laned_form(const struct sl_node_desc *node, uint32_t index, struct sl_packed *ret_packed)
{
        const int64_t *f = node->inputs[1].shape.dims;

        if (index == 1)
                sl_cpu_form(ret_packed, "laned", f, sl_grouped_packed_floats(f));
        return index == 1;
}

static int laned_repack(const struct sl_node_desc *node, uint32_t index, const void *plain, void *ret_data)
{
        (void)index;
        sl_grouped_pack(node->inputs[1].shape.dims, plain, ret_data);
        return 0;
}

/* Most of the peak, or the weights from whichever cache holds those of all lanes. */
static double laned_seconds(const struct sl_core_figures *core, const void *state)
{
        const struct sl_laned *l = state;
        const struct sl_conv_shape *c = &l->shape;
        double weights = (double)l->outputs * (double)(c->channels * c->window.kernel[0] * c->window.kernel[1]);
        double outputs = (double)c->batch * (double)(c->out_height * c->out_width) * (double)l->outputs;
        double inputs = (double)c->batch * (double)(c->height * c->width * c->channels * c->groups);
        double products = 2 * weights * (double)(c->batch * c->out_height * c->out_width) / core->flops / 0.85;

        return sl_cost_activation(core, c->epilogue.activation, outputs, false) +
               sl_cost_longer(products, sl_cost_traffic(core, 4 * weights)) + sl_cost_traffic(core, 4 * (outputs + inputs));
}

static int64_t laned_units(const void *state, uint32_t axis)
{
        const struct sl_laned *l = state;

        return axis == SL_AXIS_ROWS ? l->shape.batch * l->shape.out_height : sl_laned_columns(&l->shape);
}

static int laned_run(const void *state, const struct sl_binding *binding)
{
        return sl_laned_run(state, binding);
}

/* Windows of neighbouring rows lie over each other. */
static bool laned_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct sl_laned *l = state;
        bool is_result = operand == SL_REACH_OUTPUT || (l->shape.residual && operand == l->shape.residual);

        if (part->axis == SL_AXIS_COLUMNS)
                return (is_result || operand == 0) && sl_laned_reach_columns(&l->shape, part, is_result, ret_reach);
        return is_result && sl_reach_rows(part, l->shape.out_width * l->outputs * (int64_t)sizeof(float), ret_reach);
}

const struct sl_cpu_loop sl_cpu_laned_conv = {.state_bytes = sizeof(struct sl_laned),
        .plan = laned_plan,
        .run = laned_run,
        .units = laned_units,
        .reach = laned_reach,
        .form = laned_form,
        .repack = laned_repack,
        .seconds = laned_seconds,
        .fuses_epilogue = true};
