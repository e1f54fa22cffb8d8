/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/base/cost.h"

#include "cpu/base/isa.h"
#include "op.h"

double sl_cost_traffic(const struct sl_core_figures *core, double bytes)
{
        return bytes / (bytes > (double)sl_cpu_l2_bytes() ? core->far : core->near);
}

double sl_cost_activation(const struct sl_core_figures *core, uint32_t activation, double elements, bool onednn)
{
        switch (activation) {
        case SL_ACT_NONE:
        case SL_ACT_RELU:
        case SL_ACT_CLIP:
                return 0;
        case SL_ACT_LEAKY_RELU:
        case SL_ACT_HARD_SWISH:
                return elements * (onednn ? core->onednn_light : core->light) / core->flops;
        default:
                return elements * (onednn ? core->onednn_heavy : core->heavy) / core->flops;
        }
}

double sl_cost_residual(const struct sl_core_figures *core, double elements)
{
        return 4 * elements / (8 * elements > (double)sl_cpu_l2_bytes() ? core->far : core->near);
}
