/* SPDX-License-Identifier: Apache-2.0 */
/* The processor time that control groups grant, from trees of files as both versions have them. */
#include "cpu_quota.h"
#include "folder.h"

#include <criterion/criterion.h>

static struct folder folder;

static void set_up(void)
{
        folder_make(&folder);
}

static void tear_down(void)
{
        folder_remove(&folder);
}

TestSuite(cpu_quota, .init = set_up, .fini = tear_down);

static void expect_quota(uint32_t milli, uint64_t throttled, const char *group)
{
        struct sl_cpu_quota quota;

        sl_cpu_quota_read(folder.path, &quota);
        cr_expect_eq(quota.milli, milli, "%u", quota.milli);
        cr_expect_eq(quota.throttled, throttled);
        cr_expect_str_eq(quota.group, group);
}

Test(cpu_quota, cpu_max_is_read_as_thousandths_of_a_core)
{
        cr_assert_eq(sl_cpu_max_parse("max 100000"), 0);
        cr_assert_eq(sl_cpu_max_parse("150000 100000"), 1500);
        cr_assert_eq(sl_cpu_max_parse("10 100000"), 1);
        cr_assert_eq(sl_cpu_max_parse("100000 0"), 0);
        cr_assert_eq(sl_cpu_max_parse(""), 0);
        cr_assert_eq(sl_cpu_max_parse("what"), 0);
}

Test(cpu_quota, without_a_group_there_is_none)
{
        expect_quota(0, 0, "");
        folder_write(&folder, "proc/self/cgroup", "0::/a\n");
        folder_write(&folder, "sys/fs/cgroup/a/cpu.max", "max 100000\n");
        expect_quota(0, 0, "");
}

Test(cpu_quota, the_tightest_group_of_version_2_counts_with_its_throttling)
{
        folder_write(&folder, "proc/self/cgroup", "0::/a/b\n");
        folder_write(&folder, "sys/fs/cgroup/a/cpu.max", "150000 100000\n");
        folder_write(&folder, "sys/fs/cgroup/a/cpu.stat", "usage_usec 5\nnr_periods 9\nnr_throttled 7\n");
        folder_write(&folder, "sys/fs/cgroup/a/b/cpu.max", "200000 100000\n");
        expect_quota(1500, 7, "/sys/fs/cgroup/a");
}

Test(cpu_quota, a_group_of_version_1_has_quota_and_period_in_two_files)
{
        folder_write(&folder, "proc/self/cgroup", "5:memory:/m\n4:cpu,cpuacct:/a\n0::/\n");
        folder_write(&folder, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
        folder_write(&folder, "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
        folder_write(&folder, "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "25000\n");
        folder_write(&folder, "sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "50000\n");
        expect_quota(500, 0, "/sys/fs/cgroup/cpu/a");
}
