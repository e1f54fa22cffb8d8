/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter_calls.h"

#include "sandbox_additions.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

void exporter_calls_init(struct sl_call_list *list)
{
        const struct sl_call_rule rules[] = {
                /* memory */
                SL_CALL(brk),
                SL_CALL(munmap),
                SL_CALL(mremap),
                SL_CALL(madvise),
                SL_CALL_WITH(mmap, SL_ARG_WITHOUT(2, PROT_EXEC)),
                SL_CALL_WITH(mprotect, SL_ARG_WITHOUT(2, PROT_EXEC)),
                /* stats pages: opened for reading alone; whose they are; whether their writer lives */
                SL_CALL_WITH(openat, SL_ARG_WITHOUT(2, O_ACCMODE | O_CREAT | O_TRUNC)),
                SL_CALL(pread64),
                SL_CALL(access),
                SL_CALL(faccessat),
                SL_CALL(newfstatat),
                SL_CALL(fstat),
                SL_CALL(close),
                SL_CALL_WITH(fcntl, SL_ARG_IS(1, F_OFD_GETLK)),
                SL_CALL_WITH(fcntl, SL_ARG_IS(1, F_GETFL)),
                SL_CALL_WITH(fcntl, SL_ARG_IS(1, F_SETFL)),
                SL_CALL_WITH(fcntl, SL_ARG_IS(1, F_SETFD)),
                SL_CALL(geteuid),
                /* connections */
                SL_CALL(accept4),
                SL_CALL(recvfrom),
                SL_CALL(sendto),
                SL_CALL(sendmsg),
                SL_CALL(writev),
                SL_CALL(shutdown),
                SL_CALL(getsockname),
                SL_CALL(getpeername),
                SL_CALL(setsockopt),
                SL_CALL(getsockopt),
                SL_CALL(select),
                SL_CALL(pselect6),
                SL_CALL(read),
                SL_CALL_WITH(write, SL_ARG_IS(0, STDERR_FILENO)),
                /* the service manager */
                SL_CALL_WITH(socket, SL_ARG_IS(0, AF_UNIX)),
                /* time */
                SL_CALL(clock_gettime),
                SL_CALL(clock_nanosleep),
                SL_CALL(gettimeofday),
                SL_CALL(restart_syscall),
                SL_CALL(futex),
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
