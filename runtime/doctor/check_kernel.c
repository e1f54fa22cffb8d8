/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel is, and what it lets a runtime do. */
#include "checks.h"
#include "config.h"
#include "finding.h"
#include "host.h"
#include "host_file.h"
#include "wait.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Releases as thousands: 6.1 is 6001. */
#define OLDEST_RELEASE 6001u
#define SLICES_RELEASE 6012u /* slices of SCHED_OTHER; signals in Landlock */

#define LANDLOCK_VERSION 6 /* that knows of signals */

static uint32_t release_of(const char *text)
{
        unsigned major, minor;

        return sscanf(text, "%u.%u", &major, &minor) == 2 ? major * 1000 + minor : 0;
}

void sl_check_kernel(const struct sl_host *host, struct sl_finding *finding)
{
        char text[128];

        sl_host_file(host->root, text, sizeof(text), "/proc/sys/kernel/osrelease");
        uint32_t release = release_of(text);

        sl_found(finding, release ? SL_VERDICT_OK : SL_VERDICT_UNKNOWN, release ? "Linux %s" : "no release is said%s", text);
        if (release && release < OLDEST_RELEASE) {
                finding->verdict = SL_VERDICT_WRONG;
                sl_change(finding, "Linux 6.1 or later");
                sl_gain(finding, "Starling is made for 6.1 and later: io_uring and huge pages of files lack operations before");
        } else if (release && release < SLICES_RELEASE) {
                finding->verdict = SL_VERDICT_BETTER;
                sl_change(finding, "Linux 6.12 or later");
                sl_gain(finding,
                        "the dispatcher's short slice counts, so that a worker on its core delays it by less; Landlock keeps "
                        "compilers and worker processes from signals, too");
        }
}

/* As the setting says, where nobody can be asked. */
static int is_allowed(const struct sl_host *host, char setting, struct sl_error *error)
{
        if (host->probes->io_uring)
                return host->probes->io_uring(error);
        if (!setting)
                return -ENODATA;
        return setting == '0' ? 0 : sl_error_set(error, EPERM, "io_uring: denied by the setting kernel.io_uring_disabled");
}

void sl_check_io_uring(const struct sl_host *host, struct sl_finding *finding)
{
        struct sl_error error = {""};
        char setting[16];

        sl_host_file(host->root, setting, sizeof(setting), "/proc/sys/kernel/io_uring_disabled");
        int r = is_allowed(host, setting[0], &error);

        if (r == 0 || r == -ENODATA) {
                sl_found(finding, r ? SL_VERDICT_UNKNOWN : SL_VERDICT_OK, r ? "no setting says it" : "io_uring is allowed");
                return;
        }
        sl_found(finding, host->config->wait == SL_WAIT_URING ? SL_VERDICT_WRONG : SL_VERDICT_BETTER, "%s", error.text);
        if (setting[0] == '1' || setting[0] == '2')
                sl_change(finding, "sysctl -w kernel.io_uring_disabled=0%s",
                        setting[0] == '1' ? ", or a group of the runtime's user in kernel.io_uring_group" : "");
        else
                sl_change(finding, "allow io_uring_setup, io_uring_enter and io_uring_register in the container's seccomp profile");
        if (finding->verdict == SL_VERDICT_WRONG)
                sl_gain(finding, "`wait: io_uring` of the configuration cannot start");
        else
                sl_gain(finding, "threads that sleep wait with fewer system calls than with epoll; those that are awake make none");
}

/* The modules that the kernel has started, with this one. */
static void change_modules(const struct sl_host *host, struct sl_finding *finding)
{
        char modules[256];

        if (sl_host_file(host->root, modules, sizeof(modules), "/sys/kernel/security/lsm") && !strstr(modules, "landlock"))
                sl_change(finding, "lsm=landlock,%s on the kernel's command line", modules);
        else
                sl_change(finding,
                        "a kernel with CONFIG_SECURITY_LANDLOCK that starts it (lsm=landlock,...), and a container's seccomp "
                        "profile that allows landlock_create_ruleset, landlock_add_rule and landlock_restrict_self");
}

/* -1: nobody says it. */
static int landlock_version(const struct sl_host *host)
{
        char modules[256];

        if (host->probes->landlock)
                return host->probes->landlock();
        if (!sl_host_file(host->root, modules, sizeof(modules), "/sys/kernel/security/lsm"))
                return -1;
        return strstr(modules, "landlock") ? LANDLOCK_VERSION : 0;
}

void sl_check_landlock(const struct sl_host *host, struct sl_finding *finding)
{
        int version = landlock_version(host);

        if (version < 0) {
                sl_found(finding, SL_VERDICT_UNKNOWN, "no file says it");
        } else if (version) {
                sl_found(finding, SL_VERDICT_OK, "Landlock is there");
                if (host->probes->landlock)
                        sl_found_too(finding, ", version %d%s", version, version < LANDLOCK_VERSION ? ", without signals" : "");
        } else {
                sl_found(finding, SL_VERDICT_BETTER, "the kernel has no Landlock, or denies it");
                change_modules(host, finding);
                sl_gain(finding,
                        "compilers and worker processes (isolation: process) are kept from files by two layers instead of one");
        }
}

static bool has_filters(const struct sl_host *host, bool *ret_known)
{
        char actions[256];

        *ret_known = true;
        if (host->probes->call_filters)
                return host->probes->call_filters();
        *ret_known = sl_host_file(host->root, actions, sizeof(actions), "/proc/sys/kernel/seccomp/actions_avail");
        return strstr(actions, "errno");
}

void sl_check_call_filter(const struct sl_host *host, struct sl_finding *finding)
{
        bool known, there = has_filters(host, &known);
        bool alone = host->probes->landlock && !host->probes->landlock();

        if (there || !known) {
                sl_found(finding, known ? SL_VERDICT_OK : SL_VERDICT_UNKNOWN,
                        known ? "filters of system calls are there" : "no file says it");
                return;
        }
        sl_found(finding, alone ? SL_VERDICT_WRONG : SL_VERDICT_BETTER,
                "the kernel has no filters of system calls, or denies them%s", alone ? "; nor has it Landlock" : "");
        sl_change(finding, "a kernel with CONFIG_SECCOMP_FILTER, and a container's profile that allows seccomp");
        sl_gain(finding, "compilers and worker processes, which read what may be hostile, make no system calls but theirs");
}

/* What takes time wherever the kernel is entered, or in kernels of networks. */
static const struct {
        const char *file, *word, *cost;
} costs[] = {
        {"meltdown", "PTI", "page tables change with each system call and interrupt"},
        {"retbleed", "IBRS", "each system call and interrupt writes a register of the processor"},
        {"retbleed", "untrained return thunk", "each system call and interrupt untrains branches"},
        {"mds", "Clear CPU buffers", "buffers are cleared with each system call and interrupt"},
        {"gather_data_sampling", "Microcode", "instructions that gather, as in look-ups of embeddings, wait"},
};

/* Those that are in force. Return: how many; *ret_said: the kernel says something. */
static uint32_t list_costs(const struct sl_host *host, bool *ret_said, struct sl_finding *finding)
{
        char text[512];
        uint32_t n = 0;

        *ret_said = false;
        for (size_t i = 0; i < sizeof(costs) / sizeof(costs[0]); i++) {
                *ret_said |=
                        sl_host_file(host->root, text, sizeof(text), "/sys/devices/system/cpu/vulnerabilities/%s", costs[i].file);
                if (strncmp(text, "Mitigation", strlen("Mitigation")) == 0 && strstr(text, costs[i].word))
                        sl_found_too(finding, "%s%s (%s)", n++ ? "; " : "", costs[i].file, costs[i].cost);
        }
        return n;
}

void sl_check_mitigations(const struct sl_host *host, struct sl_finding *finding)
{
        double call_ns = host->probes->call_ns ? host->probes->call_ns() : 0;
        bool said;
        uint32_t n = list_costs(host, &said, finding);

        if (n)
                finding->verdict = SL_VERDICT_BETTER;
        else
                sl_found(finding, said ? SL_VERDICT_OK : SL_VERDICT_UNKNOWN,
                        said ? "none that takes much time" : "the kernel does not say which there are");
        if (call_ns > 0) {
                sl_figure(finding, "call_ns", call_ns);
                sl_found_too(finding, "; a system call takes %.0f ns here", call_ns);
        }
        if (!n)
                return;
        sl_change(finding,
                "mitigations=off on the kernel's command line, only where all that runs on the host is trusted; or a newer "
                "processor");
        sl_gain(finding, "a part of what waking a sleeper takes; nothing while both sides are awake, as they make no system calls");
}

/* Those that the vDSO reads without a system call. */
static bool is_fast_clock(const char *name)
{
        static const char *const fast[] = {
                "tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "riscv_clocksource"};

        for (size_t i = 0; i < sizeof(fast) / sizeof(fast[0]); i++)
                if (strcmp(name, fast[i]) == 0)
                        return true;
        return false;
}

#define CLOCKS "/sys/devices/system/clocksource/clocksource0/"

void sl_check_clock_source(const struct sl_host *host, struct sl_finding *finding)
{
        double clock_ns = host->probes->clock_ns ? host->probes->clock_ns() : 0;
        char name[64], available[256];

        sl_host_file(host->root, name, sizeof(name), CLOCKS "current_clocksource");
        if (!*name) {
                sl_found(finding, SL_VERDICT_UNKNOWN, "no file says it");
                return;
        }
        sl_found(finding, is_fast_clock(name) ? SL_VERDICT_OK : SL_VERDICT_WRONG, "%s", name);
        if (clock_ns > 0) {
                sl_figure(finding, "clock_ns", clock_ns);
                sl_found_too(finding, ", a reading takes %.0f ns", clock_ns);
        }
        if (is_fast_clock(name))
                return;
        sl_host_file(host->root, available, sizeof(available), CLOCKS "available_clocksource");
        if (strstr(available, "tsc"))
                sl_change(finding, "echo tsc > " CLOCKS "current_clocksource");
        else
                sl_change(finding,
                        "clocksource=tsc tsc=reliable on the kernel's command line, where all processors have one invariant TSC");
        sl_gain(finding, "the clock is read several times for each request; from this source it takes a system call each time");
}
