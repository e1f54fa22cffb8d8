/* SPDX-License-Identifier: Apache-2.0 */
#include "name_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define FIRST_ROOM 4096u

/* The place of @name in the index, or the free one where it belongs. */
static uint64_t find_place(const struct sl_name_table *table, const char *name)
{
        uint64_t at = XXH3_64bits(name, strlen(name)) & (table->index_room - 1);

        while (table->index[at] && strcmp(table->bytes + table->index[at], name) != 0)
                at = (at + 1) & (table->index_room - 1);
        return at;
}

/* At most half of it is taken. */
static int grow_index(struct sl_name_table *table)
{
        struct sl_name_table grown = *table;

        if (table->index && 2 * table->n < table->index_room)
                return 0;
        grown.index_room = table->index ? 2 * table->index_room : FIRST_ROOM;
        grown.index = calloc(grown.index_room, sizeof(*grown.index));
        if (!grown.index)
                return -ENOMEM;
        for (uint64_t i = 0; i < table->index_room; i++)
                if (table->index[i])
                        grown.index[find_place(&grown, table->bytes + table->index[i])] = table->index[i];
        free(table->index);
        *table = grown;
        return 0;
}

static int grow_bytes(struct sl_name_table *table, uint64_t more)
{
        uint64_t room = table->room ? table->room : FIRST_ROOM;
        char *bytes;

        if (table->used + more > UINT32_MAX)
                return -EOVERFLOW;
        while (room < table->used + more)
                room *= 2;
        if (room == table->room)
                return 0;
        bytes = realloc(table->bytes, room);
        if (!bytes)
                return -ENOMEM;
        table->bytes = bytes;
        table->room = room;
        return 0;
}

int sl_name_table_add(struct sl_name_table *table, const char *name, uint32_t *ret_at)
{
        uint64_t bytes = strlen(name) + 1, place;
        int r = grow_bytes(table, bytes + 1);

        if (r == 0)
                r = grow_index(table);
        if (r < 0)
                return r;
        if (!table->used)
                table->bytes[table->used++] = 0;
        *ret_at = 0;
        if (!*name)
                return 0;
        place = find_place(table, name);
        if (!table->index[place]) {
                table->index[place] = (uint32_t)table->used;
                memcpy(table->bytes + table->used, name, bytes);
                table->used += bytes;
                table->n++;
        }
        *ret_at = table->index[place];
        return 0;
}

void sl_name_table_deinit(struct sl_name_table *table)
{
        free(table->bytes);
        free(table->index);
        *table = (struct sl_name_table){0};
}
