/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of tensors of 16 bits that lie in float32 while they are computed with. @dtype: SL_DTYPE_F16 or SL_DTYPE_BF16. */
#pragma once

#include <stdint.h>

#define SL_NARROW_PIECE 512 /* elements, of which a kernel has room beside it; any number may be converted */

void sl_narrow_piece_load(uint32_t dtype, int64_t n, float *to, const void *from, int64_t step);
void sl_narrow_piece_store(uint32_t dtype, int64_t n, void *to, const float *from);
