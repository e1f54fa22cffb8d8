/* SPDX-License-Identifier: Apache-2.0 */
#include "hung.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The first line of /proc/PID/task/THREAD/FILE; "?" where it cannot be read. */
static void read_line(pid_t pid, const char *thread, const char *file, char *ret_line, size_t bytes)
{
        char path[128];

        snprintf(path, sizeof(path), "/proc/%d/task/%s/%s", pid, thread, file);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, ret_line, bytes - 1);
        if (fd >= 0)
                close(fd);
        if (n <= 0)
                snprintf(ret_line, bytes, "?");
        else
                ret_line[n] = 0;
        ret_line[strcspn(ret_line, "\n")] = 0;
}

static void describe_thread(pid_t pid, const char *thread)
{
        char stat[512], where[128], call[256];
        const char *behind_name;

        read_line(pid, thread, "stat", stat, sizeof(stat));
        read_line(pid, thread, "wchan", where, sizeof(where));
        read_line(pid, thread, "syscall", call, sizeof(call));
        behind_name = strrchr(stat, ')');
        fprintf(stderr, "thread %.*s) state %.1s in %s, system call %s\n", (int)(behind_name ? behind_name - stat : 0), stat,
                behind_name && behind_name[1] ? behind_name + 2 : "?", where, call);
}

void hung_describe(pid_t pid)
{
        char path[64];
        struct dirent *entry;
        DIR *folder;

        snprintf(path, sizeof(path), "/proc/%d/task", pid);
        folder = opendir(path);
        while (folder && (entry = readdir(folder)))
                if (entry->d_name[0] != '.')
                        describe_thread(pid, entry->d_name);
        if (folder)
                closedir(folder);
}
