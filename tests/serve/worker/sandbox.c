/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker process can no longer do once its sandbox is closed: each call that is not on a second list, and the ways out. */
#include "sandbox.h"
#include "base/error.h"
#include "sandbox_additions.h"
#include "worker_calls.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLS_TRIED 512

/* By hand, and not taken from the filter: who lets a worker call more says so twice. */
static const int allowed[] = {SYS_brk, SYS_munmap, SYS_mremap, SYS_mmap, SYS_mprotect, SYS_madvise, SYS_close, SYS_lseek, SYS_fstat,
        SYS_newfstatat, SYS_fstatfs, SYS_fcntl, SYS_recvmsg, SYS_sendmsg, SYS_write, SYS_poll, SYS_futex, SYS_sysinfo,
        SYS_clock_gettime, SYS_gettimeofday, SYS_sched_setscheduler, SYS_exit, SYS_exit_group, SYS_getpid, SYS_gettid,
        SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_restart_syscall, SYS_tgkill, SYS_arch_prctl};

/* What the child has found, in memory that both see. */
struct finding {
        int ways;  /* that lead out */
        int calls; /* that are let through, and the last of them */
        int call;
        char text[512];
};

static bool is_allowed(int call)
{
        for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
                if (allowed[i] == call)
                        return true;
        for (size_t i = 0; i < sl_sandbox_additions.n_rules; i++)
                if (sl_sandbox_additions.rules[i].call == call)
                        return true;
        return call == 335 || call == 336; /* uretprobe and uprobe, which no filter sees */
}

static bool is_let_through(int call)
{
        errno = 0;
        return syscall(call, -1, -1, -1, -1, -1, -1) != -1 || (errno != ENOSYS && errno != EPERM);
}

static void try_calls(struct finding *finding)
{
        for (int call = 0; call < CALLS_TRIED; call++)
                if (!is_allowed(call) && is_let_through(call)) {
                        finding->calls++;
                        finding->call = call;
                }
}

static void try_ways(struct finding *finding)
{
        int fd = open("/etc/hostname", O_RDONLY);

        finding->ways += !SL_SANITIZED && fd >= 0;
        finding->ways += open("/tmp/starling-worker-was-here", O_WRONLY | O_CREAT, 0600) >= 0;
        finding->ways += socket(AF_UNIX, SOCK_STREAM, 0) >= 0;
        finding->ways += socket(AF_INET, SOCK_STREAM, 0) >= 0;
        finding->ways += kill(getppid(), 0) == 0;
        finding->ways += mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
        finding->ways += !SL_SANITIZED && syscall(SYS_vfork) >= 0;
        finding->ways += write(STDERR_FILENO, "", 0) == 0 && !SL_SANITIZED;
}

static void child_main(struct finding *finding, pid_t parent)
{
        struct sl_call_rule calls[SL_WORKER_CALLS_MAX];
        const struct sl_sandbox_limits limits = {
                .address_bytes = SL_SANDBOX_NO_LIMIT,
                .data_bytes = 1ull << 30,
                .file_bytes = 0,
                .seconds = SL_SANDBOX_NO_LIMIT,
                .parent = parent,
                .calls = calls,
                .n_calls = sl_worker_calls(calls),
        };
        struct sl_error error = {""};
        const char *missing = NULL;

        if (sl_sandbox_enter(&limits, &missing, &error) < 0) {
                snprintf(finding->text, sizeof(finding->text), "%s", error.text);
                _exit(1);
        }
        if (missing)
                snprintf(finding->text, sizeof(finding->text), "%s", missing);
        try_ways(finding);
        try_calls(finding);
        _exit(0);
}

Test(worker_sandbox, no_call_and_no_way_leads_out, .timeout = 60)
{
        struct finding *finding = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        pid_t parent = getpid(), pid;
        int status;

        cr_assert_neq((void *)finding, MAP_FAILED);
        pid = fork();
        if (pid == 0)
                child_main(finding, parent);
        cr_assert_eq(waitpid(pid, &status, 0), pid);
        if (strstr(finding->text, "not the filter") || strstr(finding->text, "nor the filter"))
                cr_skip_test("this host has no filters of system calls");
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x: %s", (unsigned)status, finding->text);
        cr_expect_eq(finding->ways, 0, "%d ways lead out", finding->ways);
        cr_expect_eq(finding->calls, 0, "%d system calls are let through, one of them %d", finding->calls, finding->call);
}
