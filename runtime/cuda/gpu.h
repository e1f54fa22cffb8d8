/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A GPU that models are served on: its device, and the book of its memory. All that takes memory there goes through the book, and
 * what would pass the bound, or what the device has left, is refused before it is tried. One thread, with the device's context.
 */
#pragma once

#include "cuda/session_device.h"
#include "gpu_memory.h"

struct sl_gpu {
        const struct sl_cuda_device *device;
        struct sl_gpu_memory memory;
        struct sl_device common; /* what sessions are opened on that are nobody's stream */
};

/* @limit: of the memory that may be used; 0: what is free now. Return: 0; what sl_cuda_errno() says. */
int sl_gpu_init(struct sl_gpu *gpu, const struct sl_cuda_device *device, uint64_t limit, struct sl_error *error);

/* Into the book, for what others allocate. Return: as sl_gpu_memory_take(). */
int sl_gpu_promise(struct sl_gpu *gpu, enum sl_gpu_use use, uint64_t bytes, const char *owner, struct sl_error *error);

/* With its memory, at least one byte. Return: as above; what sl_cuda_errno() says. */
int sl_gpu_allocate(struct sl_gpu *gpu, enum sl_gpu_use use, uint64_t bytes, const char *owner, CUdeviceptr *ret_address,
        struct sl_error *error);

/* Nothing in flight uses it. 0 is fine. */
void sl_gpu_release(struct sl_gpu *gpu, enum sl_gpu_use use, uint64_t bytes, CUdeviceptr address);
