/* SPDX-License-Identifier: Apache-2.0 */
#include "call_filter.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What matches a row has the action. */
struct part {
        uint32_t action;
        const struct sl_call_rule *rules;
        size_t n_rules;
};

static int add(scmp_filter_ctx filter, const struct part *part)
{
        for (size_t i = 0; i < part->n_rules; i++) {
                const struct sl_call_rule *rule = &part->rules[i];
                int r = seccomp_rule_add_array(filter, part->action, rule->call, rule->n_args, rule->args);

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

/* What no part names has @standard. */
static int load(uint32_t standard, bool all_threads, const struct part *parts, size_t n_parts)
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
        for (size_t i = 0; i < n_parts && r == 0; i++)
                r = add(filter, &parts[i]);
        if (r == 0)
                r = seccomp_load(filter);
        seccomp_release(filter);
        return r;
}

int sl_call_filter_load(const struct sl_call_rule *rules, size_t n_rules)
{
        return load(SCMP_ACT_ERRNO(ENOSYS), false, &(struct part){SCMP_ACT_ALLOW, rules, n_rules}, 1);
}

int sl_call_filter_refuse(
        const struct sl_call_rule *refused, size_t n_refused, const struct sl_call_rule *passed_over, size_t n_passed_over)
{
        const struct part parts[] = {{SCMP_ACT_ERRNO(EPERM), refused, n_refused}, {SCMP_ACT_ERRNO(0), passed_over, n_passed_over}};

        return load(SCMP_ACT_ALLOW, true, parts, sizeof(parts) / sizeof(parts[0]));
}
