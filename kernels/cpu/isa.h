/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of the own kernels this processor runs. Files that are compiled for AVX-512 are named in the build file; whoever calls
 * into one of them has asked here first.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* AVX-512 F, BW, DQ and VL with FMA, on the processor and saved by the system. */
bool sl_cpu_has_avx512(void);

/* Bytes of the second-level cache of one core; a guess of 1 MiB where the system does not say. */
int64_t sl_cpu_cache_bytes(void);
