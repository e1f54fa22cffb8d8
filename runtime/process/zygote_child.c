/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child is made with clone() itself, because fork() has no word for the parent's parent. No handler of fork() runs, and none is
 * needed: there is one thread, and it holds no lock. It is made before its order comes, which the zygote itself never sees.
 */
#include "zygote_child.h"

#include "base/cleanup.h"
#include "zygote_order.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define IDLE_MS  10 /* before a child gets ready */
#define NICENESS 10 /* that of the sandbox */

/* An order with what came beside it. */
struct received {
        struct sl_zygote_order head;
        char arguments[SL_ZYGOTE_ARG_BYTES_MAX];
        char *argv[SL_ZYGOTE_ARGS_MAX + 1];
        int fds[SL_ZYGOTE_FDS_MAX];
        uint32_t n_fds;
};

static void take_fds(struct msghdr *message, struct received *order)
{
        for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
                if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
                        continue;
                order->n_fds = (uint32_t)((part->cmsg_len - CMSG_LEN(0)) / sizeof(int));
                memcpy(order->fds, CMSG_DATA(part), order->n_fds * sizeof(int));
        }
}

/* False: they are not as many as the head says. */
static bool split_arguments(struct received *order, size_t n_bytes)
{
        char *next = order->arguments, *end = order->arguments + n_bytes;

        if (!n_bytes || end[-1] || order->head.n_args > SL_ZYGOTE_ARGS_MAX)
                return false;
        for (uint32_t i = 0; i < order->head.n_args; i++, next += strlen(next) + 1) {
                if (next >= end)
                        return false;
                order->argv[i] = next;
        }
        order->argv[order->head.n_args] = NULL;
        return next == end;
}

/* False: the owner is gone, or says what makes no sense. */
static bool receive(struct received *order)
{
        _Alignas(struct cmsghdr) char control[CMSG_SPACE(SL_ZYGOTE_FDS_MAX * sizeof(int))];
        struct iovec parts[] = {{.iov_base = &order->head, .iov_len = sizeof(order->head)},
                {.iov_base = order->arguments, .iov_len = sizeof(order->arguments)}};
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2, .msg_control = control, .msg_controllen = sizeof(control)};
        ssize_t n;

        order->n_fds = 0;
        do
                n = recvmsg(SL_ZYGOTE_FD, &message, MSG_CMSG_CLOEXEC);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return false;
        take_fds(&message, order);
        return (size_t)n > sizeof(order->head) && order->n_fds == order->head.n_fds &&
               !(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) && split_arguments(order, (size_t)n - sizeof(order->head));
}

static bool say(const struct sl_zygote_answer *answer)
{
        return send(SL_ZYGOTE_FD, answer, sizeof(*answer), MSG_NOSIGNAL) == sizeof(*answer);
}

/* From SL_ZYGOTE_FD on, in place of the zygote's socket; copies above first, so that none overwrites another. */
static bool place_fds(const struct received *order)
{
        int lifted[SL_ZYGOTE_FDS_MAX];

        for (uint32_t i = 0; i < order->n_fds; i++) {
                lifted[i] = fcntl(order->fds[i], F_DUPFD_CLOEXEC, SL_ZYGOTE_FD + 2 * SL_ZYGOTE_FDS_MAX);
                if (lifted[i] < 0)
                        return false;
        }
        for (uint32_t i = 0; i < order->n_fds; i++)
                if (dup3(lifted[i], SL_ZYGOTE_FD + (int)i, O_CLOEXEC) < 0)
                        return false;
        return syscall(SYS_close_range, SL_ZYGOTE_FD + order->n_fds, ~0u, 0) == 0;
}

/* An order waits, or the owner is gone. */
static bool is_called(int limit_ms)
{
        struct pollfd owner = {.fd = SL_ZYGOTE_FD, .events = POLLIN};

        return poll(&owner, 1, limit_ms) != 0;
}

/* Until the child before has ended (@before_fd of it; -1: there was none), or an order waits. */
static void let_work(int before_fd)
{
        struct pollfd either[] = {{.fd = SL_ZYGOTE_FD, .events = POLLIN}, {.fd = before_fd, .events = POLLIN}};

        while (before_fd >= 0 && poll(either, 2, -1) < 0 && errno == EINTR)
                ;
}

/* As politely as children work, and not at once: where orders follow each other, processors have something better to do. */
static void get_ready(const struct sl_zygote_child *child, int before_fd)
{
        if (!child->get_ready)
                return;
        let_work(before_fd);
        if (is_called(IDLE_MS))
                return;
        (void)setpriority(PRIO_PROCESS, 0, NICENESS);
        while (!is_called(0) && child->get_ready(child->context))
                ;
}

/* To the owner's, or one of its own: who has an order is no longer ended with the zygote. */
static bool leave_group(int parent)
{
        return setpgid(0, getpgid(parent)) == 0 || setpgid(0, 0) == 0;
}

/* Its descriptors: the end of a pipe that says when it has its order, and what tells of the end of the child before. */
struct child_fds {
        int taken, before;
};

static _Noreturn void be_child(struct received *order, const struct child_fds *fds, int parent, const struct sl_zygote_child *child)
{
        if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
                _exit(EXIT_FAILURE);
        get_ready(child, fds->before);
        if (!receive(order) || write(fds->taken, "", 1) != 1 || !leave_group(parent) ||
                !say(&(struct sl_zygote_answer){.pid = getpid()}) || write(fds->taken, "", 1) != 1)
                _exit(EXIT_FAILURE);
        /* Which processors are wanted is a wish of the owner, who may have lost some of them meanwhile. */
        (void)sched_setaffinity(0, sizeof(order->head.cpus), &order->head.cpus);
        if (!place_fds(order))
                _exit(EXIT_FAILURE);
        if (child->be_ready)
                child->be_ready(child->context);
        exit(child->run((int)order->head.n_args, (char **)order->argv));
}

/* @ret_fd: tells of the child's end. */
static bool make_child(
        struct received *order, const struct child_fds *fds, int parent, const struct sl_zygote_child *child, int *ret_fd)
{
        int fd = -1;
        long pid = syscall(SYS_clone, CLONE_PARENT | CLONE_PIDFD | SIGCHLD, 0, &fd, 0, 0);

        if (pid == 0)
                be_child(order, fds, parent, child);
        *ret_fd = fd;
        return say(&(struct sl_zygote_answer){.code = pid < 0 ? errno : 0, .pid = pid < 0 ? 0 : (int32_t)pid}) && pid > 0;
}

static bool read_byte(int fd)
{
        ssize_t n;
        char byte;

        do
                n = read(fd, &byte, 1);
        while (n < 0 && errno == EINTR);
        return n == 1;
}

/* Until the child has answered its order, or was ended by its owner, who may do so at once. False: it ended without an order. */
static bool wait_for_order(int waiting_fd)
{
        bool has_order = read_byte(waiting_fd);

        if (has_order)
                (void)read_byte(waiting_fd);
        return has_order;
}

/* @before_fd: of the child before; then of this one. */
static bool serve_once(struct received *order, int parent, const struct sl_zygote_child *child, int *before_fd)
{
        int ends[2], child_fd;
        bool taken;

        if (pipe2(ends, O_CLOEXEC) < 0)
                return false;
        taken = make_child(order, &(struct child_fds){.taken = ends[1], .before = *before_fd}, parent, child, &child_fd);
        sl_cleanup_fd(before_fd);
        *before_fd = child_fd;
        close(ends[1]);
        taken = taken && wait_for_order(ends[0]);
        close(ends[0]);
        return taken;
}

int sl_zygote_serve(int parent, const struct sl_zygote_child *child)
{
        SL_CLEANUP(sl_cleanup_free) struct received *order = calloc(1, sizeof(*order));
        SL_CLEANUP(sl_cleanup_fd) int before_fd = -1;
        bool goes_on = order && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && getppid() == parent && setpgid(0, 0) == 0;

        while (goes_on)
                goes_on = serve_once(order, parent, child, &before_fd);
        return EXIT_SUCCESS;
}
