/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a compiled model costs in memory, for `starling inspect` and for tests: nothing is written.
 */
#pragma once

#include "inspect.h"
#include "plan.h"

#include <stdint.h>

struct sl_error;
struct sl_graph;
struct sl_lower_options;

struct sl_compile_figures {
        char backend[16];
        uint64_t weights_bytes; /* packed, padded, each content once: shared by all batch sizes */
        uint64_t multiply_adds; /* of one sample */
        uint32_t n_batches, batchable;
        struct sl_inspect_memory memory[SL_PLAN_BATCHES_MAX];
        uint64_t lower_bound_bytes[SL_PLAN_BATCHES_MAX]; /* the most that is alive in one step: no plan needs less */
        uint32_t n_steps[SL_PLAN_BATCHES_MAX];           /* kernels that run, copies and reorders included */
        uint32_t n_reorders[SL_PLAN_BATCHES_MAX];
        struct sl_inspect_node *nodes; /* steps of the smallest batch, in order, then those of bodies; owned */
        uint32_t n_nodes;
};

/* @graph: after the passes. Return: 0, or what sl_lowered_new() says. */
int sl_compile_figures(const struct sl_graph *graph, const struct sl_lower_options *options, struct sl_compile_figures *ret_figures,
        struct sl_error *error);

/* Frees what the figures own; those that were never filled may be zero. */
void sl_compile_figures_free(struct sl_compile_figures *figures);
