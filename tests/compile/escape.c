/* SPDX-License-Identifier: Apache-2.0 */
#include "escape.h"

#include "child_args.h"
#include "sandbox.h"
#include "sandbox_additions.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/ioprio.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define CALLS_TRIED 512

struct victim {
        const char *path;
        int fd; /* open for reading and writing */
        int sockets[2];
        pid_t parent;
};

/* ---- ways out: each is true when it led out ---- */

static bool reads_a_file(const struct victim *victim)
{
        return open(victim->path, O_RDONLY) >= 0;
}

static bool reads_a_file_by_an_older_call(const struct victim *victim)
{
        return syscall(SYS_openat, AT_FDCWD, victim->path, O_RDONLY) >= 0;
}

static bool lists_a_folder(const struct victim *victim)
{
        (void)victim;
        return open("/tmp", O_RDONLY | O_DIRECTORY) >= 0;
}

static bool looks_at_a_path(const struct victim *victim)
{
        struct stat status;

        return stat(victim->path, &status) == 0;
}

static bool opens_a_file_for_writing(const struct victim *victim)
{
        return open(victim->path, O_WRONLY) >= 0;
}

static bool creates_a_file(const struct victim *victim)
{
        char path[4096];

        snprintf(path, sizeof(path), "%.4000s-new", victim->path);
        return open(path, O_WRONLY | O_CREAT, 0600) >= 0 && unlink(path) == 0;
}

static bool creates_memory_that_others_can_open(const struct victim *victim)
{
        (void)victim;
        return memfd_create("escape", 0) >= 0;
}

static bool links_a_file(const struct victim *victim)
{
        char path[4096];

        snprintf(path, sizeof(path), "%.4000s-link", victim->path);
        return link(victim->path, path) == 0 && unlink(path) == 0;
}

static bool cuts_a_path(const struct victim *victim)
{
        return truncate(victim->path, 6) == 0;
}

static bool writes_to_an_open_file(const struct victim *victim)
{
        return write(victim->fd, "x", 1) == 1;
}

static bool writes_at_a_place_in_an_open_file(const struct victim *victim)
{
        return pwrite(victim->fd, "x", 1, 0) == 1;
}

static bool writes_parts_to_an_open_file(const struct victim *victim)
{
        struct iovec part = {.iov_base = (void *)"x", .iov_len = 1};

        return writev(victim->fd, &part, 1) == 1;
}

static bool cuts_an_open_file(const struct victim *victim)
{
        return ftruncate(victim->fd, 6) == 0;
}

static bool extends_an_open_file(const struct victim *victim)
{
        return fallocate(victim->fd, 0, 0, 6) == 0;
}

static bool changes_a_mode(const struct victim *victim)
{
        return fchmod(victim->fd, 0600) == 0;
}

static bool changes_a_mode_by_path(const struct victim *victim)
{
        return chmod(victim->path, 0600) == 0;
}

static bool changes_a_mode_by_the_newest_call(const struct victim *victim)
{
        return syscall(452 /* fchmodat2 */, AT_FDCWD, victim->path, 0600, 0) == 0 || chmod(victim->path, 0600) == 0;
}

static bool changes_an_owner(const struct victim *victim)
{
        return fchown(victim->fd, geteuid(), (gid_t)-1) == 0;
}

static bool sets_an_attribute(const struct victim *victim)
{
        return fsetxattr(victim->fd, "user.escape", "x", 1, 0) == 0 || errno == ENOTSUP;
}

static bool sets_times(const struct victim *victim)
{
        return futimens(victim->fd, NULL) == 0;
}

static bool locks_a_file(const struct victim *victim)
{
        struct flock lock = {.l_type = F_WRLCK};

        return fcntl(victim->fd, F_SETLK, &lock) == 0;
}

static bool controls_a_device(const struct victim *victim)
{
        int n;

        return ioctl(victim->fd, FIONREAD, &n) == 0;
}

static bool maps_code(const struct victim *victim)
{
        return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, victim->fd, 0) != MAP_FAILED;
}

static bool opens_a_socket(const struct victim *victim)
{
        (void)victim;
        return socket(AF_UNIX, SOCK_STREAM, 0) >= 0;
}

static bool opens_a_network_socket(const struct victim *victim)
{
        (void)victim;
        return socket(AF_INET, SOCK_DGRAM, 0) >= 0;
}

static bool sends_on_an_open_socket(const struct victim *victim)
{
        return write(victim->sockets[0], "x", 1) == 1;
}

static bool passes_a_descriptor_on(const struct victim *victim)
{
        struct msghdr message = {0};

        return sendmsg(victim->sockets[0], &message, MSG_DONTWAIT) >= 0;
}

static bool receives_from_an_open_socket(const struct victim *victim)
{
        struct msghdr message = {0};

        return recvmsg(victim->sockets[1], &message, MSG_DONTWAIT) >= 0 || errno == EAGAIN;
}

static bool signals_its_parent(const struct victim *victim)
{
        return kill(victim->parent, 0) == 0;
}

static bool signals_a_thread_of_its_parent(const struct victim *victim)
{
        return syscall(SYS_tgkill, victim->parent, victim->parent, 0) == 0;
}

static bool moves_its_parent(const struct victim *victim)
{
        cpu_set_t set;

        return sched_getaffinity(victim->parent, sizeof(set), &set) == 0 &&
               sched_setaffinity(victim->parent, sizeof(set), &set) == 0;
}

/* The getter may be refused as well: the setter is tried by itself. */
static bool moves_its_parent_blindly(const struct victim *victim)
{
        cpu_set_t set;

        memset(&set, 0xff, sizeof(set));
        return sched_setaffinity(victim->parent, sizeof(set), &set) == 0;
}

static bool schedules_its_parent(const struct victim *victim)
{
        struct sched_param param = {0};

        return sched_setscheduler(victim->parent, SCHED_OTHER, &param) == 0;
}

static bool slows_the_disk_for_its_parent(const struct victim *victim)
{
        return syscall(SYS_ioprio_set, 1, victim->parent, 0) == 0;
}

static bool is_nice_for_its_parent(const struct victim *victim)
{
        return setpriority(PRIO_PROCESS, (id_t)victim->parent, 0) == 0;
}

static bool limits_its_parent(const struct victim *victim)
{
        struct rlimit same;

        return prlimit(victim->parent, RLIMIT_CORE, NULL, &same) == 0;
}

static bool outlives_its_parent(const struct victim *victim)
{
        (void)victim;
        return prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0) == 0;
}

static bool lets_itself_be_traced(const struct victim *victim)
{
        (void)victim;
        return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0;
}

static bool sets_its_limits(const struct victim *victim)
{
        struct rlimit limit = {.rlim_cur = 8, .rlim_max = 8};

        (void)victim;
        return setrlimit(RLIMIT_CORE, &limit) == 0;
}

static bool makes_a_process(const struct victim *victim)
{
        pid_t pid = fork();

        (void)victim;
        if (pid == 0)
                _exit(0);
        return pid > 0 && waitpid(pid, NULL, 0) == pid;
}

static void *nothing(void *argument)
{
        return argument;
}

static bool makes_a_thread(const struct victim *victim)
{
        pthread_t thread;
        int r = pthread_create(&thread, NULL, nothing, NULL);

        (void)victim;
        if (r == 0)
                pthread_join(thread, NULL);
        errno = r == EAGAIN ? EPERM : r;
        return r == 0;
}

static bool traces_its_parent(const struct victim *victim)
{
        return ptrace(PTRACE_SEIZE, victim->parent, NULL, NULL) == 0;
}

static bool reads_its_parents_memory(const struct victim *victim)
{
        char byte;
        struct iovec here = {.iov_base = &byte, .iov_len = 1}, there = here;

        return process_vm_readv(victim->parent, &here, 1, &there, 1, 0) >= 0 || errno == EFAULT;
}

static bool runs_another_program(const struct victim *victim)
{
        (void)victim;
        return execl("/bin/true", "true", NULL) == 0;
}

enum { SANITIZERS_DO_IT = 1, NOT_WHERE_IT_WORKS = 2, LANDLOCK_SEES_IT = 4 };

static const struct way {
        const char *name;
        bool (*leads_out)(const struct victim *victim);
        int flags;
} ways[] = {
#define WAY(function, way_flags)                                                                                                   \
        {                                                                                                                          \
#function, function, way_flags                                                                                     \
        }
        WAY(reads_a_file, LANDLOCK_SEES_IT),
        WAY(reads_a_file_by_an_older_call, LANDLOCK_SEES_IT),
        WAY(lists_a_folder, LANDLOCK_SEES_IT),
        WAY(looks_at_a_path, 0),
        WAY(opens_a_file_for_writing, LANDLOCK_SEES_IT),
        WAY(creates_a_file, LANDLOCK_SEES_IT),
        WAY(creates_memory_that_others_can_open, 0),
        WAY(links_a_file, LANDLOCK_SEES_IT),
        WAY(cuts_a_path, LANDLOCK_SEES_IT),
        WAY(writes_to_an_open_file, 0),
        WAY(writes_at_a_place_in_an_open_file, 0),
        WAY(writes_parts_to_an_open_file, 0),
        WAY(cuts_an_open_file, 0),
        WAY(extends_an_open_file, 0),
        WAY(changes_a_mode, 0),
        WAY(changes_a_mode_by_path, 0),
        WAY(changes_a_mode_by_the_newest_call, 0),
        WAY(changes_an_owner, 0),
        WAY(sets_an_attribute, 0),
        WAY(sets_times, 0),
        WAY(locks_a_file, 0),
        WAY(controls_a_device, 0),
        WAY(maps_code, 0),
        WAY(opens_a_socket, 0),
        WAY(opens_a_network_socket, 0),
        WAY(sends_on_an_open_socket, 0),
        WAY(passes_a_descriptor_on, 0),
        WAY(receives_from_an_open_socket, 0),
        WAY(signals_its_parent, LANDLOCK_SEES_IT),
        WAY(signals_a_thread_of_its_parent, LANDLOCK_SEES_IT),
        WAY(moves_its_parent, 0),
        WAY(moves_its_parent_blindly, 0),
        WAY(schedules_its_parent, 0),
        WAY(slows_the_disk_for_its_parent, 0),
        WAY(is_nice_for_its_parent, 0),
        WAY(limits_its_parent, 0),
        WAY(outlives_its_parent, 0),
        WAY(lets_itself_be_traced, 0),
        WAY(sets_its_limits, 0),
        WAY(makes_a_process, 0),
        WAY(makes_a_thread, SANITIZERS_DO_IT),
        WAY(traces_its_parent, NOT_WHERE_IT_WORKS | LANDLOCK_SEES_IT),
        WAY(reads_its_parents_memory, NOT_WHERE_IT_WORKS | LANDLOCK_SEES_IT),
        WAY(runs_another_program, NOT_WHERE_IT_WORKS),
#undef WAY
};

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

/* uretprobe and uprobe, which no filter sees: the kernel kills who calls them from elsewhere than its own trampolines. */
static bool is_the_kernels_own(int call)
{
#ifdef __x86_64__
        return call == 335 || call == 336;
#else
        (void)call;
        return false;
#endif
}

static bool is_let_through(int call)
{
        errno = 0;
        return syscall(call, -1, -1, -1, -1, -1, -1) != -1 || (errno != ENOSYS && errno != EPERM);
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
        struct sl_sandbox_limits limits = {.memory_bytes = 1ull << 30,
                .seconds = 10,
                .parent = getppid(),
                .plan_fd = SL_CHILD_PLAN_FD,
                .report_fd = SL_CHILD_REPORT_FD};
        struct sl_error error = {""};

        return sl_sandbox_enter(&limits, ret_only, &error) < 0 ? report("%s", error.text) : 0;
}

/* The filter alone holds, where the kernel has no Landlock. */
static int enter(void)
{
        const char *only = NULL;
        int r = enter_some(&only);

        return r == 0 && only && strcmp(only, "the filter of system calls, but not Landlock") ? report("only %s", only) : r;
}

static bool is_refused(int code)
{
        return code == ENOSYS || code == EPERM || code == EACCES;
}

static int try_ways(const struct victim *victim)
{
        int r = enter();

        for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]) && r == 0; i++) {
                if (SL_SANITIZED && (ways[i].flags & SANITIZERS_DO_IT))
                        continue;
                errno = 0;
                if (ways[i].leads_out(victim) || !is_refused(errno))
                        r = report("%s, error %d", ways[i].name, errno);
        }
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

static int try_ways_without_a_filter(const struct victim *victim)
{
        const char *only = NULL;
        int r;

        deny(SCMP_SYS(seccomp));
        r = enter_some(&only);
        if (r == 0 && (!only || strcmp(only, "Landlock, but not the filter of system calls")))
                r = report("only %s", only ? only : "all of it");
        if (r == 0)
                r = look_at_privileges();
        for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]) && r == 0; i++) {
                errno = 0;
                if ((ways[i].flags & LANDLOCK_SEES_IT) && (ways[i].leads_out(victim) || !is_refused(errno)))
                        r = report("%s, error %d", ways[i].name, errno);
        }
        return r ? r : ESCAPE_HELD;
}

static int try_ways_where_they_work(const struct victim *victim)
{
        for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
                if (!(ways[i].flags & NOT_WHERE_IT_WORKS) && !ways[i].leads_out(victim))
                        return report("%s does not lead out, error %d", ways[i].name, errno);
        }
        return ESCAPE_HELD;
}

/* No argument is a good one, so that a call that is let through does no harm. */
static int try_calls(void)
{
        int r = enter();

        for (int call = 0; call < CALLS_TRIED && r == 0; call++) {
                if (!is_allowed(call) && !is_the_kernels_own(call) && is_let_through(call))
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
        char control[CMSG_SPACE(sizeof(int))] = {0};
        struct sl_child_answer answer = {0};
        struct iovec part = {.iov_base = &answer, .iov_len = sizeof(answer)};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};

        *ret_fd = -1;
        if (write(SL_CHILD_EXTERNAL_FD, location, length) != (ssize_t)length ||
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
                NAME("./data"),
                NAME("data/"),
                NAME("//data"),
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
                if (write(SL_CHILD_EXTERNAL_FD, "data", 4) != 4)
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

static int open_victim(const char *path, struct victim *victim)
{
        *victim = (struct victim){.path = path, .fd = open(path, O_RDWR), .parent = getppid()};
        return victim->fd < 0 || socketpair(AF_UNIX, SOCK_DGRAM, 0, victim->sockets) < 0 ? report("no victim: %s", strerror(errno))
                                                                                         : 0;
}

int escape_main(const char *what)
{
        const char *path = strchr(what, ':');
        struct victim victim;

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
