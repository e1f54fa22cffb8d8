/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A backend over the fake driver, in the place of the CPU's or of another name (FAKE_BACKEND_NAME): its memory is that of the fake
 * device, its kernels are those of `ref`, which the device launches when it likes. Link it, and the table of backends is this
 * file's.
 */
#pragma once

#include "backend.h"
#include "cuda/session_device.h"

#include <stdint.h>

extern const struct sl_backend fake_backend;

/* Before the first plan is used. Sessions without a device of their own are opened on this one. */
void fake_backend_use(const struct sl_cuda_device *device);

/* Sessions and kernels that were not given back. */
uint32_t fake_backend_held(void);
