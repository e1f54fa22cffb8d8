/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph of static shapes run on a backend one node at a time, every value in memory of its own, so that a calibration can look at
 * all of them. For tools: it allocates as it likes. One owner thread.
 */
#pragma once

#include <stdint.h>

struct sl_error;
struct sl_graph;
struct sl_observation;

/* Sees one float32 value of the graph: its index there, its elements in any order. */
typedef void sl_observer(void *context, uint32_t value, const float *data, uint64_t elements);

/* @graph: of sl_graph_specialise(); must outlive the observation. @backend: by name; its kernels run in any process. Return: 0;
 * -ENOTSUP, -ENOMEM; the text names the node. */
int sl_observation_new(
        const struct sl_graph *graph, const char *backend, struct sl_observation **ret_observation, struct sl_error *error);
struct sl_observation *sl_observation_free(struct sl_observation *observation);

/*
 * Computes, and shows the inputs and every value that a node made. Return: 0; -ERANGE an index in the data is out of range; what
 * else a kernel says; the text names the node.
 */
int sl_observation_run(struct sl_observation *observation, const void *const *inputs, sl_observer *observer, void *context,
        struct sl_error *error);
