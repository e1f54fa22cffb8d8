/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of a name that is a task, or a variant of tasks: why each variant is loaded or not, and which queries choose it just now. From
 * the page of tasks, so the runtime has to answer. One thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct starling_client;

/* Of the variant @name: a paragraph for each task that has it. Return: whether any has. */
bool variant_why_print_model(const struct starling_client *client, const char *name);
json_t *variant_why_model_json(const struct starling_client *client, const char *name);

/* Of the task @name: a paragraph for each of its variants. Return: whether there is such a task; else nothing is printed, and NULL.
 */
bool variant_why_print_task(const struct starling_client *client, const char *name);
json_t *variant_why_task_json(const struct starling_client *client, const char *name);
