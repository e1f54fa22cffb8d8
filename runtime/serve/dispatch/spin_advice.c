/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the dispatcher tells its clients about spinning (shm/doorbell.h): how many cores there are, how many threads would want one
 * if every client that waits spun, and how late it is itself. Counted about a hundred times a second, published when it changes.
 */
#include "spin_advice.h"

#include "base/clock.h"
#include "dispatcher_state.h"
#include "doorbell.h"
#include "executor.h"
#include "let.h"

#define ADVISE_STEP_NS (10 * SL_NS_PER_MS)

struct clients_counted {
        uint32_t waiting;
        uint32_t entries; /* since the last count */
};

/* A queue pair whose client waits, or did: it has requests in flight, or had an entry since the last count. */
static void count_queue(struct sl_queue *queue, struct clients_counted *counted)
{
        uint32_t entries = queue->head - queue->counted_head;

        queue->counted_head = queue->head;
        counted->entries += entries;
        counted->waiting += queue->in_flight || entries;
}

static struct clients_counted count_clients(struct sl_dispatcher *d)
{
        struct clients_counted counted = {0};

        for (uint32_t i = 0; i < d->n_hot; i++)
                count_queue(d->hot[i], &counted);
        return counted;
}

/* Where one entry in so many at least was for workers, they count, whether one has a job just now or not. */
#define GIVEN_SHARE 8u

static uint32_t count_computing(struct sl_dispatcher *d, uint32_t entries)
{
        bool computed = d->given > entries / GIVEN_SHARE;
        uint32_t n = 0;

        for (const struct sl_model *model = d->models; model; model = model->next)
                for (uint32_t i = 0; i < sl_workers_all(&model->workers) && !model->bundle; i++)
                        n += sl_executor_jobs(model->workers.list[i]) > 0;
        for (const struct sl_bundle *bundle = d->bundles; bundle; bundle = bundle->next)
                for (uint32_t i = 0; i < bundle->n_carriers; i++)
                        n += bundle->carriers[i]->n_launches > 0;
        d->given = 0;
        return n ? n : computed;
}

static bool overlap(const cpu_set_t *a, const cpu_set_t *b)
{
        cpu_set_t common;

        CPU_AND(&common, a, b);
        return CPU_COUNT(a) == 0 || CPU_COUNT(b) == 0 || CPU_COUNT(&common) > 0;
}

static bool workers_share_core(const struct sl_dispatcher *d)
{
        for (const struct sl_model *model = d->models; model; model = model->next)
                for (uint32_t i = 0; i < sl_workers_all(&model->workers); i++)
                        if (overlap(&d->options.cpus, &model->workers.list[i]->let->cpus))
                                return true;
        return false;
}

void sl_shared_core_note(struct sl_dispatcher *d)
{
        d->shares_core = workers_share_core(d);
}

/* The dispatcher does not spin where workers compute: it and they take turns on one core. */
static uint32_t count_own(const struct sl_dispatcher *d, uint32_t computing)
{
        return d->shares_core && computing ? computing : computing + 1;
}

void sl_spin_advice_give(struct sl_dispatcher *d, uint64_t now_ns)
{
        if (now_ns - d->advised_ns < ADVISE_STEP_NS)
                return;

        struct clients_counted clients = count_clients(d);

        d->waiting = clients.waiting;

        uint32_t computing = count_computing(d, clients.entries), wanted = d->waiting + count_own(d, computing);

        d->advised_ns = now_ns;
        d->crowded = d->options.cores && wanted > d->options.cores;
        sl_spin_advise(d->options.line, d->options.cores, wanted, sl_lateness_read(&d->lateness, clients.entries), computing);
}
