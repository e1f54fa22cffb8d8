/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One GPU, opened: its primary context is this thread's current one. A device belongs to the thread that opened it, and to one
 * process, which ends when the device is lost.
 */
#pragma once

#include "cuda/driver/driver.h"
#include "gpu_figures.h"

/* The oldest that the module has code for. */
#define SL_CUDA_CAPABILITY_MAJOR 8

struct sl_cuda_device {
        const struct sl_cuda_driver *driver;
        CUdevice number;
        CUcontext context;
        char name[96];
        int major, minor; /* compute capability */
        int n_processors; /* multiprocessors (SMs) */
        int block_shared_bytes;
        int registers_read_only; /* 1: memory of the host that is mapped read-only can be registered with it */
        uint64_t memory_bytes;
};

/*
 * Device @index of those that the driver shows. May take a second. Return: 0; -ENODEV there is none, or not so many;
 * -EPROTONOSUPPORT it is too old; -EBUSY somebody else has it for himself; -ENOMEM; -EPERM; -EIO. The text names the device, what
 * was found and what is needed.
 */
int sl_cuda_device_open(
        const struct sl_cuda_driver *driver, uint32_t index, struct sl_cuda_device *ret_device, struct sl_error *error);

/* How many there are; 0: none, or the driver does not start. */
uint32_t sl_cuda_device_count(const struct sl_cuda_driver *driver);

/* What it is, as cuDNN plans for it. Return: 0; -ENODATA the driver does not say all of it, or says what cannot be. */
int sl_cuda_device_figures(const struct sl_cuda_device *device, struct sl_cuda_figures *ret_figures);

/* Everything on it has been freed. */
void sl_cuda_device_close(struct sl_cuda_device *device);
