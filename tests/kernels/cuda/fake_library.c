/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fake driver as a library in the place of libcuda.so.1, for programs that open one. The environment says what it shows:
 * FAKE_CUDA_DEVICES, FAKE_CUDA_MAJOR, FAKE_CUDA_MEMORY and FAKE_CUDA_GRANULARITY (bytes), FAKE_CUDA_VERSION, and with
 * FAKE_CUDA_LOSE_AT the launch of a graph, from 1 on, at which the device is lost; with FAKE_CUDA_MUTE who opens it waits for ever;
 * with FAKE_CUDA_ONLY=1 what is said of MAJOR, MEMORY, LOSE_AT and MUTE holds for gpu:1 alone. While there is a file
 * FAKE_CUDA_STANDS, nothing ends that is timed: who asks is then called "timing". Each launch of a graph takes FAKE_CUDA_GRAPH_US
 * of the thread that asks for it. FAKE_CUDA_COUNTS names a file of words that count (fake_counts.h). FAKE_CUDA_WHOLE: it has the
 * own kernels and is cuDNN and cuBLASLt as well (fake_exports.c).
 */
#include "fake_counts.h"
#include "fake_driver.h"

#ifdef FAKE_CUDA_WHOLE
#include "fake_libraries.h"
#include "host/kernels.h"
#endif

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

static struct sl_cuda_driver driver, counted; /* as the program has it; as it is without counting */
static struct fake_counts *counts;
static CUresult CUDAAPI (*fast_launch)(CUgraphExec graph, CUstream stream);
static unsigned long long graph_us;

static unsigned long long number(const char *name, unsigned long long standard)
{
        const char *text = getenv(name);

        return text ? strtoull(text, NULL, 10) : standard;
}

/* The process of a GPU has its number as the second argument. */
static bool is_meant(void)
{
        const char *only = getenv("FAKE_CUDA_ONLY");
        char line[512] = "";
        FILE *file = only ? fopen("/proc/self/cmdline", "r") : NULL;
        size_t bytes = file ? fread(line, 1, sizeof(line) - 1, file) : 0;
        const char *command = line + strlen(line) + 1;

        if (file)
                fclose(file);
        return !only || (command < line + bytes && strcmp(command, "gpu") == 0 && strcmp(command + 4, only) == 0);
}

#ifdef FAKE_CUDA_WHOLE
static void know_kernels(struct fake_cuda_options *options)
{
        static struct fake_cuda_kernel kernels[SL_OWN_KERNEL_COUNT + FAKE_LIBRARY_KERNELS];

        memcpy(kernels, host_kernels, sizeof(host_kernels));
        memcpy(kernels + SL_OWN_KERNEL_COUNT, fake_library_kernels, sizeof(fake_library_kernels));
        options->kernels = kernels;
        options->n_kernels = SL_OWN_KERNEL_COUNT + FAKE_LIBRARY_KERNELS;
        fake_libraries_begin(&driver);
}
#else
static void know_kernels(struct fake_cuda_options *options)
{
        (void)options;
}
#endif

static bool stands(void)
{
        const char *file = getenv("FAKE_CUDA_STANDS");

        if (!file || access(file, F_OK) < 0)
                return false;
        prctl(PR_SET_NAME, "timing");
        return true;
}

static CUresult CUDAAPI count_launch(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
        unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, CUstream stream,
        void **arguments, void **extra)
{
        const struct fake_cuda_kernel *kernel = (const struct fake_cuda_kernel *)function;

        if (!strncmp(kernel->name, "sl_combine_", 11))
                atomic_fetch_add_explicit(&counts->combinations, 1, memory_order_relaxed);
        return counted.launch_kernel(
                function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, arguments, extra);
}

static CUresult CUDAAPI count_return(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
        atomic_fetch_add_explicit(&counts->returns, 1, memory_order_relaxed);
        return counted.memcpy_dtoh_async(to, from, bytes, stream);
}

static CUresult CUDAAPI launch_slowly(CUgraphExec graph, CUstream stream)
{
        usleep((useconds_t)graph_us);
        return fast_launch(graph, stream);
}

/* The file stays mapped: its process may close a sandbox around itself. */
static void count_in(const char *path)
{
        int fd = open(path, O_RDWR | O_CLOEXEC);
        void *memory = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        if (fd >= 0)
                close(fd);
        if (memory == MAP_FAILED)
                return;
        counts = memory;
        counted = driver;
        driver.launch_kernel = count_launch;
        driver.memcpy_dtoh_async = count_return;
}

__attribute__((constructor)) static void begin(void)
{
        struct fake_cuda_options options = fake_cuda_defaults();

        bool meant = is_meant();

        options.n_devices = (int)number("FAKE_CUDA_DEVICES", 1);
        options.major = meant ? (int)number("FAKE_CUDA_MAJOR", 9) : 9;
        options.memory_bytes = meant ? number("FAKE_CUDA_MEMORY", 1ull << 30) : 1ull << 30;
        options.granularity = number("FAKE_CUDA_GRANULARITY", options.granularity);
        options.stands = stands;
        know_kernels(&options);
        fake_cuda_begin(&options, &driver);
        graph_us = number("FAKE_CUDA_GRAPH_US", 0);
        fast_launch = driver.graph_launch;
        if (graph_us)
                driver.graph_launch = launch_slowly;
        if (getenv("FAKE_CUDA_COUNTS"))
                count_in(getenv("FAKE_CUDA_COUNTS"));
        if (meant && getenv("FAKE_CUDA_LOSE_AT"))
                fake_cuda_fail(FAKE_CUDA_graph_launch, (uint32_t)number("FAKE_CUDA_LOSE_AT", 1), CUDA_ERROR_ILLEGAL_ADDRESS);
}

EXPORTED CUresult CUDAAPI cuDriverGetVersion(int *ret_version);
EXPORTED CUresult CUDAAPI cuDriverGetVersion(int *ret_version)
{
        while (getenv("FAKE_CUDA_MUTE") && is_meant())
                pause();
        *ret_version = (int)number("FAKE_CUDA_VERSION", SL_CUDA_DRIVER_VERSION);
        return CUDA_SUCCESS;
}

EXPORTED CUresult CUDAAPI cuGetProcAddress_v2(
        const char *symbol, void **ret_function, int version, cuuint64_t flags, CUdriverProcAddressQueryResult *ret_found);
EXPORTED CUresult CUDAAPI cuGetProcAddress_v2(
        const char *symbol, void **ret_function, int version, cuuint64_t flags, CUdriverProcAddressQueryResult *ret_found)
{
        (void)version, (void)flags;
        *ret_function = NULL;
#define X(field, name, number_of_version)                                                                                          \
        if (!strcmp(symbol, "cu" #name))                                                                                           \
                *ret_function = (void *)driver.field;
        SL_CUDA_DRIVER_CALLS(X)
#undef X
        *ret_found = *ret_function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
        return *ret_function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
