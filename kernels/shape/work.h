/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The formulas of SL_OPS: how many elementary steps a node is (op.h). Called by sl_op_work() alone.
 */
#pragma once

#include "op.h"

#define X(id, name, least, most, outputs, rule, work, traits) uint64_t sl_work_##work(const struct sl_node_desc *node);
SL_OPS(X)
#undef X
