/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library in the place of libcuda.so.1, as it might be found: a driver of MADE_VERSION, which lacks the function MADE_WITHOUT.
 * What it has does nothing.
 */
#include <cuda.h>

#include <string.h>

__attribute__((visibility("default"))) CUresult CUDAAPI cuDriverGetVersion(int *ret_version)
{
        *ret_version = MADE_VERSION;
        return CUDA_SUCCESS;
}

static CUresult CUDAAPI made_nothing(void)
{
        return CUDA_ERROR_NO_DEVICE;
}

__attribute__((visibility("default"))) CUresult CUDAAPI cuGetProcAddress_v2(
        const char *symbol, void **ret_function, int version, cuuint64_t flags, CUdriverProcAddressQueryResult *ret_found)
{
        (void)version, (void)flags;
        *ret_function = strcmp(symbol, MADE_WITHOUT) ? (void *)made_nothing : NULL;
        *ret_found = *ret_function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
        return *ret_function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
