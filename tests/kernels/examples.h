/*
 * Valid nodes of the operators that chance alone hardly ever meets: the tests at random start from them. A new operator of that
 * kind is a row here.
 */
#pragma once

#include "op.h"

/* The example of @op; false when it has none. */
bool example_node(uint32_t op, struct sl_node_desc *ret_node);
