/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which cores the threads get. The rule is a pure function over a described machine; reading the machine is another.
 *
 *     usable = affinity mask, of one NUMA node if the configuration names it, no more of them than the processor time that
 *              cpu.max of the control group grants
 *
 *     1 usable    all threads share it; nobody spins
 *     2 usable    the dispatcher is pinned to the first; workers have both, as the dispatcher sleeps whenever nothing comes in.
 *                 Awake, it goes before them: higher priority where that is allowed, shorter slices everywhere
 * (serve/dispatch/dispatcher.c) more        the dispatcher has the first to itself, the workers have the others
 *
 * Of several runtimes (core_claims.h) each takes cores that no other has, as long as there are some. Where there are none it shares
 * all, with a dispatcher on a core where no other has its own, and its workers not where other dispatchers are unless nothing else
 * is left.
 *
 * Cores that the configuration names are taken as they are; they have to be in the affinity mask.
 */
#pragma once

#include <sched.h>
#include <stdint.h>

struct sl_error;

struct sl_machine {
        cpu_set_t allowed;             /* affinity mask of the process */
        cpu_set_t taken, dispatching;  /* by other runtimes: for anything, by their dispatchers */
        uint32_t quota_milli;          /* thousandths of a core that cpu.max grants; 0: no limit */
        uint16_t node_of[CPU_SETSIZE]; /* NUMA node of each core */
};

struct sl_thread_cores_wish {
        cpu_set_t dispatcher_cores, worker_cores; /* empty: choose */
        uint32_t numa_node;                       /* UINT32_MAX: any */
        uint64_t spin_ns;
};

struct sl_thread_cores {
        cpu_set_t dispatcher_cores, worker_cores;
        uint64_t spin_ns; /* 0 when dispatcher and workers share one core */
        uint32_t n_usable;
        uint32_t n_granted; /* cores that this process and its clients may use, no more than cpu.max grants */
};

/* Pure. Return: 0; -EINVAL a core or node that the process may not use, with a text that names key, value and what is allowed. */
int sl_thread_cores_choose(const struct sl_machine *machine, const struct sl_thread_cores_wish *wish,
        struct sl_thread_cores *ret_cores, struct sl_error *error);

/* The machine that this process runs on. What cannot be read counts as no limit. */
void sl_machine_read(struct sl_machine *ret_machine);
