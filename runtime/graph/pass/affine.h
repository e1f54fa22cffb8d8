/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scale and a shift for each channel, which the weights and the bias of the Conv, Gemm or MatMul before can have in them. The
 * arithmetic is in double precision, so that the weights are rounded once. Private to this folder.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_fold_budget;
struct sl_graph;

struct sl_affine {
        const double *scale, *shift; /* for each channel */
        uint32_t channels;
};

/*
 * @host, which has that many channels (sl_bias_channels()) and a constant matrix or filters of float32, computes what @node made of
 * its output; @node dies. -ENOMEM.
 */
int sl_affine_fold(struct sl_graph *graph, uint32_t host, const struct sl_affine *affine, uint32_t node);

/* Weights that many nodes share are copied for each: only as far as the budget goes. */
bool sl_affine_afford(const struct sl_graph *graph, uint32_t host, struct sl_fold_budget *budget);
