/* SPDX-License-Identifier: Apache-2.0 */
#include "noise.h"

#include "cores.h"
#include "floor.h"

#include <math.h>
#include <sched.h>

static double measure_floor(const int cpus[2])
{
        cpu_set_t allowed;
        double floor_ns;

        if (cpus[0] < 0 || sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
                return NAN;
        int r = sl_floor_estimate(cpus, &floor_ns);

        (void)sched_setaffinity(0, sizeof(allowed), &allowed);
        return r < 0 ? NAN : floor_ns;
}

void sl_noise_before(struct sl_noise *noise)
{
        *noise = (struct sl_noise){.after_ns = NAN};
        if (sl_cores_pick(noise->cpus) < 0)
                noise->cpus[0] = -1;
        noise->before_ns = measure_floor(noise->cpus);
}

void sl_noise_after(struct sl_noise *noise)
{
        noise->after_ns = measure_floor(noise->cpus);
}

bool sl_noise_is_quiet(const struct sl_noise *noise)
{
        double ratio = noise->after_ns / noise->before_ns;

        return ratio < SL_NOISE_RATIO && ratio > 1 / SL_NOISE_RATIO;
}
