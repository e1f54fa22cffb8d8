/* SPDX-License-Identifier: Apache-2.0 */
#include "cores.h"

#include <errno.h>
#include <sched.h>

bool sl_cores_allowed(int cpu)
{
        cpu_set_t allowed;

        if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
                return false;
        return CPU_ISSET(cpu, &allowed);
}

int sl_cores_pick(int ret_cpus[2])
{
        cpu_set_t allowed;
        int found = 0;

        if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
                return -errno;
        if (CPU_COUNT(&allowed) < 2)
                return -ENOTSUP;
        for (int cpu = 0; found < 2; cpu++)
                if (CPU_ISSET(cpu, &allowed))
                        ret_cpus[found++] = cpu;
        return 0;
}

int sl_cores_third(const int cpus[2])
{
        cpu_set_t allowed;

        if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
                return -1;
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
                if (CPU_ISSET(cpu, &allowed) && cpu != cpus[0] && cpu != cpus[1])
                        return cpu;
        return -1;
}

int sl_cores_pin(int cpu)
{
        cpu_set_t set;

        if (cpu < 0 || cpu >= CPU_SETSIZE)
                return -EINVAL;
        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        return sched_setaffinity(0, sizeof(set), &set) < 0 ? -errno : 0;
}
