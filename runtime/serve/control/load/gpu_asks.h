/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the GPUs that a model is to have workers on can be used, asked before anything is made for it: of their processes, all at
 * once, which are held meanwhile and until the load has ended.
 *
 *     named one by one    each of them has to be usable, or the load ends with the line that says why one is not
 *     gpu:*               gpu:0 says how many there are, so that without its word none is found; others that cannot be used are
 *                         left out, as long as one can
 *
 * The GPU of a process that has not answered in time cannot be used; the process ends with the last who holds it. It answers
 * between other things: while a worker starts there, an answer takes as long as that.
 *
 * Control thread only; nothing waits.
 */
#pragma once

#include "base/error.h"
#include "gpu_figures.h"
#include "worker_set.h"

struct sl_gpu_host;
struct sl_gpu_hosts;

struct sl_gpu_asks {
        struct sl_gpu_hosts *hosts;
        const char *program;
        bool finds;        /* gpu:* */
        uint64_t limit_ns; /* that an answer may take; 0: any time */
        uint64_t due_ns;   /* when that is over, by sl_clock_ns(); UINT64_MAX: never */
        bool was_due;      /* it has been, and was looked at once more: this process may have stood still, too */
        uint32_t n, next;  /* that are asked; whose answer is due */
        struct sl_gpu_ask {
                uint32_t gpu;
                struct sl_gpu_host *host;
                int answer_fd;                  /* -1: it has answered */
                struct sl_cuda_figures figures; /* what it is; zeros: that is not known */
                struct sl_error fault;          /* why it cannot be used; "": it can */
        } list[SL_GPUS_MAX];
};

/* @program: as of a process executor; @limit_ns: that an answer may take, 0: any time. Return: 0; -errno with text. */
int sl_gpu_asks_begin(struct sl_gpu_asks *asks, struct sl_gpu_hosts *hosts, const char *program, const struct sl_worker_set *set,
        uint64_t limit_ns, struct sl_error *error);

/* Readable when the next answer is there; -1: none is awaited. */
int sl_gpu_asks_fd(const struct sl_gpu_asks *asks);

/* When it has to be there, by sl_clock_ns(); UINT64_MAX: none is awaited, or it may take any time. */
uint64_t sl_gpu_asks_due_ns(const struct sl_gpu_asks *asks);

/* It is there, or due. Return: 1: it was the last; 0: go on; -errno with text: the model cannot have its GPUs. */
int sl_gpu_asks_advance(struct sl_gpu_asks *asks, struct sl_error *error);

/* Those that can be used. Return: how many. */
uint32_t sl_gpu_asks_usable(const struct sl_gpu_asks *asks, struct sl_gpu_let ret_lets[SL_GPUS_MAX]);

/* What the first of them is, for which all of the model's plans are made; zeros: that is not known. */
struct sl_cuda_figures sl_gpu_asks_figures(const struct sl_gpu_asks *asks);

/* Holds no process any more, and asks none. One that was never begun, all zeros, is fine. */
void sl_gpu_asks_end(struct sl_gpu_asks *asks);
