/* SPDX-License-Identifier: Apache-2.0 */
#include "model_name.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

void model_name_of(const char *path, char *ret_name, size_t bytes)
{
        char copy[PATH_MAX], *file, *version, *dot;

        snprintf(copy, sizeof(copy), "%s", path);
        file = basename(copy);
        if (strcmp(file, "model.onnx") == 0) {
                version = basename(dirname(copy));
                if (strspn(version, "0123456789") == strlen(version))
                        file = basename(dirname(copy));
        }
        snprintf(ret_name, bytes, "%.*s", (int)bytes - 1, file);
        dot = strrchr(ret_name, '.');
        if (dot && dot != ret_name)
                *dot = 0;
}
