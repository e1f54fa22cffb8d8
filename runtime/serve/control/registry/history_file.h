/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A history (../../converge/history.h) in a file. When it has SL_HISTORY_FILE_BYTES the file is called PATH.old, and a new one
 * begins. Control thread only; a write waits for the file system, which is why there is none unless an administrator has asked for
 * it.
 */
#pragma once

#include <stdint.h>

#define SL_HISTORY_FILE_BYTES (16u << 20)

struct sl_error;
struct sl_fleet;
struct sl_history_file;
struct sl_step;

/* Replaces what was there. @path is copied. Return: 0; -ENOMEM; -errno with text. */
int sl_history_file_new(const char *path, struct sl_history_file **ret_file, struct sl_error *error);

/* Return: 0; -errno with text: no more can be written, and the caller frees it. */
int sl_history_file_write(struct sl_history_file *file, const struct sl_fleet *fleet, const struct sl_step *steps, uint32_t n_steps,
        uint64_t due_ns, struct sl_error *error);

/* NULL is fine. Returns NULL. */
struct sl_history_file *sl_history_file_free(struct sl_history_file *file);
