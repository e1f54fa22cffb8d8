/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer: bytes -> import, twice, and once more with a few things changed -> portable passes -> match and merge, by Algorithm 1
 * and by costs that follow from the bytes. An error is fine, a crash, a leak or a hang is not; nor is a merged graph that the
 * checker refuses, or one of equal models in which something is not common.
 */
#include "base/error.h"
#include "graph.h"
#include "import.h"
#include "merge/architecture.h"
#include "merge/merge.h"
#include "mutate_model.h"
#include "pass.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LANES 3

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t n_bytes, size_t capacity);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n_bytes, size_t capacity, unsigned seed);

static const struct sl_graph_limits limits = {
        .file_bytes = 1 << 20,
        .constant_bytes = 1 << 22,
        .nodes = 1000,
        .values = 2000,
        .tensor_bytes = 1 << 20,
};

static struct sl_graph *import_portable(const uint8_t *bytes, size_t n_bytes)
{
        struct sl_graph *graph = NULL;

        if (sl_import_onnx_bytes(bytes, n_bytes, &limits, &graph, NULL) < 0)
                return NULL;
        if (sl_passes_run_phase(graph, SL_PASS_PORTABLE, &(struct sl_pass_options){0}, NULL) < 0)
                return sl_graph_free(graph);
        return graph;
}

static struct sl_graph *import_changed(const uint8_t *bytes, size_t n_bytes)
{
        size_t capacity = 2 * n_bytes + 64, n_changed;
        uint8_t *changed = malloc(capacity);
        struct sl_graph *graph;

        if (!changed)
                abort();
        memcpy(changed, bytes, n_bytes);
        n_changed = mutate_model_bytes(n_bytes * 977 + bytes[n_bytes / 2], limits.nodes, changed, n_bytes, capacity);
        graph = import_portable(changed, n_changed);
        free(changed);
        return graph;
}

static double seconds(void *context, const struct sl_node_desc *node, uint64_t constants)
{
        return 1e-6 * (double)((*(const size_t *)context * 31 + node->op * 17 + constants * 7 + node->inputs[0].shape.rank) % 101);
}

static void merge(const struct sl_graph *const *graphs, uint32_t n, const struct sl_merge_costs *costs, bool equal)
{
        struct sl_merge_report report;
        struct sl_graph *merged = NULL;
        struct sl_error error = {0};
        int r;

        if (sl_graph_new(&merged) < 0)
                abort();
        r = sl_merge(graphs, n, &(struct sl_merge_options){.costs = costs}, merged, &report, &error);
        if ((r == 1 && sl_graph_check(merged, &error) < 0) || (r >= 0 && equal && report.n_breaks) || (r == 0 && merged->n_nodes)) {
                fprintf(stderr, "%s %s\n", error.text, r >= 0 && report.n_breaks ? report.breaks[0].text : "");
                abort();
        }
        sl_graph_free(merged);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
        struct sl_graph *graphs[LANES] = {import_portable(bytes, n_bytes)};
        const struct sl_merge_costs costs = {.seconds = seconds, .context = &n_bytes, .batch = 2};

        if (!graphs[0])
                return 0;
        graphs[1] = import_portable(bytes, n_bytes);
        graphs[2] = import_changed(bytes, n_bytes);
        if (!graphs[1])
                abort();
        merge((const struct sl_graph *const *)graphs, 2, NULL, true);
        merge((const struct sl_graph *const *)graphs, graphs[2] ? 3 : 2, &costs, false);
        for (uint32_t i = 0; i < LANES; i++)
                sl_graph_free(graphs[i]);
        return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n_bytes, size_t capacity, unsigned seed)
{
        size_t mutated = seed % 2 ? mutate_model_bytes(seed, limits.nodes, bytes, n_bytes, capacity) : 0;

        return mutated ? mutated : LLVMFuzzerMutate(bytes, n_bytes, capacity);
}
