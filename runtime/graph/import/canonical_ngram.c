/* SPDX-License-Identifier: Apache-2.0 */
/* TfIdfVectorizer over numbers: its lists, which may be long, become constants beside the data. */
#include "import/canonical.h"

#include <string.h>

static int list_of(struct sl_importer *im, const struct sl_onnx_node *node, const char *name, uint32_t *ret_value)
{
        const Onnx__AttributeProto *attr = sl_onnx_attr(node, name);

        if (!attr || attr->type != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS || !attr->n_ints || attr->n_ints > INT32_MAX)
                return sl_import_refuse(im, node, "it wants pool_int64s, ngram_counts and ngram_indexes: words are not supported");
        return sl_import_ints(im, node->name, attr->ints, (uint32_t)attr->n_ints, false, ret_value);
}

static int weights_of(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        const Onnx__AttributeProto *attr = sl_onnx_attr(node, "weights");
        struct sl_tensor tensor = {.dtype = SL_DTYPE_F32, .shape = {.rank = 1}};
        float *data;

        if (!attr || !attr->n_floats)
                return 0;
        tensor.shape.dims[0] = (int64_t)attr->n_floats;
        data = sl_graph_alloc(im->graph, sizeof(*data) * attr->n_floats);
        if (!data)
                return -ENOMEM;
        memcpy(data, attr->floats, sizeof(*data) * attr->n_floats);
        draft->n_inputs = 5;
        return sl_graph_add_constant(im->graph, node->name, &tensor, data, &draft->inputs[4]);
}

int sl_canonical_ngram(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        const Onnx__AttributeProto *indexes = sl_onnx_attr(node, "ngram_indexes");
        int64_t most = -1;
        int result;

        if (draft->n_inputs != 1)
                return sl_import_wrong(im, node, "it wants one input");
        for (size_t i = 0; indexes && i < indexes->n_ints; i++)
                most = indexes->ints[i] > most ? indexes->ints[i] : most;
        if (most < 0 || most >= INT32_MAX)
                return sl_import_wrong(im, node, "ngram_indexes are empty, or one is outside [0,2^31 - 1)");
        result = list_of(im, node, "pool_int64s", &draft->inputs[1]);
        if (result == 0)
                result = list_of(im, node, "ngram_counts", &draft->inputs[2]);
        if (result == 0)
                result = list_of(im, node, "ngram_indexes", &draft->inputs[3]);
        draft->n_inputs = 4;
        if (result == 0)
                result = weights_of(im, node, draft);
        return result < 0 ? result : sl_attrs_set_int(&draft->attrs, SL_ATTR_LENGTH, most + 1);
}
