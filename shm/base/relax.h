/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread does between two looks at a word that another core will change. <immintrin.h> has 40,000 lines for this one.
 */
#pragma once

#if defined(__x86_64__)
static inline void sl_relax(void)
{
        __builtin_ia32_pause();
}
#else
static inline void sl_relax(void)
{
#if defined(__aarch64__)
        __asm__ volatile("isb" ::: "memory");
#else
        __asm__ volatile("" ::: "memory");
#endif
}
#endif
