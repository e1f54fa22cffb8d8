/* SPDX-License-Identifier: Apache-2.0 */
#include "precision_cost.h"

#include "backend.h"
#include "base/cleanup.h"
#include "op.h"
#include "plan_map.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static bool is_of_bytes(const struct sl_node_desc *node)
{
        return node->op == SL_OP_QUANTIZED_CONV || node->op == SL_OP_QUANTIZED_MATMUL;
}

static bool is_of_bf16(const struct sl_node_desc *node)
{
        return node->inputs[0].dtype == SL_DTYPE_BF16 && node->n_inputs > 1 && sl_op_multiply_adds(node) > 0;
}

static bool is_image(const struct sl_node_desc *node)
{
        return node->op == SL_OP_QUANTIZED_CONV || node->op == SL_OP_CONV;
}

static bool is_of_single_channels(const struct sl_node_desc *node)
{
        return is_image(node) && node->inputs[1].shape.rank > 1 && node->inputs[1].shape.dims[1] == 1;
}

/* All rows of a tensor as those of one matrix. */
static void flatten(struct sl_shape *shape)
{
        int64_t columns = shape->rank ? shape->dims[shape->rank - 1] : 1;

        *shape = (struct sl_shape){2, {columns ? (int64_t)sl_shape_elements(shape) / columns : 0, columns}};
}

/* The same product in float32, by itself. */
static void make_float_twin(struct sl_node_desc *node)
{
        if (node->op == SL_OP_QUANTIZED_CONV)
                node->op = SL_OP_CONV;
        if (node->op == SL_OP_QUANTIZED_MATMUL) {
                node->op = SL_OP_GEMM;
                flatten(&node->inputs[0].shape);
                flatten(&node->outputs[0].shape);
        }
        sl_attrs_remove(&node->attrs, SL_ATTR_ALGORITHM);
        node->inputs[0].dtype = node->inputs[1].dtype = node->outputs[0].dtype = SL_DTYPE_F32;
        node->n_inputs = 2;
        node->epilogue.has_residual = 0;
}

static double longer(double a, double b)
{
        return a > b ? a : b;
}

/* By its rate, or as long as its weights take to come. */
static double rate_seconds(const struct sl_node_desc *node, double rate, const struct sl_core_figures *core)
{
        return longer(2.0 * (double)sl_op_multiply_adds(node) / rate, (double)sl_tensor_bytes(&node->inputs[1]) / core->weights);
}

/* Of Sigmoid and its like behind a product. */
static double function_seconds(const struct sl_node_desc *node, const struct sl_core_figures *core)
{
        double elements = (double)sl_shape_elements(&node->outputs[0].shape);

        switch (node->epilogue.activation) {
        case SL_ACT_SIGMOID:
        case SL_ACT_SWISH:
                return elements * core->heavy / core->flops;
        case SL_ACT_HARD_SWISH:
                return elements * core->light / core->flops;
        default:
                return 0;
        }
}

static double float_seconds(const struct sl_backend *backend, const struct sl_node_desc *node, const struct sl_core_figures *core)
{
        const struct sl_target target = {.core = *core};
        uint32_t algorithms[SL_ALGORITHM_COUNT];
        double seconds[SL_ALGORITHM_COUNT];

        if (backend->planner->algorithms && backend->planner->algorithms(&target, node, algorithms, seconds))
                return seconds[0];
        return rate_seconds(node, core->flops, core);
}

/* Of the algorithm that the plan has for the node; 0: it is by the rate. */
static double saving_seconds(const struct sl_backend *backend, const struct sl_node_desc *node, const struct sl_core_figures *core)
{
        uint32_t algorithms[SL_ALGORITHM_COUNT], n = 0;
        uint32_t chosen = (uint32_t)sl_attrs_int(&node->attrs, SL_ATTR_ALGORITHM, SL_ALGORITHM_AUTO);
        const struct sl_target target = {.core = *core};
        double seconds[SL_ALGORITHM_COUNT];

        if (sl_algorithm_is_approximate(chosen) && backend->planner->algorithms)
                n = backend->planner->algorithms(&target, node, algorithms, seconds);
        for (uint32_t i = 0; i < n; i++)
                if (algorithms[i] == chosen)
                        return seconds[i];
        return 0;
}

/* @node is lost. */
static void add_product(const struct sl_backend *backend, struct sl_node_desc *node, const struct sl_core_figures *known,
        struct sl_precision_cost *cost)
{
        const struct sl_core_figures core = sl_core_figures_complete(known);
        bool bytes = is_of_bytes(node);
        double rate = bytes ? sl_core_bytes_rate(known) : known->bf16, saving;

        if ((!bytes && !is_of_bf16(node)) || is_of_single_channels(node) || !(rate > 0) || !(known->flops > 0))
                return;
        cost->products++;
        cost->precision = bytes ? "int8" : "bf16";
        cost->rate = rate;
        saving = saving_seconds(backend, node, &core);
        cost->seconds += saving > 0 ? saving : rate_seconds(node, rate, &core) + (bytes ? 0 : function_seconds(node, &core));
        make_float_twin(node);
        cost->float_seconds += float_seconds(backend, node, &core);
}

static const struct sl_plan_program *smallest_program(const struct sl_plan *plan)
{
        const struct sl_plan_program *program = plan->programs;

        if (!plan->info->n_batches)
                return NULL;
        while (program->batch != plan->info->batches[0])
                program++;
        return program;
}

int sl_precision_cost(const struct sl_plan *plan, const struct sl_core_figures *core, struct sl_precision_cost *ret_cost)
{
        SL_CLEANUP(sl_cleanup_free) struct sl_plan_call *call = calloc(1, sizeof(*call));
        struct sl_precision_cost cost = {.float_rate = core->flops};
        const struct sl_plan_program *program = smallest_program(plan);

        if (!call)
                return -ENOMEM;
        for (uint64_t i = 0; program && i < program->n_steps; i++) {
                const struct sl_plan_step *step = &plan->steps[program->first_step + i];
                const struct sl_backend *backend = step->dynamic ? NULL : sl_backend_find(plan->backends[step->backend].name);
                int r = backend ? sl_plan_read_step(plan, step, call) : 0;

                if (r < 0)
                        return r;
                if (backend)
                        add_product(backend, &call->node, core, &cost);
        }
        *ret_cost = cost;
        return 0;
}

bool sl_precision_is_slower(const struct sl_precision_cost *cost, char ret_text[SL_PRECISION_TEXT_BYTES])
{
        if (!cost->products || cost->seconds <= cost->float_seconds)
                return false;
        snprintf(ret_text, SL_PRECISION_TEXT_BYTES,
                "its products in %s should take %.3g ms on this core, in fp32 %.3g ms: slower than fp32 here (%s %.3g, fp32 "
                "%.3g GFLOP/s)",
                cost->precision, cost->seconds * 1e3, cost->float_seconds * 1e3, cost->precision, cost->rate / 1e9,
                cost->float_rate / 1e9);
        return true;
}
