/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles in files that people and other programs read:
 *
 *     CSV     lines that begin with "#" are notes, the source of what follows; then the names of fields, then a line for each
 *             profile (RFC 4180). A field that is left out is empty, or 0
 *     JSON    {"schema": 1, "profiles": [{FIELD: VALUE, ...}, ...]}; an unknown figure is null
 *
 * Pure but for the streams; the list is the caller's.
 */
#pragma once

#include "worker_profile.h"

#include <stdbool.h>
#include <stdio.h>

/* Return: 0; -EIO; -ENOMEM. */
int profile_file_write(const struct sl_profile_list *list, bool json, FILE *stream);

/* CSV, JSON or a store, whichever it is. Return: 0; -errno with a text that names the file, and the line of CSV. */
int profile_file_read(const char *path, struct sl_profile_list *list, struct sl_error *error);
