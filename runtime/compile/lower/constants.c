/* SPDX-License-Identifier: Apache-2.0 */
#include "constants.h"

#include "backend.h"
#include "base/bytes.h"
#include "base_plan.h"
#include "pack.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <xxh_x86dispatch.h>

#define ROOM_MIN 64u
#define ROOM_MAX (1u << 24)

/* What is read of a large constant: its beginning, its end, and between them at equal distances. */
#define PARTS      5u
#define PART_BYTES (8ull << 10)

void sl_constants_deinit(struct sl_constants *constants)
{
        free(constants->entries);
        free(constants->data);
        free(constants->hashes);
        free(constants->table);
        free(constants->forms);
        memset(constants, 0, sizeof(*constants));
}

uint64_t sl_constants_hash(const void *data, uint64_t bytes, const struct sl_packed *packed)
{
        uint64_t hash = bytes;

        if (bytes <= PARTS * PART_BYTES)
                hash = XXH3_64bits(data, bytes);
        for (uint64_t i = 0; i < PARTS && bytes > PARTS * PART_BYTES; i++)
                hash = XXH3_64bits_withSeed((const uint8_t *)data + (bytes - PART_BYTES) / (PARTS - 1) * i, PART_BYTES, hash);
        return packed ? XXH3_64bits_withSeed(packed->form, packed->form_bytes, hash + 1) : hash;
}

static bool is_same(
        const struct sl_constants *constants, uint32_t index, const void *data, uint64_t bytes, const struct sl_packed *packed)
{
        const struct sl_plan_constant *entry = &constants->entries[index];

        if (entry->bytes != bytes || entry->packed != (packed != NULL) || entry->form_bytes != (packed ? packed->form_bytes : 0))
                return false;
        if (packed && memcmp(constants->forms + entry->form_offset, packed->form, packed->form_bytes))
                return false;
        return constants->data[index] == data || !memcmp(constants->data[index], data, bytes);
}

/* The slot of an equal entry, or the free one where it would stand. */
static uint32_t *find_slot(
        const struct sl_constants *constants, uint64_t hash, const void *data, uint64_t bytes, const struct sl_packed *packed)
{
        uint32_t mask = constants->table_room - 1;
        uint32_t at = (uint32_t)hash & mask;

        while (constants->table[at]) {
                uint32_t index = constants->table[at] - 1;

                if (constants->hashes[index] == hash && is_same(constants, index, data, bytes, packed))
                        break;
                at = (at + 1) & mask;
        }
        return &constants->table[at];
}

static bool grow_array(void **array, uint32_t room, size_t bytes)
{
        void *grown = reallocarray(*array, room, bytes);

        if (grown)
                *array = grown;
        return grown != NULL;
}

static void fill_table(struct sl_constants *constants)
{
        uint32_t mask = constants->table_room - 1;

        for (uint32_t i = 0; i < constants->n; i++) {
                uint32_t at = (uint32_t)constants->hashes[i] & mask;

                while (constants->table[at])
                        at = (at + 1) & mask;
                constants->table[at] = i + 1;
        }
}

/* The table stays at most half full. */
static int grow(struct sl_constants *constants)
{
        uint32_t room = constants->room ? constants->room * 2 : ROOM_MIN;
        uint32_t *table;

        if (room > ROOM_MAX)
                return -E2BIG;
        table = calloc(room * 2u, sizeof(*table));
        if (!table || !grow_array((void **)&constants->entries, room, sizeof(*constants->entries)) ||
                !grow_array((void **)&constants->data, room, sizeof(*constants->data)) ||
                !grow_array((void **)&constants->hashes, room, sizeof(*constants->hashes))) {
                free(table);
                return -ENOMEM;
        }
        free(constants->table);
        constants->table = table;
        constants->table_room = room * 2u;
        constants->room = room;
        fill_table(constants);
        return 0;
}

static int add_form(struct sl_constants *constants, const struct sl_packed *packed)
{
        uint8_t *grown;

        if (!packed || !packed->form_bytes)
                return 0;
        grown = realloc(constants->forms, constants->forms_bytes + packed->form_bytes);
        if (!grown)
                return -ENOMEM;
        memcpy(grown + constants->forms_bytes, packed->form, packed->form_bytes);
        constants->forms = grown;
        constants->forms_bytes += packed->form_bytes;
        return 0;
}

/* Its place is not known yet. */
#define UNSETTLED UINT64_MAX

/* Where the bytes of a new entry are: in the base, in the file already, or among what will be written. */
static void place(struct sl_constants *constants, const struct sl_packed_constant *constant, struct sl_plan_constant *entry)
{
        struct sl_base_place base;

        if (sl_base_plan_find(constants->base, constant->data, entry->bytes, constant->packed, constant->hash, &base)) {
                entry->in_base = base.part ? SL_PLAN_PART : SL_PLAN_WHOLE;
                entry->base_index = base.index;
                entry->base_offset = base.offset;
                constants->shared_bytes += entry->bytes;
        } else if (constant->in_place) {
                entry->offset = constant->offset;
        } else {
                entry->offset = UNSETTLED;
        }
}

static void settle(struct sl_constants *constants, bool whole_pages)
{
        for (uint32_t i = 0; i < constants->n; i++) {
                struct sl_plan_constant *entry = &constants->entries[i];

                if (entry->offset != UNSETTLED || (entry->bytes % SL_PAGE_BYTES == 0) != whole_pages)
                        continue;
                entry->offset = constants->data_bytes;
                constants->data_bytes = sl_align_up(constants->data_bytes + entry->bytes, SL_LINE_BYTES);
        }
}

void sl_constants_settle(struct sl_constants *constants)
{
        settle(constants, true);
        settle(constants, false);
}

static int add_constant(
        struct sl_constants *constants, const struct sl_packed_constant *constant, uint64_t bytes, uint32_t *ret_index)
{
        const struct sl_packed *packed = constant->packed;
        uint64_t form_offset = constants->forms_bytes;
        uint32_t *slot;
        int r = constants->n >= constants->room ? grow(constants) : 0;

        if (r < 0)
                return r;
        slot = find_slot(constants, constant->hash, constant->data, bytes, packed);
        if (*slot) {
                *ret_index = *slot - 1;
                return 0;
        }
        r = add_form(constants, packed);
        if (r < 0)
                return r;
        constants->entries[constants->n] = (struct sl_plan_constant){.bytes = bytes,
                .form_offset = form_offset,
                .form_bytes = packed ? packed->form_bytes : 0,
                .packed = packed != NULL,
                .hash = constant->hash};
        place(constants, constant, &constants->entries[constants->n]);
        constants->data[constants->n] = constant->data;
        constants->hashes[constants->n] = constant->hash;
        *ret_index = constants->n++;
        *slot = constants->n;
        return 0;
}

int sl_constants_add(struct sl_constants *constants, const void *data, uint64_t bytes, uint32_t *ret_index)
{
        struct sl_packed_constant plain = {.data = data, .hash = sl_constants_hash(data, bytes, NULL)};

        return add_constant(constants, &plain, bytes, ret_index);
}

int sl_constants_add_packed(struct sl_constants *constants, const struct sl_packed_constant *constant, uint32_t *ret_index)
{
        return add_constant(constants, constant, constant->packed->data_bytes, ret_index);
}
