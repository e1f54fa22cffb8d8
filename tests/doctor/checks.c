/* SPDX-License-Identifier: Apache-2.0 */
/* Every verdict of the doctor, on hosts that are made of files: one with which all is well, with one thing changed at a time. */
#include "made_host.h"

#include "base/error.h"
#include "core_claims.h"
#include "stats_claim.h"
#include "wait.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct made_host host;

static void set_up(void)
{
        made_host_init(&host);
}

static void tear_down(void)
{
        made_host_deinit(&host);
}

TestSuite(doctor, .init = set_up, .fini = tear_down);

Test(doctor, finds_nothing_on_a_host_with_which_all_is_well)
{
        struct sl_finding worst = made_host_ask(&host, NULL);

        cr_expect_eq(worst.verdict, SL_VERDICT_OK, "%s: %s", worst.check, worst.found);
}

#define CPU   "sys/devices/system/cpu/"
#define CLOCK "sys/devices/system/clocksource/clocksource0/"
#define THP   "sys/kernel/mm/transparent_hugepage/"

/* One file of the host is another, or, NULL, not there. */
static const struct change {
        const char *check, *path, *text;
        enum sl_verdict verdict;
        const char *found, *change;
} changes[] = {
        {"kernel", "proc/sys/kernel/osrelease", "5.15.0-91-generic", SL_VERDICT_WRONG, "5.15.0", "Linux 6.1 or later"},
        {"kernel", "proc/sys/kernel/osrelease", "6.1.0-18-amd64", SL_VERDICT_BETTER, "6.1.0", "Linux 6.12"},
        {"kernel", "proc/sys/kernel/osrelease", "6.11.0", SL_VERDICT_BETTER, "6.11.0", "Linux 6.12"},
        {"kernel", "proc/sys/kernel/osrelease", "7.0.0", SL_VERDICT_OK, "7.0.0", NULL},
        {"kernel", "proc/sys/kernel/osrelease", "what", SL_VERDICT_UNKNOWN, NULL, NULL},
        {"kernel", "proc/sys/kernel/osrelease", NULL, SL_VERDICT_UNKNOWN, NULL, NULL},
        {"mitigations", CPU "vulnerabilities/meltdown", "Mitigation: PTI", SL_VERDICT_BETTER, "meltdown (page tables",
                "mitigations=off"},
        {"mitigations", CPU "vulnerabilities/mds", "Mitigation: Clear CPU buffers; SMT vulnerable", SL_VERDICT_BETTER,
                "mds (buffers", NULL},
        {"mitigations", CPU "vulnerabilities/mds", "Vulnerable: Clear CPU buffers attempted, no microcode", SL_VERDICT_OK, NULL,
                NULL},
        {"clock-source", CLOCK "current_clocksource", "hpet", SL_VERDICT_WRONG, "hpet",
                "echo tsc > /sys/devices/system/clocksource"},
        {"clock-source", CLOCK "current_clocksource", "kvm-clock", SL_VERDICT_OK, "kvm-clock", NULL},
        {"clock-source", CLOCK "current_clocksource", NULL, SL_VERDICT_UNKNOWN, NULL, NULL},
        {"cpu-features", "proc/cpuinfo", "model name : Old\nflags : sse2 sse4_1 avx\n", SL_VERDICT_BETTER, "Old: no avx2",
                "AVX-512"},
        {"cpu-features", "proc/cpuinfo", "model name : V\nflags : sse2 hypervisor\n", SL_VERDICT_BETTER, "V: no avx2", "-cpu host"},
        {"cpu-features", "proc/cpuinfo", "model name : V\nflags : avx2 fma amx_tile avx_vnni\n", SL_VERDICT_OK,
                "avx2 fma avx_vnni amx_tile", NULL},
        {"cpu-features", "proc/cpuinfo", "processor : 0\nFeatures : asimd\n", SL_VERDICT_UNKNOWN, NULL, NULL},
        {"governor", CPU "cpu3/cpufreq/scaling_governor", "powersave", SL_VERDICT_BETTER, "powersave on 1 of 8",
                "frequency-set -g performance"},
        {"governor", CPU "intel_pstate/no_turbo", "1", SL_VERDICT_BETTER, "above the nominal one are off", "--turbo-boost 1"},
        {"governor", CPU "intel_pstate/no_turbo", "0", SL_VERDICT_OK, "performance on 8 of 8", NULL},
        {"governor", CPU "cpufreq/boost", "0", SL_VERDICT_BETTER, "above the nominal one are off", "--turbo-boost 1"},
        {"idle-states", CPU "cpu0/cpuidle/state1/latency", "133", SL_VERDICT_BETTER, "C1, which takes 133 us", "idle-set -D 50"},
        {"cpus", "proc/self/status", "Cpus_allowed_list:\t2\n", SL_VERDICT_BETTER, "may use 2 of 0-7", "taskset -c 0-7"},
        {"cpus", "proc/self/status", "Cpus_allowed_list:\t2,4-5\n", SL_VERDICT_OK, "may use 2,4-5 of 0-7", NULL},
        {"cpus", CPU "online", NULL, SL_VERDICT_UNKNOWN, NULL, NULL},
        {"cpu-quota", "sys/fs/cgroup/cpu.max", "350000 100000", SL_VERDICT_BETTER, "grants 3.50 processors", "AllowedCPUs="},
        {"smt", CPU "cpu0/topology/thread_siblings_list", "0,4", SL_VERDICT_BETTER, "processors 0,4 are one core",
                "{dispatcher_cores: [0], worker_cores: [1-3,5-7]}"},
        {"smt", CPU "cpu0/topology/thread_siblings_list", "0-7", SL_VERDICT_BETTER, "0-7 are one core", "second core"},
        {"smt", CPU "cpu1/topology/thread_siblings_list", "1,5", SL_VERDICT_OK, NULL, NULL},
        {"smt", CPU "cpu0/topology/thread_siblings_list", NULL, SL_VERDICT_UNKNOWN, NULL, NULL},
        {"numa", "sys/devices/system/node/node1/cpulist", "4-7", SL_VERDICT_BETTER, "2 nodes, the threads are on 2",
                "threads.numa_node: 0"},
        {"isolated-cpus", CPU "isolated", "", SL_VERDICT_BETTER, "none", "isolcpus=managed_irq,domain,7 nohz_full=7"},
        {"isolated-cpus", CPU "isolated", "6-7", SL_VERDICT_BETTER, "isolated: 6-7", "threads.dispatcher_cores: [6]"},
        {"steal", "proc/stat", "cpu  1000 0 1000 7900 0 0 0 100 0 0\n", SL_VERDICT_BETTER, "1.00 %", "pinned ones"},
        {"steal", "proc/stat", "cpu  1000 0 1000 7000 0 0 0 1000 0 0\n", SL_VERDICT_WRONG, "10.00 %", "pinned ones"},
        {"steal", "proc/stat", "cpu  1000 0 1000 7000\n", SL_VERDICT_UNKNOWN, NULL, NULL},
        {"huge-pages", THP "enabled", "always madvise [never]", SL_VERDICT_BETTER, "enabled: never",
                "echo madvise > /sys/kernel/mm"},
        {"huge-pages", THP "enabled", "[always] madvise never", SL_VERDICT_OK, "enabled: always", NULL},
        {"huge-pages", THP "enabled", NULL, SL_VERDICT_UNKNOWN, NULL, NULL},
        {"reserved-pages", "proc/meminfo", "HugePages_Total: 512\nHugePages_Free: 500\nHugepagesize: 2048 kB\n", SL_VERDICT_BETTER,
                "512 pages of 2048 KiB are reserved, 500 are free", "vm.nr_hugepages=12"},
        {"reserved-pages", "proc/meminfo", "HugePages_Total: 512\nHugePages_Free: 0\nHugepagesize: 2048 kB\n", SL_VERDICT_OK, NULL,
                NULL},
        {"memory", "sys/fs/cgroup/system.slice/memory.max", "1073741824", SL_VERDICT_OK,
                "1024 MiB are there (/sys/fs/cgroup/system.slice)", NULL},
        {"memory", "proc/meminfo", "MemTotal: 5 kB\n", SL_VERDICT_UNKNOWN, NULL, NULL},
        {"memory", "proc/meminfo", "MemAvailable: 8192 kB\n", SL_VERDICT_WRONG, "together are 30 MiB", "limits.stats_bytes"},
        {"open-files", "proc/self/limits", "Max open files            256                  256                  files\n",
                SL_VERDICT_WRONG, "at most 256; 64 clients", "limits.clients: 21"},
        {"open-files", "proc/self/limits", "Max open files            1024                 unlimited            files\n",
                SL_VERDICT_OK, NULL, NULL},
        {"open-files", "proc/self/limits", NULL, SL_VERDICT_UNKNOWN, NULL, NULL},
        {"memlock", "proc/self/limits", NULL, SL_VERDICT_UNKNOWN, NULL, NULL},
        {"priority", "proc/self/limits", "Max nice priority         0                    0\n", SL_VERDICT_OK,
                "has a processor without workers", NULL},
        {"left-behind", "dev/shm/starling.dead", "a page", SL_VERDICT_BETTER, "/dev/shm/starling.dead", "starling stats NAME"},
        {"gpu", "sys/bus/pci/devices/0000:01:00.0/class", "0x030200", SL_VERDICT_OK, "none", NULL},
};

Test(doctor, says_of_each_thing_what_it_is_and_what_to_change, .timeout = 60)
{
        for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
                const struct change *change = &changes[i];
                char *before = made_host_read(&host, change->path);

                made_host_write(&host, change->path, change->text);
                made_host_expect(&host, change->check, change->verdict, change->found, change->change);
                made_host_write(&host, change->path, before);
                free(before);
        }
}

/* ---- what more than one file says ---- */

Test(doctor, two_processors_without_the_privilege_share_one_by_turns)
{
        made_host_write(&host, "proc/self/limits", "Max nice priority         0                    0\n");
        made_host_write(&host, "proc/self/status", "CapEff:\t0000000000000000\nCpus_allowed_list:\t0-1\n");
        made_host_expect(&host, "priority", SL_VERDICT_BETTER, "shares its processor with workers", "LimitNICE=-10");
        made_host_write(&host, "proc/self/status", "CapEff:\t0000000000800000\nCpus_allowed_list:\t0-1\n");
        made_host_expect(&host, "priority", SL_VERDICT_OK, NULL, NULL);
}

Test(doctor, a_quota_that_was_used_up_says_so)
{
        made_host_write(&host, "sys/fs/cgroup/system.slice/cpu.max", "150000 100000");
        made_host_write(&host, "sys/fs/cgroup/system.slice/cpu.stat", "usage_usec 5\nnr_throttled 7\n");
        made_host_expect(&host, "cpu-quota", SL_VERDICT_BETTER, "in 7 periods they were used up", NULL);
}

Test(doctor, balancing_of_nodes_only_costs_threads_that_are_on_one)
{
        made_host_write(&host, "sys/devices/system/node/node1/cpulist", "4-7");
        host.config->numa_node = 0;
        made_host_expect(&host, "numa", SL_VERDICT_OK, "the threads are on 1", NULL);
        made_host_write(&host, "proc/sys/kernel/numa_balancing", "1");
        made_host_expect(&host, "numa", SL_VERDICT_BETTER, "numa_balancing is on", "kernel.numa_balancing=0");
}

Test(doctor, fewer_than_four_processors_are_none_to_isolate)
{
        made_host_write(&host, CPU "online", "0-1\n");
        made_host_write(&host, CPU "isolated", "\n");
        made_host_write(&host, "proc/self/status", "Cpus_allowed_list:\t0-1\n");
        made_host_expect(&host, "isolated-cpus", SL_VERDICT_OK, "too few", NULL);
}

#define MODULE "usr/lib/x86_64-linux-gnu/starling/libstarling_cuda.so"

static void write_gpu(void)
{
        made_host_write(&host, "sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");
        made_host_write(&host, "sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
        made_host_write(&host, "sys/bus/pci/devices/0000:01:00.0/device", "0x2335\n");
}

Test(doctor, a_graphics_processor_is_shown_with_its_driver)
{
        write_gpu();
        made_host_expect(&host, "gpu", SL_VERDICT_BETTER, "; no driver", "the driver of NVIDIA");
        made_host_write(
                &host, "proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86\nGCC version: 12\n");
        made_host_write(&host, "usr/lib64/libcudnn.so.9", "");
        made_host_write(&host, MODULE, "");
        made_host_expect(&host, "gpu", SL_VERDICT_OK, "Kernel Module  570.86; libraries: libcudnn.so.9", NULL);
}

/* Whether or not there is one beside this program. */
Test(doctor, the_module_for_graphics_processors_is_that_of_the_host_that_is_looked_at)
{
        write_gpu();
        made_host_write(&host, "proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86\n");
        made_host_expect(&host, "gpu", SL_VERDICT_BETTER, "no libstarling_cuda.so", "starling-cuda");
        made_host_write(&host, MODULE, "");
        made_host_expect(&host, "gpu", SL_VERDICT_OK, "Kernel Module  570.86", NULL);
        made_host_write(&host, MODULE, NULL);
        made_host_write(&host, "usr/local/lib/starling/libstarling_cuda.so", "");
        made_host_expect(&host, "gpu", SL_VERDICT_OK, "Kernel Module  570.86", NULL);
}

Test(doctor, a_runtime_that_lives_is_shown_and_leaves_nothing_behind)
{
        struct sl_thread_cores cores = {0};
        struct sl_core_sharing sharing;
        struct sl_core_claims *claims;
        char folder[256];
        bool stale;
        int fd;

        CPU_SET(3, &cores.dispatcher_cores);
        CPU_SET(4, &cores.worker_cores);
        snprintf(folder, sizeof(folder), "%s/run/starling", host.folder.path);
        cr_assert_eq(sl_core_claims_take(folder, "alive", &cores, &claims, &sharing), 0);
        snprintf(folder, sizeof(folder), "%s/dev/shm", host.folder.path);
        cr_assert_eq(sl_claim_create(folder, "starling.alive", NULL, &stale, &fd, NULL), 0);
        made_host_expect(&host, "pinning", SL_VERDICT_OK, "have their dispatchers on 3, and all of their threads on 3-4", NULL);
        made_host_expect(&host, "left-behind", SL_VERDICT_OK, "nothing", NULL);
        close(fd);
        made_host_expect(&host, "left-behind", SL_VERDICT_BETTER, "starling.alive", NULL);
        sl_core_claims_free(claims);
}

/* ---- what the system answers ---- */

static int deny_io_uring(struct sl_error *error)
{
        return sl_error_set(error, EPERM, "io_uring: denied, as by a container's seccomp profile");
}

Test(doctor, a_host_that_denies_io_uring_could_be_better_and_is_wrong_where_it_is_wanted)
{
        host.probes.io_uring = deny_io_uring;
        made_host_expect(&host, "io-uring", SL_VERDICT_BETTER, "seccomp profile", "io_uring_setup");
        made_host_write(&host, "proc/sys/kernel/io_uring_disabled", "2\n");
        made_host_expect(&host, "io-uring", SL_VERDICT_BETTER, NULL, "sysctl -w kernel.io_uring_disabled=0");
        made_host_write(&host, "proc/sys/kernel/io_uring_disabled", "1\n");
        made_host_expect(&host, "io-uring", SL_VERDICT_BETTER, NULL, "io_uring_group");
        host.config->wait = SL_WAIT_URING;
        made_host_expect(&host, "io-uring", SL_VERDICT_WRONG, NULL, NULL);
}

static int no_landlock(void)
{
        return 0;
}

static int old_landlock(void)
{
        return 2;
}

static bool no_call_filters(void)
{
        return false;
}

Test(doctor, one_layer_of_the_sandbox_may_be_missing_but_not_both)
{
        host.probes.landlock = old_landlock;
        made_host_expect(&host, "landlock", SL_VERDICT_OK, "version 2, without signals", NULL);
        host.probes.call_filters = no_call_filters;
        made_host_expect(&host, "call-filter", SL_VERDICT_BETTER, NULL, "CONFIG_SECCOMP_FILTER");
        host.probes.landlock = no_landlock;
        made_host_expect(&host, "landlock", SL_VERDICT_BETTER, NULL, "lsm=landlock");
        made_host_write(&host, "sys/kernel/security/lsm", "capability,yama\n");
        made_host_expect(&host, "landlock", SL_VERDICT_BETTER, NULL, "lsm=landlock,capability,yama");
        made_host_expect(&host, "call-filter", SL_VERDICT_WRONG, "nor has it Landlock", NULL);
}

static int little_space(const char *path, struct sl_space *ret_space)
{
        (void)path;
        *ret_space = (struct sl_space){.bytes = 64 << 20, .free_bytes = 8 << 20};
        return 0;
}

static int no_space(const char *path, struct sl_space *ret_space)
{
        (void)path;
        (void)ret_space;
        return -ENOENT;
}

/* Nobody may write to a folder of the host. */
static void close_folder(const char *folder)
{
        char path[256];

        snprintf(path, sizeof(path), "%s%s", host.folder.path, folder);
        cr_assert_eq(chmod(path, 0500), 0);
}

Test(doctor, the_stats_page_needs_its_place)
{
        host.probes.space = little_space;
        made_host_expect(&host, "shm", SL_VERDICT_BETTER, "8 MiB of 64 are free", "--shm-size");
        host.config->stats_bytes = 1 << 30;
        made_host_expect(&host, "shm", SL_VERDICT_WRONG, "8 MiB of 64 are free", "--shm-size");
        host.config->stats_bytes = 4 << 20;
        close_folder("/dev/shm");
        made_host_expect(&host, "shm", SL_VERDICT_WRONG, "may not make files", NULL);
        host.probes.space = no_space;
        made_host_expect(&host, "shm", SL_VERDICT_WRONG, "is not there", "mount -t tmpfs");
}

Test(doctor, the_socket_needs_a_folder)
{
        host.config->socket_dir = "/run/other";
        made_host_expect(&host, "socket-folder", SL_VERDICT_OK, "/run/other, which the runtime makes", NULL);
        host.config->socket_dir = "/run/there/is/none";
        made_host_expect(&host, "socket-folder", SL_VERDICT_WRONG, "/run/there/is/none is not there", "RuntimeDirectory=");
        host.config->socket_dir = NULL;
        close_folder("/run/starling");
        made_host_expect(&host, "socket-folder", SL_VERDICT_WRONG, "/run/starling is not there, or", NULL);
}

Test(doctor, plans_need_a_folder_of_this_user_with_room)
{
        host.probes.space = little_space;
        made_host_expect(&host, "cache-folder", SL_VERDICT_BETTER, "8 MiB are free", "starling cache clear");
        close_folder("/var/cache/starling");
        made_host_expect(&host, "cache-folder", SL_VERDICT_BETTER, "may not make files in it", "CacheDirectory=");
        host.config->cache_directory = "/var/none/starling";
        made_host_expect(&host, "cache-folder", SL_VERDICT_BETTER, "is not there", NULL);
        host.config->cache_bytes = 0;
        made_host_expect(&host, "cache-folder", SL_VERDICT_OK, "cache.bytes is 0", NULL);
}

Test(doctor, plans_need_a_folder_that_nobody_else_writes_to)
{
        char path[256];

        snprintf(path, sizeof(path), "%s/var/cache/starling", host.folder.path);
        cr_assert_eq(chmod(path, 0777), 0);
        made_host_expect(&host, "cache-folder", SL_VERDICT_BETTER, "others may write to it", "chmod 0700");
}

static bool no_core(const struct sl_config *config, struct sl_core_figures *ret_figures)
{
        (void)config;
        (void)ret_figures;
        return false;
}

Test(doctor, figures_that_nobody_has_measured_are_not_told)
{
        host.probes.core = no_core;
        made_host_expect(&host, "core-figures", SL_VERDICT_UNKNOWN, "nothing is measured yet", "starling version --host");
}

static double a_hundred_ns(void)
{
        return 100;
}

static bool half_lost(int cpu, struct sl_gaps *ret_gaps)
{
        cr_expect_eq(cpu, 0);
        *ret_gaps = (struct sl_gaps){.share = 0.5, .longest_us = 4000};
        return true;
}

/* A runtime that serves keeps the time that a measurement would take. */
Test(doctor, nothing_is_measured_on_a_core_of_a_runtime_that_lives)
{
        struct sl_thread_cores cores = {0};
        struct sl_core_sharing sharing;
        struct sl_core_claims *claims;
        char folder[256];

        host.probes.gaps = half_lost;
        CPU_SET(0, &cores.dispatcher_cores);
        CPU_SET(0, &host.config->dispatcher_cores);
        snprintf(folder, sizeof(folder), "%s/run/starling", host.folder.path);
        cr_assert_eq(sl_core_claims_take(folder, "alive", &cores, &claims, &sharing), 0);
        made_host_expect(&host, "isolated-cpus", SL_VERDICT_OK, "a thread on 0 loses is not measured, as a runtime", NULL);
        sl_core_claims_free(claims);
        made_host_expect(&host, "isolated-cpus", SL_VERDICT_OK, "loses 50.00 % of its time", NULL);
}

Test(doctor, what_was_measured_is_shown_with_its_figure)
{
        struct sl_finding finding;

        host.probes.clock_ns = host.probes.call_ns = a_hundred_ns;
        host.probes.gaps = half_lost;
        made_host_expect(&host, "clock-source", SL_VERDICT_OK, "a reading takes 100 ns", NULL);
        made_host_expect(&host, "mitigations", SL_VERDICT_OK, "a system call takes 100 ns", NULL);
        finding = made_host_ask(&host, "isolated-cpus");
        cr_expect(strstr(finding.found, "loses 50.00 % of its time, at most 4000 us"), "%s", finding.found);
        cr_assert_eq(finding.n_figures, 2);
        cr_expect_str_eq(finding.figures[0].name, "lost_share");
        cr_expect_float_eq(finding.figures[0].value, 0.5, 1e-9);
}

/* ---- a configuration against the host ---- */

Test(doctor, a_processor_that_is_not_there_is_wrong)
{
        CPU_SET(9, &host.config->worker_cores);
        made_host_expect(&host, "pinning", SL_VERDICT_WRONG, "threads.worker_cores: core 9", "processors of 0-7");
        made_host_expect(&host, "smt", SL_VERDICT_UNKNOWN, "see pinning", NULL);
        made_host_expect(&host, "numa", SL_VERDICT_UNKNOWN, "see pinning", NULL);
        made_host_expect(&host, "isolated-cpus", SL_VERDICT_UNKNOWN, "see pinning", NULL);
}

Test(doctor, a_node_that_is_not_there_is_wrong)
{
        host.config->numa_node = 3;
        made_host_expect(&host, "pinning", SL_VERDICT_WRONG, "node 3", NULL);
}

Test(doctor, a_dispatcher_among_the_workers_could_be_better)
{
        CPU_SET(2, &host.config->dispatcher_cores);
        CPU_SET(2, &host.config->worker_cores);
        CPU_SET(3, &host.config->worker_cores);
        made_host_expect(&host, "pinning", SL_VERDICT_BETTER, "dispatcher on 2, workers on 2-3", "without a processor in common");
}

Test(doctor, more_instances_than_processors_could_be_fewer)
{
        host.config->model_defaults.instances = 8;
        made_host_expect(&host, "pinning", SL_VERDICT_BETTER, "8 instances", "model_defaults.instances: 7");
}

static double measure_huge_speed(void)
{
        return 1.5;
}

/* A measurement must not be what a full control group cannot take. */
Test(doctor, huge_pages_are_not_measured_where_little_memory_is_left)
{
        host.probes.huge_speed = measure_huge_speed;
        made_host_expect(&host, "huge-pages", SL_VERDICT_OK, "is read 1.50 times as fast from them", NULL);
        made_host_write(&host, "proc/meminfo", "MemAvailable: 102400 kB\n");
        made_host_expect(&host, "huge-pages", SL_VERDICT_OK, "is not measured, as there is too little memory left", NULL);
}

Test(doctor, a_folder_may_end_with_a_slash)
{
        setenv("STARLING_SOCKET_DIR", "/run/other/", 1);
        made_host_expect(&host, "socket-folder", SL_VERDICT_OK, "/run/other/, which the runtime makes", NULL);
}

Test(doctor, memory_that_is_not_there_is_wrong)
{
        host.config->memory_max = 9ull << 30;
        made_host_expect(&host, "memory", SL_VERDICT_WRONG, "limits.memory_max is 9216 MiB", "limits.memory_max: 7168 MiB");
}

Test(doctor, a_client_that_may_claim_more_than_there_is_could_be_better)
{
        host.config->memory_max = 512 << 20;
        made_host_expect(&host, "memory", SL_VERDICT_OK, NULL, NULL);
        host.configured = true;
        made_host_expect(&host, "memory", SL_VERDICT_BETTER, "limits.client.arena_bytes is 1024 MiB", "below limits.memory_max");
}

Test(doctor, a_repository_that_is_not_there_is_wrong)
{
        static const char *const repositories[] = {"/run/starling", "/srv/models"};

        host.config->repositories = repositories;
        host.config->n_repositories = 1;
        made_host_expect(&host, "repositories", SL_VERDICT_OK, "1, all", NULL);
        host.config->n_repositories = 2;
        made_host_expect(&host, "repositories", SL_VERDICT_WRONG, "\"/srv/models\"", "model_repositories");
        host.config->repositories = NULL;
        host.config->n_repositories = 0;
}

/* ---- a host of which nothing is known ---- */

static void expect_nothing_bad(void *context, const struct sl_finding *finding)
{
        uint32_t *unknown = context;

        cr_expect_leq(finding->verdict, SL_VERDICT_UNKNOWN, "%s: %s", finding->check, finding->found);
        *unknown += finding->verdict == SL_VERDICT_UNKNOWN;
}

Test(doctor, says_that_it_cannot_tell_where_nothing_is_said)
{
        const struct sl_doctor_options options = {.root = "/nonexistent", .probes = &sl_probes_none, .config = host.config};
        uint32_t unknown = 0;

        sl_doctor_run(&options, expect_nothing_bad, &unknown);
        cr_expect_geq(unknown, 20, "%u", unknown);
}

/* Files that are longer, or other, than any kernel writes them. */
Test(doctor, takes_whatever_files_hold)
{
        static char much[20000];

        memset(much, '7', sizeof(much) - 1);
        for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
                made_host_write(&host, changes[i].path, much);
                made_host_ask(&host, changes[i].check);
                made_host_write(&host, changes[i].path, "");
                made_host_ask(&host, changes[i].check);
        }
}
