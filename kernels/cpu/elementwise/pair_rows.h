/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One row of an operator on two elements: @n results side by side, and operands that step by 1, stay (0), or take any other step.
 * The result may lie exactly on the left operand, and else overlaps neither. What a row does with numbers that are none and with
 * divisors of 0 stands in kernels/README.md. Pure; any thread.
 */
#pragma once

#include "node.h"

#include <stdint.h>

typedef void sl_pair_row(int64_t n, void *result, const void *left, int64_t left_step, const void *right, int64_t right_step);

/* What the operator of @node does with two operands of type @dtype; of Sum and Mean what joins two of them. NULL: there is none. */
sl_pair_row *sl_pair_row_of(const struct sl_node_desc *node, uint32_t dtype);
