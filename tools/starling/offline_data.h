/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of an offline job in files of NumPy's format (versions 1 and 2, C order, little-endian): axis 0 counts them. A folder has
 * them in its .npy files, one behind the other, in the order of the names; a file there with one axis less is one sample. Files are
 * read as they are needed and never mapped: one that is cut off is an error, and no signal. One thread.
 */
#pragma once

#include "base/error.h"
#include "starling.h"

#include <stdbool.h>

struct offline_shape {
        enum starling_dtype dtype;
        uint32_t rank; /* with the axis of samples */
        uint64_t dims[STARLING_RANK_MAX];
};

struct offline_file; /* one, and where its samples begin */

struct offline_data {
        struct offline_shape shape; /* dims[0]: of all files */
        uint64_t sample_bytes;
        uint64_t stamp; /* of sizes and times of all files: another one after a change */
        uint32_t n_files;
        struct offline_file *files;
};

/* @rank: of the input, which tells samples from files of them. Return: 0; -EINVAL no .npy, Fortran order, cut off, files that
 * differ; -errno; the text names the file. */
int offline_data_open(const char *path, uint32_t rank, struct offline_data *ret_data, struct sl_error *error);
void offline_data_close(struct offline_data *data);

/* Samples [first, first + n) to @to. Return: 0; -EIO cut off meanwhile; -errno. */
int offline_data_read(const struct offline_data *data, uint64_t first, uint32_t n, void *to, struct sl_error *error);

/* The header of a file of this shape, as NumPy writes it, a multiple of 64 bytes. Return: its bytes; 0: NumPy has no such type. */
size_t offline_header(const struct offline_shape *shape, char *ret_header, size_t bytes);

/* The shape that a file's header says, and where its data begin. Return: 0; -EINVAL; -errno. */
int offline_header_read(int fd, const char *path, struct offline_shape *ret_shape, uint64_t *ret_begin, struct sl_error *error);

/* UINT64_MAX: more than can be said. */
uint64_t offline_sample_bytes(const struct offline_shape *shape);
