/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

static uint32_t class_below(uint32_t samples)
{
        uint32_t class = 31 - (uint32_t)__builtin_clz(samples);

        return class < SL_SIM_SIZES ? class : SL_SIM_SIZES - 1;
}

static double known_ns(const struct sl_sim_time *time, uint32_t class)
{
        uint32_t i = class;

        while (i && !time->latency_ns[i])
                i--;
        return (double)time->latency_ns[i] * (double)(1u << (class - i));
}

/* Between two powers of two in proportion. */
static double batch_ns(const struct sl_sim_time *time, uint32_t samples)
{
        uint32_t class = class_below(samples), least = 1u << class;
        double below = known_ns(time, class), above;

        if (samples == least || class + 1 == SL_SIM_SIZES)
                return below * samples / least;
        above = known_ns(time, class + 1);
        return below + (above - below) * (samples - least) / least;
}

uint64_t sl_sim_time_ns(const struct sl_sim_time *time, uint32_t samples, uint32_t batch_max)
{
        double ns = 0;

        while (samples) {
                uint32_t batch = samples < batch_max ? samples : batch_max;

                if (time->in_steps)
                        batch = 1u << class_below(batch);
                ns += batch_ns(time, batch);
                samples -= batch;
        }
        return (uint64_t)ns;
}
