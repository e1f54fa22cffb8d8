/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of the messages grow by one; tests are small. */
#include "builder.h"

#include "base/error.h"
#include "evaluate.h"
#include "import.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

struct piece {
        struct piece *next;
        _Alignas(16) uint8_t memory[];
};

void *builder_alloc(struct builder *b, size_t bytes)
{
        struct piece *piece = calloc(1, sizeof(*piece) + bytes);

        cr_assert(piece);
        piece->next = b->pieces;
        b->pieces = piece;
        return piece->memory;
}

static char *copy_text(struct builder *b, const char *text, size_t length)
{
        char *copy = builder_alloc(b, length + 1);

        memcpy(copy, text, length);
        return copy;
}

static char *text(struct builder *b, const char *from)
{
        return copy_text(b, from, strlen(from));
}

static void *append(struct builder *b, void *items, size_t n, void *item)
{
        void **longer = builder_alloc(b, (n + 1) * sizeof(void *));

        if (n)
                memcpy(longer, items, n * sizeof(void *));
        longer[n] = item;
        return longer;
}

struct builder *builder_new(int64_t opset)
{
        struct builder *b = calloc(1, sizeof(*b));
        Onnx__OperatorSetIdProto *import;

        cr_assert(b);
        onnx__model_proto__init(&b->model);
        onnx__graph_proto__init(&b->graph);
        import = builder_alloc(b, sizeof(*import));
        onnx__operator_set_id_proto__init(import);
        import->has_version = 1;
        import->version = opset;
        b->model.has_ir_version = 1;
        b->model.ir_version = 7;
        b->model.opset_import = append(b, NULL, 0, import);
        b->model.n_opset_import = 1;
        b->model.graph = &b->graph;
        b->graph.name = text(b, "test");
        return b;
}

struct builder *builder_new_of_x(int64_t opset, uint32_t rank, const int64_t *dims)
{
        struct builder *b = builder_new(opset);

        builder_input(b, "x", SL_DTYPE_F32, rank, dims);
        return b;
}

struct builder *builder_free(struct builder *b)
{
        for (struct piece *piece = b ? b->pieces : NULL, *next; piece; piece = next) {
                next = piece->next;
                free(piece);
        }
        free(b);
        return NULL;
}

static Onnx__TensorShapeProto__Dimension *dimension(struct builder *b, int64_t dim)
{
        Onnx__TensorShapeProto__Dimension *made = builder_alloc(b, sizeof(*made));

        onnx__tensor_shape_proto__dimension__init(made);
        if (dim >= 0) {
                made->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
                made->dim_value = dim;
        } else {
                made->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
                made->dim_param = text(b, dim == -1 ? "N" : dim == -2 ? "M" : dim == -4 ? "K" : "?");
        }
        return made;
}

static Onnx__ValueInfoProto *value_info(struct builder *b, const char *name)
{
        Onnx__ValueInfoProto *info = builder_alloc(b, sizeof(*info));

        onnx__value_info_proto__init(info);
        info->name = text(b, name);
        return info;
}

static Onnx__TypeProto *tensor_type(struct builder *b, int32_t dtype, uint32_t rank, const int64_t *dims)
{
        Onnx__TypeProto *type = builder_alloc(b, sizeof(*type));
        Onnx__TypeProto__Tensor *tensor = builder_alloc(b, sizeof(*tensor));
        Onnx__TensorShapeProto *shape = builder_alloc(b, sizeof(*shape));

        onnx__type_proto__init(type);
        onnx__type_proto__tensor__init(tensor);
        onnx__tensor_shape_proto__init(shape);
        for (uint32_t i = 0; i < rank; i++) {
                shape->dim = append(b, shape->dim, shape->n_dim, dimension(b, dims[i]));
                shape->n_dim++;
        }
        tensor->has_elem_type = 1;
        tensor->elem_type = dtype;
        tensor->shape = shape;
        type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
        type->tensor_type = tensor;
        return type;
}

void builder_input(struct builder *b, const char *name, int32_t dtype, uint32_t rank, const int64_t *dims)
{
        Onnx__ValueInfoProto *info = value_info(b, name);

        info->type = tensor_type(b, dtype, rank, dims);
        b->graph.input = append(b, b->graph.input, b->graph.n_input, info);
        b->graph.n_input++;
}

void builder_output(struct builder *b, const char *name)
{
        b->graph.output = append(b, b->graph.output, b->graph.n_output, value_info(b, name));
        b->graph.n_output++;
}

void builder_declare_output(struct builder *b, const char *name, int32_t dtype, uint32_t rank, const int64_t *dims)
{
        builder_output(b, name);
        b->graph.output[b->graph.n_output - 1]->type = tensor_type(b, dtype, rank, dims);
}

static Onnx__TensorProto *raw_tensor(
        struct builder *b, const char *name, int32_t dtype, uint32_t rank, const int64_t *dims, const void *data)
{
        Onnx__TensorProto *tensor = builder_alloc(b, sizeof(*tensor));
        size_t bytes = sl_dtype_bytes((uint32_t)dtype);

        onnx__tensor_proto__init(tensor);
        tensor->name = text(b, name);
        tensor->has_data_type = 1;
        tensor->data_type = dtype;
        tensor->n_dims = rank;
        tensor->dims = builder_alloc(b, (rank + 1) * sizeof(int64_t));
        for (uint32_t i = 0; i < rank; i++) {
                tensor->dims[i] = dims[i];
                bytes *= (size_t)dims[i];
        }
        tensor->has_raw_data = 1;
        tensor->raw_data.len = bytes;
        tensor->raw_data.data = builder_alloc(b, bytes);
        if (bytes)
                memcpy(tensor->raw_data.data, data, bytes);
        return tensor;
}

static Onnx__TensorProto *initializer(struct builder *b, Onnx__TensorProto *tensor)
{
        b->graph.initializer = append(b, b->graph.initializer, b->graph.n_initializer, tensor);
        b->graph.n_initializer++;
        return tensor;
}

Onnx__TensorProto *builder_floats(struct builder *b, const char *name, uint32_t rank, const int64_t *dims, const float *data)
{
        return initializer(b, raw_tensor(b, name, SL_DTYPE_F32, rank, dims, data));
}

Onnx__TensorProto *builder_ints(struct builder *b, const char *name, uint32_t rank, const int64_t *dims, const int64_t *data)
{
        return initializer(b, raw_tensor(b, name, SL_DTYPE_I64, rank, dims, data));
}

Onnx__TensorProto *builder_raw(
        struct builder *b, const char *name, int32_t dtype, uint32_t rank, const int64_t *dims, const void *data)
{
        return initializer(b, raw_tensor(b, name, dtype, rank, dims, data));
}

Onnx__TensorProto *builder_random(struct builder *b, const char *name, uint32_t rank, const int64_t *dims)
{
        size_t n = 1;
        uint32_t seed = 1;
        float *data;

        for (uint32_t i = 0; i < rank; i++)
                n *= (size_t)dims[i];
        for (const char *at = name; *at; at++)
                seed = seed * 31 + (uint32_t)*at;
        data = builder_alloc(b, n * sizeof(*data));
        fill_random(data, n, seed);
        return builder_floats(b, name, rank, dims, data);
}

static char **split(struct builder *b, const char *names, size_t *ret_n)
{
        char **items = NULL;
        size_t n = 0;

        for (const char *at = names; *names; at++) {
                size_t length = strcspn(at, ",");

                items = append(b, items, n++, copy_text(b, at, length));
                at += length;
                if (!*at)
                        break;
        }
        *ret_n = n;
        return items;
}

Onnx__NodeProto *builder_node(struct builder *b, const char *type, const char *inputs, const char *outputs)
{
        Onnx__NodeProto *node = builder_alloc(b, sizeof(*node));

        onnx__node_proto__init(node);
        node->op_type = text(b, type);
        node->name = text(b, outputs);
        node->input = split(b, inputs, &node->n_input);
        node->output = split(b, outputs, &node->n_output);
        b->graph.node = append(b, b->graph.node, b->graph.n_node, node);
        b->graph.n_node++;
        return node;
}

static Onnx__AttributeProto *attribute(struct builder *b, Onnx__NodeProto *node, const char *name, int type)
{
        Onnx__AttributeProto *attr = builder_alloc(b, sizeof(*attr));

        onnx__attribute_proto__init(attr);
        attr->name = text(b, name);
        attr->has_type = 1;
        attr->type = (Onnx__AttributeProto__AttributeType)type;
        node->attribute = append(b, node->attribute, node->n_attribute, attr);
        node->n_attribute++;
        return attr;
}

void builder_attr_int(struct builder *b, Onnx__NodeProto *node, const char *name, int64_t value)
{
        Onnx__AttributeProto *attr = attribute(b, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);

        attr->has_i = 1;
        attr->i = value;
}

void builder_attr_float(struct builder *b, Onnx__NodeProto *node, const char *name, float value)
{
        Onnx__AttributeProto *attr = attribute(b, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);

        attr->has_f = 1;
        attr->f = value;
}

void builder_attr_ints(struct builder *b, Onnx__NodeProto *node, const char *name, size_t n, const int64_t *values)
{
        Onnx__AttributeProto *attr = attribute(b, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);

        attr->n_ints = n;
        attr->ints = builder_alloc(b, n * sizeof(*values));
        memcpy(attr->ints, values, n * sizeof(*values));
}

void builder_attr_string(struct builder *b, Onnx__NodeProto *node, const char *name, const char *value)
{
        Onnx__AttributeProto *attr = attribute(b, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);

        attr->has_s = 1;
        attr->s.len = strlen(value);
        attr->s.data = (uint8_t *)text(b, value);
}

void builder_attr_tensor(struct builder *b, Onnx__NodeProto *node, const char *name, Onnx__TensorProto *tensor)
{
        attribute(b, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR)->t = tensor;
}

void builder_transpose(struct builder *b, const char *input, const char *output, size_t n, const int64_t *perm)
{
        builder_attr_ints(b, builder_node(b, "Transpose", input, output), "perm", n, perm);
}

void builder_attr_graph(struct builder *b, Onnx__NodeProto *node, const char *name, struct builder *body)
{
        attribute(b, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH)->g = &body->graph;
}

uint8_t *builder_pack(struct builder *b, size_t *ret_bytes)
{
        uint8_t *bytes = builder_alloc(b, onnx__model_proto__get_packed_size(&b->model) + 1);

        *ret_bytes = onnx__model_proto__pack(&b->model, bytes);
        return bytes;
}

struct sl_graph *builder_import(struct builder *b)
{
        struct sl_graph *graph = NULL;
        struct sl_error error = {0};
        size_t n_bytes;
        uint8_t *bytes = builder_pack(b, &n_bytes);
        int result = sl_import_onnx_bytes(bytes, n_bytes, NULL, &graph, &error);

        cr_assert_eq(result, 0, "import: %d %s", result, error.text);
        return graph;
}

void builder_expect(struct builder *b, int expected, const char *wanted)
{
        struct sl_graph *graph = NULL;
        struct sl_error error = {0};
        size_t n_bytes;
        uint8_t *bytes = builder_pack(b, &n_bytes);
        int result = sl_import_onnx_bytes(bytes, n_bytes, NULL, &graph, &error);

        cr_assert_eq(result, expected, "import: %d instead of %d: %s", result, expected, error.text);
        cr_assert(strstr(error.text, wanted), "\"%s\" does not contain \"%s\"", error.text, wanted);
        cr_assert_null(graph);
}

void fill_random(float *data, size_t n, uint32_t seed)
{
        uint64_t state = seed * 2654435761u + 1;

        for (size_t i = 0; i < n; i++) {
                state = state * 6364136223846793005ull + 1442695040888963407ull;
                data[i] = (float)((double)(state >> 33) / (double)(1u << 30) - 1);
        }
}

void evaluate_floats(const struct sl_graph *graph, int64_t batch, const float *input, float *ret_output, size_t n)
{
        struct sl_graph *special;
        struct sl_error error = {0};
        int result = sl_graph_specialise(graph, batch, &special, &error);

        cr_assert_eq(result, 0, "specialise: %d %s", result, error.text);
        cr_assert_eq(special->n_outputs, 1u);
        cr_assert_eq(sl_tensor_bytes(&special->values[special->outputs[0]].tensor), n * sizeof(float));
        result = sl_graph_evaluate(special, (const void *[]){input}, (void *[]){ret_output}, &error);
        cr_assert_eq(result, 0, "evaluate: %d %s", result, error.text);
        sl_graph_free(special);
}

char *print_graph(const struct sl_graph *graph)
{
        char *printed = NULL;
        size_t n;
        FILE *stream = open_memstream(&printed, &n);

        cr_assert(stream);
        sl_graph_print(graph, stream);
        fclose(stream);
        return printed;
}

uint32_t count_ops(const struct sl_graph *graph, uint32_t op)
{
        uint32_t count = 0;

        for (uint32_t i = 0; i < graph->n_nodes; i++)
                count += !graph->nodes[i].dead && graph->nodes[i].op == op;
        return count;
}

uint32_t count_live(const struct sl_graph *graph)
{
        uint32_t count = 0;

        for (uint32_t i = 0; i < graph->n_nodes; i++)
                count += !graph->nodes[i].dead;
        return count;
}
