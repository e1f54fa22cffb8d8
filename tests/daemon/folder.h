/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A folder of one test: files are written below it and all of it is removed again.
 */
#pragma once

#include <stddef.h>

struct folder {
        char path[64];
};

void folder_make(struct folder *folder);
void folder_remove(struct folder *folder);

/* Writes @text into PATH below the folder, making the folders on the way. Returns the whole path, valid until the next call. */
const char *folder_write(const struct folder *folder, const char *path, const char *text);
