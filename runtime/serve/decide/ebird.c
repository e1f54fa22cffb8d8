/* SPDX-License-Identifier: Apache-2.0 */
/*
 * N-Ebird and E-Ebird: batches of powers of two go out beside each other, as long as no more than MaxInf samples are alive.
 *
 * The printed algorithms go on with the same worker after Q.remove(Worker); they are read as going on with the next one. CurInf,
 * which they never change, is what is given and not answered. The idle queue is a set of workers for each power of two: the worker
 * of the largest batch that is not above R is found among at most 17 words, whatever the number of workers.
 *
 * What the paper leaves open: Algorithm 2 takes the stored row of the largest load that is not above what is pending
 * (sl_ebird_row()), and is run until it gives nothing more. When nothing is alive and no worker is small enough, the smallest one
 * takes what there is: an engine without a worker of 1 would wait for ever.
 *
 * Nor has it classes. Nothing starts while something more urgent waits: what that waits for, a worker that is small enough or all
 * of them idle, might never come while others are given.
 *
 * The paper knows no slices. A batch that would take longer than one is the largest power of two that fits, and counts as that
 * where MaxInf is summed up; the worker stays in the class that it is of. Published figures want a slice_ms above the largest
 * batch.
 *
 * Sources: W. Cui et al., "E2bird", sections 7.2 and 7.3, algorithms 1 and 2, table 3.
 */
#include "policy.h"

#include <string.h>

#define CLASSES 17u /* batch sizes of up to 65,536 */

struct round {
        const struct sl_policy_view *view;
        struct sl_decision *decisions;
        uint32_t n, max;
        uint64_t pending, alive, alive_max;
        uint32_t slice;           /* the largest power of two that fits one */
        uint64_t idle[CLASSES];   /* workers of batch size 2^i, as bits */
        uint32_t engine[CLASSES]; /* all workers of that size */
        uint32_t starts[SL_POLICY_WORKERS_MAX];
};

static uint32_t log_2(uint32_t value)
{
        return 31 - (uint32_t)__builtin_clz(value);
}

/* A worker computes batches of a power of two, its largest one. */
static uint32_t class_of(const struct sl_policy_view *view, uint32_t worker)
{
        uint32_t size = view->workers[worker].batch_max;

        return size > 1 ? log_2(size) % CLASSES : 0;
}

/* What a worker of that class is given. */
static uint32_t batch_of(const struct round *r, uint32_t class)
{
        return 1u << class < r->slice ? 1u << class : r->slice;
}

static void round_init(struct round *r, const struct sl_policy_view *view, struct sl_decision *ret_decisions, uint32_t max)
{
        *r = (struct round){.view = view, .decisions = ret_decisions, .max = max};
        r->pending = view->waiting->samples;
        r->alive = view->samples_given;
        r->slice = view->slice_samples > 1 ? 1u << log_2(view->slice_samples) : 1;
        memcpy(r->starts, view->starts_max, view->n_lets * sizeof(r->starts[0]));
        for (uint32_t i = 0; i < view->n_workers; i++) {
                uint32_t class = class_of(view, i);

                r->alive_max += batch_of(r, class);
                r->engine[class]++;
                if (view->workers[i].jobs == 0)
                        r->idle[class] |= 1ull << i;
        }
}

static uint64_t round_left(const struct round *r)
{
        uint64_t room = r->alive < r->alive_max ? r->alive_max - r->alive : 0;

        return r->pending < room ? r->pending : room;
}

static void run(struct round *r, uint32_t class, uint32_t worker, uint32_t samples)
{
        r->idle[class] &= ~(1ull << worker);
        r->starts[r->view->workers[worker].let]--;
        r->decisions[r->n++] = (struct sl_decision){.worker = worker, .samples = samples};
        r->pending -= samples;
        r->alive += samples;
}

/* Q.front() and Worker.next(): once through the idle workers, from the largest. @idle: which of them the queue has. */
static uint32_t run_largest(struct round *r, const uint64_t idle[CLASSES])
{
        uint32_t before = r->n;

        for (uint32_t class = CLASSES; class -- > 0;)
                for (uint64_t left = idle[class]; left && round_left(r) >= batch_of(r, class) && r->n < r->max; left &= left - 1) {
                        uint32_t worker = (uint32_t)__builtin_ctzll(left);

                        if (r->starts[r->view->workers[worker].let])
                                run(r, class, worker, batch_of(r, class));
                }
        return r->n - before;
}

static void run_smallest(struct round *r)
{
        for (uint32_t class = 0; class < CLASSES && r->n < r->max; class ++)
                for (uint64_t left = r->idle[class]; left; left &= left - 1) {
                        uint32_t worker = (uint32_t)__builtin_ctzll(left);
                        uint64_t samples = r->pending < batch_of(r, class) ? r->pending : batch_of(r, class);

                        if (!r->starts[r->view->workers[worker].let])
                                continue;
                        run(r, class, worker, (uint32_t)samples);
                        return;
                }
}

static bool is_alive(const struct round *r)
{
        for (uint32_t i = 0; i < r->view->n_workers; i++)
                if (r->view->workers[i].jobs)
                        return true;
        return r->n > 0;
}

static uint32_t round_end(struct round *r)
{
        if (r->pending && !is_alive(r))
                run_smallest(r);
        return r->n;
}

uint32_t sl_policy_n_ebird(
        const struct sl_policy_view *view, uint64_t now_ns, struct sl_decision *ret_decisions, uint32_t max, uint64_t *ret_next_ns)
{
        struct round r;

        if (!view->batchable)
                return sl_policy_single(view, now_ns, ret_decisions, max, ret_next_ns);
        *ret_next_ns = UINT64_MAX;
        if (view->more_urgent_waits)
                return 0;
        round_init(&r, view, ret_decisions, max);
        run_largest(&r, r.idle);
        return round_end(&r);
}

/* Of the engine, those idle workers that CurConf has room for beside the busy ones. */
static void queue_update(const struct round *r, const struct sl_ebird_configuration *current, uint64_t ret_idle[CLASSES])
{
        memset(ret_idle, 0, CLASSES * sizeof(*ret_idle));
        for (uint32_t class = 0; class < SL_EBIRD_SIZES; class ++) {
                uint32_t busy = r->engine[class] - (uint32_t)__builtin_popcountll(r->idle[class]);
                uint64_t left = r->idle[class];

                for (uint32_t n = busy; n < current->workers[class] && left; n++) {
                        ret_idle[class] |= left & -left;
                        left &= left - 1;
                }
        }
}

uint32_t sl_policy_e_ebird(
        const struct sl_policy_view *view, uint64_t now_ns, struct sl_decision *ret_decisions, uint32_t max, uint64_t *ret_next_ns)
{
        struct sl_ebird_configuration current;
        uint64_t idle[CLASSES];
        struct round r;

        if (!view->batchable)
                return sl_policy_single(view, now_ns, ret_decisions, max, ret_next_ns);
        *ret_next_ns = UINT64_MAX;
        if (view->more_urgent_waits)
                return 0;
        round_init(&r, view, ret_decisions, max);
        r.alive_max = sl_ebird_load(SL_EBIRD_ROWS - 1);
        do {
                current = sl_ebird_row(&view->batching->engine, r.pending);
                queue_update(&r, &current, idle);
        } while (run_largest(&r, idle));
        return round_end(&r);
}
