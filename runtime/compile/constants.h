/*
 * The constants that go into a plan file, each content once: batch sizes, and nodes, that want the same bytes in the same form get
 * the same index. Data is borrowed until the file is written. One owner thread.
 */
#pragma once

#include "format.h"

#include <stdint.h>

struct sl_packed;

struct sl_constants {
        uint32_t n, room;
        struct sl_plan_constant *entries; /* offsets as in the file */
        const void **data;                /* of each entry */
        uint64_t *hashes;                 /* of each entry: content and form */
        uint32_t *table;                  /* open addressing over the hashes: index + 1, 0 is free */
        uint32_t table_room;
        uint64_t data_bytes; /* of all, with their padding */
        uint8_t *forms;
        uint64_t forms_bytes;
};

void sl_constants_deinit(struct sl_constants *constants);

/* @packed: the form, or NULL for plain data of @bytes. Return: 0, -ENOMEM, -E2BIG. A zeroed struct is empty. */
int sl_constants_add(
        struct sl_constants *constants, const void *data, uint64_t bytes, const struct sl_packed *packed, uint32_t *ret_index);
