/* SPDX-License-Identifier: Apache-2.0 */
/* The own kernels, compiled for the host: what a driver without a GPU launches (fake_cuda_options: kernels, n_kernels). */
#pragma once

#include "cuda/own/own.h"
#include "fake_driver.h"

/* By enum sl_own_kernel. */
extern const struct fake_cuda_kernel host_kernels[SL_OWN_KERNEL_COUNT];

/* Runs a plan at once; addresses are those of this process. */
void host_run_plan(const struct sl_own_plan *plan, const struct sl_own_binding *binding);
