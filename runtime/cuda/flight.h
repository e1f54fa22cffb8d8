/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches of a worker that are on their way, each in a slot with room for its results. They begin in order and may end in any.
 * Each has a number, which the device writes when it ends: it only grows within a slot, so that an old one is told from the
 * launch's own. Pure; one thread.
 */
#pragma once

#include <stdint.h>

#define SL_FLIGHT_SLOTS_MAX 16

struct sl_flight {
        uint32_t n_slots;
        uint32_t busy;                         /* slots, by bits */
        uint64_t launches;                     /* ever */
        uint64_t numbers[SL_FLIGHT_SLOTS_MAX]; /* of the launch that is in the slot, or was last: from 1 on */
};

/* Return: 0; -EINVAL no slots, or too many. */
int sl_flight_init(struct sl_flight *flight, uint32_t n_slots);

/* Return: the slot of a new launch; -EAGAIN all are busy. */
int sl_flight_begin(struct sl_flight *flight);

/* It has ended, or was never launched. */
void sl_flight_end(struct sl_flight *flight, uint32_t slot);

/* The busy slot behind @slot in the order of their launches; the first with -1. -1: there is none. */
int sl_flight_next(const struct sl_flight *flight, int slot);
