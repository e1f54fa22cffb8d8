/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SIGSTOP is taken by one thread, which stops the others: on a busy machine that thread waits for a processor while the others go
 * on. What a test looks at next must not move.
 */
#pragma once

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static inline bool freeze_has_stopped(pid_t pid, const char *thread)
{
        char path[320], text[512] = "", *state;
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", (int)pid, thread);
        file = fopen(path, "re");
        if (!file)
                return true; /* it has ended */
        text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
        fclose(file);
        state = strrchr(text, ')'); /* a name may have brackets, too */
        return state && (state[2] == 'T' || state[2] == 'Z');
}

static inline bool freeze_all_have_stopped(pid_t pid)
{
        char path[64];
        bool stopped = true;
        DIR *threads;

        snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
        threads = opendir(path);
        if (!threads)
                return true;
        for (const struct dirent *entry; stopped && (entry = readdir(threads));)
                stopped = entry->d_name[0] == '.' || freeze_has_stopped(pid, entry->d_name);
        closedir(threads);
        return stopped;
}

/* Stops a process, a child or another, and waits until none of its threads runs. false: no such process, or it goes on for 20 s. */
static inline bool freeze(pid_t pid)
{
        if (kill(pid, SIGSTOP) < 0)
                return false;
        for (int i = 0; i < 60000; i++) {
                if (freeze_all_have_stopped(pid))
                        return true;
                usleep(1000);
        }
        return false;
}
