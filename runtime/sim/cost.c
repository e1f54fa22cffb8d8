/* SPDX-License-Identifier: Apache-2.0 */
#include "sim.h"

#include <string.h>

uint64_t sl_sim_latency_ns(const struct sl_sim_device *device, uint32_t samples)
{
        struct sl_sim_time time = {0};

        memcpy(time.latency_ns, device->latency_ns, sizeof(time.latency_ns));
        return sl_sim_time_ns(&time, samples, UINT32_MAX);
}

double sl_sim_share(const struct sl_sim_device *device, uint32_t samples)
{
        double launch_ns = (double)device->launch_ns, alone_ns = (double)sl_sim_latency_ns(device, samples);

        return launch_ns > 0 && alone_ns > launch_ns ? 1 - launch_ns / alone_ns : 0;
}

double sl_sim_slow_down(const struct sl_sim_device *device, uint32_t busy)
{
        double beside = device->corun > 1 && busy ? 1 + (busy - 1) * (device->corun - 1) : 1;
        double shared = device->at_once && busy > device->at_once ? (double)busy / device->at_once : 1;

        return beside > shared ? beside : shared;
}
