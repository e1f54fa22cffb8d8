/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/record.h"

#include "base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC   0x44554c53u /* "SLUD" */
#define VERSION 3u

/* More than any GPU has. */
#define WORKSPACE_MAX (1ull << 40)

struct header {
        uint32_t magic, version, n, reserved; /* 0 */
};

/* One for each candidate; the texts stand behind all of them, in their order. */
struct row {
        uint32_t way, notes;
        int64_t engine;
        uint64_t workspace_bytes, text_bytes;
};

int sl_cuda_record_write(const struct sl_cuda_record *record, void **ret_data, uint64_t *ret_bytes)
{
        const struct header header = {.magic = MAGIC, .version = VERSION, .n = record->n};
        uint64_t bytes = sizeof(header) + record->n * sizeof(struct row);
        uint8_t *data, *text;

        for (uint32_t i = 0; i < record->n; i++)
                bytes += record->candidates[i].text_bytes;
        data = malloc(bytes);
        if (!data)
                return -ENOMEM;
        memcpy(data, &header, sizeof(header));
        text = data + sizeof(header) + record->n * sizeof(struct row);
        for (uint32_t i = 0; i < record->n; i++) {
                const struct sl_cuda_candidate *c = &record->candidates[i];
                const struct row row = {c->way, c->notes, c->engine, c->workspace_bytes, c->text_bytes};

                memcpy(data + sizeof(header) + i * sizeof(row), &row, sizeof(row));
                if (c->text_bytes)
                        memcpy(text, c->text, c->text_bytes);
                text += c->text_bytes;
        }
        *ret_data = data;
        *ret_bytes = bytes;
        return 0;
}

static int read_header(const struct sl_blob *blob, struct header *header, struct sl_error *error)
{
        if (blob->bytes < sizeof(*header))
                return sl_error_set(error, EBADMSG, "the record of a kernel has %llu bytes, at least %zu make one",
                        (unsigned long long)blob->bytes, sizeof(*header));
        memcpy(header, blob->data, sizeof(*header));
        if (header->magic != MAGIC || header->version != VERSION || header->reserved)
                return sl_error_set(error, EBADMSG, "the record of a kernel is none of version %u", VERSION);
        if (!header->n || header->n > SL_CUDA_CANDIDATES_MAX)
                return sl_error_set(error, EBADMSG, "the record of a kernel has %u candidates, 1 to %u make one", header->n,
                        SL_CUDA_CANDIDATES_MAX);
        if (blob->bytes - sizeof(*header) < header->n * sizeof(struct row))
                return sl_error_set(error, EBADMSG, "the record of a kernel has %llu bytes, too few for %u candidates",
                        (unsigned long long)blob->bytes, header->n);
        return 0;
}

static bool may_be_of_several(uint32_t way)
{
        return sl_cuda_way_has_text(way) || way == SL_CUDA_WAY_INT8_ROWS || way == SL_CUDA_WAY_ATTENTION ||
               way == SL_CUDA_WAY_FUSED_ATTENTION;
}

/* @left: bytes that are left for texts. */
static int check_row(const struct header *header, const struct row *row, uint64_t left, struct sl_error *error)
{
        if (row->way == SL_CUDA_WAY_OWN || row->way >= SL_CUDA_WAY_COUNT || (header->n > 1 && !may_be_of_several(row->way)))
                return sl_error_set(error, EBADMSG,
                        "the record of a kernel has way %u, below %d is one, and one of several is a convolution or attention",
                        row->way, SL_CUDA_WAY_COUNT);
        if (row->workspace_bytes > WORKSPACE_MAX)
                return sl_error_set(error, EBADMSG, "the record of a kernel wants %llu bytes of scratch, at most %llu are taken",
                        (unsigned long long)row->workspace_bytes, WORKSPACE_MAX);
        if (row->text_bytes > left || (row->text_bytes != 0) != sl_cuda_way_has_text(row->way) || row->notes & ~SL_CUDA_NOTES)
                return sl_error_set(error, EBADMSG, "the record of a kernel has %llu bytes of text, and says %llu",
                        (unsigned long long)left, (unsigned long long)row->text_bytes);
        return 0;
}

static int read_candidate(const struct row *row, const char *text, struct sl_cuda_candidate *ret_candidate, struct sl_error *error)
{
        if (row->text_bytes && memchr(text, 0, row->text_bytes) != text + row->text_bytes - 1)
                return sl_error_set(error, EBADMSG, "the text in the record of a kernel does not end where it should");
        *ret_candidate = (struct sl_cuda_candidate){.way = row->way,
                .notes = row->notes,
                .engine = row->engine,
                .workspace_bytes = row->workspace_bytes,
                .text = row->text_bytes ? text : NULL,
                .text_bytes = row->text_bytes};
        return 0;
}

static int read_rows(const struct sl_blob *blob, const struct header *header, struct sl_cuda_record *record, struct sl_error *error)
{
        const char *rows = (const char *)blob->data + sizeof(*header), *text = rows + header->n * sizeof(struct row);
        uint64_t left = blob->bytes - (uint64_t)(text - (const char *)blob->data);
        struct row row;
        int r = 0;

        record->n = header->n;
        for (uint32_t i = 0; i < header->n && r == 0; i++) {
                memcpy(&row, rows + i * sizeof(row), sizeof(row));
                r = check_row(header, &row, left, error);
                if (r < 0)
                        break;
                r = read_candidate(&row, text, &record->candidates[i], error);
                text += row.text_bytes;
                left -= row.text_bytes;
        }
        return r == 0 && left ? sl_error_set(error, EBADMSG, "the record of a kernel has %llu bytes of text that no candidate has",
                                        (unsigned long long)left)
                              : r;
}

int sl_cuda_record_read(const struct sl_blob *blob, struct sl_cuda_record *ret_record, struct sl_error *error)
{
        struct sl_cuda_record record = {.n = 1, .candidates = {{.way = SL_CUDA_WAY_OWN}}};
        struct header header;
        int r = blob ? read_header(blob, &header, error) : 0;

        if (r == 0 && blob)
                r = read_rows(blob, &header, &record, error);
        if (r == 0)
                *ret_record = record;
        return r;
}
