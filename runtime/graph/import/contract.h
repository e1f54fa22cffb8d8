/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums of products over labelled dimensions as nodes that there are: ReduceSum of what one operand sums alone, MatMul of two
 * operands over what both sum, Mul where nothing is left to multiply over, Transpose where the orders differ. Three operands and
 * more are contracted pair by pair, the pair with the smallest product first.
 */
#pragma once

#include "import/canonical.h"
#include "import/term.h"

/* A label keeps its size to the end: what a Reshape makes of an open one is not known by the shape rules. */
struct sl_contracted {
        struct sl_term term;
        int64_t sizes[UINT8_MAX + 1]; /* of each label */
        uint32_t value;               /* of the graph */
};

struct sl_contracted sl_contracted_of(const struct sl_importer *im, const struct sl_term *term, uint32_t value);

/*
 * Emits the nodes, the last of which makes output 0 of @node in the order of @out. @operands are used up. No operand and not the
 * output has a label twice, and the output has none that no operand has.
 * Return: 1; 0: it has no such form (sizes of 0, sizes that only broadcasting or data could settle, more dimensions than a tensor
 * has), what was emitted by then is dead; or what emitting says.
 */
int sl_import_contract(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_contracted *operands, uint32_t n_operands,
        const struct sl_term *out);
