/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensor data in files of their own. The importer's thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sl_error;
struct sl_model_file;

/* The file that was asked for last stays open: most models keep all their data in one. */
struct sl_external_files {
        const struct sl_model_file *model;
        char *location; /* NULL: none is open */
        int fd;
        uint64_t bytes;
};

struct sl_external_region {
        const void *data; /* n_bytes of them, read-only */
        void *mapping;    /* for sl_external_unmap() */
        size_t mapping_bytes;
};

/*
 * Maps [offset, offset + n_bytes) of the file @location, which the model's file opens.
 * Return: 0; -EBADMSG the file is shorter; -EIO; -ENOMEM; what sl_model_file's open_external() returns.
 */
int sl_external_map(struct sl_external_files *files, const char *location, uint64_t offset, uint64_t n_bytes,
        struct sl_external_region *ret_region, struct sl_error *error);
void sl_external_unmap(void *mapping, size_t mapping_bytes);

/* Closes what is open. Regions stay. */
void sl_external_files_deinit(struct sl_external_files *files);
