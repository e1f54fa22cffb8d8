/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A YAML file read by a schema, whose every error says "FILE:LINE: key: what is wrong".
 *
 * libcyaml checks the structure (unknown and doubled keys, lists where lists belong) and fills a struct of strings. What a string
 * means is checked afterwards by value.h; a parallel parse with libyaml knows the line of each key for those messages.
 *
 * Threads: one at a time. No state outside the handle.
 */
#pragma once

#include <cyaml/cyaml.h>

struct sl_error;
struct sl_yaml_file;

#define SL_YAML_BYTES_MAX (1u << 20)

/*
 * @schema is a mapping with CYAML_FLAG_POINTER and outlives the handle. Return: 0; -ENOENT, -EACCES, ...; -EFBIG above
 * SL_YAML_BYTES_MAX; -EINVAL with file, line and key, also where it is nested deeper, or has more anchors, than any use needs.
 */
int sl_yaml_file_open(const char *path, const cyaml_schema_value_t *schema, struct sl_yaml_file **ret_file, struct sl_error *error);
struct sl_yaml_file *sl_yaml_file_free(struct sl_yaml_file *file);

/* The struct that the schema describes; NULL for an empty file. A list of texts is NULL where there is none, and not where it is
 * empty. Owned by the handle. */
const void *sl_yaml_file_data(const struct sl_yaml_file *file);

/*
 * Line of the key at a path like "limits.client.arena_bytes", "devices.3.memory" (an entry of a list, from 0);
 * of the deepest part that is there. From 1.
 */
unsigned sl_yaml_file_line(const struct sl_yaml_file *file, const char *key_path);

/* Fills @error with "FILE:LINE: KEY: text"; returns -EINVAL. */
int sl_yaml_file_error(const struct sl_yaml_file *file, struct sl_error *error, const char *key_path, const char *format, ...)
        __attribute__((format(printf, 4, 5)));
