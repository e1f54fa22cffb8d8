/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for the completion ring: spin, yield or sleep, as the dispatcher's advice (shm/doorbell.h) and what came of it the last
 * times say. The owner thread of the queue pair.
 *
 * Whoever spins for as long as a sleep costs before it sleeps waits at most twice as long as it has to. A sleep costs the call that
 * wakes it and the time until its core runs again, some tens of microseconds together; the dispatcher, whose sleeps cost the same,
 * spins as long by default. Where workers compute, a wait spins for less: a worker may want the core. How long a wait really spins
 * is learned: longer while answers come within a spin or soon behind it, shorter when they do not.
 *
 * Sources: Karlin, Li, Manasse and Owicki, "Empirical studies of competitive spinning for a shared-memory multiprocessor" (1991).
 */
#include "aside.h"
#include "queue.h"

#include "base/clock.h"
#include "base/relax.h"

#include <errno.h>
#include <sched.h>

#define SLEEP_SLICE_NS   (20 * SL_NS_PER_MS) /* between two looks at the socket of a sleeper */
#define CROWDED_SLEEP_NS (1 * SL_NS_PER_MS)  /* at least, while more threads want to run than there are cores */
#define SPIN_MIN_NS      2000u
#define SPIN_MAX_NS      50000u
#define SPIN_SHARED_NS   5000u                /* at most, where workers compute */
#define SLEEP_NEAR_NS    (4ull * SPIN_MAX_NS) /* that and what a sleep adds, for both sides */
#define SPIN_AWAY_NS     20000u
#define SPINS_PER_CLOCK  16
#define YIELDS           8
#define YIELD_LATE_NS    50000u
#define YIELD_REST       64u
#define YIELD_REST_MAX   4096u

static_assert(STARLING_FOREVER == UINT64_MAX, "limits below are never reached by it");

static bool ring_ready(struct starling_queue *queue)
{
        return sl_reaper_peek(&queue->reaper, &queue->map) != NULL;
}

/* The core went to somebody who computes, as a sleeper would have let it, but whom nobody wakes: it sleeps the next times. */
static void note_late_yield(struct starling_queue *queue)
{
        uint32_t penalty = 2 * queue->yield_penalty;

        queue->yield_penalty = penalty == 0 ? YIELD_REST : penalty < YIELD_REST_MAX ? penalty : YIELD_REST_MAX;
        queue->yield_rest = queue->yield_penalty;
}

/*
 * Where clients alone crowd the cores, whoever waits lets the others run, which may be what its answer needs: no system call wakes
 * anybody. Who is away for long sleeps the next times, and twice as often when that happens again.
 */
static bool yield_for_others(struct starling_queue *queue)
{
        uint64_t begun_ns;

        if (queue->yield_rest > 0) {
                queue->yield_rest--;
                return false;
        }
        begun_ns = sl_clock_ns();
        for (int i = 0; i < YIELDS; i++) {
                sched_yield();
                if (sl_clock_ns() - begun_ns > YIELD_LATE_NS) {
                        note_late_yield(queue);
                        return ring_ready(queue);
                }
                if (ring_ready(queue)) {
                        queue->yield_penalty = 0;
                        return true;
                }
        }
        return false;
}

static void learn_spin(struct starling_queue *queue, bool near)
{
        if (near)
                queue->spin_ns = 2 * queue->spin_ns < SPIN_MAX_NS ? 2 * queue->spin_ns : SPIN_MAX_NS;
        else
                queue->spin_ns = queue->spin_ns / 2 > SPIN_MIN_NS ? queue->spin_ns / 2 : SPIN_MIN_NS;
}

/* Away from its core for longer than anything here takes: somebody else wants that core, most likely the one who answers. */
static bool was_away(uint64_t looked_ns, uint64_t now_ns)
{
        return now_ns - looked_ns > SPIN_AWAY_NS;
}

static bool spin_until_ready(struct starling_queue *queue, uint64_t limit_ns)
{
        uint64_t begun_ns = sl_clock_ns(), looked_ns = begun_ns;

        for (;;) {
                bool ready = false;

                for (int i = 0; i < SPINS_PER_CLOCK && !ready; i++) {
                        sl_relax();
                        ready = ring_ready(queue);
                }
                uint64_t now_ns = sl_clock_ns();

                if (was_away(looked_ns, now_ns)) {
                        queue->spin_ns = SPIN_MIN_NS;
                        sl_step_aside(queue);
                        return ready;
                }
                if (ready)
                        learn_spin(queue, true);
                if (ready || now_ns - begun_ns >= limit_ns)
                        return ready;
                looked_ns = now_ns;
        }
}

static uint32_t spin_limit(const struct starling_queue *queue)
{
        return sl_workers_compute(queue->dispatcher) ? SPIN_SHARED_NS : SPIN_MAX_NS;
}

static bool spin_for_ring(struct starling_queue *queue, uint64_t limit_ns)
{
        uint32_t most_ns = spin_limit(queue), spin_ns = queue->spin_ns < most_ns ? queue->spin_ns : most_ns;

        queue->n_waits++;
        if (ring_ready(queue))
                return true;
        if (queue->may_spin && sl_yield_helps(queue->dispatcher))
                return yield_for_others(queue);
        if (!queue->may_spin || !sl_spin_helps(queue->dispatcher, most_ns))
                return false;
        queue->n_spins++;
        return spin_until_ready(queue, spin_ns < limit_ns ? spin_ns : limit_ns);
}

/* A sleeper looks at the socket once in a slice: many short waits need no look each. */
static bool is_check_due(struct starling_queue *queue, uint64_t now_ns)
{
        if (now_ns - queue->checked_ns < SLEEP_SLICE_NS)
                return false;
        queue->checked_ns = now_ns;
        return true;
}

/* Until the ring holds something. Return: 0, -EPIPE gone (the ring may hold the last ones), -ETIMEDOUT, -EINTR. */
static int sleep_until_ready(struct starling_queue *queue, uint64_t timeout_ns)
{
        uint64_t start_ns = sl_clock_ns(), waited_ns = 0;

        while (waited_ns < timeout_ns) {
                if (is_check_due(queue, start_ns + waited_ns) && sl_connection_check(&queue->client->connection))
                        return -EPIPE;
                uint64_t left_ns = timeout_ns - waited_ns;
                int r = sl_client_sleep(&queue->map, queue->reaper.head, left_ns < SLEEP_SLICE_NS ? left_ns : SLEEP_SLICE_NS);

                waited_ns = sl_clock_ns() - start_ns;
                if (r == 0)
                        learn_spin(queue, waited_ns <= SLEEP_NEAR_NS);
                if (r != -ETIMEDOUT)
                        return r;
        }
        learn_spin(queue, false);
        return -ETIMEDOUT;
}

int sl_queue_wait(struct starling_queue *queue, uint64_t timeout_ns)
{
        if (spin_for_ring(queue, timeout_ns))
                return 0;
        /* Who sleeps for moments, again and again, takes the cores that the answers need as well as who spins. */
        if (timeout_ns < CROWDED_SLEEP_NS && sl_cores_crowded(queue->dispatcher))
                timeout_ns = CROWDED_SLEEP_NS;
        return sleep_until_ready(queue, timeout_ns);
}

int starling_wait(struct starling_queue *queue, struct starling_completion *ret_completions, uint32_t max, uint64_t timeout_ns)
{
        int r = starling_poll(queue, ret_completions, max);
        uint64_t tries;

        if (r != 0)
                return r;
        if (sl_flights_unreaped(&queue->flights) == 0)
                return -ENODATA;
        if (timeout_ns == 0)
                return -ETIMEDOUT;
        do {
                tries = queue->second_tries;
                r = sl_queue_wait(queue, timeout_ns);
                if (r < 0 && r != -EPIPE)
                        return r;
                /* Something is there, or the runtime is gone: either way there is something to hand out, or to try again. */
                r = starling_poll(queue, ret_completions, max);
        } while (r == 0 && queue->second_tries != tries);
        return r != 0 ? r : -ETIMEDOUT;
}
