/* SPDX-License-Identifier: Apache-2.0 */
/* The processors that a runtime may use, and which of its threads are where. */
#include "checks.h"
#include "config.h"
#include "cores.h"
#include "cpu_quota.h"
#include "finding.h"
#include "host.h"
#include "host_file.h"

#include <stdio.h>
#include <string.h>

#define LIST_BYTES 256

static const char *list(const cpu_set_t *cpus, char ret_text[LIST_BYTES])
{
        return sl_cores_text(cpus, ret_text, LIST_BYTES);
}

static int first_cpu(const cpu_set_t *cpus)
{
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
                if (CPU_ISSET(cpu, cpus))
                        return cpu;
        return -1;
}

static int last_cpu(const cpu_set_t *cpus)
{
        int last = -1;

        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
                last = CPU_ISSET(cpu, cpus) ? cpu : last;
        return last;
}

static bool has_any(const cpu_set_t *cpus, const cpu_set_t *others)
{
        cpu_set_t common;

        CPU_AND(&common, cpus, others);
        return CPU_COUNT(&common) > 0;
}

static bool has_all(const cpu_set_t *cpus, const cpu_set_t *others)
{
        cpu_set_t common;

        CPU_AND(&common, cpus, others);
        return CPU_EQUAL(&common, others);
}

/* The checks that follow are about threads that have a place. */
static bool is_placed(const struct sl_host *host, struct sl_finding *finding)
{
        if (host->placed < 0)
                sl_found(finding, SL_VERDICT_UNKNOWN, "the threads have no place, see pinning");
        return host->placed == 0;
}

void sl_check_cpus(const struct sl_host *host, struct sl_finding *finding)
{
        char allowed[LIST_BYTES], online[LIST_BYTES];

        if (CPU_COUNT(&host->online) == 0) {
                sl_found(finding, SL_VERDICT_UNKNOWN, "no file says which there are");
                return;
        }
        sl_found(finding, CPU_COUNT(&host->machine.allowed) > 1 ? SL_VERDICT_OK : SL_VERDICT_BETTER, "may use %s of %s",
                list(&host->machine.allowed, allowed), list(&host->online, online));
        if (finding->verdict == SL_VERDICT_OK)
                return;
        if (CPU_COUNT(&host->online) > 1)
                sl_change(finding,
                        "a wider affinity mask or cpuset: taskset -c %s, AllowedCPUs= of the unit, --cpuset-cpus of the container",
                        online);
        else
                sl_change(finding, "a machine with two processors or more");
        sl_gain(finding,
                "dispatcher, workers and clients take turns on one processor, and no thread spins: each request wakes sleepers");
}

void sl_check_cpu_quota(const struct sl_host *host, struct sl_finding *finding)
{
        struct sl_cpu_quota quota;

        sl_cpu_quota_read(host->root, &quota);
        if (!quota.milli) {
                sl_found(finding, SL_VERDICT_OK, "no limit");
                return;
        }
        sl_found(finding, SL_VERDICT_BETTER, "%s grants %.2f processors", quota.group, quota.milli / 1000.0);
        if (quota.throttled)
                sl_found_too(finding, "; in %llu periods they were used up", (unsigned long long)quota.throttled);
        sl_change(
                finding, "whole processors instead of a quota: AllowedCPUs= instead of CPUQuota=, --cpuset-cpus instead of --cpus");
        sl_gain(finding, "when a quota is used up all threads stand still until its period ends, by default 100 ms");
}

static void show_places(const struct sl_host *host, struct sl_finding *finding)
{
        char dispatcher[LIST_BYTES], workers[LIST_BYTES];

        sl_found(finding, SL_VERDICT_OK, "dispatcher on %s, workers on %s", list(&host->cores.dispatcher_cores, dispatcher),
                list(&host->cores.worker_cores, workers));
        if (CPU_COUNT(&host->machine.taken))
                sl_found_too(finding, "; runtimes that live have their dispatchers on %s, and all of their threads on %s",
                        list(&host->machine.dispatching, dispatcher), list(&host->machine.taken, workers));
}

static bool shares_needlessly(const struct sl_host *host)
{
        const cpu_set_t *dispatcher = &host->cores.dispatcher_cores, *workers = &host->cores.worker_cores;

        return has_any(dispatcher, workers) && CPU_COUNT(&host->machine.allowed) > 2 &&
               CPU_COUNT(&host->config->dispatcher_cores) + CPU_COUNT(&host->config->worker_cores) > 0;
}

void sl_check_pinning(const struct sl_host *host, struct sl_finding *finding)
{
        char allowed[LIST_BYTES];

        if (host->placed < 0) {
                sl_found(finding, SL_VERDICT_WRONG, "%s", host->misplaced.text);
                sl_change(finding, "in the configuration `threads`: processors of %s, or none, so that they are chosen",
                        list(&host->machine.allowed, allowed));
                sl_gain(finding, "a runtime with this configuration does not start here");
                return;
        }
        show_places(host, finding);
        if (shares_needlessly(host)) {
                finding->verdict = SL_VERDICT_BETTER;
                sl_change(finding, "threads.dispatcher_cores and threads.worker_cores without a processor in common");
                sl_gain(finding, "a dispatcher that is awake is never behind a batch that computes");
        } else if (host->config->model_defaults.instances > (uint32_t)CPU_COUNT(&host->cores.worker_cores)) {
                finding->verdict = SL_VERDICT_BETTER;
                sl_found_too(finding, "; %u instances of each model", host->config->model_defaults.instances);
                sl_change(finding, "model_defaults.instances: %d", CPU_COUNT(&host->cores.worker_cores));
                sl_gain(finding, "no more workers compute at once than there are processors; each has one for itself, and spins");
        }
}

/* The other threads of execution of the cores of @cpus, those included. False: no file says it. */
static bool find_siblings(const struct sl_host *host, const cpu_set_t *cpus, cpu_set_t *ret_siblings)
{
        char text[LIST_BYTES];
        cpu_set_t siblings;
        bool said = false;

        CPU_ZERO(ret_siblings);
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
                if (!CPU_ISSET(cpu, cpus) || !sl_host_file(host->root, text, sizeof(text),
                                                     "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu))
                        continue;
                sl_host_cpus(text, &siblings);
                CPU_OR(ret_siblings, ret_siblings, &siblings);
                said = true;
        }
        return said;
}

static void part_from_siblings(const struct sl_host *host, const cpu_set_t *siblings, struct sl_finding *finding)
{
        char dispatcher[LIST_BYTES], rest[LIST_BYTES];
        cpu_set_t common, others;

        CPU_AND(&common, &host->machine.allowed, siblings);
        CPU_XOR(&others, &host->machine.allowed, &common);
        if (CPU_COUNT(&others))
                sl_change(finding, "threads: {dispatcher_cores: [%s], worker_cores: [%s]}",
                        list(&host->cores.dispatcher_cores, dispatcher), list(&others, rest));
        else
                sl_change(finding, "a machine, or a virtual one, with a second core");
        sl_gain(finding, "a dispatcher that spins takes from a worker on the same core what both of them execute with");
}

void sl_check_smt(const struct sl_host *host, struct sl_finding *finding)
{
        cpu_set_t siblings, alone;
        char text[LIST_BYTES];

        if (!is_placed(host, finding))
                return;
        if (!find_siblings(host, &host->cores.dispatcher_cores, &siblings)) {
                sl_found(finding, SL_VERDICT_UNKNOWN, "no file says which processors share a core");
                return;
        }
        CPU_XOR(&alone, &siblings, &host->cores.dispatcher_cores);
        if (CPU_COUNT(&alone) == 0)
                sl_found(finding, SL_VERDICT_OK, "the dispatcher's core has one thread of execution");
        else
                sl_found(finding, has_any(&alone, &host->cores.worker_cores) ? SL_VERDICT_BETTER : SL_VERDICT_OK,
                        "processors %s are one core, the dispatcher's", list(&siblings, text));
        if (finding->verdict == SL_VERDICT_BETTER)
                part_from_siblings(host, &siblings, finding);
}

static uint32_t count_nodes(const struct sl_host *host, const cpu_set_t *cpus)
{
        uint32_t n = 0;

        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
                bool first = CPU_ISSET(cpu, cpus);

                for (int before = 0; before < cpu && first; before++)
                        first = !CPU_ISSET(before, cpus) || host->machine.node_of[before] != host->machine.node_of[cpu];
                n += first;
        }
        return n;
}

void sl_check_numa(const struct sl_host *host, struct sl_finding *finding)
{
        uint32_t nodes = count_nodes(host, &host->online), used;
        char balancing[8];
        cpu_set_t both;

        if (!is_placed(host, finding))
                return;
        CPU_OR(&both, &host->cores.dispatcher_cores, &host->cores.worker_cores);
        used = count_nodes(host, &both);
        if (nodes <= 1) {
                sl_found(finding, nodes ? SL_VERDICT_OK : SL_VERDICT_UNKNOWN, nodes ? "one node" : "no file says it");
                return;
        }
        sl_found(finding, used > 1 ? SL_VERDICT_BETTER : SL_VERDICT_OK, "%u nodes, the threads are on %u", nodes, used);
        sl_host_file(host->root, balancing, sizeof(balancing), "/proc/sys/kernel/numa_balancing");
        if (used > 1) {
                sl_change(finding, "threads.numa_node: %u, and one runtime for each node",
                        host->machine.node_of[first_cpu(&host->cores.dispatcher_cores)]);
                sl_gain(finding, "requests, weights and answers stay in the memory and the caches of one node");
        } else if (balancing[0] == '1') {
                finding->verdict = SL_VERDICT_BETTER;
                sl_found_too(finding, ", kernel.numa_balancing is on");
                sl_change(finding, "sysctl -w kernel.numa_balancing=0");
                sl_gain(finding,
                        "the kernel no longer unmaps pages to see which threads use them, which pinned threads only pay for");
        }
}

/* Who spins there takes it from whoever serves there, and measures that. */
static void show_gaps(const struct sl_host *host, int cpu, struct sl_finding *finding)
{
        struct sl_gaps gaps;

        if (host->probes->gaps && CPU_ISSET(cpu, &host->machine.taken)) {
                sl_found_too(finding, "; what a thread on %d loses is not measured, as a runtime that lives has it", cpu);
                return;
        }
        if (!host->probes->gaps || !host->probes->gaps(cpu, &gaps))
                return;
        sl_figure(finding, "lost_share", gaps.share);
        sl_figure(finding, "longest_gap_us", gaps.longest_us);
        sl_found_too(finding, "; a thread that only spins on %d loses %.2f %% of its time, at most %.0f us at once", cpu,
                gaps.share * 100, gaps.longest_us);
}

/* Fewer are all needed for what computes, the clients, and the rest of the system. */
#define CPUS_TO_ISOLATE 4

/* The first processor is the one on which the kernel keeps its house: the last is set apart. */
static void isolate_dispatcher(const struct sl_host *host, struct sl_finding *finding)
{
        int cpu = last_cpu(&host->machine.allowed);
        char isolated[LIST_BYTES];

        finding->verdict = SL_VERDICT_BETTER;
        if (CPU_COUNT(&host->isolated))
                sl_change(finding, "threads.dispatcher_cores: [%d], and for the unit CPUAffinity= with %s in it",
                        first_cpu(&host->isolated), list(&host->isolated, isolated));
        else
                sl_change(finding,
                        "isolcpus=managed_irq,domain,%d nohz_full=%d rcu_nocbs=%d on the kernel's command line, "
                        "threads.dispatcher_cores: [%d], and for the unit CPUAffinity= with it",
                        cpu, cpu, cpu, cpu);
        sl_gain(finding,
                "other processes, interrupts and the kernel's tick no longer stop the dispatcher: it is in p99.9, not in p50");
}

void sl_check_isolated_cpus(const struct sl_host *host, struct sl_finding *finding)
{
        char isolated[LIST_BYTES], tickless[LIST_BYTES];
        int cpu;

        if (!is_placed(host, finding))
                return;
        cpu = first_cpu(&host->cores.dispatcher_cores);
        if (CPU_COUNT(&host->isolated))
                sl_found(finding, SL_VERDICT_OK, "isolated: %s, without a tick: %s", list(&host->isolated, isolated),
                        CPU_COUNT(&host->tickless) ? list(&host->tickless, tickless) : "none");
        else
                sl_found(finding, SL_VERDICT_OK, "none%s",
                        CPU_COUNT(&host->online) < CPUS_TO_ISOLATE ? ", and too few to set one apart" : "");
        show_gaps(host, cpu, finding);
        if (!has_all(&host->isolated, &host->cores.dispatcher_cores) && CPU_COUNT(&host->online) >= CPUS_TO_ISOLATE)
                isolate_dispatcher(host, finding);
}

/* user nice system idle iowait irq softirq steal */
#define STEAL 7

/* From these shares on, of all the time since the host has started. */
#define STEAL_SEEN 0.005
#define STEAL_MUCH 0.05

void sl_check_steal(const struct sl_host *host, struct sl_finding *finding)
{
        unsigned long long times[STEAL + 1] = {0}, all = 0;
        char text[4096], line[256];

        sl_host_file(host->root, text, sizeof(text), "/proc/stat");
        sl_host_field(text, "cpu", line, sizeof(line));
        int n = sscanf(line, "%llu %llu %llu %llu %llu %llu %llu %llu", &times[0], &times[1], &times[2], &times[3], &times[4],
                &times[5], &times[6], &times[7]);

        for (int i = 0; i < n; i++)
                all += times[i];
        if (n <= STEAL || all == 0) {
                sl_found(finding, SL_VERDICT_UNKNOWN, "/proc/stat does not say it");
                return;
        }
        double share = (double)times[STEAL] / (double)all;
        sl_found(finding,
                share < STEAL_SEEN   ? SL_VERDICT_OK
                : share < STEAL_MUCH ? SL_VERDICT_BETTER
                                     : SL_VERDICT_WRONG,
                "%.2f %% of the time since the start of the host", share * 100);
        sl_figure(finding, "steal_share", share);
        if (share < STEAL_SEEN)
                return;
        sl_change(finding, "processors of its own for the virtual machine: pinned ones, or an instance type that has them");
        sl_gain(finding, "whatever stops a processor meanwhile stops the requests on it; no setting inside of the machine helps");
}
