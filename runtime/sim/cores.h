/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who computes, and when that is done. Jobs of one model on the same cores are slowed down alike, S; so each model has a clock
 * there which runs at 1 / S, and a job is done when that has advanced by what it takes alone.
 *
 *     S(a) = 1 + sum over the others b there of (pair(a, b) - 1), but at least 1, and at least jobs / at_once
 *
 * Where lets have slices of time, no more than at_once jobs go on, and the others wait, as threads on cores do: who has computed
 * for a slice makes room for who has waited longest.
 *
 * Where a batch's launches are known, it has the cores for a share of its time alone, and others have them meanwhile: all are
 * slower by the sum of the shares, where that is above 1. So many small batches are as fast as a large one, and a large one is as
 * slow.
 *
 * One thread. Nothing is allocated after it is made.
 */
#pragma once

#include "world.h"

struct sl_sim_cores;

/* The world is checked. Return: 0; -ENOMEM. */
int sl_sim_cores_new(const struct sl_sim_world *world, struct sl_sim_cores **ret_cores);
struct sl_sim_cores *sl_sim_cores_free(struct sl_sim_cores *cores);

/* The worker, which does not compute, begins with what takes @alone_ns alone, and has the cores for a @share of that; 0: not known.
 */
void sl_sim_cores_begin(struct sl_sim_cores *cores, uint32_t worker, uint64_t now_ns, double alone_ns, double share);

/* When the next one is done, whatever else begins; UINT64_MAX: nobody computes. */
uint64_t sl_sim_cores_next_ns(const struct sl_sim_cores *cores);

/* One that is done by now, and computes no more. False: there is none. */
bool sl_sim_cores_end(struct sl_sim_cores *cores, uint64_t now_ns, uint32_t *ret_worker);
