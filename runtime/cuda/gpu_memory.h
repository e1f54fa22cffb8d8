/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a GPU's memory is promised, and to what. An allocation that would pass the bound is refused before the device is asked,
 * by one line that says what was wanted, what is free and the bound; everything that is there goes on (ensemble paper, section
 * II.B, whose deployment answers "out of memory" and keeps serving). Pure; one thread.
 */
#pragma once

#include <stdint.h>

struct sl_error;

enum sl_gpu_use {
        SL_GPU_WEIGHTS,      /* constants of plans, once for all workers */
        SL_GPU_WORKSPACES,   /* intermediates, one for each worker */
        SL_GPU_PORTS,        /* what graphs read and write, results that are on their way */
        SL_GPU_POOLS,        /* samples that have come */
        SL_GPU_ACCUMULATION, /* predictions that wait for those of other members */
        SL_GPU_USES,
};

struct sl_gpu_memory {
        char device[64]; /* for people: "gpu:0 (NVIDIA H100)" */
        uint64_t limit;
        uint64_t used[SL_GPU_USES];
};

uint64_t sl_gpu_memory_used(const struct sl_gpu_memory *memory);

/*
 * Promises @bytes to @owner, a model's name. @there: what the device says is free; UINT64_MAX: it was not asked. Return: 0; -ENOMEM
 * with the line, and nothing has changed.
 */
int sl_gpu_memory_take(struct sl_gpu_memory *memory, enum sl_gpu_use use, uint64_t bytes, uint64_t there, const char *owner,
        struct sl_error *error);

/* They were taken for this use. */
void sl_gpu_memory_give_back(struct sl_gpu_memory *memory, enum sl_gpu_use use, uint64_t bytes);
