/* SPDX-License-Identifier: Apache-2.0 */
/* What a folder has, by name, as of one moment: read once, however many of its files want to know. Immutable; any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sl_folder_names {
        uint32_t n;
        char **names; /* sorted; without those that begin with a dot */
};

/* Return: 0; -ENOMEM; -errno the folder cannot be read. */
int sl_folder_names_read(const char *folder, struct sl_folder_names *ret_names);
void sl_folder_names_free(struct sl_folder_names *names);

/* The first that begins with these bytes; the others follow it. n: none does. */
uint32_t sl_folder_names_first(const struct sl_folder_names *names, const char *prefix, size_t bytes);
