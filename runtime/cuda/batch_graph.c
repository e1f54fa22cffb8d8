/* SPDX-License-Identifier: Apache-2.0 */
#include "batch_graph.h"

#include "base/error.h"
#include "gpu_program.h"

#include <errno.h>
#include <stdlib.h>

/* What a capture is made of, and what is queued beside its graph. */
struct capture {
        const struct sl_cuda_driver *driver;
        CUstream stream;
        struct sl_instance *instance;
        const struct sl_plan_info *info;
        uint32_t batch;
        const struct sl_batch_places *places;
        const struct sl_error *said; /* NULL: nothing is */
        bool steps_alone;
};

/* From @sources to where the steps read. */
static CUresult copy_inputs(const struct capture *c, const uint64_t *sources)
{
        CUresult result = CUDA_SUCCESS;

        for (uint32_t i = 0; i < c->info->n_inputs && result == CUDA_SUCCESS; i++)
                result = c->driver->memcpy_dtod_async(
                        c->places->inputs[i], sources[i], sl_gpu_port_bytes(&c->info->inputs[i], c->batch), c->stream);
        return result;
}

/* From where the steps write to @results; the word goes with them. */
static CUresult copy_results(const struct capture *c, const uint64_t *results)
{
        const CUdeviceptr *from = c->places->outputs;
        uint32_t n = c->info->n_outputs;
        CUresult result = CUDA_SUCCESS;

        for (uint32_t i = 0; i < n && result == CUDA_SUCCESS; i++)
                result = c->driver->memcpy_dtod_async(
                        results[i], from[i], sl_gpu_port_bytes(&c->info->outputs[i], c->batch), c->stream);
        return result == CUDA_SUCCESS ? c->driver->memcpy_dtod_async(results[n], from[n], sizeof(uint32_t), c->stream) : result;
}

static CUresult clear_word(const struct capture *c)
{
        return c->driver->memset_d8_async(c->places->outputs[c->info->n_outputs], 0, sizeof(uint32_t), c->stream);
}

static int launch_steps(const struct capture *c)
{
        const void *inputs[SL_GRAPH_PORTS_MAX];
        void *outputs[SL_GRAPH_PORTS_MAX];

        for (uint32_t i = 0; i < c->info->n_inputs; i++)
                inputs[i] = (const void *)c->places->inputs[i];
        for (uint32_t i = 0; i < c->info->n_outputs; i++)
                outputs[i] = (void *)c->places->outputs[i];
        return sl_instance_launch(c->instance, c->batch, inputs, outputs);
}

/* With what a library or the driver has said of the node. */
static int explain(const struct capture *c, int status, struct sl_error *error)
{
        int r = sl_instance_explain(c->instance, status, error);
        struct sl_error node = *error;

        return c->said && c->said->text[0] ? sl_error_set(error, -r, "%s: %s", node.text, c->said->text) : r;
}

/*
 * Once before it is captured: libraries and the driver load code and make memory at a first launch, which no capture survives.
 */
static int run_once(const struct capture *c, struct sl_error *error)
{
        int launched = launch_steps(c);

        return launched < 0 ? explain(c, launched, error)
                            : sl_cuda_check(c->driver, c->driver->stream_synchronize(c->stream), error, "a first run of batch %u",
                                      c->batch);
}

/* Whatever fails in between, the capture is ended. */
static int capture_all(const struct capture *c, CUgraph *ret_graph, struct sl_error *error)
{
        int launched = 0;
        CUresult ended, result = c->driver->stream_begin_capture(c->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);

        if (result != CUDA_SUCCESS)
                return sl_cuda_check(c->driver, result, error, "the capture of batch %u", c->batch);
        result = clear_word(c);
        if (result == CUDA_SUCCESS && !c->steps_alone)
                result = copy_inputs(c, c->places->sources);
        if (result == CUDA_SUCCESS)
                launched = launch_steps(c);
        if (result == CUDA_SUCCESS && launched == 0 && !c->steps_alone)
                result = copy_results(c, c->places->results);
        ended = c->driver->stream_end_capture(c->stream, ret_graph);
        if (launched < 0)
                return explain(c, launched, error);
        return sl_cuda_check(c->driver, result != CUDA_SUCCESS ? result : ended, error, "the graph of batch %u", c->batch);
}

/* A node that copies so, of @nodes. */
static CUgraphNode find_copy(
        const struct sl_cuda_driver *driver, const CUgraphNode *nodes, size_t n_nodes, CUdeviceptr to, CUdeviceptr from)
{
        for (size_t i = 0; i < n_nodes; i++) {
                CUgraphNodeType type;
                CUDA_MEMCPY3D copy;

                if (driver->graph_node_get_type(nodes[i], &type) == CUDA_SUCCESS && type == CU_GRAPH_NODE_TYPE_MEMCPY &&
                        driver->graph_memcpy_node_get_params(nodes[i], &copy) == CUDA_SUCCESS && copy.dstDevice == to &&
                        copy.srcDevice == from)
                        return nodes[i];
        }
        return NULL;
}

static int find_copies(struct sl_batch_graph *graph, const struct sl_batch_places *p, const CUgraphNode *nodes, size_t n_nodes)
{
        const struct sl_cuda_driver *driver = graph->device->driver;

        for (uint32_t i = 0; i < graph->inputs.n; i++) {
                graph->inputs.at[i] = p->sources[i];
                graph->input_copies[i] = find_copy(driver, nodes, n_nodes, p->inputs[i], p->sources[i]);
                if (!graph->input_copies[i])
                        return -ENOTSUP;
        }
        for (uint32_t i = 0; i < graph->outputs.n; i++) {
                graph->outputs.at[i] = p->results[i];
                graph->output_copies[i] = find_copy(driver, nodes, n_nodes, p->results[i], p->outputs[i]);
                if (!graph->output_copies[i])
                        return -ENOTSUP;
        }
        return 0;
}

static int find_nodes(struct sl_batch_graph *graph, const struct sl_batch_places *places, struct sl_error *error)
{
        const struct sl_cuda_driver *driver = graph->device->driver;
        size_t n_nodes = 0;
        CUgraphNode *nodes = NULL;
        CUresult result = driver->graph_get_nodes(graph->graph, NULL, &n_nodes);
        int r;

        if (result == CUDA_SUCCESS)
                nodes = calloc(n_nodes + 1, sizeof(*nodes));
        if (result == CUDA_SUCCESS && !nodes)
                return sl_error_set(error, ENOMEM, "no memory for %zu nodes of a graph", n_nodes);
        if (result == CUDA_SUCCESS)
                result = driver->graph_get_nodes(graph->graph, nodes, &n_nodes);
        r = sl_cuda_check(driver, result, error, "the nodes of the graph of batch %u", graph->batch);
        if (r == 0 && find_copies(graph, places, nodes, n_nodes) < 0)
                r = sl_error_set(error, ENOTSUP, "the graph of batch %u lacks copies of its inputs and outputs", graph->batch);
        free(nodes);
        return r;
}

/* One side of a copy: the source of an input's, the destination of an output's. */
static CUresult move_copy(struct sl_batch_graph *graph, CUgraphNode node, bool is_input, uint64_t address)
{
        const struct sl_cuda_driver *driver = graph->device->driver;
        CUDA_MEMCPY3D copy;
        CUresult result = driver->graph_memcpy_node_get_params(node, &copy);

        if (result != CUDA_SUCCESS)
                return result;
        *(is_input ? &copy.srcDevice : &copy.dstDevice) = address;
        return driver->graph_exec_memcpy_node_set_params(graph->executable, node, &copy, graph->device->context);
}

static CUresult move_copies(struct sl_batch_graph *graph, bool is_input, const uint64_t *wanted)
{
        struct sl_graph_ports *ports = is_input ? &graph->inputs : &graph->outputs;
        const CUgraphNode *nodes = is_input ? graph->input_copies : graph->output_copies;
        CUresult result = CUDA_SUCCESS;

        for (uint64_t left = sl_graph_ports_differ(ports, wanted); left && result == CUDA_SUCCESS; left &= left - 1) {
                uint32_t i = (uint32_t)__builtin_ctzll(left);

                result = move_copy(graph, nodes[i], is_input, wanted[i]);
                if (result == CUDA_SUCCESS)
                        ports->at[i] = wanted[i];
        }
        return result;
}

/* To other places and back: that a driver takes them is not known before. */
static bool can_move(struct sl_batch_graph *graph)
{
        const struct sl_batch_places *p = &graph->places;

        return move_copies(graph, true, p->far_sources) == CUDA_SUCCESS &&
               move_copies(graph, false, p->far_results) == CUDA_SUCCESS && move_copies(graph, true, p->sources) == CUDA_SUCCESS &&
               move_copies(graph, false, p->results) == CUDA_SUCCESS;
}

static void drop_graph(struct sl_batch_graph *graph)
{
        if (graph->executable)
                graph->device->driver->graph_exec_destroy(graph->executable);
        if (graph->graph)
                graph->device->driver->graph_destroy(graph->graph);
        graph->executable = NULL;
        graph->graph = NULL;
}

static int make_executable(struct sl_batch_graph *graph, const struct capture *capture, struct sl_error *error)
{
        int r = capture_all(capture, &graph->graph, error);

        if (r == 0 && !capture->steps_alone)
                r = find_nodes(graph, capture->places, error);
        return r < 0 ? r
                     : sl_cuda_check(capture->driver, capture->driver->graph_instantiate(&graph->executable, graph->graph, 0),
                               error, "the graph of batch %u", graph->batch);
}

int sl_batch_graph_init(struct sl_batch_graph *graph, const struct sl_device *ground, struct sl_instance *instance,
        const struct sl_plan_info *info, uint32_t batch, const struct sl_batch_places *places, struct sl_error *error)
{
        const struct sl_cuda_device *device = ground->cuda;
        struct capture capture = {device->driver, ground->stream, instance, info, batch, &graph->places, ground->said, false};
        int r;

        *graph = (struct sl_batch_graph){.device = device,
                .info = info,
                .batch = batch,
                .inputs.n = info->n_inputs,
                .outputs.n = info->n_outputs + 1,
                .places = *places};
        r = run_once(&capture, error);
        if (r < 0)
                return r;
        r = make_executable(graph, &capture, error);
        if ((r < 0 && r != -ENOTSUP) || (r == 0 && can_move(graph)))
                return r;
        drop_graph(graph);
        graph->steps_alone = capture.steps_alone = true;
        return make_executable(graph, &capture, error);
}

void sl_batch_graph_deinit(struct sl_batch_graph *graph)
{
        drop_graph(graph);
        *graph = (struct sl_batch_graph){.batch = 0};
}

/* Copies before and behind the steps. */
static CUresult launch_between_copies(
        struct sl_batch_graph *graph, CUstream stream, const uint64_t *sources, const uint64_t *results)
{
        const struct capture c = {.driver = graph->device->driver,
                .stream = stream,
                .info = graph->info,
                .batch = graph->batch,
                .places = &graph->places};
        CUresult result = copy_inputs(&c, sources);

        if (result == CUDA_SUCCESS)
                result = c.driver->graph_launch(graph->executable, stream);
        return result == CUDA_SUCCESS ? copy_results(&c, results) : result;
}

CUresult sl_batch_graph_launch(struct sl_batch_graph *graph, CUstream stream, const uint64_t *sources, const uint64_t *results)
{
        CUresult result;

        if (graph->steps_alone)
                return launch_between_copies(graph, stream, sources, results);
        result = move_copies(graph, true, sources);
        if (result == CUDA_SUCCESS)
                result = move_copies(graph, false, results);
        return result == CUDA_SUCCESS ? graph->device->driver->graph_launch(graph->executable, stream) : result;
}
