/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a GPU is, as cuDNN wants to know it to plan for one that is not there. Plain values; the same figures give the same plans.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Field, the name that cuDNN has for it. Three more are lists or a text, and no numbers. */
#define SL_CUDA_FIGURES(X)                                                                                                         \
        X(capability, deviceVer) /* 900: 9.0 */                                                                                    \
        X(driver_version, driverVer)                                                                                               \
        X(cuda_version, cudaVersion)                                                                                               \
        X(memory_bytes, totalGlobalMem)                                                                                            \
        X(n_processors, multiProcessorCount)                                                                                       \
        X(block_registers, regsPerBlock)                                                                                           \
        X(processor_registers, maxRegistersPerSM)                                                                                  \
        X(block_shared_bytes, maxSharedMemoryPerBlock)                                                                             \
        X(block_shared_bytes_max, maxSharedMemoryPerBlockOptin)                                                                    \
        X(block_reserved_bytes, reservedSharedMemoryPerBlock)                                                                      \
        X(block_threads, maxThreadsPerBlock)                                                                                       \
        X(processor_threads, maxThreadsPerSM)                                                                                      \
        X(processor_blocks, maxCtasPerSM)                                                                                          \
        X(warp_threads, warpSize)                                                                                                  \
        X(clock_khz, smClockRateKHz)                                                                                               \
        X(memory_clock_khz, memClockRateKHz)                                                                                       \
        X(cache_bytes, l2CacheSize)

struct sl_cuda_figures {
#define X(field, name) int64_t field;
        SL_CUDA_FIGURES(X)
#undef X
        int64_t grid[3], block[3];
        char name[96];
};

/* Hopper, with 132 multiprocessors, as NVIDIA's data sheets and drivers describe it. */
extern const struct sl_cuda_figures sl_cuda_figures_h100, sl_cuda_figures_h200;

#define SL_CUDA_FIGURES_TEXT_BYTES 1024

/* As JSON, the same figures always the same text. Return: 0; -EINVAL the name has characters that need an escape. */
int sl_cuda_figures_print(const struct sl_cuda_figures *figures, char ret_text[SL_CUDA_FIGURES_TEXT_BYTES]);

/* The same back; or the figures of "h100" and "h200". False: it is neither, a figure is missing, or one is no number from 0 on. */
bool sl_cuda_figures_parse(const char *text, struct sl_cuda_figures *ret_figures);

/* Of some GPU, whose text says the same. Zeros, which stand for one that is not known, are not. */
bool sl_cuda_figures_are_sound(const struct sl_cuda_figures *figures);
