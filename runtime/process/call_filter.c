/* SPDX-License-Identifier: Apache-2.0 */
#include "call_filter.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

static int allow(scmp_filter_ctx filter, const struct sl_call_rule *rules, size_t n_rules)
{
        for (size_t i = 0; i < n_rules; i++) {
                int r = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, rules[i].call, rules[i].n_args, rules[i].args);

                if (r < 0)
                        return r;
        }
        return 0;
}

bool sl_call_filter_is_there(void)
{
        const uint32_t action = SECCOMP_RET_ERRNO;

        return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

int sl_call_filter_load(const struct sl_call_rule *rules, size_t n_rules)
{
        scmp_filter_ctx filter;
        int r;

        if (!sl_call_filter_is_there())
                return -ENOSYS;
        filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
        if (!filter)
                return -ENOMEM;
        r = seccomp_attr_set(filter, SCMP_FLTATR_API_SYSRAWRC, 1);
        if (r == 0)
                r = allow(filter, rules, n_rules);
        if (r == 0)
                r = seccomp_load(filter);
        seccomp_release(filter);
        return r;
}
