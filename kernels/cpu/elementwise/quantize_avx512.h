/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of floats, or bytes, to bytes on processors that sl_cpu_has_avx512() says yes of. Pure; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The nearest of x / scale, ties to even, plus @zero, within [@low, @low + 255]; a NaN becomes 0. The low byte of each is stored.
 */
void sl_quantize_avx512(int64_t n, uint8_t *restrict y, const float *restrict x, float scale, int32_t zero, int32_t low);

/* The least and the greatest of them and of 0; a NaN is not among them. */
void sl_range_avx512(int64_t n, const float *x, float *ret_least, float *ret_most);

/* Bytes that become others: x beyond its zero point times its factor, the addend (NULL: none) likewise, rounded; then the zero
 * point of the result, cut. */
struct sl_byte_sum {
        const void *x, *addend;
        uint8_t *y;
        float x_factor, addend_factor, x_zero, addend_zero, y_zero, low, high; /* the last two are values of the result's type */
        bool x_signed, addend_signed;
};
void sl_sum_bytes_avx512(int64_t n, const struct sl_byte_sum *sum);
