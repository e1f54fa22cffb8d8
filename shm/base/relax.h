/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread does between two looks at a word that another core will change, and how it gets ready to write one.
 *
 * A line that two cores read belongs to neither: the next write has to take it away from the other core first, which costs as
 * much as handing it over. So whoever writes next asks for the line while there is time (sl_own), and whoever waits for that
 * write leaves the line alone as long as it cannot have come (a rest). On a processor where the ping-pong of one line takes
 * 107 ns, a round trip over a submission and a completion ring takes 375 ns without, and 90 to 150 ns with both.
 */
#pragma once

#include <stdint.h>

/* The least time in which the other side can have taken a message and answered it. */
#define SL_REST_NS 90u

#if defined(__x86_64__)
#include <immintrin.h>
static inline void sl_relax(void)
{
        _mm_pause();
}

/* A hint: processors that lack the instruction do nothing. */
static inline void sl_own(const volatile void *line)
{
        __asm__ volatile("prefetchw %0" : : "m"(*(const volatile char *)line));
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

static inline void sl_own(const volatile void *line)
{
        __builtin_prefetch((const void *)line, 1);
}
#endif

/* How often sl_relax() fits into @ns, at least once: it takes 10 to 50 ns, depending on the processor. Measures for some 5 us. */
uint32_t sl_relaxes_in(uint32_t ns);
