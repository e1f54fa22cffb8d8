/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the sums of a product of bytes to what is stored: bias, factor of the channel, residual, activation, bytes or float32. A
 * plain value, made at plan time. Pure; any thread.
 */
#pragma once

#include "node.h"

#include <stdbool.h>
#include <stdint.h>

#define SL_BYTE_COLUMNS_MAX 256 /* that are stored at a time */

struct sl_byte_epilogue {
        uint32_t y_dtype, addend_dtype; /* of the residual; SL_DTYPE_NONE: there is none */
        float y_factor, y_zero;         /* bytes: real number times this, rounded, plus this */
        float low, high;                /* in steps of the result */
        float addend_scale, addend_zero;
        uint32_t activation; /* enum sl_activation that is more than a limit */
        float act_a;
        int32_t bias_limit;        /* up to which a bias and a sum stay within 32 bits: the caller knows its sums */
        bool has_bias, has_scales; /* false: one scale for all channels */
};

/* Rows of sums that lie @sums_stride apart, and where their first column stands in the tensors, whose rows have @channels. */
struct sl_byte_sums {
        int32_t *sums; /* lost */
        int64_t sums_stride, rows, columns;
        int64_t row, column, channels;
};

/* False: no own code for the activation or the residual. */
bool sl_byte_epilogue_plan(const struct sl_node_desc *node, struct sl_byte_epilogue *ret_epilogue);

/* @bias and @residual may be NULL. */
void sl_byte_epilogue(const struct sl_byte_epilogue *epilogue, const struct sl_byte_sums *block, const float *scales,
        const int32_t *bias, const void *residual, void *y);
