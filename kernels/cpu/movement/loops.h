/* SPDX-License-Identifier: Apache-2.0 */
/* Elements that move, and are at most interpolated. */
#pragma once

#include "cpu/base/operator.h"

extern const struct sl_cpu_loop sl_cpu_copy; /* whatever only moves elements */
extern const struct sl_cpu_loop sl_cpu_pad;  /* but with constants, which is sl_cpu_copy */
extern const struct sl_cpu_loop sl_cpu_concat;
extern const struct sl_cpu_loop sl_cpu_shuffle; /* starling.ChannelShuffle */
extern const struct sl_cpu_loop sl_cpu_gather;
extern const struct sl_cpu_loop sl_cpu_narrow_gather; /* of a table in halves */
extern const struct sl_cpu_loop sl_cpu_gather_elements;
extern const struct sl_cpu_loop sl_cpu_gather_nd;
extern const struct sl_cpu_loop sl_cpu_scatter_elements;
extern const struct sl_cpu_loop sl_cpu_scatter_nd;
extern const struct sl_cpu_loop sl_cpu_one_hot;
extern const struct sl_cpu_loop sl_cpu_trilu;
extern const struct sl_cpu_loop sl_cpu_resize;
extern const struct sl_cpu_loop sl_cpu_tensor_scatter;
extern const struct sl_cpu_loop sl_cpu_grid_sample;
extern const struct sl_cpu_loop sl_cpu_roi_align;
