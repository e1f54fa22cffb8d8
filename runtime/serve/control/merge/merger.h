/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges the members of bundles (bundles.h) while they serve: when all of a bundle is ready and nothing loads, its plans are merged
 * in the background, one bundle at a time, and its carriers get blocks for what pays (execute/block.h).
 *
 *     (none) --all are ready, others than last time--> CLEARING --old blocks are gone--> MERGING --plans, tables--> MAKING
 * --blocks--> ^                                                  |                                |                          |
 *       +-- a member comes, goes or changes ---------------+--------------------------------+-- nothing pays ----------+--> put
 *
 * Blocks leave by themselves with a member of theirs; the others go on by their own plans, and are merged anew. What a merged plan
 * takes besides its members' is promised like any plan, and at most `fuse_bytes` for a bundle. A bundle for which memory_max had no
 * room is merged once there is as much. Control thread only; nothing waits, but for threads that are freed while they work.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_block;
struct sl_merger;
struct sl_registry;

/* It watches what has this token. */
bool sl_merger_owns(uint64_t token);

/* Return: 0, -ENOMEM. */
int sl_merger_new(struct sl_registry *registry, struct sl_merger **ret_merger);

/* Ends what is under way. NULL is fine. Returns NULL. */
struct sl_merger *sl_merger_free(struct sl_merger *merger);

/* Goes as far as it can. @is_busy: something is loading or changing, and nothing is begun. */
void sl_merger_advance(struct sl_merger *merger, bool is_busy);

/* BLOCKS_GONE. */
void sl_merger_blocks_gone(struct sl_merger *merger, const struct sl_block *blocks);
