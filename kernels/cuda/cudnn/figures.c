/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/cudnn/figures.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define HOPPER                                                                                                                     \
        .capability = 900, .driver_version = 13000, .cuda_version = 13000, .n_processors = 132, .block_registers = 65536,          \
        .processor_registers = 65536, .block_shared_bytes = 49152, .block_shared_bytes_max = 232448, .block_reserved_bytes = 1024, \
        .block_threads = 1024, .processor_threads = 2048, .processor_blocks = 32, .warp_threads = 32, .clock_khz = 1980000,        \
        .grid = {2147483647, 65535, 65535}, .block = {1024, 1024, 64}

const struct sl_cuda_figures sl_cuda_figures_h100 = {
        HOPPER, .memory_bytes = 80ll << 30, .memory_clock_khz = 2619000, .cache_bytes = 50 << 20, .name = "NVIDIA H100 80GB HBM3"};

const struct sl_cuda_figures sl_cuda_figures_h200 = {
        HOPPER, .memory_bytes = 141ll << 30, .memory_clock_khz = 3201000, .cache_bytes = 60 << 20, .name = "NVIDIA H200"};

static int print_list(const char *name, const int64_t values[3], char *text, size_t room)
{
        return snprintf(text, room, ",\"%s\":[%" PRId64 ",%" PRId64 ",%" PRId64 "]", name, values[0], values[1], values[2]);
}

int sl_cuda_figures_print(const struct sl_cuda_figures *figures, char ret_text[SL_CUDA_FIGURES_TEXT_BYTES])
{
        char *at = ret_text;
        const char *end = ret_text + SL_CUDA_FIGURES_TEXT_BYTES;

        for (const char *c = figures->name; *c; c++)
                if (*c == '"' || *c == '\\' || !isprint((unsigned char)*c))
                        return -EINVAL;
        /* The numbers have at most 20 digits each, so that all of it fits. */
        at += snprintf(at, (size_t)(end - at), "{\"cudaDeviceId\":0,\"smVersion\":%" PRId64, figures->capability);
#define X(field, name) at += snprintf(at, (size_t)(end - at), ",\"" #name "\":%" PRId64, figures->field);
        SL_CUDA_FIGURES(X)
#undef X
        at += print_list("maxGridSize", figures->grid, at, (size_t)(end - at));
        at += print_list("maxBlockSize", figures->block, at, (size_t)(end - at));
        snprintf(at, (size_t)(end - at), ",\"pciDeviceId\":0,\"isTccDriver\":0,\"supportCoopLaunch\":1,\"deviceName\":\"%s\"}",
                figures->name);
        return 0;
}
