/* SPDX-License-Identifier: Apache-2.0 */
/* What the process of a GPU may not call, in threads that were there before as well; what drivers do goes on. */
#include "gpu_calls.h"

#include "call_filter.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ioprio.h>
#include <linux/sockios.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NO_IOPRIO IOPRIO_PRIO_VALUE(7, 0) /* which the kernel takes for none */

static bool is_refused(long result)
{
        return result < 0 && errno == EPERM;
}

/* Return: 0; else which of them goes through, from 1 on. */
static int try_others(void)
{
        char *const arguments[] = {(char *)"true", NULL};

        if (!is_refused(execv("/bin/true", arguments)))
                return 1;
        if (!is_refused(kill(getppid(), 0)))
                return 2;
        if (!is_refused(syscall(SYS_tgkill, getppid(), getppid(), 0)))
                return 3;
        if (!is_refused(socket(AF_INET, SOCK_STREAM, 0)))
                return 4;
        if (!is_refused(ptrace(PTRACE_TRACEME, 0, NULL, NULL)))
                return 5;
        if (!is_refused(setuid(getuid())))
                return 6;
        if (!is_refused(syscall(SYS_io_uring_setup, 1, NULL)))
                return 7;
        if (!is_refused(unshare(0)))
                return 8;
        if (!is_refused(prlimit(getppid(), RLIMIT_NOFILE, NULL, NULL)))
                return 9;
        if (!is_refused(syscall(SYS_migrate_pages, getppid(), 0, NULL, NULL)))
                return 10;
        if (!is_refused(syscall(SYS_move_pages, getppid(), 0, NULL, NULL, NULL, 0)))
                return 11;
        if (!is_refused(setpriority(PRIO_PROCESS, (id_t)getppid(), 19)))
                return 12;
        if (!is_refused(syscall(SYS_ioprio_set, 1, getppid(), 0)))
                return 13;
        if (!is_refused(syscall(SYS_process_madvise, -1, NULL, 0, 0, 0)))
                return 14;
        /* its process group, which is its own here, and all of its user */
        if (!is_refused(setpriority(PRIO_PGRP, 0, getpriority(PRIO_PROCESS, 0))))
                return 15;
        if (!is_refused(syscall(SYS_ioprio_set, IOPRIO_WHO_USER, 0, NO_IOPRIO)))
                return 16;
        return 0;
}

/* A descriptor sends signals to who owns it. The kernel reads the lower half of such a number. */
static int try_owners(void)
{
        const struct f_owner_ex other = {.type = F_OWNER_PID, .pid = getppid()};
        const unsigned long beyond = 1ul << 32;
        int number = getppid(), fd = socket(AF_UNIX, SOCK_STREAM, 0);

        if (!is_refused(fcntl(fd, F_SETOWN, number)))
                return 1;
        if (!is_refused(syscall(SYS_fcntl, fd, F_SETOWN | beyond, number)))
                return 2;
        if (!is_refused(fcntl(fd, F_SETOWN_EX, &other)))
                return 3;
        if (!is_refused(ioctl(fd, FIOSETOWN, &number)))
                return 4;
        if (!is_refused(syscall(SYS_ioctl, fd, SIOCSPGRP | beyond, &number)))
                return 5;
        if (fcntl(fd, F_SETOWN, getpid()) < 0 || fcntl(fd, F_GETOWN) != getpid())
                return 6;
        return close(fd);
}

/* Of other threads, whosever they are: nothing happens, and nobody fails over it. */
static int try_scheduling(void)
{
        const struct sched_param none = {0};
        pid_t other = getppid();

        if (sched_setscheduler(other, SCHED_BATCH, &none) != 0 || sched_getscheduler(other) == SCHED_BATCH)
                return 1;
        if (syscall(SYS_sched_setaffinity, other, 8, NULL) != 0)
                return 2;
        if (syscall(SYS_sched_setattr, other, NULL, 0) != 0)
                return 3;
        if (syscall(SYS_sched_setparam, other, NULL) != 0)
                return 4;
        if (sched_setscheduler(0, SCHED_BATCH, &none) < 0 || sched_getscheduler(0) != SCHED_BATCH)
                return 5;
        return 0;
}

static int try_own(void)
{
        struct rlimit limit;
        int pair[2];

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || setrlimit(RLIMIT_NOFILE, &limit) < 0)
                return 25;
        if (setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0)) < 0)
                return 26;
        if (kill(getpid(), 0) < 0 || raise(SIGCONT) != 0)
                return 21;
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 || socket(AF_UNIX, SOCK_SEQPACKET, 0) < 0)
                return 22;
        if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
                return 23;
        if (eventfd(0, EFD_CLOEXEC) < 0 || open("/proc/self/maps", O_RDONLY) < 0)
                return 24;
        return 0;
}

static atomic_bool closed;

static void *before(void *ret_result)
{
        while (!atomic_load(&closed))
                usleep(100);
        *(int *)ret_result = try_others();
        return NULL;
}

static int try_all(void)
{
        int earlier = -1, later = -1, r;
        pthread_t one, other;

        if (pthread_create(&one, NULL, before, &earlier) != 0 || sl_gpu_calls_refuse() < 0)
                return 31;
        atomic_store(&closed, true);
        r = pthread_create(&other, NULL, before, &later);
        pthread_join(one, NULL);
        pthread_join(other, NULL);
        if (r != 0 || earlier || later)
                return earlier > 0 ? 40 + earlier : 60 + later;
        if ((r = try_others()) || (r = try_own()))
                return r;
        if ((r = try_owners()))
                return 80 + r;
        r = try_scheduling();
        return r ? 90 + r : 0;
}

Test(calls, that_no_driver_wants_are_refused_in_all_threads)
{
        int status;
        pid_t child;

        if (!sl_call_filter_is_there())
                cr_skip("the kernel has no filters of calls");
        child = fork();
        if (child == 0)
                _exit(setpgid(0, 0) < 0 ? 1 : try_all());
        cr_assert_eq(waitpid(child, &status, 0), child);
        cr_assert(WIFEXITED(status));
        cr_expect_eq(WEXITSTATUS(status), 0, "%d", WEXITSTATUS(status));
}
