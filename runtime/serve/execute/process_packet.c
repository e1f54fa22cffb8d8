/* SPDX-License-Identifier: Apache-2.0 */
#include "process_packet.h"

#include "base/cleanup.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* Room for one descriptor, aligned as the kernel wants it. */
union control {
        struct cmsghdr header;
        unsigned char bytes[CMSG_SPACE(sizeof(int))];
};

int sl_process_packet_send(int socket_fd, const void *packet, size_t bytes, int fd)
{
        union control control = {0};
        struct iovec part = {.iov_base = (void *)packet, .iov_len = bytes};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
        ssize_t n;

        if (fd >= 0) {
                message.msg_control = control.bytes;
                message.msg_controllen = sizeof(control.bytes);
                control.header =
                        (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
                memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
        }
        do
                n = sendmsg(socket_fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        while (n < 0 && errno == EINTR);
        return n < 0 ? -errno : 0;
}

int sl_process_packet_receive(int socket_fd, void *ret_packet, size_t bytes, int *ret_fd)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        union control control = {0};
        struct iovec part = {.iov_base = ret_packet, .iov_len = bytes};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
        ssize_t n;

        if (ret_fd) { /* without room for them the kernel hands over none */
                message.msg_control = control.bytes;
                message.msg_controllen = CMSG_LEN(sizeof(int));
        }

        do
                n = recvmsg(socket_fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header))
                if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
                        memcpy(&fd, CMSG_DATA(header), sizeof(fd));
        if (ret_fd)
                *ret_fd = sl_take_fd(&fd);
        return (int)n;
}
