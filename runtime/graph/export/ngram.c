/* SPDX-License-Identifier: Apache-2.0 */
/* TfIdfVectorizer has its lists as attributes, not as inputs. */
#include "base/error.h"
#include "export/exporter.h"

static int write_list(struct sl_exporter *e, const struct sl_node *from, Onnx__NodeProto *node, uint32_t input, const char *name)
{
        const struct sl_value *value = &e->graph->values[from->inputs[input]];
        size_t n = (size_t)sl_shape_elements(&value->tensor.shape);
        const void *data = sl_graph_constant(e->graph, from->inputs[input]);

        if (!data || value->tensor.dtype != (input == 4 ? SL_DTYPE_F32 : SL_DTYPE_I64))
                return sl_export_refuse(e, from, name);
        return input == 4 ? sl_export_floats(e, node, name, data, n) : sl_export_ints(e, node, name, data, n);
}

int sl_export_ngram(struct sl_exporter *e, const struct sl_node *from, Onnx__NodeProto *node)
{
        static const char *const names[] = {NULL, "pool_int64s", "ngram_counts", "ngram_indexes", "weights"};
        int r = 0;

        for (uint32_t i = 1; i < from->n_inputs && r == 0; i++)
                if (from->inputs[i] != SL_VALUE_NONE)
                        r = write_list(e, from, node, i, names[i]);
        return r;
}
