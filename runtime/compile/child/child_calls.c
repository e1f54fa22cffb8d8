/* SPDX-License-Identifier: Apache-2.0 */
#include "child_calls.h"

#include "child_args.h"
#include "huge_pages.h"

#include <asm/prctl.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef ARCH_GET_XCOMP_PERM
#define ARCH_GET_XCOMP_PERM 0x1022
#define ARCH_REQ_XCOMP_PERM 0x1023
#endif

size_t sl_child_calls(int plan_fd, int report_fd, struct sl_call_rule ret_rules[SL_CHILD_CALLS_MAX])
{
        const struct sl_call_rule rules[] = {
                /* memory */
                SL_CALL(brk),
                SL_CALL(munmap),
                SL_CALL(mremap),
                SL_CALL_WITH(mmap, SL_ARG_WITHOUT(2, PROT_EXEC)),
                SL_CALL_WITH(mprotect, SL_ARG_WITHIN(2, PROT_READ | PROT_WRITE | PROT_EXEC)), /* oneDNN compiles its kernels */
                SL_CALL_WITH(madvise, SL_ARG_IS(2, MADV_HUGEPAGE)),
                SL_CALL_WITH(madvise, SL_ARG_IS(2, MADV_POPULATE_WRITE)),
                SL_CALL_WITH(madvise, SL_ARG_IS(2, MADV_COLLAPSE)),
                SL_CALL_WITH(madvise, SL_ARG_IS(2, MADV_DONTNEED)),
                /* the plan file, a base plan, the report, external data */
                SL_CALL(close),
                SL_CALL(lseek),
                SL_CALL_WITH(fcntl, SL_ARG_IS(1, F_GET_SEALS)),
                SL_CALL_WITH(fcntl, SL_ARG_IS(1, F_DUPFD_CLOEXEC)),
                SL_CALL_WITH(pwrite64, SL_ARG_IS(0, plan_fd)),
                SL_CALL_WITH(ftruncate, SL_ARG_IS(0, plan_fd)),
                SL_CALL_WITH(fallocate, SL_ARG_IS(0, plan_fd)),
                SL_CALL_WITH(write, SL_ARG_IS(0, report_fd)),
                SL_CALL_WITH(write, SL_ARG_IS(0, SL_CHILD_EXTERNAL_FD)),
                SL_CALL_WITH(recvmsg, SL_ARG_IS(0, SL_CHILD_EXTERNAL_FD)),
                /* what libraries ask about the machine: tiles of AMX (oneDNN), memory (qsort), time where no vDSO tells it */
                SL_CALL_WITH(arch_prctl, SL_ARG_IS(0, ARCH_GET_XCOMP_PERM)),
                SL_CALL_WITH(arch_prctl, SL_ARG_IS(0, ARCH_REQ_XCOMP_PERM)),
                SL_CALL(sysinfo),
                SL_CALL(clock_gettime),
                SL_CALL(gettimeofday),
                /* locks and guards of libraries; nobody waits in them */
                SL_CALL_WITH(futex, SL_ARG_WITHIN(1, FUTEX_WAKE | FUTEX_PRIVATE_FLAG)),
                /* the end, also by abort() and with a crash report */
                SL_CALL(exit),
                SL_CALL(exit_group),
                SL_CALL(getpid),
                SL_CALL(gettid),
                SL_CALL(rt_sigaction),
                SL_CALL(rt_sigprocmask),
                SL_CALL(rt_sigreturn),
                SL_CALL_WITH(tgkill, SL_ARG_IS(0, getpid())),
                SL_CALL_WITH_BOTH(prlimit64, SL_ARG_IS(0, 0), SL_ARG_IS(2, 0)),
                SL_CALL_WITH(pread64, SL_ARG_IS(0, SL_CHILD_MEMORY_FD)),
        };

        _Static_assert(sizeof(rules) <= SL_CHILD_CALLS_MAX * sizeof(rules[0]), "the caller has room for all");
        memcpy(ret_rules, rules, sizeof(rules));
        return sizeof(rules) / sizeof(rules[0]);
}
