/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/gemm/epilogue.h"

#include "cpu/base/operator.h"

#include <math.h>

#define ROW 1024 /* of a pass: with its halves in the L1 cache */

static bool set_activation(const struct sl_epilogue *e, struct sl_cpu_epilogue *epilogue)
{
        switch (e->activation) {
        case SL_ACT_NONE:
                return true;
        case SL_ACT_RELU:
                epilogue->least = 0.0f;
                return true;
        case SL_ACT_CLIP:
                epilogue->least = e->act_a;
                epilogue->most = e->act_b;
                return true;
        case SL_ACT_SIGMOID:
        case SL_ACT_TANH:
        case SL_ACT_LEAKY_RELU:
        case SL_ACT_GELU_ERF:
        case SL_ACT_HARD_SWISH:
        case SL_ACT_SWISH:
        case SL_ACT_ELU:
                epilogue->activation = e->activation;
                epilogue->act_a = e->act_a;
                return true;
        default:
                return false;
        }
}

SL_CPU_CLONES static void clip(int64_t n, float *y, float least, float most)
{
        for (int64_t i = 0; i < n; i++) {
                float risen = y[i] < least ? least : y[i];

                y[i] = risen > most ? most : risen;
        }
}

void sl_cpu_epilogue_pass(const struct sl_cpu_epilogue *epilogue, float *data, int64_t n)
{
        if (epilogue->least > -INFINITY || epilogue->most < INFINITY)
                clip(n, data, epilogue->least, epilogue->most);
        for (int64_t i = 0; i < n && epilogue->activation; i += ROW)
                sl_cpu_epilogue_activate(epilogue, data + i, 0, 1, n - i < ROW ? n - i : ROW);
}

bool sl_cpu_epilogue_plan(const struct sl_node_desc *node, struct sl_cpu_epilogue *ret_epilogue)
{
        struct sl_cpu_epilogue epilogue = {.least = -INFINITY, .most = INFINITY, .has_residual = node->epilogue.has_residual != 0};

        if (!set_activation(&node->epilogue, &epilogue))
                return false;
        if (epilogue.has_residual) {
                const struct sl_tensor *residual = &node->inputs[node->n_inputs - 1];

                if (residual->dtype != node->outputs[0].dtype || !sl_cpu_is_real(residual) ||
                        !sl_cpu_same_place(residual, &node->outputs[0]))
                        return false;
        }
        *ret_epilogue = epilogue;
        return true;
}
