/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker process can no longer do once its sandbox is closed: each call that is not on its list, and the ways out. */
#include "sandbox.h"
#include "base/error.h"
#include "call_list.h"
#include "escape_ways.h"
#include "worker_calls.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Above the numbers that a worker may send to. */
#define FIRST_FD 32

/* What the child has found, in memory that both see. */
struct finding {
        char missing[128]; /* of the sandbox on this host */
        char text[512];
};

static int lift(int fd)
{
        int lifted = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FD);

        close(fd);
        return lifted;
}

static void make_victim(struct escape_victim *victim, char *path)
{
        victim->path = path;
        victim->fd = lift(mkstemp(path));
        victim->parent = getpid();
        cr_assert_eq(socketpair(AF_UNIX, SOCK_DGRAM, 0, victim->sockets), 0);
        victim->sockets[0] = lift(victim->sockets[0]);
        victim->sockets[1] = lift(victim->sockets[1]);
        cr_assert(victim->fd >= FIRST_FD && victim->sockets[0] >= FIRST_FD && victim->sockets[1] >= FIRST_FD);
}

static int enter(const struct sl_call_list *calls, pid_t parent, struct finding *finding)
{
        const struct sl_sandbox_limits limits = {
                .address_bytes = SL_SANDBOX_NO_LIMIT,
                .data_bytes = 1ull << 30,
                .file_bytes = 0,
                .seconds = SL_SANDBOX_NO_LIMIT,
                .parent = parent,
                .calls = calls,
        };
        struct sl_error error = {""};
        const char *missing = NULL;
        int r = sl_sandbox_enter(&limits, &missing, &error);

        snprintf(finding->text, sizeof(finding->text), "%s", error.text);
        snprintf(finding->missing, sizeof(finding->missing), "%s", missing ? missing : "");
        return r;
}

static void try_all(const struct escape_victim *victim, struct finding *finding)
{
        const struct escape_way *way;
        struct sl_call_list calls;

        sl_worker_calls(&calls);
        if (enter(&calls, victim->parent, finding) < 0)
                return;
        for (int call = 0; call < ESCAPE_CALLS; call++)
                if (!sl_call_list_has(&calls, call) && escape_is_let_through(call))
                        snprintf(finding->text, sizeof(finding->text), "system call %d is let through", call);
        way = escape_try_ways(victim, 0);
        if (way)
                snprintf(finding->text, sizeof(finding->text), "%s, error %d", way->name, errno);
}

Test(worker_sandbox, no_call_and_no_way_leads_out, .timeout = 60)
{
        struct finding *finding = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        char path[] = "/tmp/starling-victim-XXXXXX";
        struct escape_victim victim;
        int status;
        pid_t pid;

        cr_assert_neq((void *)finding, MAP_FAILED);
        make_victim(&victim, path);
        pid = fork();
        if (pid == 0) {
                try_all(&victim, finding);
                _exit(0);
        }
        cr_assert_eq(waitpid(pid, &status, 0), pid);
        unlink(path);
        if (strstr(finding->missing, "not the filter") || strstr(finding->missing, "nor the filter"))
                cr_skip_test("this host has no filters of system calls");
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x: %s", (unsigned)status, finding->text);
        cr_expect_str_eq(finding->text, "");
}
