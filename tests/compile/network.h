/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small graphs for tests, built node by node, with random weights that depend on nothing but the order of calls. One thread.
 */
#pragma once

#include "graph.h"

#include <stdint.h>

struct network {
        struct sl_graph *graph;
        uint64_t state; /* of the random numbers */
        uint32_t inputs[4], outputs[4];
        uint32_t n_inputs, n_outputs;
        bool uncut; /* its plan is for one thread */

        /* Its plan is for a team of so many, whose call takes so many seconds; 0: for all CPUs, and nearly nothing, so that teams
         * cut what they can, however small. */
        uint32_t team_size;
        double barrier;
};

struct attribute {
        uint32_t id; /* enum sl_attr_id */
        uint32_t n;  /* 0: a single integer */
        int64_t ints[8];
};

void network_init(struct network *network);
void network_deinit(struct network *network);

/* A graph input; -1 (SL_DIM_BATCH) may stand among the dimensions. */
uint32_t network_input(struct network *network, uint32_t dtype, uint32_t rank, const int64_t *dims);

/* A float constant of random numbers around 0, or around 1 (positive, for variances). */
uint32_t network_weights(struct network *network, uint32_t rank, const int64_t *dims);
uint32_t network_scales(struct network *network, uint32_t rank, const int64_t *dims);

/* Adds a node, infers its shape, returns its first output. */
uint32_t network_node(struct network *network, uint32_t op, uint32_t n_inputs, const uint32_t *inputs, uint32_t n_attributes,
        const struct attribute *attributes);

/* One input, no attributes. */
uint32_t network_apply(struct network *network, uint32_t op, uint32_t input);

/* k x k, stride, padded to keep the size, with a bias. */
uint32_t network_conv(
        struct network *network, uint32_t input, int64_t from, int64_t to, int64_t kernel, int64_t stride, int64_t group);

uint32_t network_batch_norm(struct network *network, uint32_t input, int64_t channels);

void network_output(struct network *network, uint32_t value);

/* After the last node and output. */
void network_finish(struct network *network);

/* Random numbers in [-1, 1). */
float network_random(struct network *network);

#define DIMS(...)                                                                                                                  \
        (sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[])                                                    \
        {                                                                                                                          \
                __VA_ARGS__                                                                                                        \
        }
#define VALUES(...)                                                                                                                \
        (sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)), (const uint32_t[])                                                 \
        {                                                                                                                          \
                __VA_ARGS__                                                                                                        \
        }
#define ATTRS(...)                                                                                                                 \
        (sizeof((struct attribute[]){__VA_ARGS__}) / sizeof(struct attribute)), (const struct attribute[])                         \
        {                                                                                                                          \
                __VA_ARGS__                                                                                                        \
        }

/* The network's plan file in a memfd, compiled in this process. Fails the test when it cannot be. */
int network_plan_fd(struct network *network, const char *backend, uint32_t batch_max);
