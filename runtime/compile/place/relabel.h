/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes that move no bytes: views, and Transposes whose output, in the layout that it gets, has every element where the input has
 * it. Tokens [N, pixels, C] that become an image [N, C, H, W] are the same bytes as that image CHANNELS_LAST, and back.
 */
#pragma once

#include "tensor.h"

#include <stdbool.h>

struct sl_node;

/*
 * Has every element of @out, the output as it is to lie, the place that it has in @in, the input as it lies? Only of views
 * (SL_OP_VIEW) and Transposes, false of any other node. Pure.
 */
bool sl_relabels(const struct sl_node *node, const struct sl_tensor *in, const struct sl_tensor *out);
