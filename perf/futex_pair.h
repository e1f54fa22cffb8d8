/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bare cost of two sleeping processes waking each other: what a sleeping client and a sleeping runtime are measured against.
 */
#pragma once

#include <stdint.h>

/*
 * Two processes bound to @cpus wait in FUTEX_WAIT and wake each other with FUTEX_WAKE; @pause_us of sleep before each round lets
 * both cores idle, as they do before a lone request. Return: 0 and the median of @rounds, or as sl_pair_start(), -EIO.
 */
int sl_futex_pair_measure(const int cpus[2], uint32_t rounds, uint32_t pause_us, double *ret_p50_ns);
