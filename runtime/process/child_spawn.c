/* SPDX-License-Identifier: Apache-2.0 */
#include "child_spawn.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <unistd.h>

#define FDS_MAX 16

/* Copies above the numbers that the child's descriptors get, so that one cannot overwrite the other on the way. */
struct lifted {
        int fds[FDS_MAX];
        uint32_t n;
};

static void lifted_close(struct lifted *lifted)
{
        while (lifted->n)
                close(lifted->fds[--lifted->n]);
}

static int lift(const struct sl_spawn_options *options, struct lifted *lifted)
{
        if (options->n_fds > FDS_MAX)
                return -EINVAL;
        for (; lifted->n < options->n_fds; lifted->n++) {
                lifted->fds[lifted->n] = fcntl(options->fds[lifted->n], F_DUPFD_CLOEXEC, SL_SPAWN_FIRST_FD + FDS_MAX);
                if (lifted->fds[lifted->n] < 0)
                        return -errno;
        }
        return 0;
}

static int add_descriptors(posix_spawn_file_actions_t *actions, const struct lifted *lifted)
{
        int r = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);

        if (r == 0)
                r = posix_spawn_file_actions_addopen(actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
        for (uint32_t i = 0; i < lifted->n && r == 0; i++)
                r = posix_spawn_file_actions_adddup2(actions, lifted->fds[i], SL_SPAWN_FIRST_FD + (int)i);
        return r ? r : posix_spawn_file_actions_addclosefrom_np(actions, SL_SPAWN_FIRST_FD + (int)lifted->n);
}

/* The caller's threads block signals and ignore some. */
static int reset_signals(posix_spawnattr_t *attributes)
{
        sigset_t none, all;
        int r;

        sigemptyset(&none);
        sigfillset(&all);
        r = posix_spawnattr_setsigmask(attributes, &none);
        if (r == 0)
                r = posix_spawnattr_setsigdefault(attributes, &all);
        return r ? r : posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

static int spawn_with(const struct sl_spawn_options *options, const struct lifted *lifted, posix_spawn_file_actions_t *actions,
        posix_spawnattr_t *attributes, pid_t *ret_pid)
{
        int r = add_descriptors(actions, lifted);

        if (r == 0)
                r = reset_signals(attributes);
        return r ? r : posix_spawn(ret_pid, options->program, actions, attributes, options->argv, options->environment);
}

int sl_spawn(const struct sl_spawn_options *options, pid_t *ret_pid)
{
        SL_CLEANUP(lifted_close) struct lifted lifted = {.n = 0};
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        int r = lift(options, &lifted);

        if (r < 0)
                return r;
        r = posix_spawn_file_actions_init(&actions);
        if (r)
                return -r;
        r = posix_spawnattr_init(&attributes);
        if (r == 0) {
                r = spawn_with(options, &lifted, &actions, &attributes, ret_pid);
                posix_spawnattr_destroy(&attributes);
        }
        posix_spawn_file_actions_destroy(&actions);
        return -r;
}

static int reopen(int fd, int access)
{
        char path[32];
        int copy;

        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        copy = open(path, access | O_CLOEXEC);
        return copy < 0 ? -errno : copy;
}

int sl_spawn_read_only(int fd)
{
        return reopen(fd, O_RDONLY);
}

int sl_spawn_writable(int fd)
{
        return reopen(fd, O_RDWR);
}
