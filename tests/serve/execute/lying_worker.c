/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker process whose answers cannot be believed: $STARLING_LIE says how. It computes nothing. As the process of a GPU it
 * refuses its first worker without a word.
 */
#include "base/error.h"
#include "process_packet.h"
#include "worker_link.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Each piece of the job, with all that can be counted. */
static void answer_with_figures(struct sl_worker_link *link, const struct sl_job *job)
{
        for (uint32_t i = 0; i < job->n_pieces; i++)
                sl_worker_link_answer(link, sl_worker_link_slot(link), job,
                        &(struct sl_prediction){.piece = i,
                                .batches = UINT32_MAX,
                                .started_ns = UINT64_MAX,
                                .busy_ns = UINT64_MAX,
                                .computing_ns = UINT64_MAX,
                                .job_samples = UINT32_MAX - i});
}

static void lie(struct sl_worker_link *link, const struct sl_job *job, const char *how)
{
        struct sl_prediction answer = {.piece = 0};

        if (!strcmp(how, "count")) {
                atomic_store_explicit(&link->reply->answered, 100000, memory_order_seq_cst);
                return;
        }
        if (!strcmp(how, "figures")) {
                answer_with_figures(link, job);
                return;
        }
        if (!strcmp(how, "piece"))
                answer.piece = job->n_pieces;
        if (!strcmp(how, "status"))
                answer.status = -EPERM;
        answer.combined = !strcmp(how, "combined");
        sl_worker_link_answer(link, !strcmp(how, "slot") ? SL_EXECUTOR_SLOTS_MAX : sl_worker_link_slot(link), job, &answer);
        if (!strcmp(how, "twice"))
                sl_worker_link_answer(link, sl_worker_link_slot(link), job, &answer);
}

static int refuse_silently(void)
{
        const struct sl_process_packet packet = {.kind = SL_PROCESS_READY, .status = -EIO};
        struct pollfd socket = {.fd = SL_PROCESS_GPU_FD, .events = POLLIN};
        struct sl_process_attach attach;
        int fds[SL_PACKET_FDS_MAX];
        uint32_t n = 0;

        if (poll(&socket, 1, -1) != 1 ||
                sl_process_packet_receive_all(SL_PROCESS_GPU_FD, &attach, sizeof(attach), fds, &n) != sizeof(attach) || n == 0 ||
                sl_process_packet_send(fds[SL_ATTACH_SOCKET], &packet, sizeof(packet), -1) < 0)
                return 1;
        pause();
        return 0;
}

int main(int argc, char **argv)
{
        const struct sl_worker_fds fds = {
                SL_PROCESS_SOCKET_FD, SL_PROCESS_ORDER_FD, SL_PROCESS_REPLY_FD, SL_PROCESS_VERDICTS_FD, SL_PROCESS_WAKE_FD};
        struct sl_job *job = calloc(1, sl_job_bytes(1, 1));
        struct sl_worker_link link = {0};
        struct sl_error error;
        const char *how = getenv("STARLING_LIE");

        if (argc > 1 && !strcmp(argv[1], SL_PROCESS_GPU_COMMAND))
                return refuse_silently();
        if (!job || !how || sl_worker_link_begin(&link, &fds) < 0 || sl_worker_link_map(&link, &error) < 0)
                return 1;
        while (!strcmp(how, "silence"))
                pause();
        job->n_inputs = job->n_outputs = 1;
        sl_worker_link_ready(&link, 0, 1, NULL);
        while (!link.ended) {
                if (!sl_worker_link_look(&link)) {
                        sl_worker_link_sleep(&link);
                        continue;
                }
                sl_worker_link_take(&link, job);
                lie(&link, job, how);
        }
        return 0;
}
