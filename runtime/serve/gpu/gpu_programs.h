/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plans that are on the GPU, beside its lets and its accumulator: workers of one plan share it with its weights, derived plans
 * those of their base. One thread.
 */
#pragma once

#include "gpu_lets.h"
#include "gpu_program.h"

#define SL_GPU_PROGRAMS_MAX 128

struct sl_gpu_choosers;

struct sl_gpu_programs {
        struct sl_gpu *gpu;
        struct sl_gpu_lets lets;
        bool (*others)(void *context); /* whose turn it is while one waits: they do a little. Return: false, the device is lost */
        void *context;
        struct sl_gpu_choosers *choosers;       /* the caller's; NULL: nobody chooses among candidates */
        const char *lacks;                      /* layers of its sandbox that this host has not; NULL: it has all */
        struct sl_gpu_accumulator *accumulator; /* of the members of ensembles; NULL: there is none. Its process's */
        struct {
                uint32_t n_holders; /* workers, and rows of plans that are derived from it; 0: the row is free */
                uint32_t base;      /* the row of its base; SL_GPU_NO_ROW: it has none */
                struct sl_plan *plan;
                struct sl_gpu_program *program;
        } plans[SL_GPU_PROGRAMS_MAX];
};

#define SL_GPU_NO_ROW UINT32_MAX

/* Return: 0; what sl_cuda_errno() says. */
int sl_gpu_programs_init(struct sl_gpu_programs *programs, struct sl_gpu *gpu, struct sl_error *error);

/*
 * A worker of the plan in a file, whose base has another, or is -1. The descriptors stay the caller's. Return: 0, with its row;
 * -ENOMEM, ... with the line.
 */
int sl_gpu_programs_take(struct sl_gpu_programs *programs, int plan_fd, int base_fd, uint32_t *ret_row, struct sl_error *error);

/* Its worker is freed. SL_GPU_NO_ROW is fine. */
void sl_gpu_programs_give_back(struct sl_gpu_programs *programs, uint32_t row);

struct sl_gpu_program *sl_gpu_programs_program(const struct sl_gpu_programs *programs, uint32_t row);
