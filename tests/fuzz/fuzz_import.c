/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer: bytes -> import -> passes -> specialise -> placement, memory plan, plan file -> checked, made executable, and run when
 * it is small. An error is fine, a crash, a leak or a hang is not; nor is a plan file of ours that the checker refuses. The limits
 * are small so that a run is quick; the arithmetic that guards them is the same.
 *
 * Half of the mutations are of bytes, half of the parsed message: those give files that are well-formed and mean something else.
 */
#include "backend.h"
#include "base/error.h"
#include "graph.h"
#include "import.h"
#include "import/wire.h"
#include "lower.h"
#include "lower_options.h"
#include "pass.h"
#include "plan.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

static void specialise(const struct sl_graph *graph, int64_t batch)
{
        struct sl_graph *special = NULL;
        struct sl_error error;

        if (sl_graph_specialise(graph, batch, &special, &error) == 0 && sl_graph_check(special, &error) < 0)
                abort();
        sl_graph_free(special);
}

#define WORKSPACE_BYTES_MAX (1u << 20)
#define MULTIPLY_ADDS_MAX   (1u << 20)
#define WORK_MAX            (1u << 26)
#define PORT_BYTES          (1u << 20)

/* Numbers that are good and bad indices by turns. */
static void *port_new(const struct sl_port *port)
{
        struct sl_tensor tensor = {.dtype = port->dtype, .layout = SL_LAYOUT_PLAIN, .shape = port->shape};
        uint8_t *data;

        if (port->batch_axis == 0)
                tensor.shape.dims[0] = 1;
        if (sl_tensor_bytes(&tensor) > PORT_BYTES)
                return NULL;
        data = aligned_alloc(64, (sl_tensor_bytes(&tensor) + 64) & ~63ull);
        for (uint64_t i = 0; data && i < sl_tensor_bytes(&tensor); i++)
                data[i] = (uint8_t)(i % 8 ? 0 : i / 8 % 3);
        return data;
}

static void run(const struct sl_plan *plan)
{
        const struct sl_plan_info *info = sl_plan_info(plan);
        void *inputs[SL_PLAN_PORTS_MAX] = {NULL}, *outputs[SL_PLAN_PORTS_MAX] = {NULL};
        struct sl_open_output open[SL_PLAN_PORTS_MAX] = {{0}};
        struct sl_instance *instance = NULL;
        bool ready = info->multiply_adds <= MULTIPLY_ADDS_MAX && sl_instance_new(plan, 1, &instance, NULL) == 0;

        for (uint32_t i = 0; i < info->n_inputs && ready; i++)
                ready = (inputs[i] = port_new(&info->inputs[i])) != NULL;
        for (uint32_t i = 0; i < info->n_outputs && ready; i++) {
                open[i].capacity_bytes = PORT_BYTES;
                outputs[i] = sl_port_is_open(&info->outputs[i]) ? aligned_alloc(64, PORT_BYTES) : port_new(&info->outputs[i]);
                ready = outputs[i] != NULL;
        }
        if (ready)
                (void)sl_instance_run_open(instance, 1, (const void *const *)inputs, outputs, open, NULL);
        for (uint32_t i = 0; i < SL_PLAN_PORTS_MAX; i++) {
                free(inputs[i]);
                free(outputs[i]);
        }
        sl_instance_free(instance);
}

/* Every fourth on `cpu`, whose kernels take long to make. */
static void lower(const struct sl_graph *graph, bool cpu)
{
        struct sl_lower_options options;
        struct sl_lowered *lowered = NULL;
        struct sl_plan *plan = NULL;
        struct sl_error error;
        int fd = memfd_create("plan", MFD_CLOEXEC);

        sl_lower_options_init(&options);
        options.backend = !cpu;
        options.batch_max = 2;
        options.workspace_bytes_max = WORKSPACE_BYTES_MAX;
        options.work_max = WORK_MAX;
        if (fd >= 0 && sl_lowered_new(graph, &options, &lowered, &error) == 0 && sl_lowered_write(lowered, fd, &error) == 0) {
                if (sl_plan_open(fd, &plan, &error) < 0) {
                        fprintf(stderr, "%s\n", error.text);
                        abort();
                }
                run(plan);
        }
        sl_plan_free(plan);
        sl_lowered_free(lowered);
        if (fd >= 0)
                close(fd);
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
        int result = sl_passes_run(graph, &(struct sl_pass_options){.backend = sl_backend_find("cpu")}, &error);

        /* The graph was right before; a pass that breaks it is a bug, an index out of bounds in its data is not. */
        if (result == -EINVAL && strstr(error.text, "after pass"))
                abort();
        if (result == 0)
                specialise(graph, 3);
        if (result == 0)
                lower(graph, n_bytes % 4 == 0);
        sl_graph_free(graph);
        return 0;
}

struct dice {
        uint64_t state;
};

static uint32_t roll(struct dice *dice, size_t sides)
{
        dice->state = dice->state * 6364136223846793005ull + 1442695040888963407ull;
        return sides ? (uint32_t)((dice->state >> 33) % sides) : 0;
}

static int64_t interesting(struct dice *dice)
{
        static const int64_t numbers[] = {
                0, 1, -1, 2, 3, -2, 4, 8, 16, 100, 65536, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 1ll << 40};

        return numbers[roll(dice, sizeof(numbers) / sizeof(*numbers))];
}

static char *copy_text(const char *text)
{
        char *copy = strdup(text ? text : "");

        if (!copy)
                abort();
        return copy;
}

static void replace_text(char **text, const char *other)
{
        char *copy = copy_text(other);

        free(*text);
        *text = copy;
}

/* Some name of the graph: of an output of a node, an initializer or an input. */
static const char *any_name(struct dice *dice, const Onnx__GraphProto *graph)
{
        uint32_t kind = roll(dice, 3);

        if (kind == 0 && graph->n_initializer)
                return graph->initializer[roll(dice, graph->n_initializer)]->name;
        if (kind == 1 && graph->n_input)
                return graph->input[roll(dice, graph->n_input)]->name;
        const Onnx__NodeProto *node = graph->n_node ? graph->node[roll(dice, graph->n_node)] : NULL;

        return node && node->n_output ? node->output[roll(dice, node->n_output)] : "";
}

static void mutate_attribute(struct dice *dice, Onnx__AttributeProto *attr)
{
        if (attr->n_ints && roll(dice, 4))
                attr->ints[roll(dice, attr->n_ints)] = interesting(dice);
        else if (attr->n_ints)
                attr->n_ints--;
        else if (attr->has_i)
                attr->i = interesting(dice);
        else
                replace_text(&attr->name, sl_attr_name(roll(dice, SL_ATTR_COUNT)));
}

static void mutate_node(struct dice *dice, const Onnx__GraphProto *graph, Onnx__NodeProto *node)
{
        switch (roll(dice, 4)) {
        case 0:
                replace_text(&node->op_type, sl_op_name(roll(dice, SL_OP_COUNT)));
                break;
        case 1:
                if (node->n_attribute)
                        mutate_attribute(dice, node->attribute[roll(dice, node->n_attribute)]);
                break;
        case 2:
                if (node->n_input)
                        replace_text(&node->input[roll(dice, node->n_input)], any_name(dice, graph));
                break;
        default:
                if (node->n_input > 1)
                        free(node->input[--node->n_input]);
        }
}

static void mutate_tensor(struct dice *dice, Onnx__TensorProto *tensor)
{
        if (tensor->n_dims && roll(dice, 2))
                tensor->dims[roll(dice, tensor->n_dims)] = interesting(dice);
        else if (tensor->n_dims > 1 && roll(dice, 2))
                tensor->n_dims--;
        else if (tensor->raw_data.len && roll(dice, 3))
                tensor->raw_data.data[roll(dice, tensor->raw_data.len)] = (uint8_t)interesting(dice);
        else
                tensor->data_type = (int32_t)roll(dice, SL_DTYPE_LIMIT);
}

static void mutate_input(struct dice *dice, Onnx__ValueInfoProto *info)
{
        Onnx__TypeProto__Tensor *type =
                info->type && info->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ? info->type->tensor_type : NULL;

        if (!type || !type->shape || !type->shape->n_dim)
                return;
        Onnx__TensorShapeProto__Dimension *dim = type->shape->dim[roll(dice, type->shape->n_dim)];

        if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
                dim->dim_value = interesting(dice);
        else
                type->elem_type = (int32_t)roll(dice, SL_DTYPE_LIMIT);
}

/* The graph itself, or now and then one of the bodies in it. */
static Onnx__GraphProto *pick_graph(struct dice *dice, Onnx__GraphProto *graph)
{
        for (size_t i = 0; i < graph->n_node; i++)
                for (size_t k = 0; k < graph->node[i]->n_attribute; k++)
                        if (graph->node[i]->attribute[k]->g && roll(dice, 2))
                                return pick_graph(dice, graph->node[i]->attribute[k]->g);
        return graph;
}

static void mutate_model(struct dice *dice, Onnx__ModelProto *model)
{
        Onnx__GraphProto *graph = pick_graph(dice, model->graph);

        switch (roll(dice, 8)) {
        case 0:
                if (model->n_opset_import)
                        model->opset_import[0]->version = 7 + roll(dice, 15);
                break;
        case 1:
                if (graph->n_input)
                        mutate_input(dice, graph->input[roll(dice, graph->n_input)]);
                break;
        case 2:
        case 3:
                if (graph->n_initializer)
                        mutate_tensor(dice, graph->initializer[roll(dice, graph->n_initializer)]);
                break;
        default:
                if (graph->n_node)
                        mutate_node(dice, graph, graph->node[roll(dice, graph->n_node)]);
        }
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n_bytes, size_t capacity, unsigned seed)
{
        const struct sl_wire_limits wire = {.nodes = limits.nodes, .messages = 100000};
        struct dice dice = {.state = seed};
        Onnx__ModelProto *model = NULL;

        if (!roll(&dice, 2) || sl_wire_check(&onnx__model_proto__descriptor, bytes, n_bytes, &wire, NULL) < 0)
                return LLVMFuzzerMutate(bytes, n_bytes, capacity);
        if (sl_wire_parse_model(bytes, n_bytes, &model, NULL) < 0)
                return LLVMFuzzerMutate(bytes, n_bytes, capacity);
        for (uint32_t i = 0; model->graph && i <= roll(&dice, 4); i++)
                mutate_model(&dice, model);
        if (onnx__model_proto__get_packed_size(model) <= capacity)
                n_bytes = onnx__model_proto__pack(model, bytes);
        sl_wire_free_model(model);
        return n_bytes;
}
