/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which form each common node takes. An assignment is one form for each common node of a match. Private to this folder; one owner
 * thread.
 */
#pragma once

#include <stdint.h>

struct sl_prices;

/*
 * Algorithm 1 of Jeong et al., Accelerating Multi-Model Inference by Merging DNNs of Different Weights, 2020, section 3.2. A node
 * that cannot be in the form that it asks for takes another one, or stays apart. Time in proportion to nodes and edges. Return: 0,
 * -ENOMEM.
 */
int sl_assign_algorithm_1(const struct sl_prices *prices, uint32_t *ret_forms);

/*
 * The cheapest, by dynamic programming over the nodes in order; the best of that, of what Algorithm 1 says and of nothing merged.
 * Return: 0, -ENOMEM.
 */
int sl_assign_cheapest(struct sl_prices *prices, const uint32_t *algorithm_1, uint32_t *ret_forms);

/*
 * The same of those that copy at most copies_max, which @forms, the cheapest of all, does not: a copied byte gets a price,
 * and that is raised until they fit (a Lagrange multiplier, found by bisection: what is cheaper may lie between two prices).
 * Return: 0, -ENOMEM.
 */
int sl_assign_cheapest_within(struct sl_prices *prices, const uint32_t *algorithm_1, uint32_t *forms);

/* Without costs: those nodes stay apart that copy most, until the others are within copies_max. Pure. */
void sl_assign_keep_within(const struct sl_prices *prices, uint32_t *forms);

/* What an assignment costs, reorders included; infinite where some node cannot be in its form. Return: 0, -ENOMEM. */
int sl_assign_seconds(struct sl_prices *prices, const uint32_t *forms, double *ret_seconds);

/* What its nodes copy; 0 where nobody counts it. Pure. */
uint64_t sl_assign_copied_bytes(const struct sl_prices *prices, const uint32_t *forms);
