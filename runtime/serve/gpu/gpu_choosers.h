/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who chooses among the candidates of plans (kernels/cuda/chooser.h): one for all workers of a plan on a let, so that what one has
 * found out the others know. Each takes what is known from the file that its worker brings, and gives what it has found out as a
 * file. One thread, with the device's context.
 */
#pragma once

#include "cuda/chooser.h"
#include "gpu.h"
#include "gpu_tuning.h"

struct sl_plan;

#define SL_GPU_CHOOSERS_MAX 128

struct sl_gpu_choosers {
        struct sl_gpu *gpu;
        void (*breathe)(void *context); /* while something is timed: who else has work does a little of it; NULL: nobody */
        void *context;
        CUdeviceptr lent; /* for what is timed at the moment; 0: nothing is */
        uint64_t lent_bytes;
        struct {
                uint32_t n_holders; /* 0: the row is free */
                struct sl_cuda_chooser *chooser;
        } rows[SL_GPU_CHOOSERS_MAX];
};

#define SL_GPU_NO_CHOOSER UINT32_MAX

struct sl_gpu_chooser_wish {
        const struct sl_plan *plan;
        uint32_t percent;
        struct sl_gpu_tuning tuning;
        int fd; /* what is known; -1: nothing. The caller's */
};

/*
 * One more holder. *ret_row: SL_GPU_NO_CHOOSER where nobody chooses: nothing is to be timed, there are no libraries to choose from,
 * or no memory for it. @ret_ignored: why the file was of no use; "" else.
 */
void sl_gpu_choosers_take(
        struct sl_gpu_choosers *choosers, const struct sl_gpu_chooser_wish *wish, uint32_t *ret_row, struct sl_error *ret_ignored);
void sl_gpu_choosers_give_back(struct sl_gpu_choosers *choosers, uint32_t row);

/* NULL of no row. */
struct sl_cuda_chooser *sl_gpu_choosers_chooser(const struct sl_gpu_choosers *choosers, uint32_t row);

/*
 * A worker has its kernels: gives back what was lent, and what is new as a sealed memory file. Return: the descriptor, the
 * caller's; -1: nothing is new, or it cannot be told.
 */
int sl_gpu_choosers_news(struct sl_gpu_choosers *choosers, uint32_t row);
