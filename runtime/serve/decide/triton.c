/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Triton's dynamic batcher: the largest preferred size that waits goes out at once; what makes none waits for its delay, and goes
 * out then as large as it is. Without preferred sizes batch_max is the only one. Priority levels are the dispatcher's classes, each
 * of which is decided for by itself, and queue policies its admission and deadlines. Triton keeps the order of answers by holding
 * them back; here, in order, one batch is computed at a time.
 *
 * Sources: NVIDIA Triton Inference Server User Guide, Model Configuration, "Dynamic Batcher".
 */
#include "base/clock.h"
#include "gather.h"

/* 0: what waits makes none. */
static uint32_t preferred_size(const struct sl_gathering *g, uint32_t most)
{
        const struct sl_batching *batching = g->view->batching;
        uint32_t size = 0;

        if (!batching->n_sizes)
                return g->samples >= most ? most : 0;
        for (uint32_t i = 0; i < batching->n_sizes; i++)
                if (batching->sizes[i] <= most && batching->sizes[i] <= g->samples)
                        size = batching->sizes[i];
        return size;
}

/* An answer could overtake that of a batch before it. */
static bool could_overtake(const struct sl_gathering *g)
{
        bool busy = g->n > 0;

        if (!g->view->batching->in_order)
                return false;
        for (uint32_t i = 0; i < g->view->n_workers && !busy; i++)
                busy = g->view->workers[i].jobs > 0;
        return busy;
}

uint32_t sl_policy_triton(
        const struct sl_policy_view *view, uint64_t now_ns, struct sl_decision *ret_decisions, uint32_t max, uint64_t *ret_next_ns)
{
        struct sl_gathering g;

        sl_gathering_init(&g, view, ret_decisions, max);
        *ret_next_ns = UINT64_MAX;
        for (uint32_t i = 0; i < view->n_workers && sl_gathering_left(&g) && !could_overtake(&g); i++) {
                uint64_t due_ns = sl_gathering_oldest(&g)->arrival_ns + view->batching->delay_us * SL_NS_PER_US;
                uint32_t most = sl_gathering_samples_max(&g, i), size = preferred_size(&g, most);

                if (!sl_gathering_is_idle(&g, i))
                        continue;
                if (!size && now_ns < due_ns && view->batchable) {
                        *ret_next_ns = due_ns;
                        return g.n;
                }
                sl_gathering_give(&g, i, UINT32_MAX, size ? size : most);
        }
        return g.n;
}
