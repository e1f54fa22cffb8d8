/* SPDX-License-Identifier: Apache-2.0 */
#include "worker_calls.h"

#include "call_list.h"
#include "process_link.h"

#include <linux/futex.h>

void sl_worker_calls(struct sl_call_list *ret_list)
{
        const struct sl_call_rule rules[] = {
                /* packets, bells, sleep, and its end by a signal that stops and continues */
                SL_CALL_WITH(recvmsg, SL_ARG_IS(0, SL_PROCESS_SOCKET_FD)),
                SL_CALL_WITH(sendmsg, SL_ARG_IS(0, SL_PROCESS_SOCKET_FD)),
                SL_CALL_WITH(write, SL_ARG_IS(0, SL_PROCESS_WAKE_FD)),
                SL_CALL_WITH(poll, SL_ARG_IS(1, 1)),
                SL_CALL_WITH(futex, SL_ARG_IS(1, FUTEX_WAIT)),
                SL_CALL(restart_syscall),
                /* from a start in the background to serving */
                SL_CALL_WITH(sched_setscheduler, SL_ARG_IS(0, 0)),
        };

        sl_call_list_init(ret_list);
        sl_call_list_add(ret_list, rules, sizeof(rules) / sizeof(rules[0]));
}
