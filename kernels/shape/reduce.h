/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The axes over which a Reduce* runs: one reading of the attributes for shape rules and kernels. Pure; any thread.
 */
#pragma once

#include "node.h"

struct sl_error;

/* Bit i is set when dimension i of input 0 is reduced. AXES must not stand as an input any more. -EINVAL: a wrong axis. */
int sl_reduced_axes(const struct sl_node_desc *node, uint32_t *ret_mask, struct sl_error *error);
