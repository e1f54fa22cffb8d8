/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small-K GEMM: a product of rows by a packed panel (gemm.h) of so little depth K that a vector of the panel's columns stays in
 * registers while all rows pass by. Where there are 16 or 24 terms to a sum, a block of gemm.h takes as long to begin and end as to
 * add. The bits are those of gemm.h.
 *
 * Only for processors with AVX-512. Pure; any thread.
 */
#pragma once

#include "cpu/gemm/gemm.h"

static inline bool sl_small_k_takes(int64_t depth)
{
        return sl_cpu_has_avx512() && (depth == 16 || depth == 24);
}

/* One panel at most; without residual. */
void sl_small_k_run(const struct sl_gemm *gemm);
