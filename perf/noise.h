/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the machine was the same before and after: the floor (floor.h) at both ends of a run, on two CPUs that are chosen once.
 * The calling thread keeps the CPUs that it may use.
 */
#pragma once

#include <stdbool.h>

struct sl_noise {
        int cpus[2];
        double before_ns, after_ns; /* NaN: not measured, as there is only one CPU, or somebody stopped it */
};

/* Above this, or below its inverse, the machine was not the same at both ends. */
#define SL_NOISE_RATIO 1.5

void sl_noise_before(struct sl_noise *noise);
void sl_noise_after(struct sl_noise *noise);

/* True when both are known and alike. */
bool sl_noise_is_quiet(const struct sl_noise *noise);
