/* SPDX-License-Identifier: Apache-2.0 */
#include "topology.h"
#include "base/error.h"
#include "cores.h"
#include "cpu_quota.h"

#include <numa.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Every named core has to be one of the process. */
static int check_cores(const char *key, const cpu_set_t *named, const cpu_set_t *allowed, struct sl_error *error)
{
        char text[128];

        for (int core = 0; core < CPU_SETSIZE; core++)
                if (CPU_ISSET(core, named) && !CPU_ISSET(core, allowed))
                        return sl_error_set(error, EINVAL, "threads.%s: core %d is not among those that this process may use, %s",
                                key, core, sl_cores_text(allowed, text, sizeof(text)));
        return 0;
}

static int of_node(const struct sl_machine *machine, uint32_t node, cpu_set_t *ret_cores, struct sl_error *error)
{
        char text[128];

        *ret_cores = machine->allowed;
        for (int core = 0; node != UINT32_MAX && core < CPU_SETSIZE; core++)
                if (machine->node_of[core] != node)
                        CPU_CLR(core, ret_cores);
        if (CPU_COUNT(ret_cores) == 0)
                return sl_error_set(error, EINVAL, "threads.numa_node: node %u has none of the cores that this process may use, %s",
                        node, sl_cores_text(&machine->allowed, text, sizeof(text)));
        return 0;
}

/* Keeps the first @n cores of @cores. */
static void keep_first(cpu_set_t *cores, uint32_t n)
{
        for (int core = 0; core < CPU_SETSIZE; core++) {
                if (!CPU_ISSET(core, cores))
                        continue;
                if (n == 0)
                        CPU_CLR(core, cores);
                else
                        n--;
        }
}

/* Less than two whole cores of processor time are one: a dispatcher that spins would eat what the workers need. */
static uint32_t granted_cores(const struct sl_machine *machine)
{
        if (!machine->quota_milli)
                return CPU_SETSIZE;
        return machine->quota_milli < 2000 ? 1 : machine->quota_milli / 1000;
}

static void without(cpu_set_t *cores, const cpu_set_t *others)
{
        cpu_set_t common;

        CPU_AND(&common, cores, others);
        CPU_XOR(cores, cores, &common);
}

/* Leaves @others out, unless nothing else is there. */
static void avoid(cpu_set_t *cores, const cpu_set_t *others)
{
        cpu_set_t rest = *cores;

        without(&rest, others);
        if (CPU_COUNT(&rest))
                *cores = rest;
}

static void choose_dispatcher(
        const struct sl_machine *machine, const struct sl_thread_cores_wish *wish, const cpu_set_t *usable, cpu_set_t *ret_cores)
{
        *ret_cores = *usable;
        avoid(ret_cores, &wish->worker_cores);
        avoid(ret_cores, &machine->dispatching);
        keep_first(ret_cores, 1);
}

/* One core beside the dispatcher's is not enough to leave the dispatcher's idle: it sleeps whenever nothing comes in. */
static void choose_workers(
        const struct sl_machine *machine, const cpu_set_t *dispatcher, const cpu_set_t *usable, cpu_set_t *ret_cores)
{
        *ret_cores = *usable;
        without(ret_cores, dispatcher);
        if (CPU_COUNT(ret_cores) <= 1)
                *ret_cores = *usable;
        else
                avoid(ret_cores, &machine->dispatching);
}

int sl_thread_cores_choose(const struct sl_machine *machine, const struct sl_thread_cores_wish *wish,
        struct sl_thread_cores *ret_cores, struct sl_error *error)
{
        struct sl_thread_cores thread_cores = {.dispatcher_cores = wish->dispatcher_cores, .worker_cores = wish->worker_cores};
        cpu_set_t usable, both;
        int result = check_cores("dispatcher_cores", &wish->dispatcher_cores, &machine->allowed, error);

        if (result == 0)
                result = check_cores("worker_cores", &wish->worker_cores, &machine->allowed, error);
        if (result == 0)
                result = of_node(machine, wish->numa_node, &usable, error);
        if (result < 0)
                return result;

        avoid(&usable, &machine->taken);
        keep_first(&usable, granted_cores(machine));
        if (CPU_COUNT(&thread_cores.dispatcher_cores) == 0)
                choose_dispatcher(machine, wish, &usable, &thread_cores.dispatcher_cores);
        if (CPU_COUNT(&thread_cores.worker_cores) == 0)
                choose_workers(machine, &thread_cores.dispatcher_cores, &usable, &thread_cores.worker_cores);
        CPU_OR(&both, &thread_cores.dispatcher_cores, &thread_cores.worker_cores);
        thread_cores.n_usable = (uint32_t)CPU_COUNT(&both);
        thread_cores.n_granted = (uint32_t)CPU_COUNT(&machine->allowed);
        if (thread_cores.n_granted > granted_cores(machine))
                thread_cores.n_granted = granted_cores(machine);
        thread_cores.spin_ns = thread_cores.n_usable > 1 ? wish->spin_ns : 0;
        *ret_cores = thread_cores;
        return 0;
}

void sl_machine_read(struct sl_machine *ret_machine)
{
        memset(ret_machine, 0, sizeof(*ret_machine));
        if (sched_getaffinity(0, sizeof(ret_machine->allowed), &ret_machine->allowed) < 0)
                CPU_SET(0, &ret_machine->allowed);
        struct sl_cpu_quota quota;

        sl_cpu_quota_read("", &quota);
        ret_machine->quota_milli = quota.milli;
        for (int core = 0; numa_available() >= 0 && core < CPU_SETSIZE; core++) {
                int node = CPU_ISSET(core, &ret_machine->allowed) ? numa_node_of_cpu(core) : -1;

                ret_machine->node_of[core] = (uint16_t)(node < 0 ? 0 : node);
        }
}
