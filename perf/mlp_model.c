/* SPDX-License-Identifier: Apache-2.0 */
#include "mlp_model.h"

#include "onnx_file.h"

#include <stdint.h>
#include <stdio.h>

#define WEIGHTS_MAX (SL_MLP_MODEL_INPUTS * SL_MLP_MODEL_HIDDEN)

/* In [-0.125, 0.125), the same each time. */
static float next_value(uint32_t *state)
{
        *state = *state * 1664525u + 1013904223u;
        return ((float)(*state >> 8) / 16777216.0f - 0.5f) / 4;
}

static void add_values(struct sl_onnx_bytes *graph, const char *name, const uint32_t *dims, uint32_t rank, uint32_t *state)
{
        float values[WEIGHTS_MAX];
        uint32_t n = rank == 2 ? dims[0] * dims[1] : dims[0];

        for (uint32_t i = 0; i < n; i++)
                values[i] = next_value(state);
        sl_onnx_weight(graph, name, dims, rank, values);
}

/* NodeProto: input 1, output 2, name 3, op_type 4. GraphProto: node 1. */
static void add_node(struct sl_onnx_bytes *graph, const char *type, const char *const *inputs, uint32_t n, const char *output)
{
        struct sl_onnx_bytes node = {0};

        for (uint32_t i = 0; i < n; i++)
                sl_onnx_text(&node, 1, inputs[i]);
        sl_onnx_text(&node, 2, output);
        sl_onnx_text(&node, 3, output);
        sl_onnx_text(&node, 4, type);
        sl_onnx_message(graph, 1, &node);
}

int sl_mlp_model_write(const char *repository)
{
        const uint32_t first[] = {SL_MLP_MODEL_INPUTS, SL_MLP_MODEL_HIDDEN}, second[] = {SL_MLP_MODEL_HIDDEN, SL_MLP_MODEL_OUTPUTS};
        struct sl_onnx_bytes graph = {0};
        uint32_t state = 1;

        add_node(&graph, "Gemm", (const char *const[]){"features", "weight1", "bias1"}, 3, "sums");
        add_node(&graph, "Relu", (const char *const[]){"sums"}, 1, "hidden");
        add_node(&graph, "Gemm", (const char *const[]){"hidden", "weight2", "bias2"}, 3, "scores");
        add_values(&graph, "weight1", first, 2, &state);
        add_values(&graph, "bias1", &first[1], 1, &state);
        add_values(&graph, "weight2", second, 2, &state);
        add_values(&graph, "bias2", &second[1], 1, &state);
        sl_onnx_port(&graph, 11, "features", &first[0], 1);
        sl_onnx_port(&graph, 12, "scores", &second[1], 1);
        return sl_onnx_write(&graph, "perceptron", repository, SL_MLP_MODEL_NAME);
}
