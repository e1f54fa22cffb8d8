/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starling's own policy.
 *
 *  1. Whatever waits when a worker is idle goes out now: nothing is held for company that has not come.
 *  2. n samples wait, m workers are idle, b compute. Batches of 1, 2, 4, ... are weighed, as large as worker and slice allow.
 *  3. In batches of k, w = min(m, n / k rounded up) workers take them, in r = n / (w k) rounds, at least one,
 *  4. each of which takes T(k) S(b + w): the service time that was learned, and by how much they share their lets by time.
 *  5. What waits is then done after T(k) S(b + w) (r + 1) / 2 in the mean; the k of the least mean is taken, of equals the
 * smallest.
 *  6. A size that was never computed is computed as soon as so much waits; so T is learned in one job for each power of two.
 *  7. Jobs gather whole tasks, oldest first, as long as they have k samples together;
 *  8. and no longer than all tasks in it keep the deadlines that they would keep in a smaller batch.
 *  9. Fewer than m workers get a job only if nothing is left: a worker is idle, or something waits, never both.
 * 10. An only worker gets its next job, a whole one, while it computes.
 *
 * Worst case: a request waits until what came before it is done, and for one job (a slice, or one sample) of the first worker.
 */
#pragma once

#include "policy.h"

/* The size of rule 5, for @samples that wait and batches of at most @most; @idle is at least 1. */
uint32_t sl_starling_size(const struct sl_policy_view *view, uint64_t samples, uint32_t most, uint32_t idle, uint32_t busy);
