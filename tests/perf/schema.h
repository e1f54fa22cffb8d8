/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As much of JSON Schema as perf/results.schema.json uses: type, enum, required, properties, additionalProperties, items, and $ref
 * to its own $defs.
 */
#pragma once

#include <stddef.h>

struct json_t;

/* What is wrong with @value, and where; "" when nothing is. Return: @ret_text. */
const char *schema_check(const struct json_t *schema, const struct json_t *value, char *ret_text, size_t bytes);
