/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protobuf's text format, read without a schema: a tree of named fields, in the order of the file. A list [a, b] becomes one field
 * for each of its elements, as if the name had been written so many times. Strings come without quotes and escapes.
 *
 * Sources: "Text Format Language Specification", protobuf.dev.
 *
 * Threads: one at a time. The tree belongs to the file, which is freed at once.
 */
#pragma once

#include <stdint.h>

#define PBTXT_BYTES_MAX (1u << 20)
#define PBTXT_DEPTH_MAX 16u

struct sl_error;

struct pbtxt_field {
        const char *name;
        const char *value; /* NULL: a message, whose fields are `first` and those after it */
        uint32_t line;
        struct pbtxt_field *first, *next;
};

struct pbtxt;

/* Return: 0; -errno of reading; -E2BIG; -EINVAL with file and line; -ENOMEM. */
int pbtxt_read(const char *path, struct pbtxt **ret_file, struct sl_error *error);
struct pbtxt *pbtxt_free(struct pbtxt *file); /* NULL is fine. Return: NULL */

const struct pbtxt_field *pbtxt_first(const struct pbtxt *file);

/* The first field of that name from @fields on; NULL: none. For the next one: of found->next. */
const struct pbtxt_field *pbtxt_find(const struct pbtxt_field *fields, const char *name);
