/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights that lie in float16 or bfloat16 and are widened where a kernel uses them: its arithmetic stays that of float32. A node asks
 * for it by its attribute WEIGHTS; a kernel without such a form leaves its weights as they are. Pure; any thread.
 */
#pragma once

#include "node.h"

#include <stdint.h>

/* What the node asks for: SL_DTYPE_F16 or SL_DTYPE_BF16; SL_DTYPE_NONE: its weights stay float32. */
uint32_t sl_narrow_wish(const struct sl_node_desc *node);

/*
 * The same of input @index, float32, whose form takes @elements with its padding: NONE as well where halves save nothing of what
 * the tensor takes as it is.
 */
uint32_t sl_narrow_dtype(const struct sl_node_desc *node, uint32_t index, int64_t elements);

/* To the nearest, ties to even. Return: 0; -ERANGE a finite number becomes infinite. */
int sl_narrow(uint32_t dtype, const float *from, int64_t n, uint16_t *to);
