/* SPDX-License-Identifier: Apache-2.0 */
#include "conv_model.h"

#include "onnx_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* AttributeProto: name 1, ints 8, type 20 (INTS is 7). */
static void add_ints(struct sl_onnx_bytes *node, const char *name, const int *values, int n)
{
        struct sl_onnx_bytes attribute = {0};

        sl_onnx_text(&attribute, 1, name);
        for (int i = 0; i < n; i++)
                sl_onnx_number(&attribute, 8, (uint64_t)values[i]);
        sl_onnx_number(&attribute, 20, 7);
        sl_onnx_message(node, 5, &attribute);
}

/* NodeProto: input 1, output 2, name 3, op_type 4, attribute 5. GraphProto: node 1. */
static void add_convolution(struct sl_onnx_bytes *graph, uint32_t layer, const char *input, const char *output)
{
        struct sl_onnx_bytes node = {0};
        char name[16];

        snprintf(name, sizeof(name), "conv%u", layer);
        sl_onnx_text(&node, 1, input);
        sl_onnx_text(&node, 1, "weight");
        sl_onnx_text(&node, 2, output);
        sl_onnx_text(&node, 3, name);
        sl_onnx_text(&node, 4, "Conv");
        add_ints(&node, "kernel_shape", (int[]){3, 3}, 2);
        add_ints(&node, "pads", (int[]){1, 1, 1, 1}, 4);
        sl_onnx_message(graph, 1, &node);
}

static void add_relu(struct sl_onnx_bytes *graph, uint32_t layer, const char *input, const char *output)
{
        struct sl_onnx_bytes node = {0};
        char name[16];

        snprintf(name, sizeof(name), "relu%u", layer);
        sl_onnx_text(&node, 1, input);
        sl_onnx_text(&node, 2, output);
        sl_onnx_text(&node, 3, name);
        sl_onnx_text(&node, 4, "Relu");
        sl_onnx_message(graph, 1, &node);
}

static void add_layers(struct sl_onnx_bytes *graph, uint32_t layers)
{
        char input[16] = "image", middle[16], output[16];

        for (uint32_t layer = 0; layer < layers; layer++) {
                snprintf(middle, sizeof(middle), "sum%u", layer);
                if (layer + 1 < layers)
                        snprintf(output, sizeof(output), "part%u", layer);
                else
                        snprintf(output, sizeof(output), "features");
                add_convolution(graph, layer, input, middle);
                add_relu(graph, layer, middle, output);
                memcpy(input, output, sizeof(input));
        }
}

/* Each output is the mean of its inputs. */
static void add_mean_weight(struct sl_onnx_bytes *graph, uint32_t channels)
{
        const uint32_t dims[] = {channels, channels, 3, 3};
        size_t n = (size_t)channels * channels * 9;
        float *values = malloc(n * sizeof(*values));

        if (!values) {
                graph->failed = 1;
                return;
        }
        for (size_t i = 0; i < n; i++)
                values[i] = 1.0f / (float)(channels * 9);
        sl_onnx_weight(graph, "weight", dims, 4, values);
        free(values);
}

int sl_conv_model_write(const struct sl_conv_model *model, const char *repository, const char *name)
{
        const uint32_t dims[] = {model->channels, model->side, model->side};
        struct sl_onnx_bytes graph = {0};

        add_layers(&graph, model->layers);
        add_mean_weight(&graph, model->channels);
        sl_onnx_port(&graph, 11, "image", dims, 3);
        sl_onnx_port(&graph, 12, "features", dims, 3);
        return sl_onnx_write(&graph, "convolutions", repository, name);
}
