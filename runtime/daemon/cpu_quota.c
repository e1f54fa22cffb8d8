/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu_quota.h"

#include "control_groups.h"
#include "host_file.h"

#include <stdio.h>

/* What is looked at, and the tightest that was found. */
struct look {
        const char *root;
        struct sl_cpu_quota *quota;
};

uint32_t sl_cpu_max_parse(const char *text)
{
        unsigned long long quota, period;

        if (sscanf(text, "%llu %llu", &quota, &period) != 2 || period == 0)
                return 0;
        if (quota > 1024 * period)
                return 0;
        uint32_t milli = (uint32_t)(quota * 1000 / period);
        return milli ? milli : 1;
}

/* In the form of version 2. */
static uint32_t read_milli(const char *root, int version, const char *folder)
{
        char quota[64], period[32];

        if (version == 2)
                return sl_host_file(root, quota, sizeof(quota), "%s/cpu.max", folder) ? sl_cpu_max_parse(quota) : 0;
        if (!sl_host_file(root, quota, sizeof(quota) - sizeof(period), "%s/cpu.cfs_quota_us", folder) ||
                !sl_host_file(root, period, sizeof(period), "%s/cpu.cfs_period_us", folder) || quota[0] == '-')
                return 0;
        char both[sizeof(quota) + sizeof(period)];
        snprintf(both, sizeof(both), "%s %s", quota, period);
        return sl_cpu_max_parse(both);
}

static void look_at_group(void *context, int version, const char *folder)
{
        const struct look *look = context;
        uint32_t milli = read_milli(look->root, version, folder);
        char statistics[1024];

        if (!milli || (look->quota->milli && look->quota->milli <= milli))
                return;
        sl_host_file(look->root, statistics, sizeof(statistics), "%s/cpu.stat", folder);
        *look->quota = (struct sl_cpu_quota){.milli = milli, .throttled = sl_host_number(statistics, "nr_throttled", 0)};
        snprintf(look->quota->group, sizeof(look->quota->group), "%.*s", (int)sizeof(look->quota->group) - 1, folder);
}

void sl_cpu_quota_read(const char *root, struct sl_cpu_quota *ret_quota)
{
        struct look look = {.root = root, .quota = ret_quota};

        *ret_quota = (struct sl_cpu_quota){0};
        sl_control_groups_visit(root, "cpu", look_at_group, &look);
}
