/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that is there whole or not at all: it is written under another name, and then takes the place of what was there. Any
 * thread.
 */
#pragma once

#include <limits.h>

struct sl_error;

/*
 * Where @path leads: a link stays one. Return: 0; -EINVAL what is there is no regular file, a device or a pipe, which is left
 * alone; -ENAMETOOLONG; -errno of looking.
 */
int find_whole_file(const char *path, char ret_place[PATH_MAX], struct sl_error *error);

/* @write fills it, and returns 0 or -errno. Return: that; -errno of making, or of replacing what was there, which stays. */
int keep_whole_file(const char *place, int (*write)(int fd, void *context), void *context, struct sl_error *error);

/* The same of a copy of all that @from has, a descriptor of a regular file or of one in memory. */
int copy_whole_file(const char *place, int from, struct sl_error *error);
