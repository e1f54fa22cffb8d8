/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short measurements, of at most a quarter of a second together, each in the caller's thread. They say what a change would gain on
 * this host; how fast it is say the benchmarks (perf/).
 */
#pragma once

#include <stdbool.h>

struct sl_gaps;

/* Least of several rounds. */
double sl_measure_clock_ns(void);
double sl_measure_call_ns(void);

/* Bound to @cpu meanwhile. False: it may not run there. */
bool sl_measure_gaps(int cpu, struct sl_gaps *ret_gaps);

/* What that takes for a moment. */
#define SL_MEASURE_HUGE_BYTES (68ull << 20)

/* How many times as fast a stream of memory is read from huge pages as from small ones; 0: there are none. */
double sl_measure_huge_speed(void);
