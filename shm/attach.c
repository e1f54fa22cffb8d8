/* SPDX-License-Identifier: Apache-2.0 */
#include "attach.h"
#include "base/clock.h"

#include <errno.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* Newer than the headers of the oldest supported distribution. */
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

/* Kernels hand over at most 253 fds in one packet; one more than is allowed is enough to see that there are too many. */
#define CONTROL_BYTES CMSG_SPACE((SL_MESSAGE_FDS_MAX + 1) * sizeof(int))

union control {
        char bytes[CONTROL_BYTES];
        struct cmsghdr aligned;
};

struct fd_list {
        int fds[SL_MESSAGE_FDS_MAX + 1];
        uint32_t n;
};

static const char *directory_from(const char *variable)
{
        const char *value = getenv(variable);

        return value && value[0] == '/' ? value : NULL;
}

#define SYSTEM_DIRECTORY "/run/starling"

int sl_socket_path(const char *name, char *ret_path, size_t path_bytes)
{
        struct sockaddr_un address;
        const char *directory = directory_from("STARLING_SOCKET_DIR");
        const char *suffix = "";

        if (!name[0] || strchr(name, '/'))
                return -EINVAL;
        if (!directory) {
                directory = directory_from("XDG_RUNTIME_DIR");
                suffix = directory ? "/starling" : "";
        }
        if (!directory)
                directory = SYSTEM_DIRECTORY;

        int n = snprintf(address.sun_path, sizeof(address.sun_path), "%s%s/%s.sock", directory, suffix, name);

        if (n < 0 || (size_t)n >= sizeof(address.sun_path) || (size_t)n >= path_bytes)
                return -ENAMETOOLONG;
        memcpy(ret_path, address.sun_path, (size_t)n + 1);
        return 0;
}

int sl_socket_find(const char *name, char *ret_path, size_t path_bytes)
{
        char system[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
        int r = sl_socket_path(name, ret_path, path_bytes);

        if (r < 0 || directory_from("STARLING_SOCKET_DIR") || access(ret_path, F_OK) == 0)
                return r;
        int n = snprintf(system, sizeof(system), SYSTEM_DIRECTORY "/%s.sock", name);
        if (n >= 0 && (size_t)n < sizeof(system) && (size_t)n < path_bytes && access(system, F_OK) == 0)
                memcpy(ret_path, system, (size_t)n + 1);
        return 0;
}

static int socket_result(int error)
{
        if (error == ECONNRESET || error == ENOTCONN)
                return -EPIPE;
        return error == EWOULDBLOCK ? -EAGAIN : -error;
}

/* What is sent of it. */
static size_t packet_bytes(const struct sl_message *message)
{
        return SL_MESSAGE_BYTES + (message->model[0] ? strnlen(message->model, SL_MODEL_NAME_BYTES - 1) + 1 : 0);
}

/* Makes a message of the @n bytes that have come. False: they are none. */
static bool complete(struct sl_message *message, size_t n)
{
        if (n < SL_MESSAGE_BYTES || n > sizeof(*message) || message->magic != SL_WIRE_MAGIC)
                return false;
        memset((char *)message + n, 0, sizeof(*message) - n);
        message->text[sizeof(message->text) - 1] = '\0';
        return packet_bytes(message) == n && message->model[SL_MODEL_NAME_BYTES - 1] == '\0';
}

int sl_message_send(int socket, const struct sl_message *message, const int *fds, uint32_t n_fds)
{
        struct iovec part = {.iov_base = (void *)message, .iov_len = packet_bytes(message)};
        struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
        union control control = {0};
        ssize_t n;

        if (n_fds > SL_MESSAGE_FDS_MAX)
                return -EINVAL;
        if (n_fds > 0) {
                header.msg_control = control.bytes;
                header.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
                struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
                rights->cmsg_level = SOL_SOCKET;
                rights->cmsg_type = SCM_RIGHTS;
                rights->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
                memcpy(CMSG_DATA(rights), fds, n_fds * sizeof(int));
        }
        do
                n = sendmsg(socket, &header, MSG_NOSIGNAL);
        while (n < 0 && errno == EINTR);
        return n < 0 ? socket_result(errno) : 0;
}

/* Collects the fds of every SCM_RIGHTS part; what does not fit the list is closed and still counted. */
static void collect_fds(struct msghdr *header, struct fd_list *list)
{
        for (struct cmsghdr *part = CMSG_FIRSTHDR(header); part; part = CMSG_NXTHDR(header, part)) {
                if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
                        continue;
                size_t n = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
                for (size_t i = 0; i < n; i++) {
                        int fd;

                        memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(fd));
                        if (list->n < SL_MESSAGE_FDS_MAX + 1)
                                list->fds[list->n++] = fd;
                        else
                                close(fd);
                }
        }
}

static int refuse(struct fd_list *list, int result)
{
        for (uint32_t i = 0; i < list->n; i++)
                close(list->fds[i]);
        return result;
}

static uint64_t receive_limit_ns(int socket)
{
        struct timeval limit = {0};
        socklen_t bytes = sizeof(limit);

        if (getsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, &bytes) < 0)
                return 0;
        return (uint64_t)limit.tv_sec * SL_NS_PER_SECOND + (uint64_t)limit.tv_usec * 1000;
}

/* A signal begins the socket's time limit anew: who gets them again and again waits for no more than one limit and one of them. */
static ssize_t receive_in_time(int socket, struct msghdr *header, int flags)
{
        uint64_t limit_ns, begun_ns;
        ssize_t n = recvmsg(socket, header, flags);

        if (n >= 0 || errno != EINTR)
                return n;
        limit_ns = receive_limit_ns(socket);
        begun_ns = sl_clock_ns();
        do
                n = recvmsg(socket, header, flags);
        while (n < 0 && errno == EINTR && (!limit_ns || sl_clock_ns() - begun_ns < limit_ns));
        if (n < 0 && errno == EINTR)
                errno = EAGAIN;
        return n;
}

int sl_message_receive(int socket, struct sl_message *ret_message, int *ret_fds, uint32_t fds_max, uint32_t *ret_n_fds, int flags)
{
        struct sl_message message;
        struct iovec part = {.iov_base = &message, .iov_len = sizeof(message)};
        union control control;
        struct msghdr header = {
                .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
        struct fd_list list = {.n = 0};
        ssize_t n;

        n = receive_in_time(socket, &header, flags | MSG_CMSG_CLOEXEC);
        if (n < 0)
                return socket_result(errno);
        collect_fds(&header, &list);
        if (n == 0) /* an empty packet looks the same as the end of file, and ends the connection just so */
                return refuse(&list, -EPIPE);
        if ((header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || !complete(&message, (size_t)n) || list.n > fds_max)
                return refuse(&list, -EBADMSG);
        *ret_message = message;
        if (list.n > 0)
                memcpy(ret_fds, list.fds, list.n * sizeof(int));
        *ret_n_fds = list.n;
        return 0;
}

static int first_fd(struct msghdr *header)
{
        struct cmsghdr *part = CMSG_FIRSTHDR(header);
        int fd = -1;

        if (part && part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS && part->cmsg_len >= CMSG_LEN(sizeof(fd)))
                memcpy(&fd, CMSG_DATA(part), sizeof(fd));
        return fd;
}

/* The fd is one more reference to what stays in the queue. Return: bytes of the next message, -E2BIG, -errno. */
static ssize_t peek(int socket, int *ret_fd)
{
        char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(alignof(struct cmsghdr))));
        char byte;
        struct iovec part = {.iov_base = &byte, .iov_len = 1};
        struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
        ssize_t n;

        if (ret_fd) {
                header.msg_control = control;
                header.msg_controllen = CMSG_LEN(sizeof(int)); /* the space after it would hold a second one */
        }
        do
                n = recvmsg(socket, &header, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return socket_result(errno);
        if (ret_fd)
                *ret_fd = first_fd(&header);
        return header.msg_flags & MSG_CTRUNC ? -E2BIG : n;
}

int sl_message_receive_guarded(int socket, struct sl_message *ret_message, int *ret_fd)
{
        struct sl_message message;
        ssize_t n;

        if (ret_fd)
                *ret_fd = -1;
        n = peek(socket, ret_fd);
        if (n < 0)
                return (int)n;
        do
                n = recv(socket, &message, sizeof(message), MSG_DONTWAIT | MSG_TRUNC);
        while (n < 0 && errno == EINTR);
        if (n <= 0)
                return n < 0 ? socket_result(errno) : -EPIPE;
        if (!complete(&message, (size_t)n))
                return -EBADMSG;
        *ret_message = message;
        return 0;
}

int sl_socket_set_passing(int socket, bool passing)
{
        int value = passing;

        return setsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &value, sizeof(value)) < 0 ? -errno : 0;
}

bool sl_socket_is_passing(int socket)
{
        int value = 1;
        socklen_t bytes = sizeof(value);

        return getsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &value, &bytes) < 0 || value;
}
