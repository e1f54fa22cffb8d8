/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA module, libstarling_cuda.so: all of Starling that knows of CUDA. It is opened by who plans for a GPU and by the process
 * of a GPU, never by the runtime, and lies beside the program or where it is installed. This table is all that is asked of it.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_backend;
struct sl_error;

#define SL_CUDA_MODULE_NAME "libstarling_cuda.so"

/* Of the table, of what it refers to, and of what program and module write for each other: plans, mailboxes. */
#define SL_CUDA_MODULE_VERSION 4u

struct sl_cuda_module {
        uint32_t version;    /* where it is in all versions */
        const char *release; /* of Starling; the one of the program */

        /* Both halves of the backend "cuda". */
        const struct sl_backend *backend;

        /* The process of GPU @gpu, to its end (serve/gpu/). Return: its exit status. */
        int (*serve)(uint32_t gpu);
};

/* What the module exports. */
extern const struct sl_cuda_module starling_cuda_module;

/* Where it lies, without opening it. Any thread. False: nowhere; the text says where it was looked for. */
bool sl_cuda_module_find(char ret_path[PATH_MAX], struct sl_error *error);

/*
 * Opened at the first call, and to the end of the process. Any thread. Return: 0; -ENOENT it is not there; -ELIBBAD it is another
 * library or lacks one; -EPROTONOSUPPORT it is of another version.
 */
int sl_cuda_module_open(const struct sl_cuda_module **ret_module, struct sl_error *error);

/* The same for the file at @path, which is asked for each time. */
int sl_cuda_module_open_at(const char *path, const struct sl_cuda_module **ret_module, struct sl_error *error);
