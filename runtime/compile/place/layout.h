/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In which layouts the nodes of a graph should run, when every way of running them and every reorder has its price: the cheapest
 * chain, by dynamic programming over the nodes in order. All that counts of the past is in which layouts the values lie that
 * somebody still reads; of the pasts that agree in this only the cheapest is kept, and of the rest the SL_LAYOUT_PASTS_MAX
 * cheapest. As long as there are no more, the result is the optimum. Pure.
 *
 * Sources: Y. Liu, Y. Wang, R. Yu, M. Li, V. Sharma, Y. Wang, "Optimizing CNN Model Inference on CPUs", USENIX ATC 2019,
 * section 3.3.
 */
#pragma once

#include "tensor.h"

#include <stdbool.h>
#include <stdint.h>

#define SL_LAYOUT_WAYS_MAX  4
#define SL_LAYOUT_PASTS_MAX 128
#define SL_LAYOUT_LIVE_MAX  64 /* values that have a layout and are still read */

/* One way of running a node: the layout of what it reads and makes. */
struct sl_layout_way {
        enum sl_layout in, out;
        double seconds;
};

struct sl_layout_read {
        uint32_t value;
        bool plain; /* whatever the way */
};

struct sl_layout_node {
        uint32_t n_ways, n_reads, n_makes;
        const struct sl_layout_way *ways;
        const struct sl_layout_read *reads;
        const uint32_t *makes; /* values */
};

/* A value that no node makes lies PLAIN from the start; so must those lie in the end that are outputs. */
struct sl_layout_problem {
        uint32_t n_nodes, n_values, n_outputs;
        const struct sl_layout_node *nodes;
        const double *reorder_seconds; /* of each value; 0: its bytes are the same in both layouts */
        const uint32_t *outputs;
};

/*
 * @ret_ways: of each node, the index of its way. @ret_seconds: of the whole chain.
 * Return: 0; -E2BIG more values live at a time; -ENOTSUP a node without a way; -ENOMEM.
 */
int sl_layout_solve(const struct sl_layout_problem *problem, uint32_t *ret_ways, double *ret_seconds);
