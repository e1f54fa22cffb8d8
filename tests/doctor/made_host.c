/* SPDX-License-Identifier: Apache-2.0 */
#include "made_host.h"

#include "base/error.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CPUS 8
#define GIB  (1ull << 30)

static const struct {
        const char *path, *text;
} files[] = {
        {"proc/sys/kernel/osrelease", "6.12.9-1-amd64\n"},
        {"proc/sys/kernel/io_uring_disabled", "0\n"},
        {"proc/sys/kernel/numa_balancing", "0\n"},
        {"proc/sys/kernel/seccomp/actions_avail", "kill_process kill_thread trap errno user_notif trace log allow\n"},
        {"sys/kernel/security/lsm", "lockdown,capability,landlock,yama\n"},
        {"proc/cpuinfo",
                "processor\t: 0\nmodel name\t: A Processor\nflags\t\t: fpu sse2 avx2 fma avx512f avx512bw avx512dq avx512vl\n"},
        {"proc/meminfo",
                "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\nHugePages_Total: 0\nHugePages_Free: 0\nHugepagesize: 2048 kB\n"},
        {"proc/stat", "cpu  1000 0 1000 7990 0 0 0 10 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n"},
        {"proc/self/cgroup", "0::/system.slice\n"},
        {"proc/self/status", "Name:\tstarling\nCapEff:\t0000000000000000\nCpus_allowed_list:\t0-7\n"},
        {"proc/self/limits", "Limit                     Soft Limit           Hard Limit           Units\n"
                             "Max open files            1024                 524288               files\n"
                             "Max locked memory         8388608              8388608              bytes\n"
                             "Max nice priority         0                    30\n"},
        {"sys/devices/system/cpu/online", "0-7\n"},
        {"sys/devices/system/cpu/isolated", "0\n"},
        {"sys/devices/system/cpu/nohz_full", "0\n"},
        {"sys/devices/system/cpu/vulnerabilities/meltdown", "Not affected\n"},
        {"sys/devices/system/cpu/vulnerabilities/mds", "Not affected\n"},
        {"sys/devices/system/cpu/vulnerabilities/retbleed", "Not affected\n"},
        {"sys/devices/system/node/node0/cpulist", "0-7\n"},
        {"sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"},
        {"sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet acpi_pm\n"},
        {"sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"},
        {"sys/kernel/mm/transparent_hugepage/defrag", "always defer defer+madvise [madvise] never\n"},
        {"dev/shm/another.file", "x"},
        {"run/starling/README", "x"},
        {"var/cache/starling/README", "x"},
        {"sys/bus/pci/devices/0000:00:00.0/class", "0x060000\n"},
};

static bool fake_may_write(const char *folder)
{
        struct stat status;

        return stat(folder, &status) == 0 && status.st_mode & 0200;
}

static int fake_space(const char *path, struct sl_space *ret_space)
{
        struct stat status;

        *ret_space = (struct sl_space){.bytes = 8 * GIB, .free_bytes = 4 * GIB};
        return stat(path, &status) < 0 ? -ENOENT : 0;
}

static int fake_io_uring(struct sl_error *error)
{
        (void)error;
        return 0;
}

static int fake_landlock(void)
{
        return 6;
}

static bool fake_call_filters(void)
{
        return true;
}

static bool fake_core(const struct sl_config *config, struct sl_core_figures *ret_figures)
{
        (void)config;
        *ret_figures = sl_target_typical.core;
        return true;
}

static void write_cpu(struct made_host *host, int cpu)
{
        const struct {
                const char *file, *text;
        } rows[] = {
                {"cpufreq/scaling_governor", "performance\n"},
                {"cpuidle/state0/name", "POLL\n"},
                {"cpuidle/state0/latency", "0\n"},
                {"cpuidle/state0/disable", "0\n"},
                {"cpuidle/state1/name", "C1\n"},
                {"cpuidle/state1/latency", "2\n"},
                {"cpuidle/state1/disable", "0\n"},
        };
        char path[128], text[16];

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%d/%s", cpu, rows[i].file);
                folder_write(&host->folder, path, rows[i].text);
        }
        snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
        snprintf(text, sizeof(text), "%d\n", cpu);
        folder_write(&host->folder, path, text);
}

void made_host_init(struct made_host *host)
{
        char path[128];

        unsetenv("ONEDNN_MAX_CPU_ISA");
        setenv("STARLING_SOCKET_DIR", "/run/starling", 1);
        folder_make(&host->folder);
        for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
                folder_write(&host->folder, files[i].path, files[i].text);
        for (int cpu = 0; cpu < CPUS; cpu++)
                write_cpu(host, cpu);
        snprintf(path, sizeof(path), "%s/var/cache/starling", host->folder.path);
        cr_assert_eq(chmod(path, 0700), 0);
        host->probes = (struct sl_probes){.io_uring = fake_io_uring,
                .landlock = fake_landlock,
                .call_filters = fake_call_filters,
                .may_write = fake_may_write,
                .space = fake_space,
                .core = fake_core};
        host->configured = false;
        cr_assert_eq(sl_config_read(NULL, &host->config, NULL), 0);
        host->config->cache_directory = "/var/cache/starling";
}

void made_host_deinit(struct made_host *host)
{
        sl_config_free(host->config);
        folder_remove(&host->folder);
}

static const char *path_below(const struct made_host *host, const char *path, char ret_path[256])
{
        snprintf(ret_path, 256, "%s/%s", host->folder.path, path);
        return ret_path;
}

void made_host_write(struct made_host *host, const char *path, const char *text)
{
        char whole[256];

        if (text)
                folder_write(&host->folder, path, text);
        else
                (void)unlink(path_below(host, path, whole));
}

char *made_host_read(struct made_host *host, const char *path)
{
        char whole[256], *text = NULL;
        FILE *file = fopen(path_below(host, path, whole), "re");
        size_t bytes = 0;

        if (!file)
                return NULL;
        if (getdelim(&text, &bytes, EOF, file) < 0)
                text[0] = 0;
        fclose(file);
        return text;
}

static void hear(void *context, const struct sl_finding *finding)
{
        struct sl_finding *worst = context;

        if (finding->verdict >= worst->verdict)
                *worst = *finding;
        cr_expect(finding->found[0], "%s has found nothing", finding->check);
        cr_expect(finding->verdict <= SL_VERDICT_UNKNOWN || (finding->change[0] && finding->gain[0]), "%s: no way out",
                finding->check);
}

struct sl_finding made_host_ask(struct made_host *host, const char *check)
{
        bool only[64] = {false};
        const struct sl_doctor_options options = {.root = host->folder.path,
                .probes = &host->probes,
                .config = host->config,
                .configured = host->configured,
                .only = check ? only : NULL};
        struct sl_finding worst = {0};

        cr_assert_leq(sl_doctor_checks(), 64);
        if (check) {
                int i = sl_doctor_find(check, strlen(check));

                cr_assert_geq(i, 0, "no check %s", check);
                only[i] = true;
        }
        cr_expect_eq(sl_doctor_run(&options, hear, &worst), worst.verdict);
        return worst;
}

void made_host_expect(struct made_host *host, const char *check, enum sl_verdict verdict, const char *found, const char *change)
{
        struct sl_finding finding = made_host_ask(host, check);

        cr_expect_eq(finding.verdict, verdict, "%s: %s: %s", check, sl_verdict_text(finding.verdict), finding.found);
        cr_expect(!found || strstr(finding.found, found), "%s: found \"%s\" without \"%s\"", check, finding.found, found);
        cr_expect(!change || strstr(finding.change, change), "%s: change \"%s\" without \"%s\"", check, finding.change, change);
}
