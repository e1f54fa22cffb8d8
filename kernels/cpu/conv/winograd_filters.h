/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filters of a convolution, transformed for the products of winograd.h. Sums are in double, and rounded to float32 once. Pure; any
 * thread.
 */
#pragma once

#include "cpu/conv/winograd.h"
#include "tensor.h"

/*
 * @plain: float32 or bfloat16 as @weights says, at any address; @to: w->weights * sl_gemm_packed_floats() of channels and filters.
 * Of @w the sides are read.
 */
void sl_winograd_repack(const struct sl_winograd *w, const struct sl_tensor *weights, const char *plain, float *to);

/* The way back along one axis: a tap is the sum of the transformed weights times these, of least squares. */
void sl_winograd_filter_inverse(const struct sl_winograd_side *side, float ret_taps[SL_WINOGRAD_TAPS_MAX][SL_WINOGRAD_SIDE_MAX]);
