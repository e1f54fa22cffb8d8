/* SPDX-License-Identifier: Apache-2.0 */
#include "gather.h"

uint32_t sl_policy_work_conserving(
        const struct sl_policy_view *view, uint64_t now_ns, struct sl_decision *ret_decisions, uint32_t max, uint64_t *ret_next_ns)
{
        struct sl_gathering g;
        uint32_t idle;

        (void)now_ns;
        sl_gathering_init(&g, view, ret_decisions, max);
        idle = sl_gathering_count_idle(&g);
        *ret_next_ns = UINT64_MAX;
        for (uint32_t i = 0; i < view->n_workers && idle && sl_gathering_left(&g); i++) {
                if (!sl_gathering_is_idle(&g, i))
                        continue;
                sl_gathering_give(&g, i, (sl_gathering_left(&g) + idle - 1) / idle, sl_gathering_samples_max(&g, i));
                idle--;
        }
        if (sl_gathering_gives_ahead(&g, sl_gathering_samples_max(&g, 0)))
                sl_gathering_give(&g, 0, UINT32_MAX, sl_gathering_samples_max(&g, 0));
        return g.n;
}

uint32_t sl_policy_single(
        const struct sl_policy_view *view, uint64_t now_ns, struct sl_decision *ret_decisions, uint32_t max, uint64_t *ret_next_ns)
{
        struct sl_gathering g;

        (void)now_ns;
        sl_gathering_init(&g, view, ret_decisions, max);
        *ret_next_ns = UINT64_MAX;
        for (uint32_t i = 0; i < view->n_workers && sl_gathering_left(&g); i++)
                if (sl_gathering_is_idle(&g, i))
                        sl_gathering_give(&g, i, 1, 1);
        return g.n;
}
