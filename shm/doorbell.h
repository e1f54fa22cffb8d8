/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How one side sleeps and the other wakes it, without a lost wake-up and without a system call while both are awake.
 *
 *   (W1) sleeper: store seq_cst "I sleep" in its own word.
 *   (W2) sleeper: look once more (load seq_cst) at what it waits for; if there is work, take "I sleep" back and go on.
 *   (W3) sleeper: wait in the kernel, with a time limit as an insurance.
 *   (K1) waker:   publish the work, with a seq_cst store or a seq_cst fence behind it.
 *   (K2) waker:   load seq_cst the sleeper's word; if it sleeps, make the system call.
 * W1 before W2 and K1 before K2 in one total order: either the sleeper sees the work or the waker sees the sleeper.
 * tests/shm/doorbell.pml is the exhaustive proof.
 *
 * The words: a client's is sl_queue_request.sleep (client writes), a dispatcher's is sl_dispatcher_line.sleeping in the
 * catalogue (dispatcher writes). A client is woken by a futex on completion tail, or by its completion bell; a dispatcher by the
 * client's doorbell eventfd, on which its wait (runtime/serve/wait/wait.h) watches.
 *
 * Whether a client spins before it sleeps is its own decision. It helps as long as there is a core for everybody: beyond that
 * whoever spins takes the core on which its answer would be computed. A client cannot know that, so the dispatcher says it: (P1)
 * dispatcher: store relaxed cores, wanted, late_ns, about a hundred times a second. (P2) client:     load relaxed, before it spins.
 * pairs with P1 It is advice: the words order nothing, need not fit together, and a client that does not follow gets what the
 * system's scheduler gives any process that computes, no more.
 */
#pragma once

#include "layout.h"

#include <stdbool.h>

/* K1's fence and K2: true when the dispatcher sleeps and the doorbell must be rung. Owner thread of the queue pair. */
bool sl_dispatcher_sleeps(const struct sl_dispatcher_line *line);

/*
 * Rings: writes 8 bytes to an eventfd or to the writing end of a pipe; a bell that is full is rung already. Any thread. Return: 0,
 * -errno. It does not block as long as nobody clears O_NONBLOCK, a flag that all holders of one open file share: whoever rings for
 * a side that it does not trust uses a pipe, whose two ends are two open files. (Linux has no write to an eventfd that ignores the
 * flag.)
 */
int sl_doorbell_ring(int fd);

/* Empties an eventfd or a pipe after a wake-up. Never blocks, whatever the other side did to the flags. */
void sl_doorbell_clear(int fd);

/*
 * A completion bell: what the event loop of a client watches, by edge. It is a timer (timerfd) that the dispatcher sets to a time
 * that has passed: unlike a write to an eventfd or a pipe, this neither blocks nor fills up, whatever the client, who holds the
 * same open file, has done to its flags or left unread. Return: the fd; -EMFILE, -ENOMEM.
 */
int sl_completion_bell_new(void);

/* P2: would more threads run at once than there are cores, if all clients that wait spun? Any thread. */
bool sl_cores_crowded(const struct sl_dispatcher_line *line);

/* P2: do more than twice as many threads want to run as there are cores, so that who spins takes most of what others need? Any
 * thread. */
bool sl_spin_harms(const struct sl_dispatcher_line *line);

/* Crowded by clients alone: to let them run before it sleeps helps a client, as nobody would be kept from computing. */
bool sl_yield_helps(const struct sl_dispatcher_line *line);

/* P2: has a worker had a job of late? Who spins for long where it computes takes its core. Any thread. */
bool sl_workers_compute(const struct sl_dispatcher_line *line);

/* P2: is it likely that an answer comes while a client spins for @spin_ns? Any thread. */
bool sl_spin_helps(const struct sl_dispatcher_line *line, uint32_t spin_ns);

/* P2: is this the dispatcher's only core? Any thread. */
bool sl_is_dispatcher_core(const struct sl_dispatcher_line *line, int core);

/* P1. Dispatcher, once. */
void sl_dispatcher_bound(struct sl_dispatcher_line *line, int core);

/* P1. Dispatcher. */
void sl_spin_advise(struct sl_dispatcher_line *line, uint32_t cores, uint32_t wanted, uint32_t late_ns, uint32_t computing);

/* W1. Dispatcher. */
void sl_dispatcher_sleep(struct sl_dispatcher_line *line);
void sl_dispatcher_wake(struct sl_dispatcher_line *line);

/*
 * W1 to W3 for a client: sleeps until completion tail is beyond @seen or @timeout_ns has passed (relative).
 * Owner thread. Return: 0 it is beyond; -ETIMEDOUT; -EINTR.
 */
int sl_client_sleep(const struct sl_queue_map *queue, uint32_t seen, uint64_t timeout_ns);

/* A client that has slept runs again: it says when, and that it is awake. Owner thread. */
void sl_client_awake(const struct sl_queue_map *queue);

/*
 * K1's fence and K2, for a dispatcher that has published completions: SL_AWAKE, or how the client sleeps, which is to be rung then.
 * A client that says so for ever costs a system call for each batch that it gets.
 */
uint32_t sl_client_sleeps(const struct sl_queue_map *queue);

/* Wakes a client that sleeps so. @completion_fd: -1 if the client has none. */
void sl_client_ring(const struct sl_queue_map *queue, int completion_fd, uint32_t sleep);

/* Both. True if it slept. */
static inline bool sl_client_wake(const struct sl_queue_map *queue, int completion_fd)
{
        uint32_t sleep = sl_client_sleeps(queue);

        sl_client_ring(queue, completion_fd, sleep);
        return sleep != SL_AWAKE;
}
