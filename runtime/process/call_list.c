/* SPDX-License-Identifier: Apache-2.0 */
#include "call_list.h"

#include "base/assert.h"
#include "sandbox_additions.h"

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
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* of Linux 6.1, which older headers lack */
#endif

void sl_call_list_init(struct sl_call_list *list)
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
                /* plans */
                SL_CALL(close),
                SL_CALL(lseek),
                SL_CALL_WITH(fcntl, SL_ARG_IS(1, F_GET_SEALS)),
                SL_CALL_WITH(fcntl, SL_ARG_IS(1, F_DUPFD_CLOEXEC)),
                /* what libraries ask about the machine: tiles of AMX (oneDNN), memory (qsort), time where no vDSO tells it */
                SL_CALL_WITH(arch_prctl, SL_ARG_IS(0, ARCH_GET_XCOMP_PERM)),
                SL_CALL_WITH(arch_prctl, SL_ARG_IS(0, ARCH_REQ_XCOMP_PERM)),
                SL_CALL(sysinfo),
                SL_CALL(clock_gettime),
                SL_CALL(gettimeofday),
                /* locks and guards of libraries; nobody waits in them */
                SL_CALL_WITH(futex, SL_ARG_WITHIN(1, FUTEX_WAKE | FUTEX_PRIVATE_FLAG)),
                /* the end, also by abort() */
                SL_CALL(exit),
                SL_CALL(exit_group),
                SL_CALL(getpid),
                SL_CALL(gettid),
                SL_CALL(rt_sigaction),
                SL_CALL(rt_sigprocmask),
                SL_CALL(rt_sigreturn),
                SL_CALL_WITH(tgkill, SL_ARG_IS(0, getpid())),
        };

        list->n = 0;
        sl_call_list_add(list, rules, sizeof(rules) / sizeof(rules[0]));
        sl_call_list_add(list, sl_sandbox_additions.rules, sl_sandbox_additions.n_rules);
}

void sl_call_list_add(struct sl_call_list *list, const struct sl_call_rule *rules, size_t n)
{
        SL_ASSERT(n <= SL_CALL_LIST_MAX - list->n);
        if (n)
                memcpy(list->rules + list->n, rules, n * sizeof(*rules));
        list->n += n;
}

bool sl_call_list_has(const struct sl_call_list *list, int call)
{
        for (size_t i = 0; i < list->n; i++)
                if (list->rules[i].call == call)
                        return true;
        return false;
}
