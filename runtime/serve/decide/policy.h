/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who computes what, and when to look again: a policy is a pure function of what it is shown, so that a recorded view has a known
 * decision, and a simulator decides as the dispatcher does. scheduler.h shows it what waits and does what it decides.
 *
 * It is asked for one model and one class of priority, whenever something may have changed. What more urgent classes decided before
 * is in the view.
 */
#pragma once

#include "batching.h"
#include "service_time.h"
#include "task_queue.h"

#include <stdbool.h>
#include <stdint.h>

/* Workers of a model that a policy looks at. */
#define SL_POLICY_WORKERS_MAX 64u

/* Tasks that share a job. */
#define SL_POLICY_TASKS_MAX 128u

struct sl_policy_worker {
        uint32_t batch_max; /* samples of its largest batch */
        uint32_t jobs;      /* that it has */
        uint32_t jobs_max;  /* that it can have */
        uint32_t let;       /* where it runs: its number in starts_max */
};

struct sl_policy_view {
        const struct sl_task_queue *waiting; /* of this class */
        bool more_urgent_waits;              /* of the same model */
        bool batchable;                      /* else each job is one task */

        /* The profile: what jobs take, and how many samples fit a slice. */
        const struct sl_service_time *service_time;
        uint32_t slice_samples;

        const struct sl_batching *batching;
        const struct sl_batching_state *batching_state;
        uint64_t samples_given; /* to workers, and not answered */

        /* How many jobs compute at once before they share the lets by time; 0: any number. What a job beside others takes longer is
         * not known, neither live nor simulated: see runtime/serve/decide/README.md. */
        uint32_t at_once;

        uint32_t n_workers;
        struct sl_policy_worker workers[SL_POLICY_WORKERS_MAX];

        uint32_t n_lets;
        uint32_t starts_max[SL_POLICY_WORKERS_MAX]; /* jobs that may start now on each let, as it is shared with others (turns.h) */
};

/*
 * The next @samples that wait, oldest first, become a job of @worker. A task that is larger is cut: the rest of it waits on. The
 * job is computed as if it had @padding more.
 */
struct sl_decision {
        uint32_t worker, samples, padding;
};

/*
 * @ret_decisions: at most @max, to be done in this order. @ret_next_ns: when to ask again although nothing has changed; UINT64_MAX:
 * never. Return: how many decisions.
 */
typedef uint32_t sl_policy_fn(
        const struct sl_policy_view *view, uint64_t now_ns, struct sl_decision *ret_decisions, uint32_t max, uint64_t *ret_next_ns);

/*
 * work_conserving: whatever waits when a worker is idle goes out at once, up to one batch and one slice, and no idle worker goes
 *     without while another gets several tasks. An only worker gets its next job while it computes, once that job is full.
 * starling: starling_policy.h.
 * single: no batches, one task to each idle worker.
 * no_wait, opt_wait, static: timed_batch.c. triton: triton.c. aimd: aimd.c. n_ebird, e_ebird: ebird.c.
 *
 * All of them give tasks out in the order in which they wait, which is that of their arrival.
 */
#define X(name, waits) sl_policy_fn sl_policy_##name;
SL_POLICIES(X)
#undef X

struct sl_policy {
        const char *name;
        sl_policy_fn *decide;
        const char *waits; /* how long something may wait while a worker is idle */
};

extern const struct sl_policy sl_policies[SL_POLICY_COUNT];
