/* SPDX-License-Identifier: Apache-2.0 */
#include "cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The folder of the test's own group: "7:memory:/a/b" of version 1, "0::/a/b" of version 2. */
static bool find_own(const char *prefix, const char *root, char *ret_folder, size_t bytes)
{
        FILE *file = fopen("/proc/self/cgroup", "re");
        char line[512];
        bool found = false;

        while (file && !found && fgets(line, sizeof(line), file)) {
                char *name = strchr(line, ':');

                if (!name || strncmp(name, prefix, strlen(prefix)) != 0)
                        continue;
                line[strcspn(line, "\n")] = 0;
                found = snprintf(ret_folder, bytes, "%s%s", root, name + strlen(prefix)) < (int)bytes &&
                        access(ret_folder, F_OK) == 0;
        }
        if (file)
                fclose(file);
        return found;
}

static bool write_text(const struct cgroup *cgroup, const char *file, const char *text)
{
        char path[600];

        snprintf(path, sizeof(path), "%s/%s", cgroup->folder, file);
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

        if (fd >= 0)
                close(fd);
        return written;
}

static uint64_t read_number(const struct cgroup *cgroup, const char *file, const char *key)
{
        char path[600], text[4096] = "";

        snprintf(path, sizeof(path), "%s/%s", cgroup->folder, file);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

        if (fd >= 0)
                close(fd);
        text[n > 0 ? n : 0] = 0;
        const char *at = strstr(text, key);
        return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static bool make_below(struct cgroup *cgroup, const char *own, bool unified, const char *limit_file, uint64_t limit_bytes)
{
        char limit[32];

        snprintf(cgroup->folder, sizeof(cgroup->folder), "%.400s/starling-test-%d", own, getpid());
        snprintf(limit, sizeof(limit), "%llu", (unsigned long long)limit_bytes);
        cgroup->unified = unified;
        if (mkdir(cgroup->folder, 0755) == 0) {
                if (write_text(cgroup, limit_file, limit))
                        return true;
                rmdir(cgroup->folder);
        }
        fprintf(stderr, "no memory control group \"%s\": %s\n", cgroup->folder, strerror(errno));
        cgroup->folder[0] = 0;
        return false;
}

bool cgroup_make(struct cgroup *cgroup, uint64_t limit_bytes)
{
        char own[512];

        *cgroup = (struct cgroup){.folder = ""};
        if (find_own(":memory:", "/sys/fs/cgroup/memory", own, sizeof(own)))
                return make_below(cgroup, own, false, "memory.limit_in_bytes", limit_bytes);
        if (find_own("::", "/sys/fs/cgroup", own, sizeof(own)))
                return make_below(cgroup, own, true, "memory.max", limit_bytes);
        fprintf(stderr, "no memory control group: none is mounted\n");
        return false;
}

void cgroup_join(void *cgroup)
{
        if (!write_text(cgroup, "cgroup.procs", "0"))
                _exit(125);
}

uint64_t cgroup_used(const struct cgroup *cgroup)
{
        return read_number(cgroup, cgroup->unified ? "memory.current" : "memory.usage_in_bytes", "");
}

uint64_t cgroup_peak(const struct cgroup *cgroup)
{
        return read_number(cgroup, cgroup->unified ? "memory.peak" : "memory.max_usage_in_bytes", "");
}

uint64_t cgroup_kills(const struct cgroup *cgroup)
{
        return read_number(cgroup, cgroup->unified ? "memory.events" : "memory.oom_control", "oom_kill ");
}

void cgroup_remove(struct cgroup *cgroup)
{
        if (cgroup->folder[0])
                rmdir(cgroup->folder);
        cgroup->folder[0] = 0;
}
