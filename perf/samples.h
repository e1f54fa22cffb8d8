/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded collection of measured values, and its percentiles: exact, by sorting. One thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sl_samples {
        uint64_t *values;
        size_t n, room;
};

/* The memory is touched here, so that adding never faults. Return: 0, -ENOMEM. */
int sl_samples_init(struct sl_samples *samples, size_t room);
void sl_samples_deinit(struct sl_samples *samples);

/* Beyond the room a value is dropped. */
static inline void sl_samples_add(struct sl_samples *samples, uint64_t value)
{
        if (samples->n < samples->room)
                samples->values[samples->n++] = value;
}

void sl_samples_sort(struct sl_samples *samples);

/* The smallest value that at least @share (0 to 1) of the sorted samples do not exceed; NaN when there is none. */
double sl_samples_at(const struct sl_samples *samples, double share);

double sl_samples_mean(const struct sl_samples *samples);
