/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/stopwatch.h"

#include <errno.h>
#include <stdlib.h>

#define RUNS 5

/* What is shorter is launched several times in a run: events do not resolve it. */
#define SHORT_NS    100000u
#define SHORT_TIMES 8u

int sl_cuda_stopwatch_init(struct sl_cuda_stopwatch *stopwatch, const struct sl_cuda_driver *driver, CUstream stream,
        void (*breathe)(void *context), void *context)
{
        struct sl_cuda_stopwatch s = {.driver = driver, .stream = stream, .breathe = breathe, .context = context};
        CUresult result = driver->event_create(&s.begin, CU_EVENT_DEFAULT);

        if (result == CUDA_SUCCESS)
                result = driver->event_create(&s.end, CU_EVENT_DEFAULT);
        if (result == CUDA_SUCCESS)
                *stopwatch = s;
        else
                sl_cuda_stopwatch_deinit(&s);
        return sl_cuda_errno(result);
}

void sl_cuda_stopwatch_deinit(struct sl_cuda_stopwatch *s)
{
        if (s->begin)
                s->driver->event_destroy(s->begin);
        if (s->end)
                s->driver->event_destroy(s->end);
        *s = (struct sl_cuda_stopwatch){.driver = NULL};
}

static CUresult wait_for_end(const struct sl_cuda_stopwatch *s)
{
        CUresult result;

        while ((result = s->driver->event_query(s->end)) == CUDA_ERROR_NOT_READY)
                if (s->breathe)
                        s->breathe(s->context);
        return result;
}

/* Whatever the launch says, what was recorded has ended. */
static CUresult run_once(const struct sl_cuda_stopwatch *s, CUresult (*launch)(void *context), void *context, uint64_t *ret_ns)
{
        CUresult launched, result = s->driver->event_record(s->begin, s->stream);
        float ms = 0;

        if (result != CUDA_SUCCESS)
                return result;
        launched = launch(context);
        result = s->driver->event_record(s->end, s->stream);
        if (result == CUDA_SUCCESS)
                result = wait_for_end(s);
        if (result == CUDA_SUCCESS)
                result = launched == CUDA_SUCCESS ? s->driver->event_elapsed_time(&ms, s->begin, s->end) : CUDA_ERROR_INVALID_VALUE;
        *ret_ns = ms > 0 ? (uint64_t)((double)ms * 1e6) + 1 : 1;
        return result;
}

/* ---- as a graph ---- */

struct graph {
        const struct sl_cuda_stopwatch *stopwatch;
        CUgraph made;
        CUgraphExec executable;
};

static CUresult launch_graph(void *context)
{
        const struct graph *graph = context;

        return graph->stopwatch->driver->graph_launch(graph->executable, graph->stopwatch->stream);
}

static void graph_deinit(struct graph *graph)
{
        if (graph->executable)
                graph->stopwatch->driver->graph_exec_destroy(graph->executable);
        if (graph->made)
                graph->stopwatch->driver->graph_destroy(graph->made);
}

static CUresult capture(struct graph *graph, CUresult (*launch)(void *context), void *context, uint32_t times)
{
        const struct sl_cuda_driver *driver = graph->stopwatch->driver;
        CUresult ended, result = driver->stream_begin_capture(graph->stopwatch->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);

        if (result != CUDA_SUCCESS)
                return result;
        for (uint32_t i = 0; i < times && result == CUDA_SUCCESS; i++)
                result = launch(context);
        ended = driver->stream_end_capture(graph->stopwatch->stream, &graph->made);
        if (result != CUDA_SUCCESS || ended != CUDA_SUCCESS)
                return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        return driver->graph_instantiate(&graph->executable, graph->made, 0);
}

static int by_value(const void *a, const void *b)
{
        const uint64_t *left = a, *right = b;

        return (*left > *right) - (*left < *right);
}

static CUresult run_graph(
        const struct sl_cuda_stopwatch *s, CUresult (*launch)(void *context), void *context, uint32_t times, uint64_t *ret_ns)
{
        struct graph graph = {.stopwatch = s};
        uint64_t ns[RUNS] = {0}, first;
        CUresult result = capture(&graph, launch, context, times);

        if (result == CUDA_SUCCESS)
                result = run_once(s, launch_graph, &graph, &first);
        for (uint32_t i = 0; i < RUNS && result == CUDA_SUCCESS; i++)
                result = run_once(s, launch_graph, &graph, &ns[i]);
        graph_deinit(&graph);
        qsort(ns, RUNS, sizeof(ns[0]), by_value);
        *ret_ns = ns[RUNS / 2] / times + 1;
        return result;
}

/* The first launch loads code, and is not counted. */
int sl_cuda_stopwatch_time(
        struct sl_cuda_stopwatch *s, CUresult (*launch)(void *context), void *context, uint64_t bound_ns, uint64_t *ret_ns)
{
        uint64_t ns = 0;
        CUresult result = run_once(s, launch, context, &ns);

        if (result == CUDA_SUCCESS)
                result = run_once(s, launch, context, &ns);
        if (result == CUDA_SUCCESS && !(bound_ns && ns > SHORT_NS && ns > 2 * bound_ns))
                result = run_graph(s, launch, context, ns < SHORT_NS ? SHORT_TIMES : 1, &ns);
        if (result == CUDA_SUCCESS)
                *ret_ns = ns;
        return sl_cuda_errno(result);
}
