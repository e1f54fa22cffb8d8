/* SPDX-License-Identifier: Apache-2.0 */
#include "worker_calls.h"

#include "huge_pages.h"
#include "process_link.h"

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

size_t sl_worker_calls(struct sl_call_rule ret_rules[SL_WORKER_CALLS_MAX])
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
                /* the plan, the segments */
                SL_CALL(close),
                SL_CALL(lseek),
                SL_CALL(fstat),
                SL_CALL(newfstatat),
                SL_CALL(fstatfs),
                SL_CALL_WITH(fcntl, SL_ARG_IS(1, F_GET_SEALS)),
                SL_CALL_WITH(fcntl, SL_ARG_IS(1, F_DUPFD_CLOEXEC)),
                /* packets, bells, sleep */
                SL_CALL_WITH(recvmsg, SL_ARG_IS(0, SL_PROCESS_SOCKET_FD)),
                SL_CALL_WITH(sendmsg, SL_ARG_IS(0, SL_PROCESS_SOCKET_FD)),
                SL_CALL_WITH(write, SL_ARG_IS(0, SL_PROCESS_WAKE_FD)),
                SL_CALL_WITH(poll, SL_ARG_IS(1, 1)),
                SL_CALL_WITH(futex, SL_ARG_IS(1, FUTEX_WAIT)),
                SL_CALL_WITH(futex, SL_ARG_WITHIN(1, FUTEX_WAKE | FUTEX_PRIVATE_FLAG)),
                /* what libraries ask about the machine: tiles of AMX (oneDNN), memory (qsort), time where no vDSO tells it */
                SL_CALL_WITH(arch_prctl, SL_ARG_IS(0, ARCH_GET_XCOMP_PERM)),
                SL_CALL_WITH(arch_prctl, SL_ARG_IS(0, ARCH_REQ_XCOMP_PERM)),
                SL_CALL(sysinfo),
                SL_CALL(clock_gettime),
                SL_CALL(gettimeofday),
                SL_CALL_WITH(sched_setscheduler, SL_ARG_IS(0, 0)), /* from a start in the background to serving */
                /* the end, also by abort() */
                SL_CALL(exit),
                SL_CALL(exit_group),
                SL_CALL(getpid),
                SL_CALL(gettid),
                SL_CALL(rt_sigaction),
                SL_CALL(rt_sigprocmask),
                SL_CALL(rt_sigreturn),
                SL_CALL(restart_syscall),
                SL_CALL_WITH(tgkill, SL_ARG_IS(0, getpid())),
        };

        _Static_assert(sizeof(rules) <= SL_WORKER_CALLS_MAX * sizeof(rules[0]), "the caller has room for all");
        memcpy(ret_rules, rules, sizeof(rules));
        return sizeof(rules) / sizeof(rules[0]);
}
