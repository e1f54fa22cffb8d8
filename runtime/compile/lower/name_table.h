/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of a plan, each once and terminated: steps of all batch sizes have the same. Of nodes they may have any length. Zeros
 * are an empty one. One thread.
 */
#pragma once

#include <stdint.h>

struct sl_name_table {
        char *bytes; /* of the section NAMES; the first text is "" */
        uint64_t used, room;
        uint32_t *index; /* where the names begin, by their hashes; 0: none */
        uint64_t n, index_room;
};

/* Where the name begins. Return: 0; -ENOMEM; -EOVERFLOW all of them are too long for an offset of 32 bits. */
int sl_name_table_add(struct sl_name_table *table, const char *name, uint32_t *ret_at);

void sl_name_table_deinit(struct sl_name_table *table);
