/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes (XXH3-128) of files of data and of texts, as 32 digits. Any thread. */
#pragma once

#include "registration.h"

struct sl_error;

/* A file, or a folder: its files that end with .npy or .f32, by their names. Return: 0; -errno with a text that names it. */
int file_hash(const char *path, char ret_hash[REGISTER_HASH_BYTES], struct sl_error *error);

void text_hash(const char *text, char ret_hash[REGISTER_HASH_BYTES]);
