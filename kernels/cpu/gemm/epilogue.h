/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of an own kernel: what happens to an element between the sum and the store. Bias, residual and whatever is a clip happen
 * in registers; the other activations are a second pass over a block that still lies in the L1 cache.
 *
 * A plain value, made at plan time. Pure; any thread.
 */
#pragma once

#include "cpu/base/isa.h"
#include "node.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_cpu_epilogue {
        float least, most;   /* the clip; infinities for none */
        uint32_t activation; /* enum sl_activation that comes after the clip, SL_ACT_NONE for most */
        float act_a;
        bool has_residual;
};

/* False: no own code for this activation, or a residual that does not lie as the output does. */
bool sl_cpu_epilogue_plan(const struct sl_node_desc *node, struct sl_cpu_epilogue *ret_epilogue);

/* epilogue->activation over a block of @rows x @columns. For processors with AVX2. */
SL_TILES(void, sl_cpu_epilogue_activate,
        (const struct sl_cpu_epilogue *epilogue, float *data, int64_t stride, int64_t rows, int64_t columns),
        (epilogue, data, stride, rows, columns))

/* Whether the passes below have this activation on this processor: all of them with AVX2. */
bool sl_cpu_epilogue_passes(uint32_t activation);

/* All of the epilogue but its residual over @n elements. A NaN stays one. */
void sl_cpu_epilogue_pass(const struct sl_cpu_epilogue *epilogue, float *data, int64_t n);

/* The same of bfloat16; with an activation on processors with AVX2 alone. */
void sl_cpu_epilogue_pass_bf16(const struct sl_cpu_epilogue *epilogue, uint16_t *data, int64_t n);

/* epilogue->activation over @n elements of bfloat16, in float32 and rounded. */
SL_TILES(void, sl_cpu_epilogue_activate_bf16, (const struct sl_cpu_epilogue *epilogue, uint16_t *data, int64_t n),
        (epilogue, data, n))
