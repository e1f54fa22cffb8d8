/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices. */
#pragma once

#include "cpu/base/operator.h"

extern const struct sl_cpu_loop sl_cpu_product;      /* MatMul and Gemm by a constant matrix */
extern const struct sl_cpu_loop sl_cpu_byte_product; /* starling.QuantizedMatMul, and QuantizedConv over images */
extern const struct sl_cpu_loop sl_cpu_dot_product;  /* the same with VNNI, by packed weights */
extern const struct sl_cpu_loop sl_cpu_nibble_product; /* starling.NibbleMatMul */
extern const struct sl_cpu_loop sl_cpu_attention;    /* starling.RowAttention */
