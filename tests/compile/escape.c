#include "escape.h"

#include "child_args.h"
#include "sandbox.h"
#include "sandbox_additions.h"

#include <errno.h>
#include <fcntl.h>
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

enum { SANITIZERS_DO_IT = 1, NOT_WHERE_IT_WORKS = 2 };

static const struct way {
        const char *name;
        bool (*leads_out)(const struct victim *victim);
        int flags;
} ways[] = {
#define WAY(function, way_flags)                                                                                                   \
        {                                                                                                                          \
#function, function, way_flags                                                                                     \
        }
        WAY(reads_a_file, 0),
        WAY(reads_a_file_by_an_older_call, 0),
        WAY(lists_a_folder, 0),
        WAY(looks_at_a_path, 0),
        WAY(opens_a_file_for_writing, 0),
        WAY(creates_a_file, 0),
        WAY(creates_memory_that_others_can_open, 0),
        WAY(links_a_file, 0),
        WAY(cuts_a_path, 0),
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
        WAY(signals_its_parent, 0),
        WAY(signals_a_thread_of_its_parent, 0),
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
        WAY(traces_its_parent, NOT_WHERE_IT_WORKS),
        WAY(reads_its_parents_memory, NOT_WHERE_IT_WORKS),
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

static int enter(void)
{
        struct sl_sandbox_limits limits = {.memory_bytes = 1ull << 30,
                .seconds = 10,
                .parent = getppid(),
                .plan_fd = SL_CHILD_PLAN_FD,
                .report_fd = SL_CHILD_REPORT_FD};
        struct sl_error error = {""};
        const char *only;

        if (sl_sandbox_enter(&limits, &only, &error) < 0)
                return report("%s", error.text);
        return only ? report("only %s", only) : 0;
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
        if (path)
                return try_ways_where_they_work(&victim);
        if (!strcmp(what, "calls"))
                return try_calls();
        if (!strcmp(what, "foreign-calls"))
                return try_foreign_calls();
        return tell_limits();
}
