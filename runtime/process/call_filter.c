/* SPDX-License-Identifier: Apache-2.0 */
#include "call_filter.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

static int add(scmp_filter_ctx filter, uint32_t action, const struct sl_call_rule *rules, size_t n_rules)
{
        for (size_t i = 0; i < n_rules; i++) {
                int r = seccomp_rule_add_array(filter, action, rules[i].call, rules[i].n_args, rules[i].args);

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

/* What matches a rule has @action, all else @standard. */
static int load(uint32_t standard, uint32_t action, bool all_threads, const struct sl_call_rule *rules, size_t n_rules)
{
        scmp_filter_ctx filter;
        int r;

        if (!sl_call_filter_is_there())
                return -ENOSYS;
        filter = seccomp_init(standard);
        if (!filter)
                return -ENOMEM;
        r = seccomp_attr_set(filter, SCMP_FLTATR_API_SYSRAWRC, 1);
        if (r == 0 && all_threads)
                r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
        if (r == 0)
                r = add(filter, action, rules, n_rules);
        if (r == 0)
                r = seccomp_load(filter);
        seccomp_release(filter);
        return r;
}

int sl_call_filter_load(const struct sl_call_rule *rules, size_t n_rules)
{
        return load(SCMP_ACT_ERRNO(ENOSYS), SCMP_ACT_ALLOW, false, rules, n_rules);
}

int sl_call_filter_refuse(const struct sl_call_rule *rules, size_t n_rules)
{
        return load(SCMP_ACT_ALLOW, SCMP_ACT_ERRNO(EPERM), true, rules, n_rules);
}
