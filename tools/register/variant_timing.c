/* SPDX-License-Identifier: Apache-2.0 */
#include "variant_timing.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "device_let.h"
#include "profile_store.h"
#include "program_beside.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM    "starling-profile"
#define SAID_BYTES 4096

extern char **environ;

SL_DEFINE_CLEANUP(struct sl_profile_store *, sl_profile_store_free)

static void print_batches(const struct timing *timing, char *ret_text, size_t bytes)
{
        size_t used = 0;

        for (uint32_t i = 0; i < timing->n_batches && used < bytes; i++)
                used += (size_t)snprintf(ret_text + used, bytes - used, "%s%u", i ? "," : "", timing->batches[i]);
}

/* The last line of what is there. */
static void read_last_line(int fd, char ret_line[SAID_BYTES])
{
        off_t end = lseek(fd, 0, SEEK_END), from = end > SAID_BYTES - 1 ? end - (SAID_BYTES - 1) : 0;
        ssize_t n = pread(fd, ret_line, SAID_BYTES - 1, from);
        char *line;

        ret_line[n > 0 ? n : 0] = 0;
        while (n > 0 && ret_line[n - 1] == '\n')
                ret_line[--n] = 0;
        line = strrchr(ret_line, '\n');
        if (line)
                memmove(ret_line, line + 1, strlen(line));
}

static int wait_for(pid_t pid, int said, struct sl_error *error)
{
        char line[SAID_BYTES];
        int status;

        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS)
                return 0;
        if (WIFSIGNALED(status))
                return sl_error_set(error, EIO, "`starling profile` was killed by signal %d (%s)", WTERMSIG(status),
                        strsignal(WTERMSIG(status)));
        read_last_line(said, line);
        return sl_error_set(error, EIO, "%s", line[0] ? line : "`starling profile` ended without a word");
}

static int run_profile(const struct timing *timing, const char *path, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int said = memfd_create("said", MFD_CLOEXEC);
        char program[PATH_MAX], batches[256], seconds[32];
        const char *const arguments[] = {"profile", "--store", timing->store, "--batches", batches, "--threads", timing->threads,
                "--seconds", seconds, path, NULL};
        posix_spawn_file_actions_t actions;
        pid_t pid;
        int r = program_beside(PROGRAM, program, error);

        if (r < 0)
                return r;
        if (said < 0)
                return sl_error_set(error, errno, "no memory for what `starling profile` says");
        print_batches(timing, batches, sizeof(batches));
        snprintf(seconds, sizeof(seconds), "%g", timing->seconds);
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, said, STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&actions, said, STDERR_FILENO);
        r = posix_spawn(&pid, program, &actions, NULL, (char **)(uintptr_t)arguments, environ);
        posix_spawn_file_actions_destroy(&actions);
        return r ? sl_error_set(error, r, "%s: %s", program, strerror(r)) : wait_for(pid, said, error);
}

static void take(const struct sl_worker_profile *profile, struct registered *candidate)
{
        struct registered_point point = {.batch = (uint32_t)profile->batch,
                .threads = (uint32_t)profile->threads,
                .latency_ns = profile->latency_p50_ns,
                .samples_per_second = profile->samples_per_second};
        struct registered_point *place =
                (struct registered_point *)(uintptr_t)registered_point_of(candidate, point.batch, point.threads);

        if (!place && candidate->n_points == REGISTER_POINTS_MAX)
                return;
        if (!place)
                place = &candidate->points[candidate->n_points++];
        *place = point;
        candidate->weights_bytes = profile->weights_bytes;
}

static bool is_wanted(const struct timing *timing, uint64_t batch)
{
        for (uint32_t i = 0; i < timing->n_batches; i++)
                if (timing->batches[i] == batch)
                        return true;
        return false;
}

/* What `starling profile` has just found fresh, or made so. */
static int read_profiles(const struct timing *timing, const char *path, struct registered *candidate, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_profile_store_free) struct sl_profile_store *store = NULL;
        struct sl_profile_list list = {.n = 0};
        struct sl_device_let here;
        char host[sizeof(list.items->host)] = "";
        int r = sl_profile_store_open(timing->store, false, &store, error);

        r = r < 0 ? r : sl_device_let_parse("cpu", NULL, &here, error);
        r = r < 0 ? r : sl_profile_store_read(store, &list, error);
        (void)gethostname(host, sizeof(host) - 1);
        for (size_t i = 0; i < list.n && r == 0; i++) {
                const struct sl_worker_profile *profile = &list.items[i];

                if (strcmp(profile->path, path) == 0 && strcmp(profile->host, host) == 0 && !profile->beside[0] &&
                        strcmp(profile->device, here.name) == 0 && is_wanted(timing, profile->batch) &&
                        isfinite(profile->latency_p50_ns))
                        take(profile, candidate);
        }
        sl_profile_list_deinit(&list);
        return r;
}

int time_variant(const struct timing *timing, const char *path, struct registered *candidate, struct sl_error *error)
{
        int r = run_profile(timing, path, error);

        return r < 0 ? r : read_profiles(timing, path, candidate, error);
}
