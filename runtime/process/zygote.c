/* SPDX-License-Identifier: Apache-2.0 */
#include "zygote.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "child_spawn.h"
#include "zygote_order.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWER_MS 500  /* an answer, or a fork, takes less than a millisecond, on a machine that has time; others wait meanwhile */
#define START_MS  5000 /* for who has nothing else to do */

struct sl_zygote {
        struct sl_zygote_options options;
        int watch_fd; /* an epoll, of pid_fd */
        pid_t pid;    /* 0: there is none */
        int pid_fd;   /* -1: there is none, or it cannot be watched */
        int fd;       /* -1: there is none */
        pid_t child;  /* that waits for an order; 0: there is none */
        bool warm;    /* it has made a child, and makes the next at once */
};

int sl_zygote_new(const struct sl_zygote_options *options, struct sl_zygote **ret_zygote)
{
        struct sl_zygote *zygote = calloc(1, sizeof(*zygote));

        if (!zygote)
                return -ENOMEM;
        *zygote = (struct sl_zygote){.options = *options, .watch_fd = epoll_create1(EPOLL_CLOEXEC), .pid_fd = -1, .fd = -1};
        if (zygote->watch_fd < 0) {
                int r = -errno;

                free(zygote);
                return r;
        }
        *ret_zygote = zygote;
        return 0;
}

static void end_one(pid_t pid)
{
        kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
}

/* With the child that waits, if nobody has heard of it: it is of the zygote's group until it has its order. */
static void end_group(pid_t zygote)
{
        kill(zygote, SIGKILL); /* which makes no child from here on */
        kill(-zygote, SIGKILL);
        end_one(zygote);
        while (waitpid(-zygote, NULL, 0) > 0 || errno == EINTR)
                ;
}

/* A child that was heard of may have left the group for an order that it has not answered. */
static void stop(struct sl_zygote *zygote)
{
        if (zygote->child)
                end_one(zygote->child);
        if (zygote->pid)
                end_group(zygote->pid);
        zygote->pid = zygote->child = 0;
        zygote->warm = false;
        sl_cleanup_fd(&zygote->fd);
        sl_cleanup_fd(&zygote->pid_fd);
}

struct sl_zygote *sl_zygote_free(struct sl_zygote *zygote)
{
        if (!zygote)
                return NULL;
        stop(zygote);
        close(zygote->watch_fd);
        free(zygote);
        return NULL;
}

int sl_zygote_fd(const struct sl_zygote *zygote)
{
        return zygote->watch_fd;
}

void sl_zygote_hear(struct sl_zygote *zygote)
{
        struct epoll_event event;

        if (epoll_wait(zygote->watch_fd, &event, 1, 0) == 1)
                stop(zygote);
}

void sl_zygote_renew(struct sl_zygote *zygote)
{
        if (zygote)
                stop(zygote);
}

pid_t sl_zygote_pid(const struct sl_zygote *zygote)
{
        return zygote->pid;
}

/* One that cannot be watched is buried when the next order finds it. */
static void watch(struct sl_zygote *zygote)
{
        struct epoll_event event = {.events = EPOLLIN};

        zygote->pid_fd = (int)syscall(SYS_pidfd_open, zygote->pid, 0);
        if (zygote->pid_fd >= 0)
                (void)epoll_ctl(zygote->watch_fd, EPOLL_CTL_ADD, zygote->pid_fd, &event);
}

static int start(struct sl_zygote *zygote)
{
        int ends[2], r;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
                return -errno;
        r = sl_spawn(&(struct sl_spawn_options){.program = zygote->options.program,
                             .argv = zygote->options.argv,
                             .environment = zygote->options.environment,
                             .fds = &ends[1],
                             .n_fds = 1},
                &zygote->pid);
        close(ends[1]);
        if (r < 0) {
                close(ends[0]);
                zygote->pid = 0;
                return r;
        }
        zygote->fd = ends[0];
        watch(zygote);
        return 0;
}

/* Whether a packet is there, or the other side gone. */
static bool wait_for_packet(int fd, int limit_ms)
{
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        uint64_t until = sl_clock_ns() + (uint64_t)limit_ms * SL_NS_PER_MS, now;
        int r;

        do {
                now = sl_clock_ns();
                r = poll(&poll_fd, 1, now < until ? (int)((until - now + SL_NS_PER_MS - 1) / SL_NS_PER_MS) : 0);
        } while (r < 0 && errno == EINTR);
        return r == 1;
}

/* True when a child waits. One that makes none is buried: it has ended, or somebody has stopped it. */
static bool has_child(struct sl_zygote *zygote, int limit_ms)
{
        struct sl_zygote_answer made = {.code = EIO};

        if (zygote->child || !wait_for_packet(zygote->fd, limit_ms)) {
                if (!zygote->child && zygote->warm)
                        stop(zygote);
                return zygote->child;
        }
        if (recv(zygote->fd, &made, sizeof(made), 0) != sizeof(made) || made.code) {
                stop(zygote);
                return false;
        }
        zygote->child = made.pid;
        zygote->warm = true;
        return true;
}

int sl_zygote_await(struct sl_zygote *zygote)
{
        if (!zygote->pid && start(zygote) < 0)
                return -EIO;
        return has_child(zygote, START_MS) ? 0 : -EIO;
}

/* Return: how many bytes; 0: they are more than an order has. */
static size_t join_arguments(char *const *argv, char *bytes, uint32_t *ret_n)
{
        size_t used = 0;

        for (*ret_n = 0; argv[*ret_n]; (*ret_n)++) {
                size_t n = strlen(argv[*ret_n]) + 1;

                if (*ret_n == SL_ZYGOTE_ARGS_MAX || n > SL_ZYGOTE_ARG_BYTES_MAX - used)
                        return 0;
                memcpy(bytes + used, argv[*ret_n], n);
                used += n;
        }
        return used;
}

static bool send_order(int fd, struct sl_zygote_order *order, char *arguments, size_t n_bytes, const int *fds)
{
        _Alignas(struct cmsghdr) char control[CMSG_SPACE(SL_ZYGOTE_FDS_MAX * sizeof(int))] = {0};
        struct iovec parts[] = {{.iov_base = order, .iov_len = sizeof(*order)}, {.iov_base = arguments, .iov_len = n_bytes}};
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
        size_t fd_bytes = order->n_fds * sizeof(*fds);

        if (order->n_fds) {
                message.msg_control = control;
                message.msg_controllen = CMSG_SPACE(fd_bytes);
                struct cmsghdr *part = CMSG_FIRSTHDR(&message);

                part->cmsg_level = SOL_SOCKET;
                part->cmsg_type = SCM_RIGHTS;
                part->cmsg_len = CMSG_LEN(fd_bytes);
                memcpy(CMSG_DATA(part), fds, fd_bytes);
        }
        return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)(sizeof(*order) + n_bytes);
}

static int receive_answer(int fd, struct sl_zygote_answer *ret_answer)
{
        if (!wait_for_packet(fd, ANSWER_MS))
                return -EIO;
        return recv(fd, ret_answer, sizeof(*ret_answer), MSG_DONTWAIT) == sizeof(*ret_answer) ? 0 : -EIO;
}

static int ask(
        struct sl_zygote *zygote, struct sl_zygote_order *order, char *arguments, size_t n_bytes, const int *fds, pid_t *ret_pid)
{
        struct sl_zygote_answer answer;

        /* What was not sent whole was not sent: a packet arrives as it is or not at all. */
        if (!send_order(zygote->fd, order, arguments, n_bytes, fds)) {
                stop(zygote);
                return -EAGAIN;
        }
        if (receive_answer(zygote->fd, &answer) < 0) {
                stop(zygote);
                return -EIO;
        }
        /* The child is the caller's now; whose answer this is nobody else knows. */
        if (answer.code || answer.pid != zygote->child) {
                stop(zygote);
                return -EIO;
        }
        *ret_pid = zygote->child;
        zygote->child = 0;
        return 0;
}

int sl_zygote_fork(struct sl_zygote *zygote, char *const *argv, const int *fds, uint32_t n_fds, pid_t *ret_pid)
{
        SL_CLEANUP(sl_cleanup_free) char *arguments = NULL;
        struct sl_zygote_order order = {.n_fds = n_fds};
        size_t n_bytes;

        if (!zygote->pid && start(zygote) < 0)
                return -EAGAIN;
        if (!has_child(zygote, zygote->warm ? ANSWER_MS : 0) || n_fds > SL_ZYGOTE_FDS_MAX ||
                sched_getaffinity(0, sizeof(order.cpus), &order.cpus) < 0)
                return -EAGAIN;
        arguments = malloc(SL_ZYGOTE_ARG_BYTES_MAX);
        n_bytes = arguments ? join_arguments(argv, arguments, &order.n_args) : 0;
        return n_bytes ? ask(zygote, &order, arguments, n_bytes, fds, ret_pid) : -EAGAIN;
}
