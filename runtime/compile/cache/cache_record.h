/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of the cache of plans: files of a few bytes in its folder (cache_folder.h), each with what was found out once. A record
 * is a struct that begins with the uint64_t of its kind and ends with a uint64_t, the checksum of all before it. Any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Return: 0; -EBADMSG of another kind, or damaged; what sl_cache_folder_find() returns. */
int sl_cache_record_read(int folder, const char *name, uint64_t kind, void *ret_record, size_t bytes);

/* The same, and its file. */
int sl_cache_record_open(int folder, const char *name, uint64_t kind, void *ret_record, size_t bytes, int *ret_fd);

/* Sets the checksum. Return: 0, -errno. */
int sl_cache_record_write(int folder, const char *name, void *record, size_t bytes);
