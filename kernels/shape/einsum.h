/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An Einsum: one reading of its equation for the shape rule and the kernel. EQUATION has an integer for each operand and one for
 * the output behind them; each packs the labels of the dimensions in order, one to a byte, the first in the lowest, 0 for none.
 * Labels are letters, and 1 to 8 for the dimensions of an ellipsis, which may broadcast. Pure; any thread.
 */
#pragma once

#include "node.h"

struct sl_error;

#define SL_EINSUM_LABELS_MAX 32

struct sl_einsum {
        uint32_t n_labels, n_out; /* the first n_out labels are those of the output, in its order; the others are summed over */
        uint8_t labels[SL_EINSUM_LABELS_MAX];
        int64_t sizes[SL_EINSUM_LABELS_MAX];
};

int sl_einsum_read(const struct sl_node_desc *node, struct sl_einsum *ret_einsum, struct sl_error *error);

/* Label of dimension @i of operand @k (the output for k = n_inputs); 0 behind the last. */
uint8_t sl_einsum_label(const struct sl_node_desc *node, uint32_t k, uint32_t i);
