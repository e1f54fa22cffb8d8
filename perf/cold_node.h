/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node of the `cpu` backend whose weights come from memory at each launch: they are packed as the compiler would, lie in a buffer
 * many times as large as the caches, and each launch reads the next place of it. With a team it is cut as the compiler would cut
 * it. One thread, the team's owner.
 */
#pragma once

#include "node.h"

#include <stddef.h>
#include <stdint.h>

#define SL_COLD_MEMBERS_MAX 2 /* of a team */

struct sl_cold_node;
struct sl_error;
struct sl_target;
struct sl_team;

/* Memory of zeros that is only read, in the kind of pages that a plan file in memory has. It must outlive what walks over it. */
struct sl_cold_memory {
        const char *bytes;
        size_t n_bytes;
};

/* Return: 0; -ENOMEM. */
int sl_cold_memory_init(struct sl_cold_memory *memory, size_t n_bytes);
void sl_cold_memory_deinit(struct sl_cold_memory *memory);

/*
 * @target: what it is planned for; it must outlive the node.
 * @node: inputs 1 and, of a recurrence, 2 are the weights; outputs are filled in. Launches are whole, or with @team in parts.
 * Return: 0; -ENOTSUP; -ENOMEM; -E2BIG the weights are larger than @memory.
 */
int sl_cold_node_new(const struct sl_node_desc *node, const struct sl_target *target, const struct sl_cold_memory *memory,
        struct sl_cold_node **ret_node, struct sl_error *error);
struct sl_cold_node *sl_cold_node_free(struct sl_cold_node *node);

/* Bytes of weights that a launch reads, those that each step of a recurrence reads again included. */
double sl_cold_node_bytes(const struct sl_cold_node *node);

/* Return: 0, or what the kernel says. */
int sl_cold_node_launch(struct sl_cold_node *node, struct sl_team *team);
