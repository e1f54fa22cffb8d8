/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox.h"

#include "base/error.h"
#include "call_list.h"
#include "landlock.h"
#include "sandbox_additions.h"

#include <linux/capability.h>
#include <linux/securebits.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(SL_SANDBOX_NO_LIMIT == RLIM_INFINITY, "no limit is none to the kernel");

#define NICENESS        10
#define DESCRIPTORS_MAX 64

static uint64_t lower(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

/* @slack: of the hard limit above the soft one. */
static int limit(int resource, const char *name, uint64_t value, uint64_t slack, struct sl_error *error)
{
        struct rlimit now, both;

        if (getrlimit(resource, &now) < 0)
                return sl_error_set(error, errno, "limit of %s: %s", name, strerror(errno));
        both.rlim_max = lower(now.rlim_max, value == RLIM_INFINITY ? value : value + slack);
        both.rlim_cur = lower(value, both.rlim_max > slack ? both.rlim_max - slack : both.rlim_max);
        if (setrlimit(resource, &both) == 0)
                return 0;
        return sl_error_set(error, errno, "limit of %s to %llu: %s", name, (unsigned long long)both.rlim_cur, strerror(errno));
}

static int set_limits(const struct sl_sandbox_limits *limits, struct sl_error *error)
{
        const struct {
                int resource;
                const char *name;
                uint64_t value, slack;
        } rows[] = {
                {RLIMIT_AS, "address space", SL_SANITIZED ? RLIM_INFINITY : limits->address_bytes, 0},
                {RLIMIT_DATA, "private memory", SL_SANITIZED ? RLIM_INFINITY : limits->data_bytes, 0},
                {RLIMIT_FSIZE, "file size", limits->file_bytes, 0},
                /* At the soft limit comes SIGXCPU, which tells the parent why; at the hard one an anonymous SIGKILL. */
                {RLIMIT_CPU, "processor time", limits->seconds, limits->seconds == RLIM_INFINITY ? 0 : 1},
                {RLIMIT_NOFILE, "open files", DESCRIPTORS_MAX + limits->files, 0},
                {RLIMIT_NPROC, "processes", SL_SANITIZED ? RLIM_INFINITY : 0, 0},
                {RLIMIT_CORE, "core dumps", 0, 0},
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                int r = limit(rows[i].resource, rows[i].name, rows[i].value, rows[i].slack, error);

                if (r < 0)
                        return r;
        }
        return 0;
}

static bool has_capabilities(void)
{
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct has[_LINUX_CAPABILITY_U32S_3];

        return syscall(SYS_capget, &header, has) < 0 || has[0].permitted || has[1].permitted || has[0].inheritable ||
               has[1].inheritable;
}

/*
 * Who has none asks for nothing, which a host may deny. The bounding set and the secure bits matter to programs that are started
 * later; without CAP_SETPCAP they stay as they are.
 */
static int drop_capabilities(uint64_t kept, struct sl_error *error)
{
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct left[_LINUX_CAPABILITY_U32S_3] = {0};

        if (!has_capabilities() || syscall(SYS_capget, &header, left) < 0)
                return 0;
        for (uint32_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
                uint32_t permitted = left[i].permitted & (uint32_t)(kept >> (32 * i));

                left[i] = (struct __user_cap_data_struct){.permitted = permitted, .effective = permitted};
        }
        for (unsigned long capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
                (void)prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
        (void)prctl(PR_SET_SECUREBITS, SECURE_ALL_BITS | SECURE_ALL_LOCKS, 0, 0, 0);
        if (syscall(SYS_capset, &header, left) == 0)
                return 0;
        return sl_error_set(error, errno, "capabilities: %s", strerror(errno));
}

static int die_with(int parent, struct sl_error *error)
{
        if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
                return sl_error_set(error, errno, "death signal: %s", strerror(errno));
        /* The parent may have died before the line above, which then waits for the death of whoever adopted this process. */
        if (getppid() != parent)
                return sl_error_set(error, ESRCH, "process %d, which started this one, is gone", parent);
        return 0;
}

static int drop_privileges(const struct sl_sandbox_limits *limits, struct sl_error *error)
{
        int r = drop_capabilities(limits->capabilities, error);

        if (r < 0)
                return r;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return sl_error_set(error, errno, "no-new-privileges: %s", strerror(errno));
        if (!SL_SANITIZED && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
                return sl_error_set(error, errno, "dumpable: %s", strerror(errno));
        r = limits->parent ? die_with(limits->parent, error) : 0;
        if (r < 0)
                return r;
        /* Being nice is a courtesy to the workers: nothing depends on it. */
        if (limits->background)
                (void)setpriority(PRIO_PROCESS, 0, NICENESS);
        return 0;
}

const char *sl_sandbox_missing(bool landlock, bool filter)
{
        if (landlock && filter)
                return "neither Landlock nor the filter of system calls";
        if (landlock)
                return "the filter of system calls, but not Landlock";
        return filter ? "Landlock, but not the filter of system calls" : NULL;
}

int sl_sandbox_enter(const struct sl_sandbox_limits *limits, const char **ret_missing, struct sl_error *error)
{
        int landlock, filter, r = drop_privileges(limits, error);

        if (r == 0)
                r = set_limits(limits, error);
        if (r < 0)
                return r;
        landlock = sl_landlock_enter(limits->paths, limits->n_paths);
        if (landlock < 0 && landlock != -ENOSYS)
                return sl_error_set(error, -landlock, "Landlock: %s", strerror(-landlock));
        filter = sl_call_filter_load(limits->calls->rules, limits->calls->n);
        if (filter < 0 && filter != -ENOSYS)
                return sl_error_set(error, -filter, "filter of system calls: %s", strerror(-filter));
        *ret_missing = sl_sandbox_missing(landlock < 0, filter < 0);
        return 0;
}
