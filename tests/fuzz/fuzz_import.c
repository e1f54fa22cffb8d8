/*
 * libFuzzer: bytes -> import -> passes -> specialise. An error is fine, a crash, a leak or a hang is not. The limits are small so
 * that a run is quick; the arithmetic that guards them is the same.
 */
#include "base/error.h"
#include "graph.h"
#include "import.h"
#include "pass.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

static const struct sl_graph_limits limits = {
        .file_bytes = 1 << 20,
        .constant_bytes = 1 << 22,
        .nodes = 1000,
        .values = 2000,
        .tensor_bytes = 1 << 20,
};

static void specialise(const struct sl_graph *graph, int64_t batch)
{
        struct sl_graph *special = NULL;
        struct sl_error error;

        if (sl_graph_specialise(graph, batch, &special, &error) == 0 && sl_graph_check(special, &error) < 0)
                abort();
        sl_graph_free(special);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
        struct sl_graph *graph = NULL;
        struct sl_error error;

        if (sl_import_onnx_bytes(bytes, n_bytes, &limits, &graph, &error) < 0)
                return 0;
        if (sl_graph_check(graph, &error) < 0)
                abort();
        specialise(graph, 1);
        if (sl_passes_run(graph, 0, &error) == 0)
                specialise(graph, 3);
        sl_graph_free(graph);
        return 0;
}
