/* SPDX-License-Identifier: Apache-2.0 */
#include "escape.h"

#include "call_list.h"
#include "child_args.h"
#include "child_calls.h"
#include "escape_ways.h"
#include "sandbox.h"
#include "sandbox_additions.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- the numbers of all calls ---- */

/* By hand, and not taken from the filter: who lets the compiler call more says so twice. */
static const int allowed[] = {SYS_brk, SYS_munmap, SYS_mremap, SYS_mmap, SYS_mprotect, SYS_madvise, SYS_close, SYS_lseek, SYS_fcntl,
        SYS_pwrite64, SYS_ftruncate, SYS_fallocate, SYS_write, SYS_recvmsg,
#ifdef SYS_arch_prctl
        SYS_arch_prctl,
#endif
        SYS_sysinfo, SYS_clock_gettime, SYS_gettimeofday, SYS_futex, SYS_exit, SYS_exit_group, SYS_getpid, SYS_gettid,
        SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_tgkill, SYS_prlimit64, SYS_pread64};

static bool is_allowed(int call)
{
        for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++) {
                if (allowed[i] == call)
                        return true;
        }
        for (size_t i = 0; i < sl_sandbox_additions.n_rules; i++) {
                if (sl_sandbox_additions.rules[i].call == call)
                        return true;
        }
        return false;
}

/* ---- what is tried ---- */

static int report(const char *format, ...) __attribute__((format(printf, 1, 2)));

static int report(const char *format, ...)
{
        char line[256] = "1 ";
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(line + 2, sizeof(line) - 3, format, arguments);
        va_end(arguments);
        strcat(line, "\n");
        return write(SL_CHILD_REPORT_FD, line, strlen(line)) > 0 ? 1 : 19;
}

/* Return: 0, and *ret_only as sl_sandbox_enter() says; else what report() returns. */
static int enter_some(const char **ret_only)
{
        struct sl_call_list calls;
        struct sl_sandbox_limits limits = {.address_bytes = 1ull << 30,
                .data_bytes = SL_SANDBOX_NO_LIMIT,
                .file_bytes = (1ull << 30) / 3,
                .seconds = 10,
                .parent = getppid(),
                .calls = &calls};
        struct sl_error error = {""};

        sl_child_calls(SL_CHILD_PLAN_FD, SL_CHILD_REPORT_FD, &calls);
        return sl_sandbox_enter(&limits, ret_only, &error) < 0 ? report("%s", error.text) : 0;
}

/* The filter alone holds, where the kernel has no Landlock. */
static int enter(void)
{
        const char *only = NULL;
        int r = enter_some(&only);

        return r == 0 && only && strcmp(only, "the filter of system calls, but not Landlock") ? report("only %s", only) : r;
}

static int try_ways(const struct escape_victim *victim)
{
        int r = enter();
        const struct escape_way *way = r == 0 ? escape_try_ways(victim, 0) : NULL;

        if (way)
                r = report("%s, error %d", way->name, errno);
        return r ? r : ESCAPE_HELD;
}

/* As a container's profile does. */
static void deny(int call)
{
        scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

        if (!filter || seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), call, 0) < 0 || seccomp_load(filter) < 0)
                _exit(19);
        seccomp_release(filter);
}

/* What no filter keeps this process from. */
static int look_at_privileges(void)
{
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct has[_LINUX_CAPABILITY_U32S_3];
        int death_signal = 0;

        if (syscall(SYS_capget, &header, has) < 0 || has[0].permitted || has[1].permitted || has[0].effective || has[1].effective)
                return report("it has capabilities");
        if (prctl(PR_CAPBSET_READ, CAP_KILL, 0, 0, 0) != 0 && geteuid() == 0)
                return report("its bounding set is not empty");
        if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
                return report("it can get new privileges");
        if (prctl(PR_GET_PDEATHSIG, &death_signal, 0, 0, 0) < 0 || death_signal != SIGKILL)
                return report("it outlives its parent");
        if (!SL_SANITIZED && prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0)
                return report("it can be traced");
        return 0;
}

static int try_ways_without_a_filter(const struct escape_victim *victim)
{
        const struct escape_way *way;
        const char *only = NULL;
        int r;

        deny(SCMP_SYS(seccomp));
        r = enter_some(&only);
        if (r == 0 && (!only || strcmp(only, "Landlock, but not the filter of system calls")))
                r = report("only %s", only ? only : "all of it");
        if (r == 0)
                r = look_at_privileges();
        way = r == 0 ? escape_try_ways(victim, ESCAPE_LANDLOCK_SEES_IT) : NULL;
        if (way)
                r = report("%s, error %d", way->name, errno);
        return r ? r : ESCAPE_HELD;
}

static int try_ways_where_they_work(const struct escape_victim *victim)
{
        for (size_t i = 0; i < escape_n_ways; i++) {
                if (!(escape_ways[i].flags & ESCAPE_NOT_WHERE_IT_WORKS) && !escape_ways[i].leads_out(victim))
                        return report("%s does not lead out, error %d", escape_ways[i].name, errno);
        }
        return ESCAPE_HELD;
}

static int try_calls(void)
{
        int r = enter();

        for (int call = 0; call < ESCAPE_CALLS && r == 0; call++) {
                if (!is_allowed(call) && escape_is_let_through(call))
                        r = report("system call %d is let through, error %d", call, errno);
        }
        return r ? r : ESCAPE_HELD;
}

static int try_foreign_calls(void)
{
        int r = enter();

#ifdef __x86_64__
        if (r == 0)
                r = report("the x32 call of getpid is let through: %ld", syscall(0x40000000 | SYS_getpid));
#else
        if (r == 0)
                raise(SIGSYS); /* no other table is known here */
#endif
        return r;
}

/* As external_request.c does, but for what any name is. Return: the answer's code; -1: there is none. */
static int ask(const char *location, size_t length, int *ret_fd)
{
        static char request[8192 + 1];
        char control[CMSG_SPACE(sizeof(int))] = {0};
        struct sl_child_answer answer = {0};
        struct iovec part = {.iov_base = &answer, .iov_len = sizeof(answer)};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};

        *ret_fd = -1;
        request[0] = 0; /* of the first model */
        memcpy(request + 1, location, length);
        if (write(SL_CHILD_EXTERNAL_FD, request, length + 1) != (ssize_t)length + 1 ||
                recvmsg(SL_CHILD_EXTERNAL_FD, &message, 0) != sizeof(answer))
                return -1;
        if (message.msg_controllen >= sizeof(control))
                memcpy(ret_fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
        return answer.code;
}

/* What it gets it can read, and not write. */
static int ask_for_data(void)
{
        const char *bytes;
        int fd, code = ask("data", 4, &fd);

        if (code || fd < 0)
                return report("data is refused, error %d", code);
        bytes = mmap(NULL, 6, PROT_READ, MAP_SHARED, fd, 0);
        if (bytes == MAP_FAILED || memcmp(bytes, "inside", 6) != 0)
                return report("data is another file");
        if (mmap(NULL, 6, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED)
                return report("data can be written");
        return 0;
}

static int try_names(void)
{
        static char endless[8192];
        static const struct {
                const char *name;
                size_t length;
        } names[] = {
#define NAME(name) {name, sizeof(name) - 1}
                NAME("/etc/passwd"),
                NAME("../outside"),
                NAME("folder/../data"),
                NAME("./../outside"),
                NAME("data/"),
                NAME("./../outside"),
                NAME("data\0"),
                NAME("data\0/../../outside"),
                NAME("link"),
                NAME("folder-link/data"),
                NAME("fifo"),
                NAME("folder"),
                NAME("nothing"),
                NAME("."),
                NAME(".."),
                NAME("/"),
                NAME("\0"),
                NAME("/proc/self/exe"),
#undef NAME
                {endless, 255},
                {endless, 4095},
                {endless, 4096},
                {endless, sizeof(endless)},
        };
        int fd, code, r = enter();

        memset(endless, 'a', sizeof(endless));
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && r == 0; i++) {
                code = ask(names[i].name, names[i].length, &fd);
                if (code <= 0 || fd >= 0)
                        r = report("name %zu, \"%.64s\", is answered with %d", i, names[i].name, code);
        }
        if (r == 0)
                r = ask_for_data();
        return r ? r : ESCAPE_HELD;
}

static int ask_often(void)
{
        int fd, r = enter();

        for (uint32_t n = 0; n < 65536 && r == 0; n++) {
                int code = ask(".", 1, &fd);

                if (code != EACCES)
                        r = report("request %u is answered with %d", n, code);
        }
        if (r == 0 && ask(".", 1, &fd) != E2BIG)
                r = report("there is no end of asking");
        signal(SIGPIPE, SIG_IGN);
        if (r == 0 && ask(".", 1, &fd) != -1)
                r = report("somebody still listens");
        return r ? r : ESCAPE_HELD;
}

/* As many packets as its own end of the socket takes. */
static int ask_without_listening(void)
{
        int r = enter();

        for (int n = 0; n < 64 && r == 0; n++) {
                if (write(SL_CHILD_EXTERNAL_FD, "\0data", 5) != 5)
                        r = report("request %d fails", n);
        }
        return r ? r : ESCAPE_HELD;
}

static int tell_limits(void)
{
        static const int resources[] = {RLIMIT_AS, RLIMIT_FSIZE, RLIMIT_CPU, RLIMIT_NOFILE, RLIMIT_NPROC, RLIMIT_CORE};
        unsigned long long values[6];
        struct rlimit limit;
        int r = enter();

        for (size_t i = 0; i < 6 && r == 0; i++)
                values[i] = getrlimit(resources[i], &limit) == 0 ? limit.rlim_cur : 0;
        return r ? r : report("%llu %llu %llu %llu %llu %llu", values[0], values[1], values[2], values[3], values[4], values[5]);
}

static int open_victim(const char *path, struct escape_victim *victim)
{
        *victim = (struct escape_victim){.path = path, .fd = open(path, O_RDWR), .parent = getppid()};
        return victim->fd < 0 || socketpair(AF_UNIX, SOCK_DGRAM, 0, victim->sockets) < 0 ? report("no victim: %s", strerror(errno))
                                                                                         : 0;
}

int escape_main(const char *what)
{
        const char *path = strchr(what, ':');
        struct escape_victim victim;

        if (path && open_victim(path + 1, &victim))
                return 1;
        if (path && !strncmp(what, "ways", 4))
                return try_ways(&victim);
        if (path && !strncmp(what, "filtered", 8)) {
                deny(SCMP_SYS(landlock_create_ruleset));
                return try_ways(&victim);
        }
        if (path && !strncmp(what, "unfiltered", 10))
                return try_ways_without_a_filter(&victim);
        if (path)
                return try_ways_where_they_work(&victim);
        if (!strcmp(what, "calls"))
                return try_calls();
        if (!strcmp(what, "foreign-calls"))
                return try_foreign_calls();
        if (!strcmp(what, "names"))
                return try_names();
        if (!strcmp(what, "asks-often"))
                return ask_often();
        if (!strcmp(what, "asks-deaf"))
                return ask_without_listening();
        return tell_limits();
}
