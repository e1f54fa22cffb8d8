/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Valid nodes of the operators that chance alone hardly ever meets: the tests at random start from them. A new operator of that
 * kind is a row here.
 */
#pragma once

#include "op.h"

/* One of the examples of @op, whichever @which leads to; false when it has none. */
bool example_node(uint32_t op, uint32_t which, struct sl_node_desc *ret_node);
