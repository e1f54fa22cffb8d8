/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A product by a matrix of 4 bits an element (starling.NibbleMatMul). Input 1 is [columns, blocks, BLOCK_SIZE / 2] of uint8: of
 * each column its blocks, of each block its elements from the lowest bits on, as com.microsoft's MatMulNBits has them. Input 2 has
 * the scale of each block, input 3, if it is there, its zero point as a byte; without it that is 8. BLOCK_SIZE is a multiple of 8.
 * What the last block has too many is not read.
 *
 * With MODE 0 a result is the sum of a * (q - zero) * scale. With MODE 1 the rows go by bytes: each block of a row is divided by
 * 1 / 127 of its largest magnitude and rounded to the nearest integer, ties to even, both in float32; what is multiplied is that,
 * and the sum of the block times both scales is what is added. A block whose largest magnitude has no such quotient (below
 * 127 / FLT_MAX) is 0. One that has a NaN or an infinity makes all results of its row NaN.
 */
#pragma once

#include "node.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define SL_NIBBLE_GROUP     8         /* what a block is a multiple of */
#define SL_NIBBLE_BLOCK_MAX (1 << 16) /* with MODE 1: sums of a block fit 32 bits */

enum sl_nibble_mode { SL_NIBBLE_FLOATS, SL_NIBBLE_BYTES };

struct sl_nibbles {
        int64_t depth, columns, block, blocks;
        uint32_t mode;
        bool has_zeros;
};

struct sl_error;

/* Sizes that are not known stay SL_DIM_UNKNOWN. -EINVAL: a shape or attribute that does not fit. */
int sl_nibbles_read(const struct sl_node_desc *node, struct sl_nibbles *ret_nibbles, struct sl_error *error);

/* By what a block of a row is divided, and the factor with which it becomes bytes, from its largest magnitude. */
static inline void sl_nibble_scale(float most, float *ret_scale, float *ret_factor)
{
        float factor = 127.0f / most;

        *ret_scale = isinf(factor) ? 0.0f : most / 127.0f;
        *ret_factor = isinf(factor) ? 0.0f : factor;
        if (!(most <= 3.402823466e38f)) {
                *ret_scale = NAN;
                *ret_factor = 0.0f;
        }
}
