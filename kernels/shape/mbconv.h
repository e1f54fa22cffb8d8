/* SPDX-License-Identifier: Apache-2.0 */
/*
 * starling.MBConv, the inverted bottleneck: up to three convolutions in a row. A pointwise one expands the channels (or there is
 * none), a depthwise one follows, and a pointwise one projects them (or there is none). One reading for the shape rule and the
 * kernels. Pure; any thread.
 *
 * The window's attributes and GROUP are those of the depthwise one. ACTIVATIONS (with ACTIVATION_ALPHA and ACTIVATION_BETA, lists
 * of two; absent: none) are enum sl_activation behind the one that expands, and behind the depthwise one where one that projects
 * follows; the epilogue belongs to the last of them.
 *
 * Sources: M. Sandler, A. Howard, M. Zhu, A. Zhmoginov, L.-C. Chen, "MobileNetV2: Inverted Residuals and Linear Bottlenecks", CVPR
 * 2018, section 3.
 */
#pragma once

#include "node.h"

struct sl_error;

enum sl_mbconv_input {
        SL_MBCONV_IMAGE,
        SL_MBCONV_DEPTHWISE_WEIGHTS, /* biases, which may be absent, follow their weights */
        SL_MBCONV_DEPTHWISE_BIAS,
        SL_MBCONV_EXPAND_WEIGHTS,
        SL_MBCONV_EXPAND_BIAS,
        SL_MBCONV_PROJECT_WEIGHTS,
        SL_MBCONV_PROJECT_BIAS,
        SL_MBCONV_RESIDUAL,
        SL_MBCONV_INPUTS,
};

/* In the order in which they run. */
enum sl_mbconv_part { SL_MBCONV_EXPAND, SL_MBCONV_DEPTHWISE, SL_MBCONV_PROJECT, SL_MBCONV_PARTS };

/* The input that has the part's weights. */
enum sl_mbconv_input sl_mbconv_weights(enum sl_mbconv_part part);

bool sl_mbconv_has(const struct sl_node_desc *node, enum sl_mbconv_part part);

/* The last part that there is. */
enum sl_mbconv_part sl_mbconv_last(const struct sl_node_desc *node);

/*
 * The Conv that a part (which is there) is by itself, its output inferred from what the parts before it make; images lie as the
 * node's own input and output do. Inputs: image, weights, bias (or none), residual. -EINVAL, -EOVERFLOW: the parts do not fit.
 */
int sl_mbconv_conv(
        const struct sl_node_desc *node, enum sl_mbconv_part part, struct sl_node_desc *ret_conv, struct sl_error *error);
