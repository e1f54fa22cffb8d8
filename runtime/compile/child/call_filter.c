/* SPDX-License-Identifier: Apache-2.0 */
#include "call_filter.h"

#include "child_args.h"
#include "huge_pages.h"
#include "sandbox_additions.h"

#include <asm/prctl.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef ARCH_GET_XCOMP_PERM
#define ARCH_GET_XCOMP_PERM 0x1022
#define ARCH_REQ_XCOMP_PERM 0x1023
#endif

#define ANY(call_name)                                                                                                             \
        {                                                                                                                          \
                .call = SCMP_SYS(call_name)                                                                                        \
        }
#define WITH(call_name, ...)                                                                                                       \
        {                                                                                                                          \
                .call = SCMP_SYS(call_name), .n_args = 1, .args = { __VA_ARGS__ }                                                  \
        }
#define WITH_BOTH(call_name, ...)                                                                                                  \
        {                                                                                                                          \
                .call = SCMP_SYS(call_name), .n_args = 2, .args = { __VA_ARGS__ }                                                  \
        }

/* Argument @n is @value; has no bits but those in @bits; has none of @bits. */
#define IS(n, value)     SCMP_CMP64(n, SCMP_CMP_EQ, (scmp_datum_t)(value))
#define WITHIN(n, bits)  SCMP_CMP64(n, SCMP_CMP_MASKED_EQ, ~(scmp_datum_t)(bits), 0)
#define WITHOUT(n, bits) SCMP_CMP64(n, SCMP_CMP_MASKED_EQ, (scmp_datum_t)(bits), 0)

static int allow(scmp_filter_ctx filter, const struct sl_call_rule *rules, size_t n_rules)
{
        for (size_t i = 0; i < n_rules; i++) {
                int r = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, rules[i].call, rules[i].n_args, rules[i].args);

                if (r < 0)
                        return r;
        }
        return 0;
}

static int allow_compiling(scmp_filter_ctx filter, int plan_fd, int report_fd)
{
        const struct sl_call_rule rules[] = {
                /* memory */
                ANY(brk),
                ANY(munmap),
                ANY(mremap),
                WITH(mmap, WITHOUT(2, PROT_EXEC)),
                WITH(mprotect, WITHIN(2, PROT_READ | PROT_WRITE | PROT_EXEC)), /* oneDNN compiles its kernels */
                WITH(madvise, IS(2, MADV_HUGEPAGE)),
                WITH(madvise, IS(2, MADV_POPULATE_WRITE)),
                WITH(madvise, IS(2, MADV_COLLAPSE)),
                WITH(madvise, IS(2, MADV_DONTNEED)),
                /* the plan file, a base plan, the report, external data */
                ANY(close),
                ANY(lseek),
                WITH(fcntl, IS(1, F_GET_SEALS)),
                WITH(fcntl, IS(1, F_DUPFD_CLOEXEC)),
                WITH(pwrite64, IS(0, plan_fd)),
                WITH(ftruncate, IS(0, plan_fd)),
                WITH(fallocate, IS(0, plan_fd)),
                WITH(write, IS(0, report_fd)),
                WITH(write, IS(0, SL_CHILD_EXTERNAL_FD)),
                WITH(recvmsg, IS(0, SL_CHILD_EXTERNAL_FD)),
                /* what libraries ask about the machine: tiles of AMX (oneDNN), memory (qsort), time where no vDSO tells it */
                WITH(arch_prctl, IS(0, ARCH_GET_XCOMP_PERM)),
                WITH(arch_prctl, IS(0, ARCH_REQ_XCOMP_PERM)),
                ANY(sysinfo),
                ANY(clock_gettime),
                ANY(gettimeofday),
                /* locks and guards of libraries; nobody waits in them */
                WITH(futex, WITHIN(1, FUTEX_WAKE | FUTEX_PRIVATE_FLAG)),
                /* the end, also by abort() and with a crash report */
                ANY(exit),
                ANY(exit_group),
                ANY(getpid),
                ANY(gettid),
                ANY(rt_sigaction),
                ANY(rt_sigprocmask),
                ANY(rt_sigreturn),
                WITH(tgkill, IS(0, getpid())),
                WITH_BOTH(prlimit64, IS(0, 0), IS(2, 0)),
                WITH(pread64, IS(0, SL_CHILD_MEMORY_FD)),
        };

        return allow(filter, rules, sizeof(rules) / sizeof(rules[0]));
}

static bool has_filters(void)
{
        const uint32_t action = SECCOMP_RET_ERRNO;

        return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

int sl_call_filter_load(int plan_fd, int report_fd)
{
        scmp_filter_ctx filter;
        int r;

        if (!has_filters())
                return -ENOSYS;
        filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
        if (!filter)
                return -ENOMEM;
        r = seccomp_attr_set(filter, SCMP_FLTATR_API_SYSRAWRC, 1);
        if (r == 0)
                r = allow_compiling(filter, plan_fd, report_fd);
        if (r == 0)
                r = allow(filter, sl_sandbox_additions.rules, sl_sandbox_additions.n_rules);
        if (r == 0)
                r = seccomp_load(filter);
        seccomp_release(filter);
        return r;
}
