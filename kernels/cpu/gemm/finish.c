/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/gemm/finish.h"

#include "cpu/base/operator.h"

#include <math.h>

static bool set_activation(const struct sl_epilogue *e, struct sl_finish *finish)
{
        switch (e->activation) {
        case SL_ACT_NONE:
                return true;
        case SL_ACT_RELU:
                finish->least = 0.0f;
                return true;
        case SL_ACT_CLIP:
                finish->least = e->act_a;
                finish->most = e->act_b;
                return true;
        case SL_ACT_SIGMOID:
        case SL_ACT_TANH:
        case SL_ACT_LEAKY_RELU:
        case SL_ACT_GELU_ERF:
        case SL_ACT_HARD_SWISH:
        case SL_ACT_SWISH:
        case SL_ACT_ELU:
                finish->activation = e->activation;
                finish->act_a = e->act_a;
                return true;
        default:
                return false;
        }
}

bool sl_finish_plan(const struct sl_node_desc *node, struct sl_finish *ret_finish)
{
        struct sl_finish finish = {.least = -INFINITY, .most = INFINITY, .has_residual = node->epilogue.has_residual != 0};

        if (!set_activation(&node->epilogue, &finish))
                return false;
        if (finish.has_residual) {
                const struct sl_tensor *residual = &node->inputs[node->n_inputs - 1];

                if (!sl_cpu_is_f32(residual) || !sl_cpu_same_place(residual, &node->outputs[0]))
                        return false;
        }
        *ret_finish = finish;
        return true;
}
