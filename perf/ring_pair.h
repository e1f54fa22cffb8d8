/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bare ring with sequence numbers between two processes: what the path of a request is measured against. Two rings, an entry is
 * one line that says by its own sequence number that it is whole, and there is nothing else: no indices, no sleep, nobody's trust.
 */
#pragma once

#include "latencies.h"

#include <stdint.h>

/*
 * @rounds times: write an entry, poll the other ring until its answer has come and copy that out; the other process, bound to
 * @cpus[1], polls, copies and answers. Both spin with PAUSE. Adds the ticks (ticks.h) of each round after the first @warm_up, with
 * both stamps in them as in sl_round_trip_spin(). Return: 0, or as sl_pair_start(), -EIO.
 */
int sl_ring_pair_measure(const int cpus[2], uint32_t warm_up, uint32_t rounds, struct sl_latencies *samples);
