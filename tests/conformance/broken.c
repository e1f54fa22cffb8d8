/* SPDX-License-Identifier: Apache-2.0 */
#include "broken.h"

#include "onnx/onnx.pb-c.h"
#include "tensor_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static Onnx__ModelProto *read_model(const char *folder)
{
        Onnx__ModelProto *model;
        char path[700];
        size_t n = 0;
        uint8_t *bytes;

        snprintf(path, sizeof(path), "%s/model.onnx", folder);
        bytes = read_whole_file(path, &n);
        model = bytes ? onnx__model_proto__unpack(NULL, n, bytes) : NULL;
        free(bytes);
        return model;
}

/* The file may leave it open itself. */
static bool has_size(const Onnx__TensorShapeProto__Dimension *dim)
{
        return dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
}

static void open_dimension(Onnx__TensorShapeProto__Dimension *dim, const char *name)
{
        if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM)
                free(dim->dim_param);
        dim->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
        dim->dim_param = strdup(name);
}

/* Return: how many dimensions are open now. */
static uint32_t open_input(const Onnx__ValueInfoProto *input, uint32_t index, enum broken_form form)
{
        const Onnx__TypeProto *type = input->type;
        bool tensor = type && type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE && type->tensor_type->shape;
        Onnx__TensorShapeProto *shape = tensor ? type->tensor_type->shape : NULL;
        uint32_t n = shape ? (uint32_t)shape->n_dim : 0, n_open = 0;

        for (uint32_t i = 0; i < n; i++) {
                char name[32];

                if ((form == BROKEN_BATCH && i) || (form == BROKEN_EVEN && i % 2) || (form == BROKEN_ODD && i % 2 == 0))
                        continue;
                n_open++;
                if (form == BROKEN_ALIKE && has_size(shape->dim[i]))
                        snprintf(name, sizeof(name), "of%lld", (long long)shape->dim[i]->dim_value);
                else
                        snprintf(name, sizeof(name), form == BROKEN_BATCH ? "batch" : "d%u_%u", index, i);
                open_dimension(shape->dim[i], name);
        }
        return n_open;
}

static void break_node(Onnx__NodeProto *node)
{
        free(node->op_type);
        node->op_type = strdup(BROKEN_OPERATOR);
}

uint8_t *broken_case(const char *folder, enum broken_form form, uint32_t at, size_t *ret_bytes)
{
        Onnx__ModelProto *model = read_model(folder);
        Onnx__GraphProto *graph = model ? model->graph : NULL;
        uint8_t *bytes = NULL;
        uint32_t n_open = 0;

        for (uint32_t i = 0; graph && i < graph->n_input; i++)
                n_open += open_input(graph->input[i], i, form);
        if (n_open && graph->n_node) {
                if (at != BROKEN_NOWHERE)
                        break_node(graph->node[at % graph->n_node]);
                bytes = malloc(onnx__model_proto__get_packed_size(model) + 1);
                *ret_bytes = bytes ? onnx__model_proto__pack(model, bytes) : 0;
        }
        if (model)
                onnx__model_proto__free_unpacked(model, NULL);
        return bytes;
}
