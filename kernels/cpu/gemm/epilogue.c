/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/gemm/epilogue.h"

#include "cpu/base/bfloat16.h"
#include "cpu/base/operator.h"
#include "cpu/base/vector_math.h"

#include <math.h>
#include <string.h>

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

/* Below AVX2, where oneDNN's loses a NaN. */
SL_CPU_CLONES static void sigmoid(int64_t n, float *y)
{
        for (int64_t i = 0; i < n; i++)
                y[i] = sl_sigmoid(y[i]);
}

bool sl_cpu_epilogue_passes(uint32_t activation)
{
        return activation == SL_ACT_RELU || activation == SL_ACT_CLIP || activation == SL_ACT_SIGMOID || sl_cpu_has_avx2();
}

static bool clips(const struct sl_cpu_epilogue *epilogue)
{
        return epilogue->least > -INFINITY || epilogue->most < INFINITY;
}

void sl_cpu_epilogue_pass(const struct sl_cpu_epilogue *epilogue, float *data, int64_t n)
{
        if (clips(epilogue))
                clip(n, data, epilogue->least, epilogue->most);
        if (epilogue->activation == SL_ACT_SIGMOID && !sl_cpu_has_avx2()) {
                sigmoid(n, data);
                return;
        }
        for (int64_t i = 0; i < n && epilogue->activation; i += ROW)
                sl_cpu_epilogue_activate(epilogue, data + i, 0, 1, n - i < ROW ? n - i : ROW);
}

#define INFINITE_BF16 0x7f80

/* Between 0 and @most, as whole numbers: what is below -0 and no NaN is at most -infinity's, what is above infinity a NaN. */
SL_CPU_CLONES static void rectify_bf16(int64_t n, int16_t *y, int16_t most)
{
        for (int64_t i = 0; i < n; i++) {
                int16_t risen = y[i] > INT16_MIN && y[i] <= (int16_t)(INFINITE_BF16 | 0x8000) ? 0 : y[i];
                int16_t bounded = risen < most ? risen : most;

                y[i] = risen > INFINITE_BF16 ? risen : bounded;
        }
}

/* Between bounds that are such numbers. */
SL_CPU_CLONES static void clip_bf16(int64_t n, uint16_t *y, float least, float most)
{
        for (int64_t i = 0; i < n; i++) {
                float x = sl_widen_bf16(y[i]), risen = x < least ? least : x, bounded = risen > most ? most : risen;
                uint32_t bits;

                memcpy(&bits, &bounded, sizeof(bits));
                y[i] = (uint16_t)(bits >> 16);
        }
}

void sl_cpu_epilogue_pass_bf16(const struct sl_cpu_epilogue *epilogue, uint16_t *data, int64_t n)
{
        if (epilogue->least == 0 && epilogue->most >= 0)
                rectify_bf16(n, (int16_t *)data, (int16_t)sl_narrow_bf16(epilogue->most));
        else if (clips(epilogue))
                clip_bf16(n, data, sl_widen_bf16(sl_narrow_bf16(epilogue->least)), sl_widen_bf16(sl_narrow_bf16(epilogue->most)));
        if (epilogue->activation)
                sl_cpu_epilogue_activate_bf16(epilogue, data, n);
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
