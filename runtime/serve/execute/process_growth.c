/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for the data-dependent steps of a worker in its own process, which cannot take from the books itself: it asks, and the
 * dispatcher answers (A1 to B2 of process_link.h). What it wants is not believed: at most dynamic_bytes are granted to it, what its
 * staging has room for, and what its plan may pack.
 */
#include "process_state.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

bool sl_process_asks(const struct sl_process *p)
{
        return atomic_load_explicit(&p->reply->asks, memory_order_seq_cst) !=
               atomic_load_explicit(&p->order->asks_answered, memory_order_relaxed);
}

static void grant(struct sl_process *p, uint64_t wanted)
{
        uint64_t most =
                p->options.dynamic_bytes + p->staging.job_bytes * p->common.jobs_max + sl_plan_packed_bytes_max(p->options.plan);

        if (wanted > most || wanted <= p->growth.grant.bytes)
                return;
        if (!p->options.growth)
                p->growth.grant.bytes = wanted;
        else if (sl_growth_share_more(&p->growth, wanted))
                sl_growth_share_show(&p->growth);
}

void sl_process_answer_ask(struct sl_process *p)
{
        uint32_t asks = atomic_load_explicit(&p->reply->asks, memory_order_seq_cst); /* A2 */

        if (asks == atomic_load_explicit(&p->order->asks_answered, memory_order_relaxed))
                return;
        grant(p, atomic_load_explicit(&p->reply->wanted_bytes, memory_order_relaxed));
        atomic_store_explicit(&p->order->granted_bytes, p->growth.grant.bytes, memory_order_relaxed);
        atomic_store_explicit(&p->order->left_bytes, p->growth.grant.left_bytes, memory_order_relaxed);
        atomic_store_explicit(&p->order->max_bytes, p->growth.grant.max_bytes, memory_order_relaxed);
        atomic_store_explicit(&p->order->asks_answered, asks, memory_order_release); /* B1 */
        (void)syscall(SYS_futex, &p->order->asks_answered, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void sl_process_note_used(struct sl_process *p)
{
        struct sl_pool_grant *own = &p->growth.grant;
        uint64_t used = atomic_load_explicit(&p->reply->used_bytes, memory_order_relaxed);

        if (used > own->bytes)
                used = own->bytes;
        if (used <= own->peak_bytes)
                return;
        own->peak_bytes = used;
        sl_growth_share_show(&p->growth);
}
