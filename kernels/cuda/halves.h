/* SPDX-License-Identifier: Apache-2.0 */
/* The two halves of the CUDA backend (kernels/planner.h, runner.h). Immutable. */
#pragma once

#include "planner.h"
#include "runner.h"

extern const struct sl_planner sl_cuda_planner;
extern const struct sl_runner sl_cuda_runner;
