/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a client thread of a load waits: for an answer, and for the moment when its next request is due, whichever comes first. It
 * sleeps while the two are far, and spins for the last SL_LOAD_WAIT_SPIN_NS before a request is due, as sleeps end late. No state;
 * the owner thread of the queue pair.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct starling_completion;
struct starling_queue;

#define SL_LOAD_WAIT_SPIN_NS 60000u

/*
 * Reaps up to @max, and waits for the first until @until_ns (sl_clock_ns()), or for 50 ms. @spin: never sleeps. Return: how many;
 * 0: none yet; -errno as starling_poll().
 */
int sl_load_wait(struct starling_queue *queue, bool spin, struct starling_completion *completions, uint32_t max, uint64_t until_ns);
