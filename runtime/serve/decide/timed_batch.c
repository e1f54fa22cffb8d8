/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TensorFlow Serving's batching, as the three baselines of E2bird use it: a batch goes out when it is full (batch_max, which is
 * max_batch_size) or its oldest request has waited long enough (batch_timeout_micros).
 *
 * Sources: TensorFlow Serving Batching Guide; W. Cui et al., "E2bird", section 3.
 */
#include "base/clock.h"
#include "gather.h"

static uint32_t timed_batch(const struct sl_policy_view *view, uint64_t now_ns, uint64_t delay_ns, bool pads,
        struct sl_decision *ret_decisions, uint32_t max, uint64_t *ret_next_ns)
{
        struct sl_gathering g;

        sl_gathering_init(&g, view, ret_decisions, max);
        *ret_next_ns = UINT64_MAX;
        for (uint32_t i = 0; i < view->n_workers && sl_gathering_left(&g); i++) {
                uint64_t due_ns = sl_gathering_oldest(&g)->arrival_ns + delay_ns;
                uint32_t full = sl_gathering_samples_max(&g, i), samples;

                if (!sl_gathering_is_idle(&g, i))
                        continue;
                if (now_ns < due_ns && g.samples < full && view->batchable) {
                        *ret_next_ns = due_ns;
                        return g.n;
                }
                samples = sl_gathering_give(&g, i, UINT32_MAX, full);
                if (pads && samples < full && view->batchable)
                        g.decisions[g.n - 1].padding = full - samples;
        }
        return g.n;
}

uint32_t sl_policy_no_wait(
        const struct sl_policy_view *view, uint64_t now_ns, struct sl_decision *ret_decisions, uint32_t max, uint64_t *ret_next_ns)
{
        return timed_batch(view, now_ns, 0, false, ret_decisions, max, ret_next_ns);
}

uint32_t sl_policy_opt_wait(
        const struct sl_policy_view *view, uint64_t now_ns, struct sl_decision *ret_decisions, uint32_t max, uint64_t *ret_next_ns)
{
        return timed_batch(view, now_ns, view->batching->delay_us * SL_NS_PER_US, false, ret_decisions, max, ret_next_ns);
}

uint32_t sl_policy_static(
        const struct sl_policy_view *view, uint64_t now_ns, struct sl_decision *ret_decisions, uint32_t max, uint64_t *ret_next_ns)
{
        return timed_batch(view, now_ns, view->batching->delay_us * SL_NS_PER_US, true, ret_decisions, max, ret_next_ns);
}
