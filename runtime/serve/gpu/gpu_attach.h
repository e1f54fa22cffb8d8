/* SPDX-License-Identifier: Apache-2.0 */
/* A worker that comes to the process of a GPU: its descriptors, and what it is told first. One thread. */
#pragma once

#include "worker_link.h"

struct sl_gpu_attach {
        bool asks;                  /* it is no worker: whether the GPU can be used, by a link that has nothing but a socket */
        struct sl_worker_link link; /* begun; it is to be ended */
        int plan_fd, base_fd;       /* the caller's; -1: there is no base */
};

/* Without waiting for a worker. Return: 1 one has come; 0 none has; -EPIPE the runtime is gone. */
int sl_gpu_attach_receive(struct sl_gpu_attach *ret_attach);

/* The runtime no longer wants it. */
bool sl_gpu_attach_is_gone(const struct sl_gpu_attach *attach);

/* Waits until one comes, or the runtime is gone. */
void sl_gpu_attach_wait(void);
