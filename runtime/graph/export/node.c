/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One node of the graph as one of ONNX's, or as two. What import brought into another form (kernels/op.h says what) goes back:
 * attributes first, then what is the operator's own.
 */
#include "base/error.h"
#include "export/exporter.h"
#include "ref/element.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Beside the attributes that the node has here: those of TfIdfVectorizer that are inputs. */
#define ATTRIBUTES_MAX (SL_NODE_ATTRS_MAX + 4)

int sl_export_refuse(struct sl_exporter *e, const struct sl_node *from, const char *what)
{
        return sl_error_set(e->error, ENOTSUP, "node \"%s\": this %s cannot be written as ONNX, for its %s", from->name,
                sl_op_name(from->op), what);
}

static Onnx__NodeProto *add_node(struct sl_exporter *e, const struct sl_node *from, const char *type)
{
        Onnx__NodeProto *node = sl_export_alloc(e, sizeof(*node));

        if (!node)
                return NULL;
        onnx__node_proto__init(node);
        node->name = sl_export_text(e, "%zu:%s", e->out.n_node, from->name);
        node->op_type = (char *)type;
        node->input = sl_export_alloc(e, SL_NODE_INPUTS_MAX * sizeof(*node->input));
        node->output = sl_export_alloc(e, SL_NODE_OUTPUTS_MAX * sizeof(*node->output));
        node->attribute = sl_export_alloc(e, ATTRIBUTES_MAX * sizeof(*node->attribute));
        if (!node->name || !node->input || !node->output || !node->attribute)
                return NULL;
        e->out.node[e->out.n_node++] = node;
        return node;
}

/* A MatMul with a bias is two operators there. */
static int write_bias(struct sl_exporter *e, const struct sl_node *from, Onnx__NodeProto *product)
{
        Onnx__NodeProto *add;

        if (product->n_input < 3 || !*product->input[2])
                return 0;
        add = add_node(e, from, "Add");
        if (!add)
                return -ENOMEM;
        add->input[0] = sl_export_text(e, "product:%s", e->names[from->outputs[0]]);
        add->input[1] = product->input[2];
        add->output[0] = product->output[0];
        add->n_input = 2;
        add->n_output = 1;
        product->output[0] = add->input[0];
        product->n_input = 2;
        return add->input[0] ? 0 : -ENOMEM;
}

/* Shape has its lists of one as numbers. */
static int write_bounds(struct sl_exporter *e, const struct sl_node *from, Onnx__NodeProto *node)
{
        const struct sl_attr *starts = sl_attrs_find(&from->attrs, SL_ATTR_STARTS);
        const struct sl_attr *ends = sl_attrs_find(&from->attrs, SL_ATTR_ENDS);
        int r = starts && starts->count ? sl_export_int(e, node, "start", starts->ints[0]) : 0;

        return r < 0 || !ends || !ends->count ? r : sl_export_int(e, node, "end", ends->ints[0]);
}

/* The one element that ConstantOfShape repeats. */
static int write_value(struct sl_exporter *e, const struct sl_node *from, Onnx__NodeProto *node)
{
        Onnx__AttributeProto *attribute = sl_export_attribute(e, node, "value", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR);
        Onnx__TensorProto *tensor = sl_export_alloc(e, sizeof(*tensor));
        uint32_t dtype = e->graph->values[from->outputs[0]].tensor.dtype;
        uint8_t *data = sl_export_alloc(e, sizeof(int64_t));

        if (!attribute || !tensor || !data)
                return -ENOMEM;
        onnx__tensor_proto__init(tensor);
        tensor->dims = sl_export_alloc(e, sizeof(*tensor->dims));
        if (!tensor->dims)
                return -ENOMEM;
        tensor->n_dims = 1;
        tensor->dims[0] = 1;
        sl_ref_store(data, 0, dtype, sl_attrs_float(&from->attrs, SL_ATTR_VALUE, 0));
        tensor->has_data_type = 1;
        tensor->data_type = (int32_t)dtype;
        tensor->has_raw_data = 1;
        tensor->raw_data = (ProtobufCBinaryData){.len = sl_dtype_bytes(dtype), .data = data};
        attribute->t = tensor;
        return 0;
}

/* A Split into equal parts says how many they are. */
static int write_parts(struct sl_exporter *e, const struct sl_node *from, Onnx__NodeProto *node)
{
        bool given = node->n_input > 1 && *node->input[1];

        return given ? 0 : sl_export_int(e, node, "num_outputs", from->n_outputs);
}

/* ONNX has input 2, the depth, before the values. */
static int order_one_hot(struct sl_exporter *e, const struct sl_node *from, Onnx__NodeProto *node)
{
        char *values = node->input[1];

        (void)e;
        (void)from;
        node->input[1] = node->input[2];
        node->input[2] = values;
        return 0;
}

/* ONNX has inputs 3 and 4, the sizes, before the others. */
static int order_mel_weights(struct sl_exporter *e, const struct sl_node *from, Onnx__NodeProto *node)
{
        char *sizes[] = {node->input[3], node->input[4]};

        (void)e;
        (void)from;
        memmove(node->input + 2, node->input, 3 * sizeof(*node->input));
        memcpy(node->input, sizes, sizeof(sizes));
        return 0;
}

static const struct {
        uint32_t op;
        int (*write)(struct sl_exporter *e, const struct sl_node *from, Onnx__NodeProto *node);
} own_forms[] = {
        {SL_OP_MATMUL, write_bias},
        {SL_OP_SHAPE, write_bounds},
        {SL_OP_CONSTANT_OF_SHAPE, write_value},
        {SL_OP_SPLIT, write_parts},
        {SL_OP_ONE_HOT, order_one_hot},
        {SL_OP_MEL_WEIGHTS, order_mel_weights},
        {SL_OP_LSTM, sl_export_gates},
        {SL_OP_GRU, sl_export_gates},
        {SL_OP_RNN, sl_export_gates},
        {SL_OP_EINSUM, sl_export_equation},
        {SL_OP_NGRAM, sl_export_ngram},
};

static int write_own_form(struct sl_exporter *e, const struct sl_node *from, Onnx__NodeProto *node)
{
        for (size_t i = 0; i < sizeof(own_forms) / sizeof(*own_forms); i++)
                if (own_forms[i].op == from->op)
                        return own_forms[i].write(e, from, node);
        return 0;
}

/* The lists of a TfIdfVectorizer become attributes, and need be no initializers; the keys of samples are none of ONNX's. */
static uint32_t inputs_of(const struct sl_node *from)
{
        bool draws = sl_op_traits(from->op) & SL_OP_DRAWS;

        return from->op == SL_OP_NGRAM ? 1 : from->n_inputs - draws;
}

static int write_node(struct sl_exporter *e, const struct sl_node *from)
{
        Onnx__NodeProto *node = add_node(e, from, sl_op_name(from->op));
        int r = node ? 0 : -ENOMEM;

        for (uint32_t i = 0; r == 0 && i < inputs_of(from); i++)
                r = sl_export_value(e, from->inputs[i], &node->input[node->n_input++]);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < from->n_outputs; i++)
                node->output[node->n_output++] = from->outputs[i] == SL_VALUE_NONE ? (char *)"" : e->names[from->outputs[i]];
        r = sl_export_attributes(e, from, node);
        return r < 0 ? r : write_own_form(e, from, node);
}

int sl_export_node(struct sl_exporter *e, const struct sl_node *from)
{
        int r;

        if (from->op == SL_OP_SAMPLE_KEYS)
                return 0;
        if (strchr(sl_op_name(from->op), '.'))
                return sl_error_set(
                        e->error, ENOTSUP, "node \"%s\": this %s cannot be written as ONNX", from->name, sl_op_name(from->op));
        if (from->epilogue.has_residual || from->epilogue.activation != SL_ACT_NONE)
                return sl_export_refuse(e, from, "epilogue");
        r = sl_export_want_opset(e, from);
        return r < 0 ? r : write_node(e, from);
}
