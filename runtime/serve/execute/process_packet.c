/* SPDX-License-Identifier: Apache-2.0 */
#include "process_packet.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* Room for descriptors, aligned as the kernel wants it. */
union control {
        struct cmsghdr header;
        unsigned char bytes[CMSG_SPACE(SL_PACKET_FDS_MAX * sizeof(int))];
};

int sl_process_packet_send_all(int socket_fd, const void *packet, size_t bytes, const int *fds, uint32_t n_fds)
{
        union control control = {0};
        struct iovec part = {.iov_base = (void *)packet, .iov_len = bytes};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
        ssize_t n;

        if (n_fds) {
                message.msg_control = control.bytes;
                message.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
                control.header = (struct cmsghdr){
                        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(n_fds * sizeof(int))};
                memcpy(CMSG_DATA(&control.header), fds, n_fds * sizeof(int));
        }
        do
                n = sendmsg(socket_fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        while (n < 0 && errno == EINTR);
        return n < 0 ? -errno : 0;
}

int sl_process_packet_send(int socket_fd, const void *packet, size_t bytes, int fd)
{
        return sl_process_packet_send_all(socket_fd, packet, bytes, &fd, fd >= 0);
}

/* Without room for them the kernel hands over none. */
static int receive(int socket_fd, void *ret_packet, size_t bytes, int *fds, uint32_t fds_max, uint32_t *ret_n_fds)
{
        union control control = {0};
        struct iovec part = {.iov_base = ret_packet, .iov_len = bytes};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
        ssize_t n;

        if (fds_max) {
                message.msg_control = control.bytes;
                message.msg_controllen = CMSG_LEN(fds_max * sizeof(int));
        }
        do
                n = recvmsg(socket_fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        while (n < 0 && errno == EINTR);
        *ret_n_fds = 0;
        if (n < 0)
                return -errno;
        for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header))
                if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
                        *ret_n_fds = (uint32_t)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
                        memcpy(fds, CMSG_DATA(header), *ret_n_fds * sizeof(int));
                }
        return (int)n;
}

int sl_process_packet_receive(int socket_fd, void *ret_packet, size_t bytes, int *ret_fd)
{
        uint32_t n_fds;
        int fd = -1, r = receive(socket_fd, ret_packet, bytes, &fd, ret_fd ? 1 : 0, &n_fds);

        if (ret_fd)
                *ret_fd = fd;
        return r;
}

int sl_process_packet_receive_all(
        int socket_fd, void *ret_packet, size_t bytes, int ret_fds[SL_PACKET_FDS_MAX], uint32_t *ret_n_fds)
{
        return receive(socket_fd, ret_packet, bytes, ret_fds, SL_PACKET_FDS_MAX, ret_n_fds);
}
