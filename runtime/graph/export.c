/* SPDX-License-Identifier: Apache-2.0 */
#include "export.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "export/exporter.h"
#include "import.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX INT32_MAX

SL_DEFINE_CLEANUP(struct sl_graph *, sl_graph_free)

/* What was written is to be read again, whatever limits the graph came in by. */
static const struct sl_graph_limits unlimited = {
        .file_bytes = UINT64_MAX,
        .constant_bytes = UINT64_MAX,
        .nodes = UINT32_MAX,
        .values = UINT32_MAX,
        .tensor_bytes = UINT64_MAX,
};

void *sl_export_alloc(struct sl_exporter *e, size_t bytes)
{
        return sl_graph_alloc(e->graph, bytes ? bytes : 1);
}

char *sl_export_text(struct sl_exporter *e, const char *format, ...)
{
        va_list arguments;
        char *text;
        int n;

        va_start(arguments, format);
        n = vsnprintf(NULL, 0, format, arguments);
        va_end(arguments);
        text = n < 0 ? NULL : sl_export_alloc(e, (size_t)n + 1);
        if (!text)
                return NULL;
        va_start(arguments, format);
        vsnprintf(text, (size_t)n + 1, format, arguments);
        va_end(arguments);
        return text;
}

static bool is_port(const struct sl_graph *graph, uint32_t value)
{
        return graph->values[value].kind == SL_VALUE_INPUT || sl_graph_is_output(graph, value);
}

static int name_values(struct sl_exporter *e)
{
        e->names = sl_export_alloc(e, e->graph->n_values * sizeof(*e->names));
        e->written = sl_export_alloc(e, e->graph->n_values);
        if (!e->names || !e->written)
                return -ENOMEM;
        for (uint32_t i = 0; i < e->graph->n_values; i++) {
                const char *name = e->graph->values[i].name;

                e->names[i] = is_port(e->graph, i) ? sl_export_text(e, "%s", name) : sl_export_text(e, "%" PRIu32 ":%s", i, name);
                if (!e->names[i])
                        return -ENOMEM;
        }
        return 0;
}

/* Elements of fewer than 8 bits lie several in a byte, the first one in the lowest bits. */
static int pack_bits(struct sl_exporter *e, uint32_t dtype, const void **data, size_t *bytes)
{
        uint32_t bits = sl_dtype_bits(dtype), each = 8 / bits;
        size_t n_packed = *bytes / each + (*bytes % each != 0);
        uint8_t *packed = sl_export_alloc(e, n_packed);

        if (!packed)
                return -ENOMEM;
        for (size_t i = 0; i < *bytes; i++)
                packed[i / each] |= (uint8_t)((((const uint8_t *)*data)[i] & ((1u << bits) - 1)) << (i % each * bits));
        *data = packed;
        *bytes = n_packed;
        return 0;
}

int sl_export_initializer(
        struct sl_exporter *e, char *name, uint32_t dtype, uint32_t rank, const int64_t *dims, const void *data, size_t bytes)
{
        Onnx__TensorProto *tensor = sl_export_alloc(e, sizeof(*tensor));

        if (!tensor || (sl_dtype_bits(dtype) < 8 && pack_bits(e, dtype, &data, &bytes) < 0))
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
        tensor->dims = sl_export_alloc(e, rank * sizeof(*tensor->dims));
        if (!tensor->dims)
                return -ENOMEM;
        memcpy(tensor->dims, dims, rank * sizeof(*dims));
        tensor->has_raw_data = 1;
        tensor->raw_data = (ProtobufCBinaryData){.len = bytes, .data = (uint8_t *)data};
        e->out.initializer[e->out.n_initializer++] = tensor;
        return 0;
}

int sl_export_value(struct sl_exporter *e, uint32_t value, char **ret_name)
{
        const struct sl_value *v = value == SL_VALUE_NONE ? NULL : &e->graph->values[value];

        *ret_name = v ? e->names[value] : (char *)"";
        if (!v || v->kind != SL_VALUE_CONSTANT || e->written[value])
                return 0;
        e->written[value] = 1;
        return sl_export_initializer(
                e, e->names[value], v->tensor.dtype, v->tensor.shape.rank, v->tensor.shape.dims, v->data, v->data_bytes);
}

static int write_nodes(struct sl_exporter *e)
{
        for (uint32_t i = 0; i < e->graph->n_nodes; i++) {
                const struct sl_node *node = &e->graph->nodes[i];
                int r = node->dead ? 0 : sl_export_node(e, node);

                if (r == -ENOMEM)
                        sl_error_set(e->error, ENOMEM, "node \"%s\": no memory", node->name);
                if (r < 0)
                        return r;
        }
        return 0;
}

static Onnx__TensorShapeProto__Dimension *make_dimension(struct sl_exporter *e, uint32_t value, uint32_t axis)
{
        Onnx__TensorShapeProto__Dimension *dimension = sl_export_alloc(e, sizeof(*dimension));
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
        dimension->dim_param = sl_export_text(e, "%s", text);
        return dimension->dim_param ? dimension : NULL;
}

static Onnx__ValueInfoProto *make_port(struct sl_exporter *e, uint32_t value)
{
        const struct sl_tensor *tensor = &e->graph->values[value].tensor;
        Onnx__ValueInfoProto *info = sl_export_alloc(e, sizeof(*info));
        Onnx__TypeProto *type = sl_export_alloc(e, sizeof(*type));
        Onnx__TypeProto__Tensor *proto = sl_export_alloc(e, sizeof(*proto));
        Onnx__TensorShapeProto *shape = sl_export_alloc(e, sizeof(*shape));

        if (!info || !type || !proto || !shape)
                return NULL;
        onnx__value_info_proto__init(info);
        onnx__type_proto__init(type);
        onnx__type_proto__tensor__init(proto);
        onnx__tensor_shape_proto__init(shape);
        shape->dim = sl_export_alloc(e, tensor->shape.rank * sizeof(*shape->dim));
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
        struct sl_exporter *e, const uint32_t *values, uint32_t n, Onnx__ValueInfoProto ***ret_ports, size_t *ret_n_ports)
{
        Onnx__ValueInfoProto **ports = sl_export_alloc(e, n * sizeof(*ports));

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
        struct sl_exporter *e, const struct sl_export_property *properties, size_t n, Onnx__StringStringEntryProto ***ret_entries)
{
        Onnx__StringStringEntryProto **entries = sl_export_alloc(e, n * sizeof(*entries));

        for (size_t i = 0; entries && i < n; i++) {
                entries[i] = sl_export_alloc(e, sizeof(**entries));
                if (!entries[i])
                        return -ENOMEM;
                onnx__string_string_entry_proto__init(entries[i]);
                entries[i]->key = (char *)properties[i].key;
                entries[i]->value = (char *)properties[i].value;
        }
        *ret_entries = entries;
        return entries ? 0 : -ENOMEM;
}

static int pack_model(struct sl_exporter *e, const struct sl_export_property *properties, size_t n_properties, uint8_t **ret_file,
        size_t *ret_bytes)
{
        Onnx__OperatorSetIdProto opset = ONNX__OPERATOR_SET_ID_PROTO__INIT, *opsets[] = {&opset};
        Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
        uint8_t *file;
        size_t bytes;

        opset.domain = (char *)"";
        opset.has_version = 1;
        opset.version = e->opset;
        model.has_ir_version = 1;
        model.ir_version = sl_export_ir_version(e->opset);
        model.producer_name = (char *)"starling";
        model.n_opset_import = 1;
        model.opset_import = opsets;
        model.graph = &e->out;
        model.n_metadata_props = n_properties;
        if (write_properties(e, properties, n_properties, &model.metadata_props) < 0)
                return sl_error_set(e->error, ENOMEM, "no memory for %zu properties", n_properties);
        bytes = onnx__model_proto__get_packed_size(&model);
        if (bytes > FILE_MAX)
                return sl_error_set(
                        e->error, EFBIG, "the file would have %zu bytes, the limit of its format is %d", bytes, FILE_MAX);
        file = malloc(bytes ? bytes : 1);
        if (!file)
                return sl_error_set(e->error, ENOMEM, "no memory for a file of %zu bytes", bytes);
        *ret_bytes = onnx__model_proto__pack(&model, file);
        *ret_file = file;
        return 0;
}

static bool agree(const struct sl_tensor *a, const struct sl_tensor *b)
{
        if (a->dtype != b->dtype || a->shape.rank != b->shape.rank)
                return false;
        for (uint32_t i = 0; i < a->shape.rank; i++)
                if (a->shape.dims[i] >= 0 && b->shape.dims[i] >= 0 && a->shape.dims[i] != b->shape.dims[i])
                        return false;
        return true;
}

/* The ports of what was read are those of what was written. */
static int compare_ports(const struct sl_graph *graph, const uint32_t *ports, uint32_t n, const struct sl_graph *back,
        const uint32_t *ports_back, uint32_t n_back, struct sl_error *error)
{
        if (n != n_back)
                return sl_error_set(error, ENOTSUP, "the file that was written has %u ports, not %u", n_back, n);
        for (uint32_t i = 0; i < n; i++)
                if (!agree(&graph->values[ports[i]].tensor, &back->values[ports_back[i]].tensor))
                        return sl_error_set(error, ENOTSUP, "port \"%s\" of the file that was written has another type or shape",
                                graph->values[ports[i]].name);
        return 0;
}

static int read_back(const struct sl_graph *graph, const uint8_t *file, size_t bytes, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_graph_free) struct sl_graph *back = NULL;
        int r = sl_import_onnx_bytes(file, bytes, &unlimited, &back, error);

        if (r < 0)
                return sl_error_prefix(error, r == -ENOMEM ? r : -ENOTSUP, "the file that was written cannot be read");
        r = compare_ports(graph, graph->inputs, graph->n_inputs, back, back->inputs, back->n_inputs, error);
        return r < 0 ? r : compare_ports(graph, graph->outputs, graph->n_outputs, back, back->outputs, back->n_outputs, error);
}

static int write_graph(struct sl_exporter *e)
{
        const struct sl_graph *graph = e->graph;
        int r = name_values(e);

        /* A MatMul may become two nodes. */
        e->out.node = sl_export_alloc(e, 2ull * graph->n_nodes * sizeof(*e->out.node));
        e->out.name = (char *)e->graph->name;
        if (r == 0 && !e->out.node)
                r = -ENOMEM;
        r = r < 0 ? r : write_ports(e, graph->inputs, graph->n_inputs, &e->out.input, &e->out.n_input);
        r = r < 0 ? r : write_ports(e, graph->outputs, graph->n_outputs, &e->out.output, &e->out.n_output);
        if (r < 0)
                return sl_error_set(e->error, -r, "no memory for a graph of %u nodes", graph->n_nodes);
        return write_nodes(e);
}

int sl_export_onnx(struct sl_graph *graph, const struct sl_export_property *properties, size_t n_properties, uint8_t **ret_file,
        size_t *ret_bytes, struct sl_error *error)
{
        struct sl_exporter e = {.graph = graph, .error = error, .out = ONNX__GRAPH_PROTO__INIT, .opset = SL_EXPORT_OPSET};
        SL_CLEANUP(sl_cleanup_free) uint8_t *file = NULL;
        size_t bytes = 0;
        int r;

        if (sl_graph_has_bodies(graph))
                return sl_error_set(error, ENOTSUP, "a graph with an If, a Loop or a Scan is not written");
        if (graph->labels)
                return sl_error_set(error, ENOTSUP, "\"%s\" has strings: such a graph is not written", graph->labels->port);
        r = write_graph(&e);
        r = r < 0 ? r : pack_model(&e, properties, n_properties, &file, &bytes);
        r = r < 0 ? r : read_back(graph, file, bytes, error);
        free(e.out.initializer);
        if (r < 0)
                return r;
        *ret_file = sl_take(file);
        *ret_bytes = bytes;
        return 0;
}
