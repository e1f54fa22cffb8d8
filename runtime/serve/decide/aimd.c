/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clipper's adaptive batching: the largest batch grows by one with each full batch that kept the latency objective, and shrinks by
 * a tenth with each that did not. Whatever waits goes out when a worker is idle, up to that batch.
 *
 * Sources: D. Crankshaw et al., "Clipper: A Low-Latency Online Prediction Serving System", NSDI 2017, section 4.3.1.
 */
#include "base/clock.h"
#include "gather.h"

static uint32_t todays_max(const struct sl_policy_view *view)
{
        double most = view->batching_state->batch_max;

        return most > 1 ? (uint32_t)most : 1;
}

uint32_t sl_policy_aimd(
        const struct sl_policy_view *view, uint64_t now_ns, struct sl_decision *ret_decisions, uint32_t max, uint64_t *ret_next_ns)
{
        struct sl_gathering g;
        uint32_t today = todays_max(view);

        (void)now_ns;
        sl_gathering_init(&g, view, ret_decisions, max);
        *ret_next_ns = UINT64_MAX;
        for (uint32_t i = 0; i < view->n_workers && sl_gathering_left(&g); i++) {
                uint32_t most = sl_gathering_samples_max(&g, i);

                if (sl_gathering_is_idle(&g, i))
                        sl_gathering_give(&g, i, UINT32_MAX, today < most ? today : most);
        }
        return g.n;
}

/* A batch is full that has no room for another like it: requests of several samples seldom come to exactly the largest one. */
void sl_aimd_learn(
        struct sl_batching_state *state, const struct sl_batching *batching, uint32_t samples, uint32_t batch_max, uint64_t ns)
{
        double today = state->batch_max > 1 ? state->batch_max : 1;

        if (ns > batching->latency_ms * SL_NS_PER_MS)
                today *= 0.9;
        else if (2.0 * samples > today && today + 1 <= batch_max)
                today += 1;
        state->batch_max = today > 1 ? today : 1;
}
