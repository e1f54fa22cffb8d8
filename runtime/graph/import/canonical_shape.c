/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators that move elements about. Where an opset has a parameter as attribute and a later one as input, the attribute is
 * the form that stays; sl_parameters_absorb() brings constant inputs there.
 */
#include "import/canonical.h"

#include <stdio.h>
#include <string.h>

/* The file may not give a parameter in both forms. */
static int check_one_form(
        struct sl_importer *im, const struct sl_onnx_node *node, const struct sl_draft *draft, uint32_t attr, uint32_t input)
{
        bool as_input = input < draft->n_inputs && draft->inputs[input] != SL_VALUE_NONE;

        if (as_input && sl_attrs_find(&draft->attrs, attr))
                return sl_import_wrong(im, node, "a parameter is given both as attribute and as input");
        return 0;
}

int sl_canonical_axes(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        const struct sl_attr *axes = sl_attrs_find(&draft->attrs, SL_ATTR_AXES);

        if (axes && !axes->count && draft->op != SL_OP_UNSQUEEZE)
                sl_attrs_remove(&draft->attrs, SL_ATTR_AXES);
        return check_one_form(im, node, draft, SL_ATTR_AXES, 1);
}

/* Without axes, what has one element goes: the batch too where it is one, so that the rank depends on it. */
int sl_canonical_squeeze(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        bool given = sl_attrs_find(&draft->attrs, SL_ATTR_AXES) || draft->n_inputs > 1;
        int64_t axes[SL_RANK_MAX];
        uint32_t count = 0;

        if (given || !draft->n_inputs || draft->inputs[0] == SL_VALUE_NONE)
                return check_one_form(im, node, draft, SL_ATTR_AXES, 1);
        const struct sl_shape *shape = &im->graph->values[draft->inputs[0]].tensor.shape;

        for (uint32_t i = 0; i < shape->rank; i++) {
                if (shape->dims[i] < 0 && sl_import_has_batch(im))
                        return sl_import_wants_batch(im, node, "without axes, it takes a batch of one away");
                if (shape->dims[i] == SL_DIM_UNKNOWN)
                        return sl_import_refuse(im, node, "without axes, and a dimension of its input is not known");
                if (shape->dims[i] == 1)
                        axes[count++] = i;
        }
        return sl_attrs_set_ints(&draft->attrs, SL_ATTR_AXES, axes, count);
}

int sl_canonical_slice(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        int result = 0;

        if (im->graph->opset >= 10)
                return node->proto->n_attribute ? sl_import_wrong(im, node, "attributes of an older opset") : 0;
        if (draft->n_inputs > 1)
                return sl_import_wrong(im, node, "inputs of a later opset");
        result = sl_onnx_copy_attr(im, node, "starts", SL_ATTR_STARTS, &draft->attrs);
        if (result == 0)
                result = sl_onnx_copy_attr(im, node, "ends", SL_ATTR_ENDS, &draft->attrs);
        if (result == 0)
                result = sl_onnx_copy_attr(im, node, "axes", SL_ATTR_AXES, &draft->attrs);
        return result;
}

/* num_outputs says what the number of outputs says already; parts are equal, but for a smaller last one from opset 18 on. */
static int split_evenly(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        const struct sl_shape *shape = &im->graph->values[draft->inputs[0]].tensor.shape;
        int64_t axis = sl_attrs_int(&draft->attrs, SL_ATTR_AXIS, 0), n = draft->n_outputs, parts[SL_NODE_OUTPUTS_MAX];

        axis += axis < 0 ? shape->rank : 0;
        if (axis < 0 || axis >= shape->rank)
                return sl_import_wrong(im, node, "its axis is outside the rank of input 0");
        if (shape->dims[axis] < 0 && im->limits->any_size && im->graph->opset < 18)
                return sl_import_refuse(im, node, "equal parts of a dimension that is not known");
        if (shape->dims[axis] < 0)
                return 0;
        if (im->graph->opset < 18 && shape->dims[axis] % n) {
                char text[96];

                snprintf(text, sizeof(text), "a dimension of %lld does not make %lld equal parts", (long long)shape->dims[axis],
                        (long long)n);
                return sl_import_misfit(im, node, text);
        }
        int64_t part = shape->dims[axis] / n + (shape->dims[axis] % n != 0);

        for (int64_t i = 0; i < n; i++) {
                int64_t left = shape->dims[axis] - i * part;

                parts[i] = left < part ? left : part;
                if (left < 0)
                        return sl_import_misfit(im, node, "the dimension is too small for so many parts");
        }
        return sl_attrs_set_ints(&draft->attrs, SL_ATTR_SPLIT, parts, draft->n_outputs);
}

int sl_canonical_split(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        int64_t n_outputs = draft->n_outputs;
        int result = check_one_form(im, node, draft, SL_ATTR_SPLIT, 1);

        if (result == 0)
                result = sl_onnx_int(im, node, "num_outputs", &n_outputs);
        if (result < 0)
                return result;
        if (n_outputs != draft->n_outputs)
                return sl_import_wrong(im, node, "num_outputs differs from the number of outputs");
        if (draft->n_inputs == 1 && draft->inputs[0] != SL_VALUE_NONE && !sl_attrs_find(&draft->attrs, SL_ATTR_SPLIT))
                return split_evenly(im, node, draft);
        return 0;
}

int sl_canonical_pad(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        if (im->graph->opset < 2 && sl_onnx_copy_attr(im, node, "paddings", SL_ATTR_PADS, &draft->attrs) < 0)
                return sl_import_wrong(im, node, "paddings are no list of integers, or too long a one");
        return check_one_form(im, node, draft, SL_ATTR_PADS, 1);
}

/* Shape of some dimensions is a Slice of Shape. */
int sl_canonical_shape(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        int64_t start = 0, end = INT64_MAX, first_axis = 0;
        struct sl_draft slice = {.op = SL_OP_SLICE, .n_inputs = 1, .n_outputs = 1};
        int result = sl_onnx_int(im, node, "start", &start);

        if (result == 0)
                result = sl_onnx_int(im, node, "end", &end);
        if (result < 0 || (start == 0 && end == INT64_MAX))
                return result;
        result = sl_import_emit_step(im, node, draft, &slice.inputs[0]);
        if (result == 0)
                result = sl_attrs_set_ints(&slice.attrs, SL_ATTR_STARTS, &start, 1);
        if (result == 0)
                result = sl_attrs_set_ints(&slice.attrs, SL_ATTR_ENDS, &end, 1);
        if (result == 0)
                result = sl_attrs_set_ints(&slice.attrs, SL_ATTR_AXES, &first_axis, 1);
        if (result == 0)
                result = sl_import_emit_last(im, node, &slice);
        return result < 0 ? result : 1;
}

int sl_canonical_concat(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        (void)node;
        if (im->graph->opset >= 4 || sl_attrs_find(&draft->attrs, SL_ATTR_AXIS))
                return 0;
        return sl_attrs_set_int(&draft->attrs, SL_ATTR_AXIS, 1);
}

int sl_canonical_reshape(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        int result;

        if (im->graph->opset >= 5)
                return sl_onnx_attr(node, "shape") ? sl_import_wrong(im, node, "attributes of an older opset") : 0;
        result = sl_onnx_copy_attr(im, node, "shape", SL_ATTR_SHAPE, &draft->attrs);
        return result < 0 ? result : check_one_form(im, node, draft, SL_ATTR_SHAPE, 1);
}

/* The product of what Shape says. */
int sl_canonical_size(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        struct sl_draft product = {.op = SL_OP_REDUCE_PROD, .n_inputs = 1, .n_outputs = 1};
        int result = sl_import_emit_step(im, node, draft, &product.inputs[0]);

        if (result == 0)
                result = sl_attrs_set_int(&product.attrs, SL_ATTR_KEEPDIMS, 0);
        if (result == 0)
                result = sl_import_emit_last(im, node, &product);
        return result < 0 ? result : 1;
}

static int constant_of_floats(
        struct sl_importer *im, const struct sl_onnx_node *node, const float *floats, size_t n, bool scalar, uint32_t *ret_value)
{
        struct sl_tensor tensor = {.dtype = SL_DTYPE_F32, .shape = {.rank = scalar ? 0 : 1, .dims = {scalar ? 0 : (int64_t)n}}};
        float *data = sl_graph_alloc(im->graph, sizeof(*data) * (n + 1));

        if (!data)
                return -ENOMEM;
        if (n)
                memcpy(data, floats, sizeof(*data) * n);
        return sl_graph_add_constant(im->graph, node->name, &tensor, data, ret_value);
}

static int constant_value(struct sl_importer *im, const struct sl_onnx_node *node, uint32_t *ret_value)
{
        const Onnx__AttributeProto *attr = node->proto->n_attribute == 1 ? node->proto->attribute[0] : NULL;

        if (!attr)
                return sl_import_wrong(im, node, "it wants one value");
        if (!strcmp(attr->name, "value") && attr->t)
                return sl_import_tensor(im, attr->t, node->name, ret_value);
        if (!strcmp(attr->name, "sparse_value") && attr->sparse_tensor)
                return sl_import_sparse(im, attr->sparse_tensor, node->name, ret_value);
        if (!strcmp(attr->name, "value_int") && attr->has_i)
                return sl_import_ints(im, node->name, &attr->i, 1, true, ret_value);
        if (!strcmp(attr->name, "value_ints"))
                return sl_import_ints(im, node->name, attr->ints, (uint32_t)attr->n_ints, false, ret_value);
        if (!strcmp(attr->name, "value_float") && attr->has_f)
                return constant_of_floats(im, node, &attr->f, 1, true, ret_value);
        if (!strcmp(attr->name, "value_floats"))
                return constant_of_floats(im, node, attr->floats, attr->n_floats, false, ret_value);
        return sl_import_wrong(im, node, "its value has another type than its name says");
}

int sl_canonical_constant(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        uint32_t value;
        int result = constant_value(im, node, &value);

        (void)draft;
        if (result == 0)
                result = sl_import_bind(im, node, value);
        return result < 0 ? result : 1;
}

/* ConstantOfShape is Expand of a scalar, of any type. */
int sl_canonical_constant_of_shape(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        static const float zero;
        const Onnx__AttributeProto *attr = sl_onnx_attr(node, "value");
        uint32_t value;
        int result;

        if (draft->n_inputs != 1)
                return sl_import_wrong(im, node, "it wants one input");
        if (attr && !attr->t)
                return sl_import_wrong(im, node, "its value is no tensor");
        result = attr ? sl_import_tensor(im, attr->t, node->name, &value) : constant_of_floats(im, node, &zero, 1, true, &value);
        if (result < 0)
                return result;
        if (sl_shape_elements(&im->graph->values[value].tensor.shape) != 1)
                return sl_import_wrong(im, node, "its value does not have one element");
        im->graph->values[value].tensor.shape.rank = 0;
        *draft = (struct sl_draft){.op = SL_OP_EXPAND, .n_inputs = 2, .n_outputs = 1, .inputs = {value, draft->inputs[0]}};
        return 0;
}
