/* SPDX-License-Identifier: Apache-2.0 */
#include "backend_table.h"

#include "base/bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxh_x86dispatch.h>

struct sl_kept_blob {
        struct sl_blob blob;
        uint64_t hash;
        uint32_t backend, number;
};

void sl_backend_table_deinit(struct sl_backend_table *table)
{
        free(table->blobs);
        free(table->places);
        free(table->data);
}

int sl_backend_table_find(
        struct sl_backend_table *table, const struct sl_backend *backend, const struct sl_target *target, uint32_t *ret_number)
{
        struct sl_plan_backend row = {.n_blobs = 0};
        int r;

        for (uint32_t i = 0; i < table->n_backends; i++)
                if (table->backends[i] == backend) {
                        *ret_number = i;
                        return 0;
                }
        if (table->n_backends == SL_PLAN_BACKENDS_MAX)
                return -E2BIG;
        memcpy(row.name, backend->name, strnlen(backend->name, sizeof(row.name) - 1));
        r = backend->key ? backend->key(target, row.key) : 0;
        if (r < 0)
                return r;
        memset(row.key + strlen(row.key), 0, sizeof(row.key) - strlen(row.key));
        table->backends[table->n_backends] = backend;
        table->rows[table->n_backends] = row;
        *ret_number = table->n_backends++;
        return 0;
}

static bool same_blob(const struct sl_kept_blob *kept, uint32_t backend, const struct sl_blob *blob, uint64_t hash)
{
        return kept->backend == backend && kept->hash == hash && kept->blob.bytes == blob->bytes &&
               !memcmp(kept->blob.data, blob->data, blob->bytes);
}

static int grow_blobs(struct sl_backend_table *table)
{
        uint64_t room = table->room ? table->room * 2 : 64;
        struct sl_kept_blob *grown = reallocarray(table->blobs, room, sizeof(*grown));

        if (!grown)
                return -ENOMEM;
        table->blobs = grown;
        table->room = room;
        return 0;
}

int sl_backend_table_keep(struct sl_backend_table *table, uint32_t backend, const struct sl_blob *blob, uint32_t *ret_number)
{
        uint64_t hash = XXH3_64bits(blob->data, blob->bytes);
        struct sl_plan_backend *row = &table->rows[backend];

        for (uint64_t i = 0; i < table->n_blobs; i++)
                if (same_blob(&table->blobs[i], backend, blob, hash)) {
                        *ret_number = table->blobs[i].number;
                        return 0;
                }
        if (row->n_blobs >= SL_PLAN_NO_BLOB)
                return -E2BIG;
        if (table->n_blobs == table->room && grow_blobs(table) < 0)
                return -ENOMEM;
        *ret_number = (uint32_t)row->n_blobs++;
        table->blobs[table->n_blobs++] =
                (struct sl_kept_blob){.blob = *blob, .hash = hash, .backend = backend, .number = *ret_number};
        return 0;
}

int sl_backend_table_settle(struct sl_backend_table *table)
{
        uint64_t next = 0;

        table->places = calloc(table->n_blobs + 1, sizeof(*table->places));
        table->data = calloc(table->n_blobs + 1, sizeof(*table->data));
        if (!table->places || !table->data)
                return -ENOMEM;
        for (uint32_t i = 0; i < table->n_backends; i++) {
                table->rows[i].first_blob = next;
                next += table->rows[i].n_blobs;
        }
        for (uint64_t i = 0; i < table->n_blobs; i++) {
                const struct sl_kept_blob *kept = &table->blobs[i];
                uint64_t at = table->rows[kept->backend].first_blob + kept->number;

                table->places[at] = (struct sl_plan_blob){.offset = table->data_bytes, .bytes = kept->blob.bytes};
                table->data[at] = kept->blob.data;
                table->data_bytes += sl_align_up(kept->blob.bytes, SL_LINE_BYTES);
        }
        return 0;
}
