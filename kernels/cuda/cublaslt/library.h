/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuBLASLt as a table of functions, opened with dlopen as the other libraries of NVIDIA's are. Filled once and only read then; any
 * thread. Tests fill it with functions of their own.
 */
#pragma once

#include <cublasLt.h>

struct sl_error;

/* The oldest that it is used with: 13.0. */
#define SL_CUBLASLT_VERSION 130000

/* Field, function. */
#define SL_CUBLASLT_CALLS(X)                                                                                                       \
        X(create, cublasLtCreate)                                                                                                  \
        X(destroy, cublasLtDestroy)                                                                                                \
        X(desc_create, cublasLtMatmulDescCreate)                                                                                   \
        X(desc_destroy, cublasLtMatmulDescDestroy)                                                                                 \
        X(desc_set, cublasLtMatmulDescSetAttribute)                                                                                \
        X(layout_create, cublasLtMatrixLayoutCreate)                                                                               \
        X(layout_destroy, cublasLtMatrixLayoutDestroy)                                                                             \
        X(layout_set, cublasLtMatrixLayoutSetAttribute)                                                                            \
        X(preference_create, cublasLtMatmulPreferenceCreate)                                                                       \
        X(preference_destroy, cublasLtMatmulPreferenceDestroy)                                                                     \
        X(preference_set, cublasLtMatmulPreferenceSetAttribute)                                                                    \
        X(heuristic, cublasLtMatmulAlgoGetHeuristic)                                                                               \
        X(algo_check, cublasLtMatmulAlgoCheck)                                                                                     \
        X(matmul, cublasLtMatmul)

struct sl_cublaslt {
#define X(field, name) __typeof__(name) *field;
        SL_CUBLASLT_CALLS(X)
#undef X
        void *library; /* of dlopen(); NULL: the functions are somebody else's */
        int version;   /* 130100: 13.1.0 */
};

/*
 * Opens @path; NULL: libcublasLt.so.13 where the system finds it, else below /usr/local/cuda. Return: 0; -ENOENT there is none;
 * -EPROTONOSUPPORT it is too old, the text has both versions; -ELIBBAD it is another library.
 */
int sl_cublaslt_open(const char *path, struct sl_cublaslt *ret_library, struct sl_error *error);
void sl_cublaslt_close(struct sl_cublaslt *library);
