/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of float32. */
#pragma once

#include "cpu/base/operator.h"

extern const struct sl_cpu_loop sl_cpu_grouped;        /* Conv with few channels a group, one above all */
extern const struct sl_cpu_loop sl_cpu_planes;         /* Conv of few channels, from PLAIN to CHANNELS_LAST */
extern const struct sl_cpu_loop sl_cpu_window_product; /* Conv without groups */
extern const struct sl_cpu_loop sl_cpu_separable;      /* starling.SeparableConv */
extern const struct sl_cpu_loop sl_cpu_winograd_2;     /* Conv, F(2x2, 3x3) */
extern const struct sl_cpu_loop sl_cpu_winograd_4;     /* Conv, F(4x4, 3x3), wider windows and lines */
extern const struct sl_cpu_loop sl_cpu_conv_transpose;
