/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operators that have several ways here: oneDNN's, and own loops by algorithm. Pure; any thread.
 */
#pragma once

#include "cpu/base/operator.h"

/* The own loop that takes the node, computed by @algorithm (not AUTO, not DIRECT); NULL. */
const struct sl_cpu_loop *sl_algorithm_loop(const struct sl_node_desc *node, uint32_t algorithm);

/* The same, by the form of the packed weights; NULL when the form is not one of an own loop that takes the node. */
const struct sl_cpu_loop *sl_algorithm_of_form(const struct sl_node_desc *node, uint32_t index, const struct sl_packed *packed);

/* Is @packed the form that the loop gives input @index of the node? */
bool sl_algorithm_form_fits(
        const struct sl_cpu_loop *loop, const struct sl_node_desc *node, uint32_t index, const struct sl_packed *packed);

/* As sl_planner.algorithms; @onednn: can oneDNN run it? */
uint32_t sl_algorithm_list(const struct sl_node_desc *node, const struct sl_core_figures *core, bool onednn,
        uint32_t ret_algorithms[SL_ALGORITHM_COUNT], double ret_seconds[SL_ALGORITHM_COUNT]);

/* Has the operator own loops to choose from? */
bool sl_algorithm_is_chosen(uint32_t op);

/* Does one of them take the node, and is no approximation? */
bool sl_algorithm_takes_exactly(const struct sl_node_desc *node);

/* Does one of them keep the weights of the node in the halves that it asks for (base/narrow.h)? */
bool sl_algorithm_narrows(const struct sl_node_desc *node);
