/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The most multiply-adds per second that this core has been seen to do: a matrix product in fp32 that fits into its second cache.
 * One thread, the calling one.
 */
#pragma once

struct sl_error;

/* Takes about @seconds. *ret_flops: floating-point operations per second, 2 for a multiply-add. Return: 0; -ENOMEM, -ENOTSUP. */
int sl_peak_measure(double seconds, double *ret_flops, struct sl_error *error);
