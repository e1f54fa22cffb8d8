/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The replays of an instance, by the shapes of its inputs. Sizes that come for the second time are captured; those that have been
 * used longest ago go when there are more than SL_REPLAYS_BYTES_MAX. What replays take counts as memory of each run, and so does
 * the arena, in which all of them run one after the other. One thread, that of the instance.
 */
#pragma once

#include "capture.h"
#include "run_replay.h"

struct sl_pool;
struct sl_run_replays;
struct sl_shape;

/* With the kernels that they hold, some of which the cache of kernels counts as well. Some thousands of small models. */
#define SL_REPLAYS_BYTES_MAX (16u << 20)

/* Return: 0, -ENOMEM. */
int sl_run_replays_new(struct sl_run_replays **ret_replays);
struct sl_run_replays *sl_run_replays_free(struct sl_run_replays *replays);

/*
 * Before a run of these shapes; @pool: its, which has in use what the instance keeps beside. Return: the replay of such a run, or
 * NULL and in @ret_capture what is to note this one; that NULL: nothing is.
 */
const struct sl_run_replay *sl_run_replays_find(struct sl_run_replays *replays, struct sl_pool *pool, const struct sl_shape *shapes,
        uint32_t n_inputs, struct sl_capture **ret_capture);

/* Room for the replay to run in, kept for the next ones. NULL: there is no memory; the pool says why. */
uint8_t *sl_run_replays_arena(struct sl_run_replays *replays, struct sl_pool *pool, const struct sl_run_replay *replay);

/* The run is over that was to be noted. @is_done: it has ended well. */
void sl_run_replays_end(struct sl_run_replays *replays, bool is_done);

/* For unfold_node() of a run: zeros at first. */
struct sl_node_desc *sl_run_replays_node(struct sl_run_replays *replays);

/* How many there are, and what they take, for tests. */
uint32_t sl_run_replays_count(const struct sl_run_replays *replays);
uint64_t sl_run_replays_bytes(const struct sl_run_replays *replays);
