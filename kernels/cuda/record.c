/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/record.h"

#include "base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC   0x44554c53u /* "SLUD" */
#define VERSION 1u

/* More than any GPU has. */
#define WORKSPACE_MAX (1ull << 40)

struct header {
        uint32_t magic, version, way, reserved; /* 0 */
        uint64_t workspace_bytes, text_bytes;   /* the text stands behind it */
};

static bool wants_text(uint32_t way)
{
        return way == SL_CUDA_WAY_CONVOLUTION || way == SL_CUDA_WAY_BARE;
}

int sl_cuda_record_write(const struct sl_cuda_record *record, void **ret_data, uint64_t *ret_bytes)
{
        const struct header header = {.magic = MAGIC,
                .version = VERSION,
                .way = record->way,
                .workspace_bytes = record->workspace_bytes,
                .text_bytes = record->text_bytes};
        uint8_t *data = malloc(sizeof(header) + record->text_bytes);

        if (!data)
                return -ENOMEM;
        memcpy(data, &header, sizeof(header));
        if (record->text_bytes)
                memcpy(data + sizeof(header), record->text, record->text_bytes);
        *ret_data = data;
        *ret_bytes = sizeof(header) + record->text_bytes;
        return 0;
}

static int check_header(const struct header *header, uint64_t bytes, struct sl_error *error)
{
        if (header->magic != MAGIC || header->version != VERSION || header->reserved)
                return sl_error_set(error, EBADMSG, "the record of a kernel is none of version %u", VERSION);
        if (header->way == SL_CUDA_WAY_OWN || header->way >= SL_CUDA_WAY_COUNT)
                return sl_error_set(
                        error, EBADMSG, "the record of a kernel has way %u, below %d is one", header->way, SL_CUDA_WAY_COUNT);
        if (header->workspace_bytes > WORKSPACE_MAX)
                return sl_error_set(error, EBADMSG, "the record of a kernel wants %llu bytes of scratch, at most %llu are taken",
                        (unsigned long long)header->workspace_bytes, WORKSPACE_MAX);
        if (header->text_bytes != bytes || (bytes != 0) != wants_text(header->way))
                return sl_error_set(error, EBADMSG, "the record of a kernel has %llu bytes of text, and says %llu",
                        (unsigned long long)bytes, (unsigned long long)header->text_bytes);
        return 0;
}

int sl_cuda_record_read(const struct sl_blob *blob, struct sl_cuda_record *ret_record, struct sl_error *error)
{
        const char *text;
        struct header header;
        uint64_t bytes;
        int r;

        *ret_record = (struct sl_cuda_record){.way = SL_CUDA_WAY_OWN};
        if (!blob)
                return 0;
        if (blob->bytes < sizeof(header))
                return sl_error_set(error, EBADMSG, "the record of a kernel has %llu bytes, at least %zu make one",
                        (unsigned long long)blob->bytes, sizeof(header));
        memcpy(&header, blob->data, sizeof(header));
        bytes = blob->bytes - sizeof(header);
        text = (const char *)blob->data + sizeof(header);
        r = check_header(&header, bytes, error);
        if (r < 0)
                return r;
        if (bytes && memchr(text, 0, bytes) != text + bytes - 1)
                return sl_error_set(error, EBADMSG, "the text in the record of a kernel does not end where it should");
        *ret_record = (struct sl_cuda_record){
                .way = header.way, .workspace_bytes = header.workspace_bytes, .text = bytes ? text : NULL, .text_bytes = bytes};
        return 0;
}
