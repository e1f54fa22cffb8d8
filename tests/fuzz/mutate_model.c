/* SPDX-License-Identifier: Apache-2.0 */
#include "mutate_model.h"

#include "attr.h"
#include "base/dtype.h"
#include "import/wire.h"
#include "op.h"

#include <stdlib.h>
#include <string.h>

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

static void mutate_once(struct dice *dice, Onnx__ModelProto *model)
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

void mutate_model(uint64_t seed, Onnx__ModelProto *model)
{
        struct dice dice = {.state = seed};

        for (uint32_t i = 0; model->graph && i <= roll(&dice, 4); i++)
                mutate_once(&dice, model);
}

size_t mutate_model_bytes(uint64_t seed, uint32_t nodes, uint8_t *bytes, size_t n_bytes, size_t capacity)
{
        const struct sl_wire_limits wire = {.nodes = nodes, .messages = 100000};
        Onnx__ModelProto *model = NULL;

        if (sl_wire_check(&onnx__model_proto__descriptor, bytes, n_bytes, &wire, NULL) < 0 ||
                sl_wire_parse_model(bytes, n_bytes, &model, NULL) < 0)
                return 0;
        mutate_model(seed, model);
        n_bytes = onnx__model_proto__get_packed_size(model) <= capacity ? onnx__model_proto__pack(model, bytes) : n_bytes;
        sl_wire_free_model(model);
        return n_bytes;
}
