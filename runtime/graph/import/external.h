/*
 * Tensor data in a file of its own, inside the model's folder. Any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sl_error;

struct sl_external_region {
        const void *data; /* n_bytes of them, read-only */
        void *mapping;    /* for sl_external_unmap() */
        size_t mapping_bytes;
};

/*
 * Maps [offset, offset + n_bytes) of the regular file @location, relative to the folder. No component may be "..", and none a link.
 * Return: 0; -EACCES the location leads outside or over a link; -ENOENT; -EBADMSG the file is shorter; -EIO; -ENOMEM.
 */
int sl_external_map(int folder_fd, const char *location, uint64_t offset, uint64_t n_bytes, struct sl_external_region *ret_region,
        struct sl_error *error);
void sl_external_unmap(void *mapping, size_t mapping_bytes);
