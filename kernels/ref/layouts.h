/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In which layout a node runs whose shapes are known only while its model does. Nothing is planned ahead: images become
 * CHANNELS_LAST at the first convolution, and stay so until a node reads them that wants them PLAIN. Plain values; any thread.
 */
#pragma once

#include "node.h"

/* Are its bytes the same in both layouts? */
bool sl_layouts_agree(const struct sl_tensor *tensor);

/* Should the node, with its inputs as they lie and its outputs inferred, run CHANNELS_LAST? */
bool sl_layouts_wants_last(const struct sl_node_desc *node);

/*
 * Makes of such a node the one that its kernel is asked for: inputs have the layout in which they should lie (and elementwise ones
 * the rank of the output), outputs theirs. False: its tensors cannot all lie so, and some may have been changed.
 */
bool sl_layouts_set_last(struct sl_node_desc *node);
