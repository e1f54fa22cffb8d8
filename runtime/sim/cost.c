/* SPDX-License-Identifier: Apache-2.0 */
#include "sim.h"

static uint32_t class_below(uint32_t samples)
{
        uint32_t class = 31 - (uint32_t)__builtin_clz(samples);

        return class < SL_SIM_SIZES ? class : SL_SIM_SIZES - 1;
}

static double known_ns(const struct sl_sim_device *device, uint32_t class)
{
        uint32_t i = class;

        while (i && !device->latency_ns[i])
                i--;
        return (double)device->latency_ns[i] * (double)(1u << (class - i));
}

/* Between two powers of two in proportion. */
uint64_t sl_sim_latency_ns(const struct sl_sim_device *device, uint32_t samples)
{
        uint32_t class = class_below(samples), least = 1u << class;
        double below = known_ns(device, class), above;

        if (samples == least || class + 1 == SL_SIM_SIZES)
                return (uint64_t)(below * samples / least);
        above = known_ns(device, class + 1);
        return (uint64_t)(below + (above - below) * (samples - least) / least);
}

double sl_sim_slow_down(const struct sl_sim_device *device, uint32_t busy)
{
        double beside = device->corun > 1 && busy ? 1 + (busy - 1) * (device->corun - 1) : 1;
        double shared = device->at_once && busy > device->at_once ? (double)busy / device->at_once : 1;

        return beside > shared ? beside : shared;
}
