#include "sandbox.h"

#include "base/error.h"

#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define NICENESS        10
#define DESCRIPTORS_MAX 64

static int limit(int resource, const char *name, uint64_t soft, uint64_t hard, struct sl_error *error)
{
        struct rlimit both = {.rlim_cur = soft, .rlim_max = hard};

        if (setrlimit(resource, &both) == 0)
                return 0;
        return sl_error_set(error, errno, "limit of %s to %llu: %s", name, (unsigned long long)soft, strerror(errno));
}

static int set_limits(const struct sl_sandbox_limits *limits, struct sl_error *error)
{
        const struct {
                int resource;
                const char *name;
                uint64_t value;
                uint64_t slack; /* of the hard limit above the soft one */
        } rows[] = {
                {RLIMIT_AS, "address space", SL_SANITIZED ? RLIM_INFINITY : limits->memory_bytes, 0},
                {RLIMIT_FSIZE, "file size", limits->memory_bytes, 0},
                /* At the soft limit comes SIGXCPU, which tells the parent why; at the hard one an anonymous SIGKILL. */
                {RLIMIT_CPU, "processor time", limits->seconds, 1},
                {RLIMIT_NOFILE, "open files", DESCRIPTORS_MAX, 0},
                {RLIMIT_CORE, "core dumps", 0, 0},
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                int r = limit(rows[i].resource, rows[i].name, rows[i].value, rows[i].value + rows[i].slack, error);

                if (r < 0)
                        return r;
        }
        return 0;
}

static int drop_privileges(const struct sl_sandbox_limits *limits, struct sl_error *error)
{
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return sl_error_set(error, errno, "no-new-privileges: %s", strerror(errno));
        if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
                return sl_error_set(error, errno, "death signal: %s", strerror(errno));
        /* The parent may have died before the line above, which then waits for the death of whoever adopted this process. */
        if (limits->parent && getppid() != limits->parent)
                return sl_error_set(error, ESRCH, "process %d, which wanted the plan, is gone", limits->parent);
        /* Being nice is a courtesy to the workers: nothing depends on it. */
        (void)setpriority(PRIO_PROCESS, 0, NICENESS);
        return 0;
}

/* Never needed for compiling a model. Those that a later kernel adds reach nothing that these do not guard. */
static const int forbidden[] = {
        /* network */
        SCMP_SYS(socket),
        SCMP_SYS(socketpair),
        SCMP_SYS(connect),
        SCMP_SYS(bind),
        SCMP_SYS(listen),
        SCMP_SYS(accept),
        SCMP_SYS(accept4),
        SCMP_SYS(sendto),
        SCMP_SYS(sendmsg),
        SCMP_SYS(sendmmsg),
        SCMP_SYS(recvmsg),
        SCMP_SYS(io_uring_setup),
        SCMP_SYS(io_uring_enter),
        SCMP_SYS(io_uring_register),
        /* other programs and processes */
        SCMP_SYS(execve),
        SCMP_SYS(execveat),
        SCMP_SYS(fork),
        SCMP_SYS(vfork),
        SCMP_SYS(process_vm_readv),
        SCMP_SYS(process_vm_writev),
        SCMP_SYS(pidfd_open),
        SCMP_SYS(pidfd_getfd),
        SCMP_SYS(pidfd_send_signal),
        SCMP_SYS(rt_sigqueueinfo),
        SCMP_SYS(rt_tgsigqueueinfo),
        SCMP_SYS(shmget),
        SCMP_SYS(shmat),
        SCMP_SYS(msgget),
        SCMP_SYS(mq_open),
        SCMP_SYS(setns),
        SCMP_SYS(unshare),
        SCMP_SYS(setrlimit),
        SCMP_SYS(setpriority),
        /* the file system */
        SCMP_SYS(creat),
        SCMP_SYS(memfd_create),
        SCMP_SYS(truncate),
        SCMP_SYS(unlink),
        SCMP_SYS(unlinkat),
        SCMP_SYS(rename),
        SCMP_SYS(renameat),
        SCMP_SYS(renameat2),
        SCMP_SYS(link),
        SCMP_SYS(linkat),
        SCMP_SYS(symlink),
        SCMP_SYS(symlinkat),
        SCMP_SYS(mkdir),
        SCMP_SYS(mkdirat),
        SCMP_SYS(rmdir),
        SCMP_SYS(mknod),
        SCMP_SYS(mknodat),
        SCMP_SYS(chmod),
        SCMP_SYS(fchmodat),
        SCMP_SYS(chown),
        SCMP_SYS(lchown),
        SCMP_SYS(fchownat),
        SCMP_SYS(setxattr),
        SCMP_SYS(lsetxattr),
        SCMP_SYS(removexattr),
        SCMP_SYS(lremovexattr),
        SCMP_SYS(utimensat),
        SCMP_SYS(openat2),
        SCMP_SYS(open_by_handle_at),
        SCMP_SYS(mount),
        SCMP_SYS(umount2),
        SCMP_SYS(pivot_root),
        SCMP_SYS(chroot),
        SCMP_SYS(open_tree),
        SCMP_SYS(move_mount),
        SCMP_SYS(fsopen),
        /* the kernel */
        SCMP_SYS(bpf),
        SCMP_SYS(perf_event_open),
        SCMP_SYS(userfaultfd),
        SCMP_SYS(keyctl),
        SCMP_SYS(add_key),
        SCMP_SYS(request_key),
        SCMP_SYS(init_module),
        SCMP_SYS(finit_module),
        SCMP_SYS(kexec_load),
        SCMP_SYS(ioctl),
};

/* A leak check stops the other threads through ptrace, from a process that it clones. */
static const int forbidden_unless_sanitized[] = {SCMP_SYS(ptrace)};

static int forbid(scmp_filter_ctx filter, const int *calls, size_t n_calls)
{
        for (size_t i = 0; i < n_calls; i++) {
                int r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), calls[i], 0);

                if (r < 0)
                        return r;
        }
        return 0;
}

/* Opening is for reading. The argument that holds the flags is the second of open and the third of openat. */
static int forbid_opening_for_writing(scmp_filter_ctx filter)
{
        const scmp_datum_t writing[] = {O_WRONLY, O_RDWR, O_CREAT, O_TRUNC};

        for (size_t i = 0; i < sizeof(writing) / sizeof(writing[0]); i++) {
                int r = seccomp_rule_add(
                        filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(open), 1, SCMP_A1(SCMP_CMP_MASKED_EQ, writing[i], writing[i]));

                if (r < 0)
                        return r;
                r = seccomp_rule_add(
                        filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(openat), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, writing[i], writing[i]));
                if (r < 0)
                        return r;
        }
        return 0;
}

/* abort() signals the process itself; nobody else may be signalled. */
static int forbid_signalling_others(scmp_filter_ctx filter)
{
        scmp_datum_t self = (scmp_datum_t)getpid();
        int r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(kill), 1, SCMP_A0(SCMP_CMP_NE, self));

        if (r < 0)
                return r;
        r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(tgkill), 1, SCMP_A0(SCMP_CMP_NE, self));
        if (r < 0)
                return r;
        return seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(tkill), 0);
}

/* Reading a limit is fine; raising one is what a process of root could do. */
static int forbid_new_limits(scmp_filter_ctx filter)
{
        return seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(prlimit64), 1, SCMP_A2(SCMP_CMP_NE, 0));
}

/* Threads are fine, processes are not. A filter cannot read clone3's arguments: without it libc falls back to clone. */
static int forbid_new_processes(scmp_filter_ctx filter)
{
        int r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);

        if (r < 0)
                return r;
        return seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1, SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
}

static int add_rules(scmp_filter_ctx filter)
{
        int r = forbid(filter, forbidden, sizeof(forbidden) / sizeof(forbidden[0]));

        if (r == 0)
                r = forbid_opening_for_writing(filter);
        if (r == 0)
                r = forbid_signalling_others(filter);
        if (r == 0)
                r = forbid_new_limits(filter);
        if (r == 0 && !SL_SANITIZED)
                r = forbid_new_processes(filter);
        if (r == 0 && !SL_SANITIZED)
                r = forbid(filter, forbidden_unless_sanitized, 1);
        return r;
}

static int filter_calls(struct sl_error *error)
{
        scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
        int r;

        if (!filter)
                return sl_error_set(error, ENOMEM, "no memory for the filter of system calls");
        r = add_rules(filter);
        if (r == 0)
                r = seccomp_load(filter);
        seccomp_release(filter);
        return r < 0 ? sl_error_set(error, -r, "filter of system calls: %s", strerror(-r)) : 0;
}

int sl_sandbox_enter(const struct sl_sandbox_limits *limits, struct sl_error *error)
{
        int r = drop_privileges(limits, error);

        if (r < 0)
                return r;
        r = set_limits(limits, error);
        if (r < 0)
                return r;
        return filter_calls(error);
}
