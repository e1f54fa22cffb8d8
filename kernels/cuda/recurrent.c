/* SPDX-License-Identifier: Apache-2.0 */
/*
 *      sums [rows of X, directions * gates * hidden] = X * transposed(W)      float32, in scratch; W has all directions in a column
 *      the turns of the recurrence over them                                  own kernels
 */
#include "cuda/recurrent.h"

#include "op.h"
#include "shape/recurrent.h"

#include <errno.h>

static bool read_product(const struct sl_node_desc *node, struct sl_cuda_product *ret_product)
{
        struct sl_recurrence r = {.gates = 0};
        int64_t rows, columns;

        if ((node->op != SL_OP_LSTM && node->op != SL_OP_GRU && node->op != SL_OP_RNN) || sl_recurrence_read(node, &r, NULL) ||
                r.steps < 1 || r.batch < 1 || r.inputs < 1 || r.hidden < 1)
                return false;
        rows = r.steps * r.batch;
        columns = r.directions * r.gates * r.hidden;
        if (rows > INT32_MAX || columns > INT32_MAX || rows * columns > INT32_MAX)
                return false;
        *ret_product = (struct sl_cuda_product){.type = node->inputs[0].dtype,
                .out_type = SL_DTYPE_F32,
                .rows = rows,
                .depth = r.inputs,
                .columns = columns,
                .batch = 1,
                .right_turned = true,
                .left_row = r.inputs,
                .right_row = r.inputs,
                .out_row = columns,
                .alpha = 1,
                .beta = 1};
        return true;
}

bool sl_cuda_recurrent_fits(const struct sl_node_desc *node)
{
        struct sl_cuda_product product;

        return read_product(node, &product);
}

static int add_turns(struct sl_cuda_recipe *recipe, const struct sl_node_desc *node, const struct sl_cuda_place *sums)
{
        struct sl_cuda_place places[SL_NODE_INPUTS_MAX + 1 + SL_NODE_OUTPUTS_MAX] = {{0}};

        for (uint32_t i = 0; i < node->n_inputs; i++)
                places[i] = (struct sl_cuda_place){.kind = SL_CUDA_INPUT, .index = i};
        places[node->n_inputs] = *sums;
        for (uint32_t i = 0; i < node->n_outputs; i++)
                places[node->n_inputs + 1 + i] = (struct sl_cuda_place){.kind = SL_CUDA_OUTPUT, .index = i};
        return sl_cuda_recipe_planned(recipe, node, sl_cuda_own_plan_turns, places, node->n_inputs + 1, node->n_outputs);
}

int sl_cuda_recurrent_make(struct sl_cuda_recipe *recipe, const struct sl_node_desc *node, bool tf32)
{
        struct sl_cuda_place sums = {.kind = SL_CUDA_SCRATCH};
        struct sl_cuda_product product;
        struct sl_cuda_step *step;

        if (!read_product(node, &product))
                return -ENOTSUP;
        product.tf32 = tf32;
        sums.bytes = sl_cuda_recipe_keep(recipe, (uint64_t)product.rows * (uint64_t)product.columns * sizeof(float));
        step = sl_cuda_recipe_multiply(recipe, &product);
        if (!step)
                return -ENOMEM;
        step->places[SL_CUDA_LEFT] = (struct sl_cuda_place){.kind = SL_CUDA_INPUT, .index = SL_RNN_X};
        step->places[SL_CUDA_RIGHT] = (struct sl_cuda_place){.kind = SL_CUDA_INPUT, .index = SL_RNN_W};
        step->places[SL_CUDA_OUT] = sums;
        return add_turns(recipe, node, &sums);
}
