/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tensor arena: allocation of 64-byte aligned blocks in memory that lies elsewhere (an arena region, the runtime's staging). The
 * bookkeeping lives in private memory of the owner, never in the shared bytes: what the other side scribbles cannot break it.
 *
 * Threads: alloc and free from any thread of the owner, lock-free, O(1) for blocks: size classes
 * with four steps per doubling, a tagged free-list stack per class. How fresh blocks are cut and freed ones are joined is
 * documented in arena.c.
 */
#pragma once

#include <stdint.h>

struct sl_arena;

#define SL_ARENA_ALIGNMENT 64u

/* @bytes of memory, in whole pages of 4 KiB, to hand out as offsets [0, bytes). Return: 0; -ENOMEM; -EINVAL less than a page or
 * more than 16 TiB. */
int sl_arena_new(uint64_t bytes, struct sl_arena **ret_arena);
struct sl_arena *sl_arena_free(struct sl_arena *arena);

/* Return: 0 and an offset that is a multiple of 64 (of 4096 from 16 KiB on); -ENOMEM no block is left that is large enough; -EINVAL
 * @bytes is 0. */
int sl_arena_take(struct sl_arena *arena, uint64_t bytes, uint64_t *ret_offset);

/* Gives a block back. Return: 0; -EINVAL: no block in use starts at @offset (nothing is changed). */
int sl_arena_give(struct sl_arena *arena, uint64_t offset);

/* Bytes of the longest row of pages without a block in use; a snapshot, and a walk over all pages that were ever cut. */
uint64_t sl_arena_largest(const struct sl_arena *arena);

/* Bytes in use, in whole blocks; a snapshot. */
uint64_t sl_arena_used(const struct sl_arena *arena);
