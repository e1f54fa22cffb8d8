/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of float32. */
#pragma once

#include "cpu/base/operator.h"

extern const struct sl_cpu_loop sl_cpu_grouped;        /* Conv with few channels a group, one above all */
extern const struct sl_cpu_loop sl_cpu_laned_conv;     /* starling.LanedConv, 2, 4, 8 lanes or sixteens of them */
extern const struct sl_cpu_loop sl_cpu_laned_winograd; /* the same of 3x3, F(2x2, 3x3) */
extern const struct sl_cpu_loop sl_cpu_first_conv;     /* Conv of few channels, from NCHW to NHWC */
extern const struct sl_cpu_loop sl_cpu_im2col_gemm;    /* Conv, groups of 8 channels and more */
extern const struct sl_cpu_loop sl_cpu_mbconv;         /* starling.MBConv, the inverted bottleneck */
extern const struct sl_cpu_loop sl_cpu_winograd_2;     /* Conv, F(2x2, 3x3) */
extern const struct sl_cpu_loop sl_cpu_winograd_4;     /* Conv, F(4x4, 3x3), wider windows and lines */
extern const struct sl_cpu_loop sl_cpu_byte_depthwise; /* starling.QuantizedConv of single channels, with VNNI */
extern const struct sl_cpu_loop sl_cpu_conv_transpose;
extern const struct sl_cpu_loop sl_cpu_deform_conv;

/* Is one pass over an inverted bottleneck, whose shapes are those of one sample, faster than its convolutions one by one? */
bool sl_cpu_mbconv_gains(const struct sl_node_desc *node);
