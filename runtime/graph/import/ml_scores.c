/* SPDX-License-Identifier: Apache-2.0 */
#include "import/ml.h"

#include <stdlib.h>
#include <string.h>

static const Onnx__AttributeProto *typed(struct sl_expansion *x, const char *name, int type)
{
        const Onnx__AttributeProto *attr = sl_onnx_attr(x->node, name);

        if (attr && (int)attr->type != type) {
                if (x->result == 0)
                        x->result = sl_error_set(x->im->error, EBADMSG, "node \"%s\" (%s): attribute %s has a wrong type",
                                x->node->name, x->node->proto->op_type, name);
                return NULL;
        }
        return attr;
}

const float *sl_ml_floats(struct sl_expansion *x, const char *name, size_t *ret_n)
{
        const Onnx__AttributeProto *attr = typed(x, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS);

        *ret_n = attr ? attr->n_floats : 0;
        return attr ? attr->floats : NULL;
}

const int64_t *sl_ml_ints(struct sl_expansion *x, const char *name, size_t *ret_n)
{
        const Onnx__AttributeProto *attr = typed(x, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);

        *ret_n = attr ? attr->n_ints : 0;
        return attr ? attr->ints : NULL;
}

static double *doubles_of_tensor(struct sl_expansion *x, const Onnx__AttributeProto *attr, size_t *ret_n, bool *ret_double)
{
        const struct sl_value *value;
        uint32_t index = SL_VALUE_NONE;
        double *doubles;
        size_t n;

        if (x->result == 0)
                x->result = sl_import_tensor(x->im, attr->t, x->node->name, &index);
        if (x->result < 0)
                return NULL;
        value = &x->im->graph->values[index];
        n = sl_shape_elements(&value->tensor.shape);
        if (value->tensor.dtype != SL_DTYPE_F32 && value->tensor.dtype != SL_DTYPE_F64) {
                sl_expand_refuse(x, "numbers of its trees are neither float32 nor float64");
                return NULL;
        }
        doubles = malloc((n + 1) * sizeof(*doubles));
        for (size_t i = 0; doubles && i < n; i++)
                doubles[i] = value->tensor.dtype == SL_DTYPE_F64 ? ((const double *)value->data)[i]
                                                                 : (double)((const float *)value->data)[i];
        *ret_double |= value->tensor.dtype == SL_DTYPE_F64;
        *ret_n = n;
        if (!doubles)
                x->result = -ENOMEM;
        return doubles;
}

double *sl_ml_doubles(struct sl_expansion *x, const char *name, const char *tensor, size_t *ret_n, bool *ret_double)
{
        const Onnx__AttributeProto *attr = tensor ? sl_onnx_attr(x->node, tensor) : NULL;
        const float *floats;
        double *doubles;
        size_t n;

        *ret_n = 0;
        if (attr && attr->t)
                return doubles_of_tensor(x, attr, ret_n, ret_double);
        floats = sl_ml_floats(x, name, &n);
        if (!floats || x->result < 0)
                return NULL;
        doubles = malloc((n + 1) * sizeof(*doubles));
        for (size_t i = 0; doubles && i < n; i++)
                doubles[i] = (double)floats[i];
        if (doubles)
                *ret_n = n;
        else
                x->result = -ENOMEM;
        return doubles;
}

const ProtobufCBinaryData *sl_ml_strings(struct sl_expansion *x, const char *name, size_t *ret_n)
{
        const Onnx__AttributeProto *attr = typed(x, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS);

        *ret_n = attr ? attr->n_strings : 0;
        return *ret_n ? attr->strings : NULL;
}

uint32_t sl_ml_constant(struct sl_expansion *x, uint32_t dtype, const void *data, const int64_t *dims, uint32_t rank)
{
        struct sl_tensor tensor = {.dtype = dtype, .shape = {.rank = rank}};
        uint32_t value = SL_VALUE_NONE;
        uint64_t bytes;
        void *copy;

        memcpy(tensor.shape.dims, dims, rank * sizeof(*dims));
        bytes = sl_tensor_bytes(&tensor);
        if (x->result == 0 && (bytes > x->im->limits->tensor_bytes || x->im->graph->n_values >= x->im->limits->values))
                x->result = sl_error_set(x->im->error, E2BIG, "node \"%s\" (%s): larger than the limits allow", x->node->name,
                        x->node->proto->op_type);
        if (x->result < 0)
                return SL_VALUE_NONE;
        copy = sl_graph_alloc(x->im->graph, bytes + 1);
        if (copy && bytes)
                memcpy(copy, data, bytes);
        x->result = copy ? sl_graph_add_constant(x->im->graph, x->node->name, &tensor, copy, &value) : -ENOMEM;
        return x->result == 0 ? value : SL_VALUE_NONE;
}

uint32_t sl_ml_vector(struct sl_expansion *x, uint32_t dtype, const void *data, size_t n)
{
        return sl_ml_constant(x, dtype, data, (int64_t[]){(int64_t)n}, 1);
}

uint32_t sl_ml_rows(struct sl_expansion *x, bool keep_double)
{
        uint32_t rows = sl_expand_input(x, 0);

        if (sl_expand_shape(x, rows)->rank == 1)
                rows = sl_expand_unsqueeze(x, rows, (int64_t[]){0}, 1);
        if (x->result == 0 && (sl_expand_shape(x, rows)->rank != 2 || sl_expand_shape(x, rows)->dims[1] < 0))
                sl_expand_wrong(x, "it wants a vector or rows of features");
        if (keep_double && sl_expand_dtype(x, rows) == SL_DTYPE_F64)
                return rows;
        return sl_expand_cast(x, rows, SL_DTYPE_F32);
}

enum sl_post_transform sl_ml_post(struct sl_expansion *x)
{
        struct sl_attrs attrs = {0};

        if (x->result == 0)
                x->result = sl_onnx_word(
                        x->im, x->node, "post_transform", "NONE SOFTMAX LOGISTIC SOFTMAX_ZERO PROBIT", SL_ATTR_MODE, &attrs);
        return (enum sl_post_transform)sl_attrs_int(&attrs, SL_ATTR_MODE, SL_POST_NONE);
}

uint32_t sl_ml_transform(struct sl_expansion *x, uint32_t scores, enum sl_post_transform post)
{
        struct sl_draft draft = {.op = SL_OP_CLASS_SCORES, .n_inputs = 1, .inputs = {scores}};

        if (post == SL_POST_NONE)
                return scores;
        if (x->result == 0)
                x->result = sl_attrs_set_int(&draft.attrs, SL_ATTR_MODE, post);
        return sl_expand(x, &draft);
}

void sl_ml_labels(struct sl_expansion *x, const char *name, const char *words, struct sl_ml_classes *classes)
{
        size_t n_strings;
        const ProtobufCBinaryData *strings = sl_ml_strings(x, words, &n_strings);
        int64_t *places = NULL;

        classes->labels = sl_ml_ints(x, name, &classes->n_labels);
        if (classes->n_labels)
                return;
        if (!strings)
                sl_expand_wrong(x, "it has no labels");
        if (x->result == 0)
                x->result = sl_vocabulary_new(x->im, &classes->vocabulary);
        if (x->result == 0)
                x->result = sl_vocabulary_add_all(x->im, classes->vocabulary, x->node->name, strings, n_strings, &places);
        classes->labels = places;
        classes->n_labels = n_strings;
}

void sl_ml_output(struct sl_expansion *x, uint32_t index, uint32_t value, uint32_t vocabulary)
{
        const struct sl_symbol *symbol;

        sl_expand_output(x, index, value);
        if (x->result < 0 || !vocabulary || !sl_expand_has_output(x, index))
                return;
        symbol = sl_symbols_find(&x->im->symbols, x->node->proto->output[index]);
        if (symbol && symbol->value != SL_VALUE_NONE)
                x->result = sl_vocabulary_assign(x->im, symbol->value, vocabulary);
}

void sl_ml_classify(struct sl_expansion *x, uint32_t scores, const struct sl_ml_classes *classes)
{
        struct sl_draft draft = {.op = SL_OP_CLASS_SCORES, .n_inputs = 2, .n_outputs = 2, .inputs = {scores}};
        const struct sl_tensor nothing = {0};
        uint32_t outputs[2] = {SL_VALUE_NONE, SL_VALUE_NONE};

        draft.inputs[1] = sl_ml_vector(x, SL_DTYPE_I64, classes->labels, classes->n_labels);
        if (x->result == 0)
                x->result = sl_attrs_set_int(&draft.attrs, SL_ATTR_MODE, classes->post);
        if (x->result == 0)
                x->result = sl_attrs_set_int(&draft.attrs, SL_ATTR_GROUP, classes->form);
        if (x->result == 0)
                x->result = sl_attrs_set_float(&draft.attrs, SL_ATTR_ALPHA, classes->threshold);
        for (uint32_t i = 0; i < 2 && x->result == 0; i++)
                x->result = sl_graph_add_value(x->im->graph, x->node->name, SL_VALUE_COMPUTED, &nothing, &outputs[i]);
        if (x->result == 0)
                x->result = sl_import_emit(x->im, x->node, &draft, outputs);
        sl_ml_output(x, 0, outputs[1], classes->vocabulary);
        sl_expand_output(x, 1, outputs[0]);
}
