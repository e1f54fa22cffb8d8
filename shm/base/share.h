/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of something finite one user may have, given what everybody has. Pure; whoever owns the finite thing keeps the numbers.
 *
 * What can be taken back (places in a queue, bytes of a cache, sizes of an open model) may be used whole by a user that is alone.
 * When it is full, the share of each of n users that want some of it is total / n: who is below takes from the one that is most
 * above, and nobody below its share is ever refused, or taken from.
 *
 * What cannot be taken back (client slots, readers, connections, compilations under way) is given out by dynamic thresholds: a user
 * has at most SL_SHARE_OF_FREE times as much as would be left, an eighth not counted, which is for users that have nothing. Alone
 * it gets two thirds of 64, the next one half of the rest.
 *
 * What happens in a time (compilations, lines of the log) is bounded by a rate: so many in a minute, and as many at once after a
 * minute of rest.
 *
 * Sources: A. K. Choudhury, E. L. Hahne, "Dynamic queue length thresholds for shared-memory packet switches", IEEE/ACM Transactions
 * on Networking 6(2), 1998, section II. ITU-T Recommendation I.371, annex A, virtual scheduling algorithm (the rate).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SL_SHARE_OF_FREE 3u

/* Of @total that cannot be taken back @taken are given out, @held of them to this user: may it have one more? */
bool sl_share_grants(uint32_t total, uint32_t taken, uint32_t held);

/* Of @total that can be taken back, when @users want some of it: at least 1. */
uint64_t sl_share_each(uint64_t total, uint32_t users);

/*
 * One event at @now_ns of which there may be @per_minute, at least 1. @due_ns: 0 at first, then only for this function. Return:
 * false: beyond the rate, and not counted.
 */
bool sl_share_rate(uint64_t *due_ns, uint32_t per_minute, uint64_t now_ns);

/* One event that was counted did not happen. */
void sl_share_rate_back(uint64_t *due_ns, uint32_t per_minute);
