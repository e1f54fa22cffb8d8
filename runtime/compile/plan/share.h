/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A merged plan without what its members' plans have: constants of which each lane's part is, byte by byte, one that the member has
 * packed for itself, and those that stayed a lane's own. What is packed otherwise (filters of a grouped convolution, lanes that are
 * neighbours), and what is no whole pages of several lanes (biases), stays the merged plan's.
 *
 * Found by content alone, so it does not matter who made which plan. Reads all constants once. Any thread.
 */
#pragma once

#include <stdint.h>

struct sl_error;
struct sl_plan;

/*
 * @members: of its lanes, in order; they stand alone, and so does @merged. @ret_fd: a memory file, the caller's, for
 * sl_plan_open_merged() with the same members. Return: 0; -ENODATA they have nothing of it, or it is for a backend with memory of
 * its own; -ENOMEM, -ENOSPC; -errno; with text.
 */
int sl_plan_share(
        const struct sl_plan *merged, struct sl_plan *const *members, uint32_t n_members, int *ret_fd, struct sl_error *error);
