/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What base/vector_bf16.h does to numbers in memory, as each processor that has it does. A test that asks for one has asked isa.h.
 */
#pragma once

#include <stdint.h>

/* @n numbers, the last vector of which may be incomplete. */
void narrow_lanes_avx512(const float *from, int64_t n, uint16_t *to);
void narrow_lanes_avx2(const float *from, int64_t n, uint16_t *to);
void widen_lanes_avx512(const uint16_t *from, int64_t n, float *to);
void widen_lanes_avx2(const uint16_t *from, int64_t n, float *to);
