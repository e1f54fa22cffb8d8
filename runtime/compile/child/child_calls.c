/* SPDX-License-Identifier: Apache-2.0 */
#include "child_calls.h"

#include "call_list.h"
#include "child_args.h"

void sl_child_calls(int plan_fd, int report_fd, struct sl_call_list *ret_list)
{
        const struct sl_call_rule rules[] = {
                /* the plan file, the report, external data */
                SL_CALL_WITH(pwrite64, SL_ARG_IS(0, plan_fd)),
                SL_CALL_WITH(ftruncate, SL_ARG_IS(0, plan_fd)),
                SL_CALL_WITH(fallocate, SL_ARG_IS(0, plan_fd)),
                SL_CALL_WITH(write, SL_ARG_IS(0, report_fd)),
                SL_CALL_WITH(write, SL_ARG_IS(0, SL_CHILD_EXTERNAL_FD)),
                SL_CALL_WITH(recvmsg, SL_ARG_IS(0, SL_CHILD_EXTERNAL_FD)),
                /* the limits of its memory, and the crash report */
                SL_CALL_WITH_BOTH(prlimit64, SL_ARG_IS(0, 0), SL_ARG_IS(2, 0)),
                SL_CALL_WITH(pread64, SL_ARG_IS(0, SL_CHILD_MEMORY_FD)),
        };

        sl_call_list_init(ret_list);
        sl_call_list_add(ret_list, rules, sizeof(rules) / sizeof(rules[0]));
}
