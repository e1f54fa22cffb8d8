/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process that reads samples has to be able to open: a file, or a folder and the files that links of samples in it
 * lead to.
 */
#pragma once

#include <stddef.h>

struct sl_landlock_path;

/* Zeroed it has none. */
struct sample_files {
        size_t n;
        struct sl_landlock_path *paths; /* their names are owned */
};

/* @path: is there or not. Return: 0; -ENOMEM. */
int sample_files_add(struct sample_files *files, const char *path);
void sample_files_deinit(struct sample_files *files);
