/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The constants that go into a plan file, each content once: batch sizes, and nodes, that want the same bytes in the same form get
 * the same index; what the base plan has is referred to. Data is borrowed until the file is written. One owner thread.
 */
#pragma once

#include "format.h"

#include <stdint.h>

struct sl_base_plan;
struct sl_packed;
struct sl_packed_constant;

struct sl_constants {
        uint32_t n, room;
        struct sl_plan_constant *entries; /* offsets as in the file */
        const void **data;                /* of each entry */
        uint64_t *hashes;                 /* of each entry: content and form */
        uint32_t *table;                  /* open addressing over the hashes: index + 1, 0 is free */
        uint32_t table_room;
        uint64_t data_bytes; /* of all that are not in the base, with their padding; of those not in place, once they are settled */
        uint64_t shared_bytes;           /* of those in the base */
        const struct sl_base_plan *base; /* borrowed; NULL: the plan stands alone */
        uint8_t *forms;
        uint64_t forms_bytes;
};

void sl_constants_deinit(struct sl_constants *constants);

/*
 * Of the content and, where it is packed, its form. A large one is read in part: equal ones have equal hashes, and whether they are
 * equal is for the content to say. Pure.
 */
uint64_t sl_constants_hash(const void *data, uint64_t bytes, const struct sl_packed *packed);

/*
 * Plain data of @bytes. A zeroed struct is empty; data_bytes may be set to where the constants that are not in place begin, and
 * base. Return: 0, -ENOMEM, -E2BIG.
 */
int sl_constants_add(struct sl_constants *constants, const void *data, uint64_t bytes, uint32_t *ret_index);

/* The same for a packed one. */
int sl_constants_add_packed(struct sl_constants *constants, const struct sl_packed_constant *constant, uint32_t *ret_index);

/*
 * All are there: gives those that are neither in the base nor in place their offsets. Those of whole pages come first, each from a
 * page on, where they can be mapped by themselves (gather.h); none of that costs a byte.
 */
void sl_constants_settle(struct sl_constants *constants);
