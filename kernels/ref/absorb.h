/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters of a node become its attributes once their values are known. Pure; any thread.
 */
#pragma once

#include "op.h"

/*
 * Turns every parameter of the node whose data[i] is there (not NULL; n_inputs of them) into its attribute; that input is absent
 * afterwards. Return: 0; -EINVAL, -E2BIG a wrong type, rank or length; the text says of which parameter.
 */
int sl_op_absorb(struct sl_node_desc *node, const void *const *data, struct sl_error *error);
