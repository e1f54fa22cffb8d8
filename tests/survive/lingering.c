/* SPDX-License-Identifier: Apache-2.0 */
#include "lingering.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define LINGER_SECONDS 300

static int listen_on_loopback(struct sockaddr_in *ret_address)
{
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), small = 1;
        socklen_t bytes = sizeof(*ret_address);

        *ret_address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
        if (fd < 0 || bind(fd, (struct sockaddr *)ret_address, bytes) < 0 || listen(fd, 128) < 0 ||
                getsockname(fd, (struct sockaddr *)ret_address, &bytes) < 0)
                return -errno;
        return fd;
}

static int make_one(int listener, const struct sockaddr_in *address, int *ret_fd)
{
        static const char bytes[1 << 16];
        const struct linger linger = {.l_onoff = 1, .l_linger = LINGER_SECONDS};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), small = 1;

        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
        if (fd < 0 || (connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 && errno != EINPROGRESS) ||
                accept4(listener, NULL, NULL, SOCK_CLOEXEC) < 0)
                return -errno;
        while (send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) > 0)
                ;
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
        *ret_fd = fd;
        return 0;
}

int lingering_make(uint32_t n, int *ret_fds)
{
        struct sockaddr_in address;
        int listener = listen_on_loopback(&address), r = listener < 0 ? listener : 0;

        for (uint32_t i = 0; i < n && r == 0; i++)
                r = make_one(listener, &address, &ret_fds[i]);
        if (listener >= 0)
                close(listener);
        return r;
}

static void ignore_alarm(int signal)
{
        (void)signal;
}

void lingering_close(const int *fds, uint32_t n)
{
        const struct itimerval each_ms = {.it_interval.tv_usec = 1000, .it_value.tv_usec = 1000}, never = {0};

        sigaction(SIGALRM, &(struct sigaction){.sa_handler = ignore_alarm}, NULL);
        setitimer(ITIMER_REAL, &each_ms, NULL);
        for (uint32_t i = 0; i < n; i++)
                close(fds[i]);
        setitimer(ITIMER_REAL, &never, NULL);
}

static int make_lingering(void)
{
        int fd, r = lingering_make(1, &fd);

        return r < 0 ? r : fd;
}

static int make_pipe(void)
{
        int fds[2];

        return pipe2(fds, O_CLOEXEC) < 0 ? -1 : fds[1];
}

static int make_eventfd(void)
{
        return eventfd(1, EFD_CLOEXEC);
}

static int make_timerfd(void)
{
        return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
}

static int make_epoll(void)
{
        return epoll_create1(EPOLL_CLOEXEC);
}

static int make_ring(void)
{
        struct io_uring_params params = {0};

        return (int)syscall(SYS_io_uring_setup, 8, &params);
}

static int make_file(void)
{
        return open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

static int make_unsealed(void)
{
        return memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

int lingering_other(uint32_t kind, const char **ret_name)
{
        static const struct kind {
                const char *name;
                int (*make)(void);
        } kinds[] = {{"a lingering socket", make_lingering}, {"a pipe", make_pipe}, {"an eventfd", make_eventfd},
                {"a timer", make_timerfd}, {"an epoll", make_epoll}, {"an io_uring", make_ring}, {"a file of tmpfs", make_file},
                {"an unsealed memfd", make_unsealed}};

        if (kind >= sizeof(kinds) / sizeof(kinds[0]))
                return -ENOENT;
        *ret_name = kinds[kind].name;
        int fd = kinds[kind].make();
        return fd == -1 ? -errno : fd;
}

int lingering_send(int socket, const void *bytes, uint64_t n_bytes, const int *fds, uint32_t n_fds)
{
        union {
                char bytes[CMSG_SPACE(LINGERING_MAX * sizeof(int))];
                struct cmsghdr aligned;
        } control = {0};
        struct iovec part = {.iov_base = (void *)bytes, .iov_len = n_bytes};
        struct msghdr header = {
                .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = CMSG_SPACE(n_fds * sizeof(int))};
        struct cmsghdr *rights = CMSG_FIRSTHDR(&header);

        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        memcpy(CMSG_DATA(rights), fds, n_fds * sizeof(int));
        return sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}
