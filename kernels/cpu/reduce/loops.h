/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions over axes and windows, and what normalises by them. */
#pragma once

#include "cpu/base/operator.h"

extern const struct sl_cpu_loop sl_cpu_reduce;   /* of float32 along axes that lie side by side; else: */
extern const struct sl_cpu_loop sl_cpu_fold;     /* of any type, along any axes */
extern const struct sl_cpu_loop sl_cpu_global;   /* GlobalAveragePool, GlobalMaxPool */
extern const struct sl_cpu_loop sl_cpu_max_pool; /* GlobalMaxPool too, of other types than float32 */
extern const struct sl_cpu_loop sl_cpu_average;  /* AveragePool, of windows for which this holds: */
bool sl_cpu_averages_many(const struct sl_node_desc *node);
extern const struct sl_cpu_loop sl_cpu_softmax;   /* LogSoftmax, too */
extern const struct sl_cpu_loop sl_cpu_scale;     /* BatchNormalization, of a Concat too: per channel */
extern const struct sl_cpu_loop sl_cpu_normalise; /* LayerNormalization, InstanceNormalization, GroupNormalization: per row */
extern const struct sl_cpu_loop sl_cpu_response;  /* LRN of PLAIN */
extern const struct sl_cpu_loop sl_cpu_top_k;
extern const struct sl_cpu_loop sl_cpu_arg;     /* ArgMax, ArgMin */
extern const struct sl_cpu_loop sl_cpu_running; /* CumSum, CumProd */
extern const struct sl_cpu_loop sl_cpu_col2im;
extern const struct sl_cpu_loop sl_cpu_non_max_suppression;
