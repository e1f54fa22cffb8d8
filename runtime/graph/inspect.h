/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `starling inspect` says about a model, as text or as JSON. Pure but for the stream; any thread that owns the graphs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct sl_error;
struct sl_graph;

/* What the compiler's memory plan takes, for one batch size. The caller has it from runtime/compile, which this folder does not
 * see. */
struct sl_inspect_memory {
        uint32_t batch;
        uint64_t workspace_bytes; /* activations and scratch, with buffers reused */
        uint64_t sum_bytes;       /* of all activations, were none reused; 0: not known */
        uint64_t bound_bytes;     /* alive at the same time at the worst step: no plan needs less */
};

/* Where a node of the plan runs, and by which algorithm, at the smallest batch. */
#define SL_INSPECT_WHY_BYTES 128
struct sl_inspect_node {
        const char *name;                            /* of any length */
        const char *operator, * backend, *algorithm; /* "" where there was no choice */
        char why[SL_INSPECT_WHY_BYTES];              /* the choice in words; "" likewise */
        const char *weights;  /* what the option `weights` made of its weights: "f16", "bf16", "fp32" where one does not fit; "" */
        uint64_t saved_bytes; /* of them */
};

struct sl_inspect_plan {
        const char *backend;
        uint64_t weights_bytes; /* packed, shared by all batch sizes */
        const struct sl_inspect_memory *memory;
        uint32_t n_memory;
        const struct sl_inspect_node *nodes;
        uint32_t n_nodes;
};

/*
 * @raw: as imported. @optimised: the same after sl_passes_run(). @plan: may be NULL, then nothing is said of memory.
 * Multiply-adds are those of one sample: of a batch of 1, or of the batch that the file fixes.
 *
 * JSON: {"name", "opset", "ir_version", "inputs": [{"name", "dtype", "shape": [null for the batch, ...], "labels": [...] if any}], "outputs": ...,
 * "parameters", "parameter_bytes", "multiply_adds", "nodes": {"before", "after"}, "operators": [{"name", "before", "after"}],
 * "plan": {"backend", "weights_bytes", "memory": [{"batch", "workspace_bytes", "bound_bytes", "sum_bytes"}],
 * "nodes": [{"name", "operator", "backend", "algorithm", "why", "weights", "saved_bytes"}]} or null,
 * "variant": {what the file says of itself under keys that begin with "starling."}}. As text, only nodes that had a choice, that
 * have their weights in halves or should have, or that the plan's own backend lacks, are listed.
 *
 * Return: 0; -ENOTSUP, -EINVAL when the graph cannot be specialised (the text says why); -ENOMEM; -EIO.
 */
int sl_inspect(const struct sl_graph *raw, const struct sl_graph *optimised, const struct sl_inspect_plan *plan, bool json,
        FILE *stream, struct sl_error *error);
