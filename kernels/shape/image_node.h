/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions over a line as convolutions over an image, so that every kernel sees one kind only. Pure; any thread.
 */
#pragma once

#include "node.h"

/*
 * A convolution of rank 3 is one of rank 4 over an image of height 1, and one over an image of width 1 with a window of width 1 is
 * the same turned: in each layout the bytes are those that they were. Return: the node itself where there is nothing to do, else
 * @room, which holds it.
 */
const struct sl_node_desc *sl_image_node(const struct sl_node_desc *node, struct sl_node_desc *room);
