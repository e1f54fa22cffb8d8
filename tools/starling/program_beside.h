/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another program of the same installation. Any thread.
 */
#pragma once

#include <limits.h>

struct sl_error;

/* @path: from the folder of this program, as "../../bin/starling". Return: 0; -ENAMETOOLONG; -errno of looking. */
int program_beside(const char *path, char ret_path[PATH_MAX], struct sl_error *error);
