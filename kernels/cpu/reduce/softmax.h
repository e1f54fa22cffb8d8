/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Softmax and LogSoftmax as both their kernels see them: a tensor [outer, count, inner], over count. With inner 1 it is oneDNN's,
 * else a loop. Pure; any thread.
 */
#pragma once

#include "node.h"

struct sl_softmax {
        uint32_t logarithm;
        int64_t outer, count, inner;
};

/* False: not PLAIN tensors of float32, or an empty one. */
bool sl_softmax_read(const struct sl_node_desc *node, struct sl_softmax *ret_softmax);
