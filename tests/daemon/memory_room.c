/* SPDX-License-Identifier: Apache-2.0 */
/* The room in memory that control groups and the host leave, from trees of files as both versions have them. */
#include "memory_room.h"
#include "folder.h"

#include <criterion/criterion.h>
#include <string.h>

#define MIB (1ull << 20)

static struct folder folder;

static void set_up(void)
{
        folder_make(&folder);
        folder_write(&folder, "proc/meminfo", "MemTotal: 8388608 kB\nMemFree: 1048576 kB\nMemAvailable:    4194304 kB\n");
}

static void tear_down(void)
{
        folder_remove(&folder);
}

TestSuite(memory_room, .init = set_up, .fini = tear_down);

static void expect_room(uint64_t bytes, const char *source)
{
        struct sl_memory_room room;

        sl_memory_room_read(folder.path, &room);
        cr_expect_eq(room.bytes, bytes, "%llu bytes of %s", (unsigned long long)room.bytes, room.source);
        cr_expect_str_eq(room.source, source);
}

Test(memory_room, without_groups_it_is_what_the_host_has_available)
{
        expect_room(4096 * MIB, "/proc/meminfo");
}

Test(memory_room, without_any_file_there_is_no_bound)
{
        struct sl_memory_room room;

        sl_memory_room_read("/nonexistent", &room);
        cr_expect_eq(room.bytes, UINT64_MAX);
        cr_expect_str_eq(room.source, "");
        cr_expect_eq(sl_memory_room_usable(room.bytes), UINT64_MAX);
}

Test(memory_room, an_eighth_is_left_for_what_no_ledger_counts)
{
        cr_expect_eq(sl_memory_room_usable(800 * MIB), 700 * MIB);
}

Test(memory_room, a_group_of_version_2_has_its_limit_less_what_is_used_but_for_pages_of_files)
{
        folder_write(&folder, "proc/self/cgroup", "0::/a/b\n");
        folder_write(&folder, "sys/fs/cgroup/a/b/memory.max", "1073741824\n");
        folder_write(&folder, "sys/fs/cgroup/a/b/memory.current", "209715200\n"); /* 200 MiB */
        folder_write(&folder, "sys/fs/cgroup/a/b/memory.stat",
                "anon 104857600\nfile 104857600\nshmem 0\ninactive_file 73400320\nactive_file 31457280\n"); /* 70, 30 MiB */
        expect_room(924 * MIB, "/sys/fs/cgroup/a/b");
}

Test(memory_room, the_tightest_level_up_to_the_root_counts)
{
        folder_write(&folder, "proc/self/cgroup", "0::/a/b/c\n");
        folder_write(&folder, "sys/fs/cgroup/a/b/c/memory.max", "max\n");
        folder_write(&folder, "sys/fs/cgroup/a/b/memory.max", "2147483648\n");
        folder_write(&folder, "sys/fs/cgroup/a/memory.max", "1073741824\n");
        folder_write(&folder, "sys/fs/cgroup/a/memory.current", "268435456\n");
        expect_room(768 * MIB, "/sys/fs/cgroup/a");
}

Test(memory_room, a_throttled_group_is_bounded_where_throttling_begins)
{
        folder_write(&folder, "proc/self/cgroup", "0::/a\n");
        folder_write(&folder, "sys/fs/cgroup/a/memory.max", "2147483648\n");
        folder_write(&folder, "sys/fs/cgroup/a/memory.high", "1073741824\n");
        expect_room(1024 * MIB, "/sys/fs/cgroup/a");
}

Test(memory_room, groups_of_version_1_are_found_among_the_others)
{
        folder_write(&folder, "proc/self/cgroup", "9:name=systemd:/x\n4:cpu,memory:/a\n3:cpuset:/\n0::/\n");
        folder_write(&folder, "sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n"); /* none */
        folder_write(&folder, "sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n");
        folder_write(&folder, "sys/fs/cgroup/memory/memory.usage_in_bytes", "104857600\n");
        folder_write(&folder, "sys/fs/cgroup/memory/memory.stat",
                "active_file 1\ninactive_file 1\ntotal_inactive_file 52428800\ntotal_active_file 0\n");
        expect_room(462 * MIB, "/sys/fs/cgroup/memory");
}

Test(memory_room, a_container_sees_its_own_group_as_the_root)
{
        folder_write(&folder, "proc/self/cgroup", "4:memory:/docker/0123\n");
        folder_write(&folder, "sys/fs/cgroup/memory/memory.limit_in_bytes", "104857600\n");
        expect_room(100 * MIB, "/sys/fs/cgroup/memory");
}

Test(memory_room, a_group_that_is_full_leaves_nothing)
{
        folder_write(&folder, "proc/self/cgroup", "0::/a\n");
        folder_write(&folder, "sys/fs/cgroup/a/memory.max", "1048576\n");
        folder_write(&folder, "sys/fs/cgroup/a/memory.current", "2097152\n");
        expect_room(0, "/sys/fs/cgroup/a");
}
