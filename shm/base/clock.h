/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CLOCK_MONOTONIC in nanoseconds: the one clock of the wire, of deadlines and of statistics. Any thread.
 */
#pragma once

#include <stdint.h>
#include <time.h>

#define SL_NS_PER_SECOND 1000000000ull
#define SL_NS_PER_MS     1000000ull
#define SL_NS_PER_US     1000ull

static inline uint64_t sl_clock_ns(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * SL_NS_PER_SECOND + (uint64_t)now.tv_nsec;
}
