/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_attach.h"

#include "process_packet.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

static void close_all(const int *fds, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++)
                close(fds[i]);
}

int sl_gpu_attach_receive(struct sl_gpu_attach *ret_attach)
{
        struct sl_process_attach packet;
        int fds[SL_PACKET_FDS_MAX];
        uint32_t n;
        int r = sl_process_packet_receive_all(SL_PROCESS_GPU_FD, &packet, sizeof(packet), fds, &n);

        if (r == -EAGAIN)
                return 0;
        memset(ret_attach, 0, sizeof(*ret_attach));
        if (r == sizeof(packet) && n == 1) {
                ret_attach->asks = true;
                ret_attach->plan_fd = ret_attach->base_fd = ret_attach->link.choices_fd = -1;
                ret_attach->link.fds = (struct sl_worker_fds){fds[0], -1, -1, -1, -1};
                return 1;
        }
        if (r != sizeof(packet) || packet.n_fds != n || n < SL_ATTACH_BASE || n > SL_ATTACH_FDS_MAX) {
                close_all(fds, n);
                return r > 0 ? 0 : -EPIPE;
        }
        ret_attach->plan_fd = fds[SL_ATTACH_PLAN];
        ret_attach->base_fd = n > SL_ATTACH_BASE ? fds[SL_ATTACH_BASE] : -1;
        r = sl_worker_link_begin(&ret_attach->link, &(struct sl_worker_fds){fds[SL_ATTACH_SOCKET], fds[SL_ATTACH_ORDER],
                                                            fds[SL_ATTACH_REPLY], fds[SL_ATTACH_VERDICTS], fds[SL_ATTACH_WAKE]});
        if (r == 0)
                return 1;
        sl_worker_link_end(&ret_attach->link);
        close_all(&fds[SL_ATTACH_PLAN], n - SL_ATTACH_PLAN);
        return 0;
}

bool sl_gpu_attach_is_gone(const struct sl_gpu_attach *attach)
{
        struct pollfd socket = {.fd = attach->link.fds.socket};

        return poll(&socket, 1, 0) == 1;
}

void sl_gpu_attach_wait(void)
{
        struct pollfd socket = {.fd = SL_PROCESS_GPU_FD, .events = POLLIN};

        while (poll(&socket, 1, -1) < 0 && errno == EINTR)
                ;
}
