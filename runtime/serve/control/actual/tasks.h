/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks: names for a need, over models and ensembles that have names of their own. Nothing is loaded or unloaded for a task; what
 * its variants are follows from what the catalogue says of those names, and stands on the page of tasks (shm/task_page.h).
 *
 * All variants of a task have one signature: that of the first of its list that has inputs and outputs. One with another is left
 * out (SL_VARIANT_DIFFERS) until it fits, and the log says once how it differs (variant-differs).
 *
 * Control thread only.
 */
#pragma once

#include <stdbool.h>

struct sl_error;
struct sl_registry;
struct sl_tasks;

/* Return: 0, -ENOMEM. */
int sl_tasks_new(struct sl_registry *registry, struct sl_tasks **ret_tasks);

/* NULL is fine. Returns NULL. */
struct sl_tasks *sl_tasks_free(struct sl_tasks *tasks);

/* The repository has been read: its tasks are these from now on. What has no room is left out, and the log says so. */
void sl_tasks_follow(struct sl_tasks *tasks);

/* Writes the page where the catalogue, or what the repository lists, has changed. */
void sl_tasks_show(struct sl_tasks *tasks);

bool sl_tasks_has(const struct sl_tasks *tasks, const char *name);
