/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library in the place of libcuda.so.1, as cuDNN and cuBLASLt find it where a compiler's process plans for a GPU of this host: it
 * takes as many addresses as a driver does for its devices, unless it is told that there are none, and dies of any call inside the
 * sandbox, where a driver finds neither files nor devices.
 */
#include <cuda.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORTED    __attribute__((visibility("default")))
#define TAKEN_BYTES (16ull << 30)

EXPORTED CUresult CUDAAPI cuDriverGetVersion(int *ret_version);
EXPORTED CUresult CUDAAPI cuInit(unsigned int flags);
EXPORTED CUresult CUDAAPI cuGetProcAddress_v2(
        const char *symbol, void **ret_function, int version, cuuint64_t flags, CUdriverProcAddressQueryResult *ret_found);
EXPORTED CUresult CUDAAPI cuGetExportTable(const void **ret_table, const CUuuid *id);

static void be_outside(void)
{
        static const char words[] = "the driver is called inside the sandbox\n";
        int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);

        if (fd >= 0) {
                close(fd);
                return;
        }
        (void)!write(STDERR_FILENO, words, sizeof(words) - 1);
        abort();
}

CUresult CUDAAPI cuDriverGetVersion(int *ret_version)
{
        be_outside();
        *ret_version = 13000;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuInit(unsigned int flags)
{
        const char *visible = getenv("CUDA_VISIBLE_DEVICES");

        (void)flags;
        be_outside();
        if (visible && !strcmp(visible, "-1"))
                return CUDA_ERROR_NO_DEVICE;
        return mmap(NULL, TAKEN_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED
                       ? CUDA_ERROR_OUT_OF_MEMORY
                       : CUDA_SUCCESS;
}

/* All others. */
static CUresult CUDAAPI lack_devices(void)
{
        be_outside();
        return CUDA_ERROR_NO_DEVICE;
}

CUresult CUDAAPI cuGetProcAddress_v2(
        const char *symbol, void **ret_function, int version, cuuint64_t flags, CUdriverProcAddressQueryResult *ret_found)
{
        (void)version, (void)flags;
        be_outside();
        *ret_function = !strcmp(symbol, "cuInit")               ? (void *)cuInit
                        : !strcmp(symbol, "cuDriverGetVersion") ? (void *)cuDriverGetVersion
                        : !strcmp(symbol, "cuGetProcAddress")   ? (void *)cuGetProcAddress_v2
                                                                : (void *)lack_devices;
        if (ret_found)
                *ret_found = CU_GET_PROC_ADDRESS_SUCCESS;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGetExportTable(const void **ret_table, const CUuuid *id)
{
        (void)ret_table, (void)id;
        be_outside();
        return CUDA_ERROR_NOT_FOUND;
}
