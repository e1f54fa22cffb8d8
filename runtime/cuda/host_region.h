/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the host that a GPU copies from and to, a client's arena or a staging: registered with the driver, so that copies go
 * straight there. What cannot be registered is read by the driver through memory of its own, and written through a worker's pinned
 * memory. One thread, with the device's context.
 */
#pragma once

#include "cuda/driver/driver.h"

#include <stdbool.h>

struct sl_host_region {
        void *base;
        uint64_t bytes;
        bool reached; /* the device reaches it */
};

/* Whole pages; @writable: else the device only reads. It stays mapped until it is forgotten. */
void sl_host_region_init(
        struct sl_host_region *region, const struct sl_cuda_driver *driver, void *base, uint64_t bytes, bool writable);

/* Nothing copies there any more. Zeros are fine. */
void sl_host_region_deinit(struct sl_host_region *region, const struct sl_cuda_driver *driver);
