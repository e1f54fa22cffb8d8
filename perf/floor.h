/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floor: what one cache line costs from one core to another and back. No message between two processes can be answered
 * faster, so every latency here is also given as a multiple of it. It depends on which physical cores the machine happens to give
 * (60 to 400 ns with the same binary): a benchmark measures it before and after, in the same run.
 */
#pragma once

/*
 * Two processes bound to @cpus write one word in turn and spin with PAUSE in between. The median over 3,000 blocks of 100 rounds
 * each, of the mean round of a block: no clock is read inside of a block. Return: 0, or as sl_pair_start().
 */
int sl_floor_measure(const int cpus[2], double *ret_floor_ns);

/*
 * The same over a tenth of the blocks. Whether a machine is still the same wants no more, and each block is long where others use
 * the cores.
 */
int sl_floor_estimate(const int cpus[2], double *ret_floor_ns);

/*
 * The same with a line for each direction, as two one-way rings must have it: here each line is only ever written by one side and
 * polled by the other, and every transfer first has to take it from the poller. What no pair of rings can be faster than.
 */
int sl_floor_measure_two_lines(const int cpus[2], double *ret_ns);
