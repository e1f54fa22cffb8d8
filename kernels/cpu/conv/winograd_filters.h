/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filters of a convolution, transformed for the products of winograd.h. Sums are in double, and rounded to float32 once. Pure; any
 * thread.
 */
#pragma once

#include "tensor.h"

struct sl_winograd;

/*
 * @plain: float32 or bfloat16 as @weights says, at any address; @to: w->weights * sl_gemm_packed_floats() of channels and filters.
 * Of @w the sides are read.
 */
void sl_winograd_repack(const struct sl_winograd *w, const struct sl_tensor *weights, const char *plain, float *to);
