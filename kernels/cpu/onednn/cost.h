/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What oneDNN's kernel for a node should take, as base/cost.h says of own ones. Pure; any thread.
 */
#pragma once

#include "node.h"
#include "target.h"

/* Seconds. */
double sl_cost_onednn(const struct sl_core_figures *core, const struct sl_node_desc *node);
