/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of GPUs, one for each, which start when the first worker is to run there and end with the last: all of CUDA is in
 * them (serve/gpu/). An executor holds its process, hands it what a worker shares with the runtime (process_link.h), and is then
 * like one that has a process of its own. When such a process is gone, so are all workers in it; who comes next gets a new one.
 *
 * Threads: control's. sl_gpu_host_kill(): any, while it is held.
 */
#pragma once

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

struct sl_cuda_figures;
struct sl_error;
struct sl_gpu_host;

struct sl_gpu_hosts {
        uint64_t n_crews; /* that have had workers in them, ever */
        struct sl_gpu_host *first;
        struct sl_gpu_host *dying; /* that nobody holds, and that have not ended after they were killed: they wait in the driver */
};

/*
 * The process of GPU @gpu, held once more; one that has died, or was killed, is nobody's any more who comes now. @program: as of a
 * process executor. Return: 0; -errno with a text.
 */
int sl_gpu_host_hold(
        struct sl_gpu_hosts *hosts, uint32_t gpu, const char *program, struct sl_gpu_host **ret_host, struct sl_error *error);

/* NULL is fine. Returns NULL. The last one ends the process. */
struct sl_gpu_host *sl_gpu_host_drop(struct sl_gpu_host *host);

/* A worker more: its descriptors, in the order of SL_ATTACH_*. They stay the caller's. Return: 0; -errno with a text. */
int sl_gpu_host_attach(struct sl_gpu_host *host, const int *fds, uint32_t n_fds, struct sl_error *error);

/*
 * Asks whether the GPU can be used, before anything is made for it: the answer comes to *ret_fd, the caller's, which is readable
 * then. Return: 0; -errno with a text.
 */
int sl_gpu_host_ask(struct sl_gpu_host *host, int *ret_fd, struct sl_error *error);

/*
 * The answer. @ret_n_gpus: how many there are on this host, as far as that is known, else 0; in any case. @ret_figures: of this
 * one; zeros: they are not known. Return: 0 it can; -errno with the one line that says why not.
 */
int sl_gpu_host_answer(
        struct sl_gpu_host *host, int fd, uint32_t *ret_n_gpus, struct sl_cuda_figures *ret_figures, struct sl_error *error);

/* Soon afterwards its workers hear that it has ended. Nobody gets it any more. */
void sl_gpu_host_kill(struct sl_gpu_host *host);

/*
 * It has ended, or is killed now: how. Nobody gets it any more. One that waits in the driver and does not end at once is let be, as
 * killed: what is asked of control must not wait for it.
 */
void sl_gpu_host_end(struct sl_gpu_host *host, siginfo_t *ret_status);

/* Before it is killed for one of its workers: why all of them end. */
void sl_gpu_host_explain(struct sl_gpu_host *host, const char *why);

/* It ends, as one of its workers says that the device is lost: why all of them do. */
void sl_gpu_host_lose(struct sl_gpu_host *host, const char *why);

/* What was said first; "": nothing was. */
const char *sl_gpu_host_why_lost(const struct sl_gpu_host *host);

pid_t sl_gpu_host_pid(const struct sl_gpu_host *host);
