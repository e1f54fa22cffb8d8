/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cheap time stamps for round trips of a few hundred cycles, where clock_gettime() would be a good part of what it measures.
 */
#pragma once

#include "base/clock.h"
#include "base/relax.h"

#include <stdint.h>

#if defined(__x86_64__)
static inline uint64_t sl_ticks(void)
{
        return __builtin_ia32_rdtsc();
}
#elif defined(__aarch64__)
static inline uint64_t sl_ticks(void)
{
        uint64_t value;

        __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
        return value;
}
#else
static inline uint64_t sl_ticks(void)
{
        return sl_clock_ns();
}
#endif

/* Nanoseconds per tick, measured over 20 ms. */
static inline double sl_ticks_scale(void)
{
        uint64_t start_ns = sl_clock_ns(), start = sl_ticks(), now_ns;

        do
                now_ns = sl_clock_ns();
        while (now_ns - start_ns < 20 * SL_NS_PER_MS);
        return (double)(now_ns - start_ns) / (double)(sl_ticks() - start);
}
