/* SPDX-License-Identifier: Apache-2.0 */
#include "users.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int ready_fd = -1; /* in the child */

void users_need_root(void)
{
        if (geteuid() != 0)
                cr_skip_test("only root can become three users");
}

int users_become(uid_t uid)
{
        if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
                return -errno;
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* after the change of user, which clears it */
        return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* as after the exec of an ordinary program */
}

int users_try(uid_t uid, int (*attempt)(const struct world *world), const struct world *world)
{
        pid_t pid = fork();
        int status;

        if (pid == 0)
                _exit(users_become(uid) < 0 ? BROKEN : attempt(world));
        cr_assert_eq(waitpid(pid, &status, 0), pid);
        cr_assert(WIFEXITED(status), "wait status %#x", status);
        return WEXITSTATUS(status);
}

pid_t users_start(uid_t uid, int (*act)(const struct world *world), const struct world *world)
{
        int ready[2];
        char byte;

        cr_assert_eq(pipe(ready), 0);
        pid_t pid = fork();
        if (pid == 0) {
                close(ready[0]);
                ready_fd = ready[1];
                _exit(users_become(uid) < 0 ? BROKEN : act(world));
        }
        close(ready[1]);
        cr_assert_eq(read(ready[0], &byte, 1), 1, "user %u is not ready", uid);
        close(ready[0]);
        return pid;
}

void users_ready(void)
{
        (void)!write(ready_fd, "r", 1);
}

void users_end(pid_t pid)
{
        kill(pid, SIGKILL);
        cr_assert_eq(waitpid(pid, NULL, 0), pid);
}

int crossed(const char *format, ...)
{
        va_list arguments;

        va_start(arguments, format);
        vfprintf(stderr, format, arguments);
        va_end(arguments);
        fputc('\n', stderr);
        return CROSSED;
}
