/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folders into which links of a model's external data may lead, as the option --data-folder of commands names them; what
 * `data_folders` of starling-config(5) is to the runtime. A plain value; the paths are the command line's.
 */
#pragma once

#include "base/error.h"
#include "model_file.h"

#include <errno.h>

#define DATA_FOLDERS_MAX 64

struct data_folders {
        const char *paths[DATA_FOLDERS_MAX];
        uint32_t n;
};

/* One more. Return: 0; -EINVAL with a text. */
static inline int data_folders_add(struct data_folders *folders, const char *path, struct sl_error *error)
{
        if (path[0] != '/')
                return sl_error_set(error, EINVAL, "--data-folder: \"%s\" is not an absolute path", path);
        if (folders->n == DATA_FOLDERS_MAX)
                return sl_error_set(error, EINVAL, "--data-folder: \"%s\" is number %d, at most %d are taken", path,
                        DATA_FOLDERS_MAX + 1, DATA_FOLDERS_MAX);
        folders->paths[folders->n++] = path;
        return 0;
}

static inline struct sl_data_folders data_folders_given(const struct data_folders *folders)
{
        return (struct sl_data_folders){folders->paths, folders->n};
}
