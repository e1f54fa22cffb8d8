/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job of class SL_BACKGROUND. Between two steps of its network the thread looks whether somebody waits:
 *
 *     computes --the let is wanted--> pauses --it is not any more--> computes
 *        |                              |
 *        +------------------------------+--another job for this executor, or the request is given up--> leaves
 *
 * Who pauses keeps what is computed. Who leaves answers SL_LOST_YIELDED, and the job begins anew behind what it has left for: its
 * instance is wanted, which has one workspace. A job is a slice at most, or one sample, so that no more is lost.
 *
 *   (I1) dispatcher: puts a job, then GIVEN into the claim (claim.h), then wakes who waits on the claim.
 *   (I2) thread:     takes GIVEN out of the claim, then looks at the inbox, then waits as long as the claim is RUN.   pairs with I1
 */
#include "accumulator.h"
#include "base/clock.h"
#include "job_runner.h"
#include "let.h"
#include "mailbox.h"
#include "stop.h"
#include "thread_state.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* So often it looks whether its let is wanted still: the dispatcher need not tell it. */
#define PAUSE_NS (SL_NS_PER_MS / 2)

struct background {
        struct sl_way way;
        struct thread_executor *executor, *thread; /* whose job it is, and who runs it */
        const struct sl_job *job;
};

void sl_thread_recall(struct thread_executor *t)
{
        (void)syscall(SYS_futex, &t->claim.word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0); /* I1 */
}

static bool is_wanted(const struct background *background)
{
        return atomic_load_explicit(&background->executor->options.let->is_wanted, memory_order_relaxed);
}

/* Another thread's executor is left at once: this thread may be told of a job of its own. */
static bool leaves(const struct background *background)
{
        return sl_mailbox_waiting(background->executor->inbox) ||
               (background->executor != background->thread && is_wanted(background));
}

static bool is_given_up(const struct background *background)
{
        for (uint32_t i = 0; i < background->job->n_pieces; i++)
                if (atomic_load_explicit(
                            sl_accumulator_verdict(background->executor->options.accumulator, background->job->pieces[i].segment),
                            memory_order_acquire)) /* V2 */
                        return true;
        return false;
}

static int pause_background(struct background *background)
{
        const struct timespec limit = {.tv_nsec = PAUSE_NS};
        struct sl_claim *claim = &background->executor->claim;
        uint64_t begun_ns = sl_clock_ns();
        bool ends = false;

        while (is_wanted(background) && !ends) {
                sl_claim_take(claim); /* I2 */
                ends = leaves(background) || is_given_up(background);
                if (!ends)
                        (void)syscall(SYS_futex, &claim->word, FUTEX_WAIT_PRIVATE, SL_CLAIM_RUN, &limit, NULL, 0);
        }
        background->way.paused_ns += sl_clock_ns() - begun_ns;
        return ends ? -EAGAIN : 0;
}

static int look(struct sl_way *way)
{
        struct background *background = (struct background *)way; /* its first field */

        if (leaves(background))
                return -EAGAIN;
        return is_wanted(background) ? pause_background(background) : 0;
}

void sl_thread_run_in_background(
        struct thread_executor *thread, struct thread_executor *executor, struct sl_job *job, sl_answer_fn *answer, void *context)
{
        struct background background = {.way.look = look, .executor = executor, .thread = thread, .job = job};
        struct sl_job_run run = {
                .runner = executor->prepared.runner, .job = job, .answer = answer, .context = context, .way = &background.way};
        uint64_t now_ns = sl_clock_ns();

        if (sl_job_run_begin(&run, now_ns))
                sl_job_run_alone(&run, now_ns);
}
