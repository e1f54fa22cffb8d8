/*
 * What a thread does between two looks at a word that another one will change.
 */
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
static inline void sl_relax(void)
{
        _mm_pause();
}
#elif defined(__aarch64__)
static inline void sl_relax(void)
{
        __asm__ volatile("yield" ::: "memory");
}
#else
static inline void sl_relax(void)
{
        __asm__ volatile("" ::: "memory");
}
#endif
