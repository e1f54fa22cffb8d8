/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images of bfloat16 with an odd number of channels, each group with a channel of zeros more. oneDNN's convolutions multiply two
 * channels at a time, and the second of the last two is of the next pixel, or group: 0 * NaN would be NaN. Pure; any thread.
 */
#pragma once

#include "node.h"

struct sl_evening {
        int64_t images, pixels, depth; /* pixels of each image and group; 0: there is nothing to do */
        bool from_planes;
};

/* Of input 0 of a convolution. False: it has an even number of channels, is depthwise, or has groups and no channels last. */
bool sl_evening_plan(const struct sl_node_desc *node, struct sl_evening *ret_evening);

void sl_evening_run(const struct sl_evening *evening, const void *from, void *to);

/* Its weights likewise, for free(); NULL: no memory. */
void *sl_evened_weights(const struct sl_tensor *weights, const void *plain);
