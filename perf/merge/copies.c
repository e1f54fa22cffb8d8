/* SPDX-License-Identifier: Apache-2.0 */
#include "copies.h"

#include "base/error.h"
#include "graph.h"
#include "import.h"
#include "pass.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void copies_die(const char *what, const char *why)
{
        fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, why);
        exit(1);
}

float copies_random(uint64_t *state)
{
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        return (float)(int32_t)(uint32_t)(*state >> 32) / 2147483648.0f;
}

void *copies_bytes_new(uint64_t bytes)
{
        void *data = aligned_alloc(64, (bytes + 64) & ~63ull);

        if (!data)
                copies_die("memory", "none left");
        memset(data, 0, bytes);
        return data;
}

/* Weights of lane @lane: a little larger or smaller than those of the file. */
static void perturb(struct sl_graph *graph, uint32_t lane)
{
        uint64_t state = lane + 1;

        for (uint32_t i = 0; i < graph->n_values && lane; i++) {
                struct sl_value *value = &graph->values[i];
                const float *from = sl_graph_constant(graph, i);
                float *data;

                if (!from || value->dead || value->tensor.dtype != SL_DTYPE_F32 || value->data_bytes <= sizeof(float))
                        continue;
                data = sl_graph_alloc(graph, value->data_bytes);
                if (!data)
                        copies_die("memory", "none left");
                for (uint64_t k = 0; k < value->data_bytes / sizeof(float); k++)
                        data[k] = from[k] * (1 + 0.02f * copies_random(&state));
                value->data = data;
                sl_graph_drop_copies(graph);
        }
}

static uint32_t add_constant(struct sl_graph *graph, uint32_t rank, const int64_t *dims, uint64_t seed)
{
        struct sl_tensor tensor = {.dtype = SL_DTYPE_F32, .shape.rank = rank};
        uint32_t value = SL_VALUE_NONE;
        float *data;

        memcpy(tensor.shape.dims, dims, rank * sizeof(*dims));
        data = sl_graph_alloc(graph, sl_tensor_bytes(&tensor));
        for (uint64_t i = 0; data && i < sl_shape_elements(&tensor.shape); i++)
                data[i] = 0.2f * copies_random(&seed);
        if (!data || sl_graph_add_constant(graph, "weights", &tensor, data, &value) < 0)
                copies_die("memory", "none left");
        return value;
}

static uint32_t add_node(struct sl_graph *graph, uint32_t op, const uint32_t *inputs, uint32_t n_inputs, uint32_t *ret_node)
{
        const struct sl_tensor nothing = {.dtype = SL_DTYPE_F32};
        char name[32];
        uint32_t value = SL_VALUE_NONE;

        snprintf(name, sizeof(name), "node%u", graph->n_nodes);
        if (sl_graph_add_value(graph, name, SL_VALUE_COMPUTED, &nothing, &value) < 0 ||
                sl_graph_add_node(graph, op, name, inputs, n_inputs, &value, 1, ret_node) < 0)
                copies_die("memory", "none left");
        return value;
}

static uint32_t add_input(struct sl_graph *graph, struct sl_shape shape)
{
        struct sl_tensor tensor = {.dtype = SL_DTYPE_F32, .shape = shape};
        uint32_t value = SL_VALUE_NONE;

        if (sl_graph_add_value(graph, "input", SL_VALUE_INPUT, &tensor, &value) < 0)
                copies_die("memory", "none left");
        return value;
}

/* Products with a bias and a Relu behind each but the last. */
static uint32_t build_mlp(struct sl_graph *graph, const int64_t *widths, uint32_t n, uint32_t x)
{
        uint32_t node;

        for (uint32_t i = 0; i + 1 < n; i++) {
                const uint32_t inputs[] = {
                        x, add_constant(graph, 2, &widths[i], i), add_constant(graph, 1, &widths[i + 1], i + 99)};

                x = add_node(graph, SL_OP_MATMUL, inputs, 3, &node);
                graph->nodes[node].epilogue.activation = i + 2 < n ? SL_ACT_RELU : SL_ACT_NONE;
        }
        return x;
}

/* Eight convolutions of 3x3 one behind the other, with a bias and a Relu. */
static uint32_t build_convolutions(struct sl_graph *graph, int64_t channels, uint32_t x)
{
        const int64_t dims[] = {channels, channels, 3, 3}, pads[] = {1, 1, 1, 1}, ones[] = {1, 1}, window[] = {3, 3};
        uint32_t node;

        for (uint32_t i = 0; i < 8; i++) {
                const uint32_t inputs[] = {x, add_constant(graph, 4, dims, i), add_constant(graph, 1, dims, i + 99)};
                struct sl_attrs *attrs;

                x = add_node(graph, SL_OP_CONV, inputs, 3, &node);
                attrs = &graph->nodes[node].attrs;
                if (sl_attrs_set_ints(attrs, SL_ATTR_KERNEL_SHAPE, window, 2) < 0 ||
                        sl_attrs_set_ints(attrs, SL_ATTR_PADS, pads, 4) < 0 ||
                        sl_attrs_set_ints(attrs, SL_ATTR_STRIDES, ones, 2) < 0 ||
                        sl_attrs_set_ints(attrs, SL_ATTR_DILATIONS, ones, 2) < 0 || sl_attrs_set_int(attrs, SL_ATTR_GROUP, 1) < 0)
                        copies_die("attributes", "no room");
                graph->nodes[node].epilogue.activation = SL_ACT_RELU;
        }
        return x;
}

static uint32_t read_numbers(const char *text, int64_t *ret_numbers, uint32_t room)
{
        uint32_t n = 0;

        for (char *end; n < room && *text; text = *end ? end + 1 : end) {
                ret_numbers[n] = strtoll(text, &end, 10);
                if (end == text || ret_numbers[n] < 1 || ret_numbers[n] > 65536)
                        copies_die(text, "a number from 1 to 65536 is wanted");
                n++;
        }
        return n;
}

static struct sl_graph *build(const char *model)
{
        struct sl_graph *graph;
        struct sl_error error = {""};
        int64_t numbers[8];
        uint32_t n, x, y;

        if (sl_graph_new(&graph) < 0)
                copies_die("memory", "none left");
        n = read_numbers(strchr(model, ':') + 1, numbers, 8);
        if (n < 2)
                copies_die(model, "two numbers and more are wanted");
        if (!strncmp(model, "mlp:", 4)) {
                x = add_input(graph, (struct sl_shape){.rank = 2, .dims = {SL_DIM_BATCH, numbers[0]}});
                y = build_mlp(graph, numbers, n, x);
        } else {
                x = add_input(graph, (struct sl_shape){.rank = 4, .dims = {SL_DIM_BATCH, numbers[0], numbers[1], numbers[1]}});
                y = build_convolutions(graph, numbers[0], x);
        }
        if (sl_graph_infer(graph, &error) < 0 || sl_graph_set_ports(graph, &x, 1, &y, 1) < 0)
                copies_die(model, error.text);
        return graph;
}

static bool is_weight(const struct sl_graph *graph, const struct sl_node *node, uint32_t input)
{
        return input < node->n_inputs && sl_graph_is_constant(graph, node->inputs[input]) &&
               graph->values[node->inputs[input]].tensor.shape.rank == 2;
}

/* A product with a bias makes output 0, as wide as @width: in the place of the last product if one makes it, else behind it. */
static void give_head(const char *model, struct sl_graph *graph, int64_t width)
{
        uint32_t last = graph->outputs[0], producer = sl_graph_producer(graph, last), node, y;
        const struct sl_node *maker = &graph->nodes[producer];
        uint32_t x = last;
        struct sl_error error = {""};
        int64_t dims[2];

        if ((maker->op == SL_OP_GEMM || maker->op == SL_OP_MATMUL) && is_weight(graph, maker, 1))
                x = maker->inputs[0];
        dims[0] = graph->values[x].tensor.shape.dims[graph->values[x].tensor.shape.rank - 1];
        dims[1] = width;
        y = add_node(graph, SL_OP_MATMUL, (uint32_t[]){x, add_constant(graph, 2, dims, (uint64_t)width)}, 2, &node);
        y = add_node(graph, SL_OP_ADD, (uint32_t[]){y, add_constant(graph, 1, &dims[1], (uint64_t)width + 1)}, 2, &node);
        if (sl_graph_infer(graph, &error) < 0 || sl_graph_set_ports(graph, graph->inputs, graph->n_inputs, &y, 1) < 0)
                copies_die(model, error.text);
}

struct sl_graph *copies_load(const char *model, uint32_t lane, int64_t head)
{
        struct sl_graph *graph = NULL;
        struct sl_error error = {""};

        if (!strncmp(model, "mlp:", 4) || !strncmp(model, "conv:", 5))
                graph = build(model);
        else if (sl_import_onnx(model, NULL, &graph, &error) < 0)
                copies_die(model, error.text);
        perturb(graph, lane);
        if (head)
                give_head(model, graph, head);
        if (sl_passes_run_phase(graph, SL_PASS_PORTABLE, &(struct sl_pass_options){0}, &error) < 0)
                copies_die(model, error.text);
        return graph;
}

void *copies_input_new(const struct sl_port *port, uint32_t batch, uint64_t *state)
{
        struct sl_tensor tensor = {.dtype = port->dtype, .shape = port->shape};
        void *data;

        if (port->batch_axis == 0)
                tensor.shape.dims[0] = batch;
        data = copies_bytes_new(sl_tensor_bytes(&tensor));
        for (uint64_t i = 0; i < sl_shape_elements(&tensor.shape); i++)
                if (port->dtype == SL_DTYPE_F32)
                        ((float *)data)[i] = copies_random(state);
                else if (port->dtype == SL_DTYPE_I64)
                        ((int64_t *)data)[i] = 1;
        return data;
}

uint64_t copies_port_bytes(const struct sl_port *port, uint32_t batch)
{
        struct sl_tensor tensor = {.dtype = port->dtype, .shape = port->shape};

        if (port->batch_axis == 0)
                tensor.shape.dims[0] = batch;
        return sl_tensor_bytes(&tensor);
}
