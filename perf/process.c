/* SPDX-License-Identifier: Apache-2.0 */
#include "process.h"

#include "base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int thread_cpu_ns(pid_t pid, const char *thread, uint64_t *ret_ns)
{
        char path[320];
        int fields;

        snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", pid, thread);
        FILE *file = fopen(path, "re");
        if (!file)
                return -ESRCH;
        fields = fscanf(file, "%" SCNu64, ret_ns);
        fclose(file);
        return fields == 1 ? 0 : -ESRCH;
}

static int cpu_by_threads(pid_t pid, uint64_t *ret_ns)
{
        char path[64];
        uint64_t sum = 0, ns;
        struct dirent *entry;
        int r = -ESRCH;

        snprintf(path, sizeof(path), "/proc/%d/task", pid);
        DIR *folder = opendir(path);
        if (!folder)
                return -ESRCH;
        while ((entry = readdir(folder))) {
                if (entry->d_name[0] == '.')
                        continue;
                r = thread_cpu_ns(pid, entry->d_name, &ns);
                if (r < 0)
                        break;
                sum += ns;
        }
        closedir(folder);
        if (r == 0)
                *ret_ns = sum;
        return r;
}

static int cpu_by_ticks(pid_t pid, uint64_t *ret_ns)
{
        char path[64], line[1024];
        uint64_t user, system;

        snprintf(path, sizeof(path), "/proc/%d/stat", pid);
        FILE *file = fopen(path, "re");
        if (!file)
                return -ESRCH;
        char *got = fgets(line, sizeof(line), file);
        fclose(file);

        /* The name in brackets may hold anything, so fields are counted from the last bracket: utime and stime are 14 and 15. */
        char *rest = got ? strrchr(line, ')') : NULL;
        if (!rest || sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64, &user, &system) != 2)
                return -ESRCH;
        *ret_ns = (user + system) * (SL_NS_PER_SECOND / (uint64_t)sysconf(_SC_CLK_TCK));
        return 0;
}

int sl_process_cpu_ns(pid_t pid, uint64_t *ret_ns)
{
        return cpu_by_threads(pid, ret_ns) == 0 ? 0 : cpu_by_ticks(pid, ret_ns);
}

int sl_process_rss(pid_t pid, uint64_t *ret_bytes)
{
        char path[64];
        uint64_t pages;

        snprintf(path, sizeof(path), "/proc/%d/statm", pid);
        FILE *file = fopen(path, "re");
        if (!file)
                return -ESRCH;
        int fields = fscanf(file, "%*u %" SCNu64, &pages);
        fclose(file);
        if (fields != 1)
                return -ESRCH;
        *ret_bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
        return 0;
}
