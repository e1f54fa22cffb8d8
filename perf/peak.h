/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a core multiplies and adds at most: sums in registers alone. No state; any thread, bound to a CPU.
 */
#pragma once

/* Operations a second, two for a multiply-add: of the shortest of several runs. The processor has AVX2. */
double sl_peak_flops(void);
