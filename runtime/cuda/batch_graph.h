/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The graph of one plan at one batch size on one stream, captured once:
 *
 *     copies from the pool's slots --> steps, in the worker's workspace --> copies to the launch's slot for results
 *
 * The steps read and write fixed places; what changes from launch to launch is the far side of the copies, which is set in the
 * executable graph. What is launched keeps the addresses of its moment. The word of findings (session_device.h) is cleared before
 * the steps, and goes with the results, behind the outputs, like another one. Whether the driver shows and sets those addresses is
 * tried when the graph is made: where it does not, the graph has the steps alone, and copies are queued before and behind it. One
 * thread, with the device's context.
 */
#pragma once

#include "cuda/session_device.h"
#include "gpu.h"
#include "graph_ports.h"
#include "plan.h"

/* Where a graph's steps have their ports, where its copies go at first, and where else they may; the last output is the word. */
struct sl_batch_places {
        CUdeviceptr inputs[SL_GRAPH_PORTS_MAX], outputs[SL_GRAPH_PORTS_MAX]; /* of the steps */
        uint64_t sources[SL_GRAPH_PORTS_MAX], results[SL_GRAPH_PORTS_MAX];   /* memory of the device, any */
        uint64_t far_sources[SL_GRAPH_PORTS_MAX], far_results[SL_GRAPH_PORTS_MAX];
};

struct sl_batch_graph {
        const struct sl_cuda_device *device;
        const struct sl_plan_info *info;
        uint32_t batch;
        bool steps_alone; /* copies are no nodes of it */
        CUgraph graph;
        CUgraphExec executable;
        struct sl_graph_ports inputs, outputs;
        CUgraphNode input_copies[SL_GRAPH_PORTS_MAX], output_copies[SL_GRAPH_PORTS_MAX];
        struct sl_batch_places places;
};

/*
 * @instance is on @ground, on whose stream nothing is under way. It runs once before it is captured. Into zeros; deinit it in any
 * case. Return: 0; -ENOMEM; what sl_cuda_errno() and launches say, with what they
 * have told the ground.
 */
int sl_batch_graph_init(struct sl_batch_graph *graph, const struct sl_device *ground, struct sl_instance *instance,
        const struct sl_plan_info *info, uint32_t batch, const struct sl_batch_places *places, struct sl_error *error);
void sl_batch_graph_deinit(struct sl_batch_graph *graph);

/* Return: CUDA_SUCCESS, or what the driver says: the launch did not happen. */
CUresult sl_batch_graph_launch(struct sl_batch_graph *graph, CUstream stream, const uint64_t *sources, const uint64_t *results);
