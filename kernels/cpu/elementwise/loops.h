/* SPDX-License-Identifier: Apache-2.0 */
/* Each element by itself. */
#pragma once

#include "cpu/base/operator.h"

extern const struct sl_cpu_loop sl_cpu_binary;   /* broadcasting arithmetic, comparisons, logic */
extern const struct sl_cpu_loop sl_cpu_variadic; /* Sum, Mean, Min, Max of many inputs */
extern const struct sl_cpu_loop sl_cpu_unary;    /* functions of one element */
extern const struct sl_cpu_loop sl_cpu_cast;
extern const struct sl_cpu_loop sl_cpu_predicate; /* IsNaN, IsInf */
extern const struct sl_cpu_loop sl_cpu_where;
extern const struct sl_cpu_loop sl_cpu_quantize; /* one scale for the tensor */
extern const struct sl_cpu_loop sl_cpu_dequantize;
extern const struct sl_cpu_loop sl_cpu_dynamic_quantize;
extern const struct sl_cpu_loop sl_cpu_quantized_add;
