/* SPDX-License-Identifier: Apache-2.0 */
/* Sleep on the words of several links at once. Functions without state; any thread. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#define SL_GPU_SLEEP_WORDS_MAX 128 /* the kernel's bound */

/* Until a word is no longer what it was, somebody wakes one, or @limit_ns have passed. */
void sl_gpu_sleep(const _Atomic uint32_t *const *words, const uint32_t *values, uint32_t n, uint64_t limit_ns);
