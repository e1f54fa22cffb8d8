/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every check: name, function, what it looks at. In the order of the report. A check only reads; each fills one finding, and says
 * "cannot tell" where a host does not say.
 */
#pragma once

struct sl_finding;
struct sl_host;

/* clang-format off */
#define SL_CHECKS(X) \
        X("kernel",         sl_check_kernel,         "the kernel's release") \
        X("io-uring",       sl_check_io_uring,       "whether io_uring is allowed, with which the control thread and sleeping threads wait") \
        X("landlock",       sl_check_landlock,       "whether compilers and worker processes can be kept from files and signals") \
        X("call-filter",    sl_check_call_filter,    "whether they can be kept to a list of system calls") \
        X("mitigations",    sl_check_mitigations,    "what the kernel does against flaws of the processor, as far as it takes time") \
        X("clock-source",   sl_check_clock_source,   "whether the clock is read without a system call") \
        X("cpu-features",   sl_check_cpu_features,   "the instructions that kernels use") \
        X("core-figures",   sl_check_core_figures,   "what a core reaches, as it was measured for the plans") \
        X("governor",       sl_check_governor,       "how the frequency of the processors is chosen") \
        X("idle-states",    sl_check_idle_states,    "how long a processor takes to wake up") \
        X("cpus",           sl_check_cpus,           "the processors that a runtime may use") \
        X("cpu-quota",      sl_check_cpu_quota,      "processor time that control groups grant") \
        X("pinning",        sl_check_pinning,        "where the threads go, as configured or chosen") \
        X("smt",            sl_check_smt,            "whether threads share a core with the dispatcher") \
        X("numa",           sl_check_numa,           "whether the threads are on one node") \
        X("isolated-cpus",  sl_check_isolated_cpus,  "whether the kernel leaves the dispatcher's processor alone") \
        X("steal",          sl_check_steal,          "time that a hypervisor gives to others") \
        X("huge-pages",     sl_check_huge_pages,     "whether weights and activations can lie in transparent huge pages") \
        X("reserved-pages", sl_check_reserved_pages, "huge pages that are set aside, and not used by Starling") \
        X("memlock",        sl_check_memlock,        "the limit of locked memory") \
        X("memory",         sl_check_memory,         "whether limits.memory_max fits what is there") \
        X("shm",            sl_check_shm,            "room for the stats page in /dev/shm") \
        X("open-files",     sl_check_open_files,     "the limit of descriptors") \
        X("priority",       sl_check_priority,       "whether the dispatcher may go before the workers that share its core") \
        X("socket-folder",  sl_check_socket_folder,  "whether a runtime can listen there") \
        X("cache-folder",   sl_check_cache_folder,   "whether compiled plans can be kept there") \
        X("repositories",   sl_check_repositories,   "whether the configured model repositories are there") \
        X("left-behind",    sl_check_left_behind,    "stats pages of runtimes that are dead") \
        X("gpu",            sl_check_gpu,            "graphics processors, and what drives them")
/* clang-format on */

#define X(name, function, text) void function(const struct sl_host *host, struct sl_finding *finding);
SL_CHECKS(X)
#undef X
