/* SPDX-License-Identifier: Apache-2.0 */
#include "export.h"

#include "base/error.h"
#include "graph.h"
#include "onnx/onnx.pb-c.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPSET      20
#define IR_VERSION 9
#define FILE_MAX   INT32_MAX

/* Everything that is under construction lies in the graph's arena, but the arrays that grow, which are sized beforehand. */
struct exporter {
        struct sl_graph *graph;
        Onnx__GraphProto out;
        char **names;     /* of each value */
        uint8_t *written; /* constants that are initializers already */
        size_t initializers_room;
};

static void *allocate(struct exporter *e, size_t bytes)
{
        return sl_graph_alloc(e->graph, bytes ? bytes : 1);
}

static char *copy_text(struct exporter *e, const char *text)
{
        size_t bytes = strlen(text) + 1;
        char *copy = allocate(e, bytes);

        return copy ? memcpy(copy, text, bytes) : NULL;
}

static bool is_port(const struct sl_graph *graph, uint32_t value)
{
        return graph->values[value].kind == SL_VALUE_INPUT || sl_graph_is_output(graph, value);
}

static int name_values(struct exporter *e)
{
        e->names = allocate(e, e->graph->n_values * sizeof(*e->names));
        e->written = allocate(e, e->graph->n_values);
        if (!e->names || !e->written)
                return -ENOMEM;
        for (uint32_t i = 0; i < e->graph->n_values; i++) {
                char text[SL_NAME_BYTES + 16];

                snprintf(text, sizeof(text), "%" PRIu32 ":%s", i, e->graph->values[i].name);
                e->names[i] = copy_text(e, is_port(e->graph, i) ? e->graph->values[i].name : text);
                if (!e->names[i])
                        return -ENOMEM;
        }
        return 0;
}

static int add_initializer(
        struct exporter *e, char *name, uint32_t dtype, uint32_t rank, const int64_t *dims, const void *data, size_t bytes)
{
        Onnx__TensorProto *tensor = allocate(e, sizeof(*tensor));

        if (!tensor)
                return -ENOMEM;
        if (e->out.n_initializer == e->initializers_room) {
                size_t room = e->initializers_room ? 2 * e->initializers_room : 64;
                Onnx__TensorProto **grown = reallocarray(e->out.initializer, room, sizeof(*grown));

                if (!grown)
                        return -ENOMEM;
                e->out.initializer = grown;
                e->initializers_room = room;
        }
        onnx__tensor_proto__init(tensor);
        tensor->name = name;
        tensor->has_data_type = 1;
        tensor->data_type = (int32_t)dtype;
        tensor->n_dims = rank;
        tensor->dims = allocate(e, rank * sizeof(*tensor->dims));
        if (!tensor->dims)
                return -ENOMEM;
        memcpy(tensor->dims, dims, rank * sizeof(*dims));
        tensor->has_raw_data = 1;
        tensor->raw_data = (ProtobufCBinaryData){.len = bytes, .data = (uint8_t *)data};
        e->out.initializer[e->out.n_initializer++] = tensor;
        return 0;
}

/* The name of a value as an input; a constant is written when it is first asked for. */
static int name_of(struct exporter *e, uint32_t value, char **ret_name)
{
        const struct sl_value *v = value == SL_VALUE_NONE ? NULL : &e->graph->values[value];

        *ret_name = v ? e->names[value] : (char *)"";
        if (!v || v->kind != SL_VALUE_CONSTANT || e->written[value])
                return 0;
        e->written[value] = 1;
        return add_initializer(
                e, e->names[value], v->tensor.dtype, v->tensor.shape.rank, v->tensor.shape.dims, v->data, v->data_bytes);
}

static Onnx__AttributeProto *add_attribute(struct exporter *e, Onnx__NodeProto *node, const char *name, int type)
{
        Onnx__AttributeProto *attribute = allocate(e, sizeof(*attribute));

        if (!attribute)
                return NULL;
        onnx__attribute_proto__init(attribute);
        attribute->name = (char *)name;
        attribute->has_type = 1;
        attribute->type = (Onnx__AttributeProto__AttributeType)type;
        node->attribute[node->n_attribute++] = attribute;
        return attribute;
}

static int write_list(struct exporter *e, Onnx__AttributeProto *attribute, const struct sl_attr *attr)
{
        attribute->ints = allocate(e, attr->count * sizeof(*attribute->ints));
        attribute->floats = allocate(e, attr->count * sizeof(*attribute->floats));
        if (!attribute->ints || !attribute->floats)
                return -ENOMEM;
        for (uint32_t i = 0; i < attr->count; i++) {
                if (attr->type == SL_ATTR_TYPE_INTS)
                        attribute->ints[i] = attr->ints[i];
                else
                        attribute->floats[i] = (float)attr->floats[i];
        }
        attribute->n_ints = attr->type == SL_ATTR_TYPE_INTS ? attr->count : 0;
        attribute->n_floats = attr->type == SL_ATTR_TYPE_INTS ? 0 : attr->count;
        return 0;
}

static int write_attribute(struct exporter *e, Onnx__NodeProto *node, const struct sl_attr *attr, const char *name)
{
        static const int types[] = {
                [SL_ATTR_TYPE_INT] = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT,
                [SL_ATTR_TYPE_FLOAT] = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT,
                [SL_ATTR_TYPE_INTS] = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS,
                [SL_ATTR_TYPE_FLOATS] = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS,
        };
        Onnx__AttributeProto *attribute = add_attribute(e, node, name, types[attr->type]);

        if (!attribute)
                return -ENOMEM;
        if (attr->type == SL_ATTR_TYPE_INT) {
                attribute->has_i = 1;
                attribute->i = attr->i;
                return 0;
        }
        if (attr->type == SL_ATTR_TYPE_FLOAT) {
                attribute->has_f = 1;
                attribute->f = (float)attr->f;
                return 0;
        }
        return write_list(e, attribute, attr);
}

/* Shape has its lists of one as numbers. */
static int write_bound(struct exporter *e, Onnx__NodeProto *node, const struct sl_attr *attr)
{
        struct sl_attr number = {.type = SL_ATTR_TYPE_INT, .i = attr->count ? attr->ints[0] : 0};

        return write_attribute(e, node, &number, attr->id == SL_ATTR_STARTS ? "start" : "end");
}

/* The one element that ConstantOfShape repeats. */
static int write_value(struct exporter *e, const struct sl_node *from, Onnx__NodeProto *node)
{
        Onnx__AttributeProto *attribute = add_attribute(e, node, "value", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR);
        Onnx__TensorProto *tensor = allocate(e, sizeof(*tensor));
        double value = sl_attrs_float(&from->attrs, SL_ATTR_VALUE, 0);
        uint32_t dtype = e->graph->values[from->outputs[0]].tensor.dtype;
        uint8_t *data = allocate(e, sizeof(int64_t));

        if (!attribute || !tensor || !data)
                return -ENOMEM;
        onnx__tensor_proto__init(tensor);
        tensor->dims = allocate(e, sizeof(*tensor->dims));
        if (!tensor->dims)
                return -ENOMEM;
        tensor->n_dims = 1;
        tensor->dims[0] = 1;
        if (dtype == SL_DTYPE_F32)
                *(float *)data = (float)value;
        else if (dtype == SL_DTYPE_I64)
                *(int64_t *)data = (int64_t)value;
        else if (dtype == SL_DTYPE_I32)
                *(int32_t *)data = (int32_t)value;
        else if (dtype == SL_DTYPE_BOOL)
                *data = value != 0;
        else
                return -ENOTSUP;
        tensor->has_data_type = 1;
        tensor->data_type = (int32_t)dtype;
        tensor->has_raw_data = 1;
        tensor->raw_data = (ProtobufCBinaryData){.len = sl_dtype_bytes(dtype), .data = data};
        attribute->t = tensor;
        return 0;
}

/* A parameter as an initializer: a list of int64, or one number of the type of the data. */
static int write_parameter(struct exporter *e, const struct sl_node *node, const struct sl_attr *attr, char **ret_name)
{
        uint32_t dtype = e->graph->values[node->inputs[0]].tensor.dtype;
        bool list = attr->type == SL_ATTR_TYPE_INTS;
        size_t bytes = list ? attr->count * sizeof(int64_t) : sizeof(float);
        int64_t dims[] = {attr->count};
        char text[SL_NAME_BYTES + 32];
        void *data = allocate(e, bytes);

        if (!list && (dtype != SL_DTYPE_F32 || attr->type != SL_ATTR_TYPE_FLOAT))
                return -ENOTSUP;
        snprintf(text, sizeof(text), "%zu:%s", e->out.n_initializer, sl_attr_name(attr->id));
        *ret_name = copy_text(e, text);
        if (!data || !*ret_name)
                return -ENOMEM;
        if (list)
                memcpy(data, attr->ints, bytes);
        else
                *(float *)data = (float)attr->f;
        return add_initializer(e, *ret_name, list ? SL_DTYPE_I64 : dtype, list, dims, data, bytes);
}

/* Attributes that import renamed or gave another type; NULL: has the name of the table; "": says what is the default. */
static const char *attribute_name(const struct sl_node *node, const struct sl_attr *attr)
{
        if (node->op == SL_OP_LRN && attr->id == SL_ATTR_AXIS)
                return "size";
        if (node->op == SL_OP_LRN && attr->id == SL_ATTR_VALUE)
                return "bias";
        if ((node->op == SL_OP_ARG_MAX || node->op == SL_OP_ARG_MIN) && attr->id == SL_ATTR_MODE)
                return "select_last_index";
        if ((node->op == SL_OP_PAD && attr->id == SL_ATTR_MODE) || (node->op == SL_OP_GELU && attr->id == SL_ATTR_APPROXIMATE))
                return "";
        return NULL;
}

/* Operators of which some attribute has a type of its own here (op.h says which). */
static bool has_way_back(const struct sl_node *node)
{
        if (strchr(sl_op_name(node->op), '.') || node->epilogue.has_residual || node->epilogue.activation != SL_ACT_NONE)
                return false;
        switch (node->op) {
        case SL_OP_LSTM:
        case SL_OP_GRU:
        case SL_OP_RNN:
        case SL_OP_BIT_SHIFT:
                return false;
        case SL_OP_PAD:
                return !sl_attrs_int(&node->attrs, SL_ATTR_MODE, 0);
        case SL_OP_GELU:
                return !sl_attrs_int(&node->attrs, SL_ATTR_APPROXIMATE, 0);
        default:
                return true;
        }
}

static Onnx__NodeProto *add_node(struct exporter *e, const struct sl_node *from, const char *type)
{
        Onnx__NodeProto *node = allocate(e, sizeof(*node));
        char text[SL_NAME_BYTES + 32];

        if (!node)
                return NULL;
        onnx__node_proto__init(node);
        snprintf(text, sizeof(text), "%zu:%s", e->out.n_node, from->name);
        node->name = copy_text(e, text);
        node->op_type = (char *)type;
        node->input = allocate(e, SL_NODE_INPUTS_MAX * sizeof(*node->input));
        node->output = allocate(e, SL_NODE_OUTPUTS_MAX * sizeof(*node->output));
        node->attribute = allocate(e, SL_NODE_ATTRS_MAX * sizeof(*node->attribute));
        if (!node->name || !node->input || !node->output || !node->attribute)
                return NULL;
        e->out.node[e->out.n_node++] = node;
        return node;
}

/* The input that the attribute was, or -1. */
static int parameter_input(const struct sl_node *node, uint32_t attr)
{
        for (int i = 0; i < 8; i++)
                if (sl_op_parameter(node->op, (uint32_t)i) == (int)attr)
                        return i;
        return -1;
}

static int write_attributes(struct exporter *e, const struct sl_node *from, Onnx__NodeProto *node)
{
        int r = 0;

        for (uint32_t i = 0; i < from->attrs.count && r == 0; i++) {
                const struct sl_attr *attr = &from->attrs.items[i];
                const char *name = attribute_name(from, attr);
                int input = parameter_input(from, attr->id);

                if ((name && !*name) || from->op == SL_OP_CONSTANT_OF_SHAPE)
                        continue;
                if (from->op == SL_OP_SHAPE) {
                        r = write_bound(e, node, attr);
                        continue;
                }
                if (input < 0) {
                        r = write_attribute(e, node, attr, name ? name : sl_attr_name(attr->id));
                        continue;
                }
                while (node->n_input <= (size_t)input)
                        node->input[node->n_input++] = (char *)"";
                r = write_parameter(e, from, attr, &node->input[input]);
        }
        return r;
}

/* A MatMul with a bias is two operators there. */
static int write_bias(struct exporter *e, const struct sl_node *from, Onnx__NodeProto *product)
{
        char text[SL_NAME_BYTES + 32];
        Onnx__NodeProto *add = add_node(e, from, "Add");

        if (!add)
                return -ENOMEM;
        snprintf(text, sizeof(text), "product:%s", e->names[from->outputs[0]]);
        add->input[0] = copy_text(e, text);
        add->input[1] = product->input[2];
        add->output[0] = product->output[0];
        add->n_input = 2;
        add->n_output = 1;
        product->output[0] = add->input[0];
        product->n_input = 2;
        return add->input[0] ? 0 : -ENOMEM;
}

static int write_node(struct exporter *e, const struct sl_node *from)
{
        Onnx__NodeProto *node = add_node(e, from, sl_op_name(from->op));
        int r = node ? 0 : -ENOMEM;

        for (uint32_t i = 0; i < from->n_inputs && r == 0; i++)
                r = name_of(e, from->inputs[i], &node->input[node->n_input++]);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < from->n_outputs; i++)
                node->output[node->n_output++] = from->outputs[i] == SL_VALUE_NONE ? (char *)"" : e->names[from->outputs[i]];
        r = write_attributes(e, from, node);
        if (r == 0 && from->op == SL_OP_CONSTANT_OF_SHAPE)
                r = write_value(e, from, node);
        if (r == 0 && from->op == SL_OP_MATMUL && node->n_input > 2 && *node->input[2])
                r = write_bias(e, from, node);
        return r;
}

static int write_nodes(struct exporter *e, struct sl_error *error)
{
        for (uint32_t i = 0; i < e->graph->n_nodes; i++) {
                const struct sl_node *node = &e->graph->nodes[i];
                int r;

                if (node->dead)
                        continue;
                if (!has_way_back(node))
                        return sl_error_set(
                                error, ENOTSUP, "node \"%s\": this %s cannot be written as ONNX", node->name, sl_op_name(node->op));
                r = write_node(e, node);
                if (r < 0)
                        return sl_error_set(error, -r, "node \"%s\": %s", node->name,
                                r == -ENOTSUP ? "a number of a type that is not written" : "no memory");
        }
        return 0;
}

static Onnx__TensorShapeProto__Dimension *make_dimension(struct exporter *e, uint32_t value, uint32_t axis)
{
        Onnx__TensorShapeProto__Dimension *dimension = allocate(e, sizeof(*dimension));
        int64_t size = e->graph->values[value].tensor.shape.dims[axis];
        char text[48];

        if (!dimension)
                return NULL;
        onnx__tensor_shape_proto__dimension__init(dimension);
        if (size >= 0) {
                dimension->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
                dimension->dim_value = size;
                return dimension;
        }
        snprintf(text, sizeof(text), size == SL_DIM_BATCH ? "N" : "d%" PRIu32 "_%" PRIu32, value, axis);
        dimension->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
        dimension->dim_param = copy_text(e, text);
        return dimension->dim_param ? dimension : NULL;
}

static Onnx__ValueInfoProto *make_port(struct exporter *e, uint32_t value)
{
        const struct sl_tensor *tensor = &e->graph->values[value].tensor;
        Onnx__ValueInfoProto *info = allocate(e, sizeof(*info));
        Onnx__TypeProto *type = allocate(e, sizeof(*type));
        Onnx__TypeProto__Tensor *proto = allocate(e, sizeof(*proto));
        Onnx__TensorShapeProto *shape = allocate(e, sizeof(*shape));

        if (!info || !type || !proto || !shape)
                return NULL;
        onnx__value_info_proto__init(info);
        onnx__type_proto__init(type);
        onnx__type_proto__tensor__init(proto);
        onnx__tensor_shape_proto__init(shape);
        shape->dim = allocate(e, tensor->shape.rank * sizeof(*shape->dim));
        for (uint32_t i = 0; shape->dim && i < tensor->shape.rank; i++) {
                shape->dim[i] = make_dimension(e, value, i);
                if (!shape->dim[i])
                        return NULL;
        }
        shape->n_dim = tensor->shape.rank;
        proto->has_elem_type = 1;
        proto->elem_type = (int32_t)tensor->dtype;
        proto->shape = shape;
        type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
        type->tensor_type = proto;
        info->name = e->names[value];
        info->type = type;
        return shape->dim ? info : NULL;
}

static int write_ports(
        struct exporter *e, const uint32_t *values, uint32_t n, Onnx__ValueInfoProto ***ret_ports, size_t *ret_n_ports)
{
        Onnx__ValueInfoProto **ports = allocate(e, n * sizeof(*ports));

        for (uint32_t i = 0; ports && i < n; i++) {
                ports[i] = make_port(e, values[i]);
                if (!ports[i])
                        return -ENOMEM;
        }
        *ret_ports = ports;
        *ret_n_ports = n;
        return ports ? 0 : -ENOMEM;
}

static int write_properties(
        struct exporter *e, const struct sl_export_property *properties, size_t n, Onnx__StringStringEntryProto ***ret_entries)
{
        Onnx__StringStringEntryProto **entries = allocate(e, n * sizeof(*entries));

        for (size_t i = 0; entries && i < n; i++) {
                entries[i] = allocate(e, sizeof(**entries));
                if (!entries[i])
                        return -ENOMEM;
                onnx__string_string_entry_proto__init(entries[i]);
                entries[i]->key = (char *)properties[i].key;
                entries[i]->value = (char *)properties[i].value;
        }
        *ret_entries = entries;
        return entries ? 0 : -ENOMEM;
}

static int pack_model(struct exporter *e, const struct sl_export_property *properties, size_t n_properties, uint8_t **ret_file,
        size_t *ret_bytes, struct sl_error *error)
{
        Onnx__OperatorSetIdProto opset = ONNX__OPERATOR_SET_ID_PROTO__INIT, *opsets[] = {&opset};
        Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
        uint8_t *file;
        size_t bytes;

        opset.domain = (char *)"";
        opset.has_version = 1;
        opset.version = OPSET;
        model.has_ir_version = 1;
        model.ir_version = IR_VERSION;
        model.producer_name = (char *)"starling";
        model.n_opset_import = 1;
        model.opset_import = opsets;
        model.graph = &e->out;
        model.n_metadata_props = n_properties;
        if (write_properties(e, properties, n_properties, &model.metadata_props) < 0)
                return sl_error_set(error, ENOMEM, "no memory for %zu properties", n_properties);
        bytes = onnx__model_proto__get_packed_size(&model);
        if (bytes > FILE_MAX)
                return sl_error_set(error, EFBIG, "the file would have %zu bytes, the limit of its format is %d", bytes, FILE_MAX);
        file = malloc(bytes ? bytes : 1);
        if (!file)
                return sl_error_set(error, ENOMEM, "no memory for a file of %zu bytes", bytes);
        *ret_bytes = onnx__model_proto__pack(&model, file);
        *ret_file = file;
        return 0;
}

int sl_export_onnx(struct sl_graph *graph, const struct sl_export_property *properties, size_t n_properties, uint8_t **ret_file,
        size_t *ret_bytes, struct sl_error *error)
{
        struct exporter e = {.graph = graph, .out = ONNX__GRAPH_PROTO__INIT};
        int r = sl_graph_has_bodies(graph) ? sl_error_set(error, ENOTSUP, "a graph with an If, a Loop or a Scan is not written")
                                           : 0;

        if (r < 0)
                return r;
        r = name_values(&e);
        /* A MatMul may become two nodes. */
        e.out.node = allocate(&e, 2ull * graph->n_nodes * sizeof(*e.out.node));
        e.out.name = graph->name;
        if (r == 0 && !e.out.node)
                r = -ENOMEM;
        r = r < 0 ? r : write_ports(&e, graph->inputs, graph->n_inputs, &e.out.input, &e.out.n_input);
        r = r < 0 ? r : write_ports(&e, graph->outputs, graph->n_outputs, &e.out.output, &e.out.n_output);
        if (r < 0)
                r = sl_error_set(error, -r, "no memory for a graph of %u nodes", graph->n_nodes);
        else
                r = write_nodes(&e, error);
        if (r == 0)
                r = pack_model(&e, properties, n_properties, ret_file, ret_bytes, error);
        free(e.out.initializer);
        return r;
}
