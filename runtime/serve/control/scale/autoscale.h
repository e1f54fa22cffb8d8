/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers by load, and which variants of tasks serve (offers.h) (`autoscale: advise, on`): counters of the stats page become a
 * problem of runtime/planner/scale, and what that decides an allocation (../want/applied.h), which is all or nothing: new workers
 * serve before old ones leave, and the memory of both is promised first. Off costs nothing; a runtime without a load is looked at
 * once a second, as it wakes for that anyway.
 *
 *     need       a loaded model. Clients choose among the variants of a task by each query's needs, so the load of a variant is
 *                what queries want of it, and what overflows goes to the next best: which variant is not decided here again
 *     kind       a worker of it, wherever there is room
 *     load       samples a second that were accepted for it, and for ensembles that it is in, and those that were refused as its
 *                queue was full; but what the dispatcher computed itself. Queries that find nobody in time are not submitted, and
 *                not seen: a model whose workers are all overloaded wants more than they do, whatever its load is (scaler.h)
 *     rate       samples that a worker computes in a second of its time, over the last seconds
 *     cores      beyond one worker each, all models together have no more than there are worker cores
 *     memory     what is left of memory_max, held by both sides of a change
 *     T_load     what the last changes took
 *
 * Left alone: models whose workers a configuration places on cores or GPUs, those that an administrator's allocation names, those
 * that share workers with others, sizes of open models, and those of which nobody has computed anything yet. Every model keeps one
 * worker at least.
 *
 * Control thread only; nothing waits.
 */
#pragma once

#include <stdint.h>

struct sl_autoscale;
struct sl_registry;

/* NULL where it is off. Return: 0, -ENOMEM. */
int sl_autoscale_new(struct sl_registry *registry, struct sl_autoscale **ret_autoscale);

/* NULL is fine. Returns NULL. */
struct sl_autoscale *sl_autoscale_free(struct sl_autoscale *autoscale);

/* Looks, if it is time, and wants what follows from that. Return: when to look again, CLOCK_MONOTONIC; UINT64_MAX: never. NULL is
 * fine. */
uint64_t sl_autoscale_look(struct sl_autoscale *autoscale);

/* A worker is overloaded: the next look is soon. NULL is fine. */
void sl_autoscale_hear(struct sl_autoscale *autoscale);
