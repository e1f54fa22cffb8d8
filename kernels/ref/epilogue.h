/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a fusion pass put behind Conv, Gemm or MatMul: + residual, then the activation, in double before the one rounding.
 */
#pragma once

#include "node.h"

/* The activation of @value. Pure; any thread. */
double sl_ref_activate(const struct sl_epilogue *epilogue, double value);
