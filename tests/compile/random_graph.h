/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ONNX files at random, as exporters might have written them for inputs that lead with the batch: operators whose meaning depends
 * on a dimension being 1, and arithmetic on shapes. Each node makes sense at one batch size at least. The same seed gives the same
 * file.
 */
#pragma once

#include "builder.h"

#define RANDOM_VALUES_MAX 48
#define RANDOM_BODIES_MAX 8
#define RANDOM_RANK_MAX   4
#define RANDOM_INPUTS_MAX 2

struct random_value {
        char name[8];
        struct sl_tensor tensor; /* at the batch size that was tried */
};

struct random_graph {
        struct builder *b, *bodies[RANDOM_BODIES_MAX];
        uint64_t state;
        int64_t tried; /* batch size */
        uint32_t n_inputs, n_values, n_bodies;
        struct random_value values[RANDOM_VALUES_MAX]; /* the inputs come first */
        Onnx__NodeProto **nodes;                       /* all that were made */
        size_t n_nodes;
};

void random_graph_init(struct random_graph *g, uint64_t seed);
void random_graph_deinit(struct random_graph *g);

/* The inputs lead with @batch; -1: with a dimension that is open. */
void random_graph_set_batch(struct random_graph *g, int64_t batch);

/* The file has this one output, and the nodes that it needs. */
void random_graph_set_output(struct random_graph *g, uint32_t value);

/* How it is made: a number below @limit; one more node, or none; an output while there are all nodes. */
uint32_t random_graph_below(struct random_graph *g, uint32_t limit);
void random_graph_step(struct random_graph *g);
void random_graph_declare(struct random_graph *g, uint32_t value);

void random_graph_print(const struct random_graph *g, FILE *stream);
