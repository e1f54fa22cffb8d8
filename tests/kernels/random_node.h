/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes at random, most of them nonsense: from the examples with something else in some places, and from nothing. The same seed gives
 * the same nodes.
 */
#pragma once

#include "op.h"

struct random {
        uint64_t state;
        int64_t large; /* a dimension that is likely; 0: all are small but for rare ones that no tensor can have */
};

/* A number below @limit. */
uint32_t random_next(struct random *random, uint32_t limit);

/* A node of @op, which is not inferred yet. */
struct sl_node_desc random_node(struct random *random, uint32_t op);

/* No tensor of the node is larger than @tensor_bytes. */
bool random_is_small(const struct sl_node_desc *node, uint64_t tensor_bytes);

/* Contents for a tensor, exactly as large as it is, so that a sanitizer sees one byte too far; the caller's to free. */
void *random_tensor(struct random *random, const struct sl_tensor *tensor);

/* Room for the most that an operator of SL_OP_COUNTS can count; not for a Range. */
void random_bound_outputs(struct sl_node_desc *node);
