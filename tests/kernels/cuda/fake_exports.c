/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of cuDNN and cuBLASLt that are not there, under their names, for programs that open a library. */
#include "fake_libraries.h"

#define EXPORTED __attribute__((visibility("default")))

#define X(field, name)                                                                                                             \
        static __typeof__(name) *find_##name(void)                                                                                 \
        {                                                                                                                          \
                return fake_cudnn.field;                                                                                           \
        }                                                                                                                          \
        EXPORTED __typeof__(name) name __attribute__((ifunc("find_" #name)));
SL_CUDNN_CALLS(X)
#undef X

#define X(field, name)                                                                                                             \
        static __typeof__(name) *find_##name(void)                                                                                 \
        {                                                                                                                          \
                return fake_cublaslt.field;                                                                                        \
        }                                                                                                                          \
        EXPORTED __typeof__(name) name __attribute__((ifunc("find_" #name)));
SL_CUBLASLT_CALLS(X)
#undef X

EXPORTED size_t CUDNNWINAPI cudnnGetVersion(void)
{
        return (size_t)fake_cudnn.version;
}

EXPORTED size_t CUBLASWINAPI cublasLtGetVersion(void)
{
        return (size_t)fake_cublaslt.version;
}
