/* SPDX-License-Identifier: Apache-2.0 */
#include "thread_state.h"

#include "accumulator.h"
#include "base/assert.h"
#include "base/clock.h"
#include "idle.h"
#include "job_runner.h"
#include "let.h"
#include "mailbox.h"
#include "sender.h"
#include "team.h"

/* Several light jobs: a thread that slept runs within a tenth of it (handout.h). */
#define TURN_NS SL_NS_PER_MS

static struct sl_ready_queue *ready_of(const struct thread_executor *t)
{
        return &t->options.let->ready;
}

void sl_thread_ring(struct thread_executor *t, struct sl_wait *from)
{
        if (sl_bell_ring(&t->bell, from))
                sl_ready_count(ready_of(t), 1);
}

void sl_thread_tell(struct thread_executor *t, struct sl_wait *from)
{
        atomic_store_explicit(&t->told, true, memory_order_seq_cst);
        sl_thread_ring(t, from);
}

/*
 * Another executor may be stopped as soon as its job has been computed, which may be before its bell has been rung here:
 *
 *   (T1) who tells: counts itself, before it gives up what keeps the executor there (the job in the ready queue, the claim), and
 *                   store-release out of it, behind the ring.
 *   (T2) stop():    load-acquire, until there are none.    pairs with T1
 */
static void begin_telling(struct thread_executor *other)
{
        atomic_fetch_add_explicit(&other->tellers, 1, memory_order_relaxed); /* what follows publishes it */
}

static void tell_other(struct thread_executor *other, struct sl_wait *from)
{
        sl_thread_tell(other, from);
        atomic_fetch_sub_explicit(&other->tellers, 1, memory_order_release);
}

static bool quits(struct thread_executor *t)
{
        return atomic_load_explicit(&t->quits, memory_order_seq_cst);
}

/* What a thread may find before it sleeps: W2. */
static bool work_waits(void *executor)
{
        struct thread_executor *t = executor;

        return atomic_load_explicit(&t->told, memory_order_seq_cst) || quits(t) || sl_ready_waiting(ready_of(t));
}

static void count_in(struct thread_executor *t)
{
        if (!t->counted)
                sl_ready_count(ready_of(t), 1);
        t->counted = true;
}

static void count_out(struct thread_executor *t)
{
        if (t->counted)
                sl_ready_count(ready_of(t), -1);
        t->counted = false;
}

/* A thread that is not there for light jobs any more leaves those that wait to threads of their own. */
static void leave_light_jobs(struct thread_executor *t)
{
        struct thread_executor *other;

        count_out(t);
        while ((other = sl_ready_take(ready_of(t)))) {
                begin_telling(other);
                tell_other(other, t->wait);
        }
}

/* The executor whose job it is, and the thread that runs it. */
struct run {
        struct thread_executor *executor, *thread;
        uint64_t began_ns; /* with its first job; 0: there was none */
};

static void answer(void *context, const struct sl_job *job, struct sl_prediction *prediction)
{
        const struct run *run = context;
        uint32_t segment = job->pieces[prediction->piece].segment;

        if (!prediction->lost)
                sl_sender_deliver(run->executor->options.accumulator, job, run->executor->options.stats, prediction);
        run->thread->ends |= prediction->combined_ns || prediction->status < 0;
        if (sl_mailbox_put(run->executor->outbox, prediction) < 0)
                SL_ASSERT(!"the outbox has room for an answer to each piece");
        /* the job may be another one by now */
        run->thread->ends |= sl_accumulator_delivered(run->executor->options.accumulator, segment);
}

static void settle_debt(struct thread_executor *t)
{
        if (t->owes)
                sl_bell_ring_for(t->options.dispatcher, t->wait, false);
        t->owes = false;
}

/* What ends nothing is said with the last light job. */
static void run_job(struct run *run, uint32_t slot)
{
        struct thread_executor *t = run->thread;
        struct sl_job *job = run->executor->jobs[slot];
        bool is_light = job->is_light;

        if (!is_light) {
                leave_light_jobs(t);
                settle_debt(t);
        }
        t->ends = false;
        if (job->priority == SL_BACKGROUND)
                sl_thread_run_in_background(t, run->executor, job, answer, run);
        else
                sl_job_runner_run(run->executor->prepared.runner, job, sl_clock_ns(), answer, run);
        t->owes = is_light && !t->ends;
        if (!t->owes)
                sl_bell_ring_for(t->options.dispatcher, t->wait, t->ends);
}

/* What is left is for whom it was given to, or the thread's own next one. */
static void hand_on(struct run *run)
{
        struct thread_executor *t = run->thread;

        if (run->executor != t) {
                begin_telling(run->executor);
                sl_claim_hand_on(&run->executor->claim);
                tell_other(run->executor, t->wait);
                return;
        }
        sl_claim_hand_on(&run->executor->claim);
        t->yields = true;
        atomic_store_explicit(&t->told, true, memory_order_seq_cst);
}

static bool others_wait(const struct run *run)
{
        struct thread_executor *t = run->thread;

        return sl_ready_waiting(ready_of(t)) ||
               (run->executor != t && (atomic_load_explicit(&t->told, memory_order_seq_cst) || quits(t)));
}

/*
 * To go on with an executor that has more is to go on with what lies in a near cache, and wakes nobody: but no longer than a turn
 * if somebody else waits for this thread, as whoever has always more to do would have it for ever.
 */
static bool is_over(const struct run *run)
{
        return run->began_ns && others_wait(run) && sl_clock_ns() - run->began_ns >= TURN_NS;
}

static void run_jobs(struct run *run)
{
        struct sl_mailbox *inbox = run->executor->inbox;
        uint32_t slot;

        do {
                while (!is_over(run) && sl_mailbox_take(inbox, &slot)) {
                        run->began_ns = run->began_ns ? run->began_ns : sl_clock_ns();
                        run_job(run, slot);
                }
                if (sl_mailbox_waiting(inbox)) {
                        hand_on(run);
                        return;
                }
        } while (!sl_claim_end(&run->executor->claim));
}

static void run_executor(struct thread_executor *t, struct thread_executor *executor)
{
        sl_claim_take(&executor->claim);
        run_jobs(&(struct run){.executor = executor, .thread = t});
}

static struct thread_executor *take_light_job(struct thread_executor *t)
{
        return quits(t) ? NULL : sl_ready_take(ready_of(t));
}

/* Its own executor comes first: who is told of a job alone has no other thread for it. Then it takes turns with what waits. */
static bool run_one(struct thread_executor *t)
{
        struct thread_executor *executor = t->yields ? take_light_job(t) : NULL;

        t->yields = false;
        if (!executor)
                executor = atomic_exchange_explicit(&t->told, false, memory_order_seq_cst) ? t : take_light_job(t);
        if (executor)
                run_executor(t, executor);
        return executor;
}

/* Who quits leaves the others' jobs to their threads, and runs what it is told of itself. */
static void run_all(struct thread_executor *t)
{
        do {
                count_in(t);
                while (run_one(t))
                        count_in(t);
                settle_debt(t);
                count_out(t); /* A2, with the look that follows */
                if (quits(t))
                        leave_light_jobs(t);
        } while (atomic_load_explicit(&t->told, memory_order_seq_cst) || sl_ready_waiting(ready_of(t)));
}

/* Returns whether there were jobs meanwhile, which it has run. */
static bool end_claim(struct thread_executor *t)
{
        if (sl_claim_end(&t->claim))
                return false;
        run_jobs(&(struct run){.executor = t, .thread = t});
        return true;
}

static bool warm_up(struct thread_executor *t)
{
        bool more;

        if (!sl_claim_try(&t->claim))
                return false;
        more = sl_warm_up_next(&t->prepared.warm_up);
        (void)end_claim(t);
        return more;
}

/* The team sleeps while its thread does, unless another thread of the let runs a job with it. Returns whether jobs came. */
static bool rest_team(struct thread_executor *t)
{
        if (!t->team || !sl_claim_try(&t->claim))
                return false;
        sl_team_rest(t->team);
        return end_claim(t);
}

void sl_thread_loop(struct thread_executor *t)
{
        for (;;) {
                run_all(t);
                if (quits(t))
                        return;
                if (!sl_idle_spin(t->options.spin_ns, work_waits, t) && !warm_up(t) && !rest_team(t))
                        t->counted = sl_idle_sleep(&t->bell, work_waits, t);
        }
}
