/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuDNN 9 as a table of functions, opened with dlopen: it is hundreds of megabytes that nobody without a GPU wants. Filled once and
 * only read then; any thread.
 */
#pragma once

#include <cudnn_graph.h>

struct sl_error;

/* The oldest that plans without a device: 9.8. */
#define SL_CUDNN_VERSION 90800

/* Field, function. */
#define SL_CUDNN_CALLS(X)                                                                                                          \
        X(get_last_error_string, cudnnGetLastErrorString)                                                                          \
        X(create, cudnnBackendCreateDescriptor)                                                                                    \
        X(destroy, cudnnBackendDestroyDescriptor)                                                                                  \
        X(set, cudnnBackendSetAttribute)                                                                                           \
        X(get, cudnnBackendGetAttribute)                                                                                           \
        X(finalize, cudnnBackendFinalize)                                                                                          \
        X(execute, cudnnBackendExecute)                                                                                            \
        X(handle_create, cudnnCreate)                                                                                              \
        X(handle_destroy, cudnnDestroy)                                                                                            \
        X(handle_set_stream, cudnnSetStream)

struct sl_cudnn {
#define X(field, name) __typeof__(name) *field;
        SL_CUDNN_CALLS(X)
#undef X
        void *library;
        int version; /* 91900: 9.19.0 */
};

/*
 * Opens @path; NULL: libcudnn.so.9 where the system finds it, else below /usr/local/cuda. Return: 0; -ENOENT there is none;
 * -EPROTONOSUPPORT it is too old, the text has both versions; -ELIBBAD it is another library.
 */
int sl_cudnn_open(const char *path, struct sl_cudnn *ret_library, struct sl_error *error);
void sl_cudnn_close(struct sl_cudnn *library);
