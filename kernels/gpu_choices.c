/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_choices.h"

#include "base/bytes.h"
#include "base/error.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define MAGIC   0x3153454349484353ull /* "SCHICES1" */
#define VERSION 1u

struct header {
        uint64_t magic;
        uint32_t version, reserved; /* 0 */
        uint64_t bytes;             /* of the file */
        uint64_t checksum;          /* of all behind it */
        struct sl_gpu_choices_facts facts;
};

struct row {
        uint64_t key[2];
        uint32_t way, has_algorithm;
        uint64_t workspace_bytes, ns;
        uint64_t text, text_bytes; /* from the beginning of the file; 0 bytes: none */
        uint8_t algorithm[SL_GPU_ALGORITHM_BYTES];
};

_Static_assert(sizeof(struct header) % 8 == 0 && sizeof(struct row) % 8 == 0, "rows lie behind the header");

static uint64_t checksum_of(const struct header *header)
{
        const size_t at = offsetof(struct header, facts);

        return XXH3_64bits((const char *)header + at, header->bytes - at);
}

static const struct row *rows_of(const void *data)
{
        return (const struct row *)((const struct header *)data + 1);
}

/* Where the texts begin. */
static uint64_t tables_bytes(uint64_t n_choices)
{
        return sizeof(struct header) + n_choices * sizeof(struct row);
}

/* ---- writing ---- */

static void put_choice(struct header *header, uint32_t index, const struct sl_gpu_choice *choice, uint64_t *text)
{
        struct row *row = (struct row *)rows_of(header) + index;

        *row = (struct row){.key = {choice->key[0], choice->key[1]},
                .way = choice->way,
                .has_algorithm = choice->has_algorithm,
                .workspace_bytes = choice->workspace_bytes,
                .ns = choice->ns,
                .text = choice->text_bytes ? *text : 0,
                .text_bytes = choice->text_bytes};
        memcpy(row->algorithm, choice->algorithm, sizeof(row->algorithm));
        if (choice->text_bytes)
                memcpy((char *)header + *text, choice->text, choice->text_bytes);
        *text += choice->text_bytes;
}

int sl_gpu_choices_write(
        const struct sl_gpu_choices_facts *facts, const struct sl_gpu_choice *choices, void **ret_data, uint64_t *ret_bytes)
{
        uint64_t text = tables_bytes(facts->n_choices), bytes = text;
        struct header *header;

        for (uint32_t i = 0; i < facts->n_choices; i++)
                bytes += choices[i].text_bytes;
        if (facts->n_choices > SL_GPU_CHOICES_MAX || bytes > SL_GPU_CHOICES_BYTES_MAX)
                return -E2BIG;
        header = calloc(1, bytes);
        if (!header)
                return -ENOMEM;
        *header = (struct header){.magic = MAGIC, .version = VERSION, .bytes = bytes, .facts = *facts};
        for (uint32_t i = 0; i < facts->n_choices; i++)
                put_choice(header, i, &choices[i], &text);
        header->checksum = checksum_of(header);
        *ret_data = header;
        *ret_bytes = bytes;
        return 0;
}

/* ---- reading ---- */

static int check_header(const struct header *header, uint64_t bytes, struct sl_error *error)
{
        const struct sl_gpu_choices_facts *facts = &header->facts;

        if (bytes < sizeof(*header) || bytes > SL_GPU_CHOICES_BYTES_MAX)
                return sl_error_set(error, EBADMSG, "a file of a GPU's choices has %llu bytes, %zu to %llu make one",
                        (unsigned long long)bytes, sizeof(*header), SL_GPU_CHOICES_BYTES_MAX);
        if (header->magic != MAGIC || header->version != VERSION || header->reserved)
                return sl_error_set(error, EBADMSG, "it is no file of a GPU's choices of version %u", VERSION);
        if (header->bytes != bytes)
                return sl_error_set(error, EBADMSG, "a file of a GPU's choices has %llu bytes, and says %llu",
                        (unsigned long long)bytes, (unsigned long long)header->bytes);
        if (header->checksum != checksum_of(header))
                return sl_error_set(error, EBADMSG, "a file of a GPU's choices is damaged: its checksum is another");
        if (facts->n_choices > SL_GPU_CHOICES_MAX || facts->n_timed > facts->n_choices || facts->reserved ||
                tables_bytes(facts->n_choices) > bytes)
                return sl_error_set(error, EBADMSG, "a file of a GPU's choices of %llu bytes says that it has %u rows",
                        (unsigned long long)bytes, facts->n_choices);
        return 0;
}

static int check_texts(const struct sl_gpu_identity *identity, struct sl_error *error)
{
        return memchr(identity->device, 0, sizeof(identity->device)) && memchr(identity->driver, 0, sizeof(identity->driver))
                       ? 0
                       : sl_error_set(error, EBADMSG, "the name of a GPU or its driver in a file of choices does not end");
}

/* It lies behind the tables, and ends at its last byte. */
static bool is_text(const struct header *header, const struct row *row)
{
        const char *text;

        if (!sl_range_inside(row->text, row->text_bytes, header->bytes) || row->text < tables_bytes(header->facts.n_choices))
                return false;
        text = (const char *)header + row->text;
        return memchr(text, 0, row->text_bytes) == text + row->text_bytes - 1;
}

static bool is_row(const struct header *header, const struct row *row)
{
        return row->has_algorithm <= 1 && row->workspace_bytes <= SL_GPU_CHOICE_WORKSPACE_MAX &&
               (!row->text_bytes || is_text(header, row));
}

static int check_rows(const struct header *header, struct sl_error *error)
{
        for (uint32_t i = 0; i < header->facts.n_choices; i++)
                if (!is_row(header, &rows_of(header)[i]))
                        return sl_error_set(error, EBADMSG, "row %u of a file of a GPU's choices is none", i);
        return 0;
}

int sl_gpu_choices_check(const void *data, uint64_t bytes, struct sl_gpu_choices_facts *ret_facts, struct sl_error *error)
{
        const struct header *header = data;
        int r = check_header(header, bytes, error);

        if (r == 0)
                r = check_texts(&header->facts.identity, error);
        if (r == 0)
                r = check_rows(header, error);
        if (r == 0)
                *ret_facts = header->facts;
        return r;
}

void sl_gpu_choices_at(const void *data, uint32_t index, struct sl_gpu_choice *ret_choice)
{
        const struct row *row = &rows_of(data)[index];

        *ret_choice = (struct sl_gpu_choice){.key = {row->key[0], row->key[1]},
                .way = row->way,
                .has_algorithm = row->has_algorithm,
                .workspace_bytes = row->workspace_bytes,
                .ns = row->ns,
                .text = row->text_bytes ? (const char *)data + row->text : NULL,
                .text_bytes = row->text_bytes};
        memcpy(ret_choice->algorithm, row->algorithm, sizeof(ret_choice->algorithm));
}

/* ---- whom they are of ---- */

static int differ_in_text(const char *what, const char *theirs, const char *ours, struct sl_error *error)
{
        return strcmp(theirs, ours)
                       ? sl_error_set(error, ESTALE, "a GPU's choices are of %s \"%s\", and this is \"%s\"", what, theirs, ours)
                       : 0;
}

static int differ_in_number(const char *what, uint32_t theirs, uint32_t ours, struct sl_error *error)
{
        return theirs != ours ? sl_error_set(error, ESTALE, "a GPU's choices are of %s %u, and this is %u", what, theirs, ours) : 0;
}

int sl_gpu_choices_fit(const struct sl_gpu_choices_facts *found, const struct sl_gpu_choices_facts *wanted, struct sl_error *error)
{
        const struct sl_gpu_identity *a = &found->identity, *b = &wanted->identity;
        const struct {
                const char *what;
                uint32_t theirs, ours;
        } numbers[] = {
                {"compute capability", a->capability, b->capability},
                {"multiprocessors", a->n_processors, b->n_processors},
                {"a let of so many per cent:", a->percent, b->percent},
                {"CUDA version", a->cuda_version, b->cuda_version},
                {"cuDNN version", a->cudnn_version, b->cudnn_version},
                {"cuBLASLt version", a->cublaslt_version, b->cublaslt_version},
        };
        int r = differ_in_text("device", a->device, b->device, error);

        if (r == 0)
                r = differ_in_text("driver", a->driver, b->driver, error);
        for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]) && r == 0; i++)
                r = differ_in_number(numbers[i].what, numbers[i].theirs, numbers[i].ours, error);
        if (r == 0 && memcmp(found->plan, wanted->plan, sizeof(found->plan)) != 0)
                r = sl_error_set(error, ESTALE, "a GPU's choices are of another plan");
        return r;
}
