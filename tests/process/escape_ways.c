/* SPDX-License-Identifier: Apache-2.0 */
#include "escape_ways.h"

#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
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

static bool reads_a_file(const struct escape_victim *victim)
{
        return open(victim->path, O_RDONLY) >= 0;
}

static bool reads_a_file_by_an_older_call(const struct escape_victim *victim)
{
        return syscall(SYS_openat, AT_FDCWD, victim->path, O_RDONLY) >= 0;
}

static bool lists_a_folder(const struct escape_victim *victim)
{
        (void)victim;
        return open("/tmp", O_RDONLY | O_DIRECTORY) >= 0;
}

static bool looks_at_a_path(const struct escape_victim *victim)
{
        struct stat status;

        return stat(victim->path, &status) == 0;
}

static bool opens_a_file_for_writing(const struct escape_victim *victim)
{
        return open(victim->path, O_WRONLY) >= 0;
}

static bool creates_a_file(const struct escape_victim *victim)
{
        char path[4096];

        snprintf(path, sizeof(path), "%.4000s-new", victim->path);
        return open(path, O_WRONLY | O_CREAT, 0600) >= 0 && unlink(path) == 0;
}

static bool creates_memory_that_others_can_open(const struct escape_victim *victim)
{
        (void)victim;
        return memfd_create("escape", 0) >= 0;
}

static bool links_a_file(const struct escape_victim *victim)
{
        char path[4096];

        snprintf(path, sizeof(path), "%.4000s-link", victim->path);
        return link(victim->path, path) == 0 && unlink(path) == 0;
}

static bool cuts_a_path(const struct escape_victim *victim)
{
        return truncate(victim->path, 6) == 0;
}

static bool writes_to_an_open_file(const struct escape_victim *victim)
{
        return write(victim->fd, "x", 1) == 1;
}

static bool writes_at_a_place_in_an_open_file(const struct escape_victim *victim)
{
        return pwrite(victim->fd, "x", 1, 0) == 1;
}

static bool writes_parts_to_an_open_file(const struct escape_victim *victim)
{
        struct iovec part = {.iov_base = (void *)"x", .iov_len = 1};

        return writev(victim->fd, &part, 1) == 1;
}

static bool cuts_an_open_file(const struct escape_victim *victim)
{
        return ftruncate(victim->fd, 6) == 0;
}

static bool extends_an_open_file(const struct escape_victim *victim)
{
        return fallocate(victim->fd, 0, 0, 6) == 0;
}

static bool changes_a_mode(const struct escape_victim *victim)
{
        return fchmod(victim->fd, 0600) == 0;
}

static bool changes_a_mode_by_path(const struct escape_victim *victim)
{
        return chmod(victim->path, 0600) == 0;
}

static bool changes_a_mode_by_the_newest_call(const struct escape_victim *victim)
{
        return syscall(452 /* fchmodat2 */, AT_FDCWD, victim->path, 0600, 0) == 0 || chmod(victim->path, 0600) == 0;
}

static bool changes_an_owner(const struct escape_victim *victim)
{
        return fchown(victim->fd, geteuid(), (gid_t)-1) == 0;
}

static bool sets_an_attribute(const struct escape_victim *victim)
{
        return fsetxattr(victim->fd, "user.escape", "x", 1, 0) == 0 || errno == ENOTSUP;
}

static bool sets_times(const struct escape_victim *victim)
{
        return futimens(victim->fd, NULL) == 0;
}

static bool locks_a_file(const struct escape_victim *victim)
{
        struct flock lock = {.l_type = F_WRLCK};

        return fcntl(victim->fd, F_SETLK, &lock) == 0;
}

static bool controls_a_device(const struct escape_victim *victim)
{
        int n;

        return ioctl(victim->fd, FIONREAD, &n) == 0;
}

static bool maps_code(const struct escape_victim *victim)
{
        return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, victim->fd, 0) != MAP_FAILED;
}

static bool opens_a_socket(const struct escape_victim *victim)
{
        (void)victim;
        return socket(AF_UNIX, SOCK_STREAM, 0) >= 0;
}

static bool opens_a_network_socket(const struct escape_victim *victim)
{
        (void)victim;
        return socket(AF_INET, SOCK_DGRAM, 0) >= 0;
}

static bool sends_on_an_open_socket(const struct escape_victim *victim)
{
        return write(victim->sockets[0], "x", 1) == 1;
}

static bool passes_a_descriptor_on(const struct escape_victim *victim)
{
        struct msghdr message = {0};

        return sendmsg(victim->sockets[0], &message, MSG_DONTWAIT) >= 0;
}

static bool receives_from_an_open_socket(const struct escape_victim *victim)
{
        struct msghdr message = {0};

        return recvmsg(victim->sockets[1], &message, MSG_DONTWAIT) >= 0 || errno == EAGAIN;
}

static bool signals_its_parent(const struct escape_victim *victim)
{
        return kill(victim->parent, 0) == 0;
}

static bool signals_a_thread_of_its_parent(const struct escape_victim *victim)
{
        return syscall(SYS_tgkill, victim->parent, victim->parent, 0) == 0;
}

static bool moves_its_parent(const struct escape_victim *victim)
{
        cpu_set_t set;

        return sched_getaffinity(victim->parent, sizeof(set), &set) == 0 &&
               sched_setaffinity(victim->parent, sizeof(set), &set) == 0;
}

/* The getter may be refused as well: the setter is tried by itself. */
static bool moves_its_parent_blindly(const struct escape_victim *victim)
{
        cpu_set_t set;

        memset(&set, 0xff, sizeof(set));
        return sched_setaffinity(victim->parent, sizeof(set), &set) == 0;
}

static bool schedules_its_parent(const struct escape_victim *victim)
{
        struct sched_param param = {0};

        return sched_setscheduler(victim->parent, SCHED_OTHER, &param) == 0;
}

static bool slows_the_disk_for_its_parent(const struct escape_victim *victim)
{
        return syscall(SYS_ioprio_set, 1, victim->parent, 0) == 0;
}

static bool is_nice_for_its_parent(const struct escape_victim *victim)
{
        return setpriority(PRIO_PROCESS, (id_t)victim->parent, 0) == 0;
}

static bool limits_its_parent(const struct escape_victim *victim)
{
        struct rlimit same;

        return prlimit(victim->parent, RLIMIT_CORE, NULL, &same) == 0;
}

static bool outlives_its_parent(const struct escape_victim *victim)
{
        (void)victim;
        return prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0) == 0;
}

static bool lets_itself_be_traced(const struct escape_victim *victim)
{
        (void)victim;
        return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0;
}

static bool sets_its_limits(const struct escape_victim *victim)
{
        struct rlimit limit = {.rlim_cur = 8, .rlim_max = 8};

        (void)victim;
        return setrlimit(RLIMIT_CORE, &limit) == 0;
}

static bool makes_a_process(const struct escape_victim *victim)
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

static bool makes_a_thread(const struct escape_victim *victim)
{
        pthread_t thread;
        int r = pthread_create(&thread, NULL, nothing, NULL);

        (void)victim;
        if (r == 0)
                pthread_join(thread, NULL);
        errno = r == EAGAIN ? EPERM : r;
        return r == 0;
}

static bool traces_its_parent(const struct escape_victim *victim)
{
        return ptrace(PTRACE_SEIZE, victim->parent, NULL, NULL) == 0;
}

static bool reads_its_parents_memory(const struct escape_victim *victim)
{
        char byte;
        struct iovec here = {.iov_base = &byte, .iov_len = 1}, there = here;

        return process_vm_readv(victim->parent, &here, 1, &there, 1, 0) >= 0 || errno == EFAULT;
}

static bool runs_another_program(const struct escape_victim *victim)
{
        (void)victim;
        return execl("/bin/true", "true", NULL) == 0;
}

const struct escape_way escape_ways[] = {
#define WAY(function, way_flags)                                                                                                   \
        {                                                                                                                          \
#function, function, way_flags                                                                                     \
        }
        WAY(reads_a_file, ESCAPE_LANDLOCK_SEES_IT),
        WAY(reads_a_file_by_an_older_call, ESCAPE_LANDLOCK_SEES_IT),
        WAY(lists_a_folder, ESCAPE_LANDLOCK_SEES_IT),
        WAY(looks_at_a_path, 0),
        WAY(opens_a_file_for_writing, ESCAPE_LANDLOCK_SEES_IT),
        WAY(creates_a_file, ESCAPE_LANDLOCK_SEES_IT),
        WAY(creates_memory_that_others_can_open, 0),
        WAY(links_a_file, ESCAPE_LANDLOCK_SEES_IT),
        WAY(cuts_a_path, ESCAPE_LANDLOCK_SEES_IT),
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
        WAY(signals_its_parent, ESCAPE_LANDLOCK_SEES_IT),
        WAY(signals_a_thread_of_its_parent, ESCAPE_LANDLOCK_SEES_IT),
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
        WAY(makes_a_thread, ESCAPE_SANITIZERS_DO_IT),
        WAY(traces_its_parent, ESCAPE_NOT_WHERE_IT_WORKS | ESCAPE_LANDLOCK_SEES_IT),
        WAY(reads_its_parents_memory, ESCAPE_NOT_WHERE_IT_WORKS | ESCAPE_LANDLOCK_SEES_IT),
        WAY(runs_another_program, ESCAPE_NOT_WHERE_IT_WORKS),
#undef WAY
};

const size_t escape_n_ways = sizeof(escape_ways) / sizeof(escape_ways[0]);

static bool is_refused(int code)
{
        return code == ENOSYS || code == EPERM || code == EACCES;
}

const struct escape_way *escape_try_ways(const struct escape_victim *victim, int wanted)
{
        for (size_t i = 0; i < escape_n_ways; i++) {
                const struct escape_way *way = &escape_ways[i];

                if ((way->flags & wanted) != wanted || (SL_SANITIZED && (way->flags & ESCAPE_SANITIZERS_DO_IT)))
                        continue;
                errno = 0;
                if (way->leads_out(victim) || !is_refused(errno))
                        return way;
        }
        return NULL;
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

bool escape_is_let_through(int call)
{
        if (is_the_kernels_own(call))
                return false;
        errno = 0;
        return syscall(call, -1, -1, -1, -1, -1, -1) != -1 || (errno != ENOSYS && errno != EPERM);
}
