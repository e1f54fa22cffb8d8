/* SPDX-License-Identifier: Apache-2.0 */
#include "process_limits.h"

#include "base/error.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/resource.h>

#define DESCRIPTORS_LEAST  48u            /* what a runtime with a model or two has open, and what compiling takes for a while */
#define CLIENT_DESCRIPTORS 8u             /* its connection, queue pair, arena and doorbells, and some to refuse others with */
#define STACK_LEAST        (256ull << 10) /* of the main thread, and of compilers' */
#define STACK_WANTED       (8ull << 20)

struct need {
        int resource;
        const char *name, *command, *unit;
        uint64_t least;
        const char *because;
};

static void raise_soft(int resource, rlim_t wanted)
{
        struct rlimit limit;

        if (getrlimit(resource, &limit) < 0)
                return;
        if (wanted > limit.rlim_max)
                wanted = limit.rlim_max;
        if (limit.rlim_cur >= wanted)
                return;
        limit.rlim_cur = wanted;
        (void)setrlimit(resource, &limit);
}

void sl_process_limits_raise(void)
{
        const struct sigaction ignore = {.sa_handler = SIG_IGN};

        (void)sigaction(SIGXFSZ, &ignore, NULL);
        raise_soft(RLIMIT_NOFILE, RLIM_INFINITY);
        raise_soft(RLIMIT_FSIZE, RLIM_INFINITY);
        raise_soft(RLIMIT_STACK, STACK_WANTED);
}

static int check(const struct need *need, struct sl_error *error)
{
        struct rlimit limit;

        if (getrlimit(need->resource, &limit) < 0 || limit.rlim_cur >= need->least)
                return 0;
        return sl_error_set(error, ERANGE, "%s is %" PRIu64 "%s (%s): %s needs at least %" PRIu64, need->name,
                (uint64_t)limit.rlim_cur, need->unit, need->command, need->because, need->least);
}

int sl_process_limits_check(uint64_t file_bytes, const char *file_key, struct sl_error *error)
{
        const struct need needs[] = {
                {RLIMIT_NOFILE, "RLIMIT_NOFILE", "ulimit -n", " descriptors", DESCRIPTORS_LEAST, "a runtime"},
                {RLIMIT_STACK, "RLIMIT_STACK", "ulimit -s", " bytes", STACK_LEAST, "a runtime"},
                {RLIMIT_FSIZE, "RLIMIT_FSIZE", "ulimit -f", " bytes", file_bytes, file_key},
        };
        int r = 0;

        for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]) && r == 0; i++)
                r = check(&needs[i], error);
        return r;
}

/* The one that lists them among them. 0: that is not known. */
static uint64_t count_descriptors(void)
{
        DIR *folder = opendir("/proc/self/fd");
        uint64_t n = 0;

        for (const struct dirent *entry; folder && (entry = readdir(folder));)
                n += entry->d_name[0] != '.';
        if (folder)
                closedir(folder);
        return n;
}

int sl_process_limits_check_descriptors(struct sl_error *error)
{
        uint64_t n_open = count_descriptors(), needed = n_open + CLIENT_DESCRIPTORS;
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= needed)
                return 0;
        return sl_error_set(error, EMFILE,
                "RLIMIT_NOFILE is %" PRIu64 " descriptors (ulimit -n), of which %" PRIu64
                " are in use: with a client it needs at least %" PRIu64,
                (uint64_t)limit.rlim_cur, n_open, needed);
}
