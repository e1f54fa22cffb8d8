/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drafts become nodes of the graph. After each, its shape parameters that are constant are attributes, its outputs have shapes,
 * and shape arithmetic on constants is a constant.
 */
#include "control.h"
#include "import/importer.h"
#include "parameter.h"

#include <inttypes.h>
#include <string.h>

static int check_size(struct sl_importer *im, uint32_t value)
{
        char shape[SL_SHAPE_TEXT_BYTES];

        if (sl_graph_least_bytes(&im->graph->values[value].tensor) > im->limits->tensor_bytes)
                return sl_error_set(im->error, -sl_import_misfit_status(im, -E2BIG),
                        "value \"%s\", %s %s, is larger than %" PRIu64 " bytes (tensor_bytes_max)", im->graph->values[value].name,
                        sl_dtype_name(im->graph->values[value].tensor.dtype),
                        sl_shape_print(&im->graph->values[value].tensor.shape, shape), im->limits->tensor_bytes);
        return 0;
}

/* Import folds integers and truth values only: floats may be weights, which are the fold pass's. */
static int fold(struct sl_importer *im, uint32_t index)
{
        const struct sl_node *node = &im->graph->nodes[index];
        int result;

        if (node->op != SL_OP_SHAPE && sl_dtype_is_float(im->graph->values[node->outputs[0]].tensor.dtype))
                return 0;
        result = sl_fold_node(im->graph, index, &im->budget, im->error);
        return result < 0 ? result : 0;
}

/* What the shape rules call an invalid argument is, here, a file that contradicts itself, or the sizes that it was given. */
static int as_import_error(const struct sl_importer *im, int result)
{
        if (result == -EINVAL || result == -ERANGE)
                return sl_import_misfit_status(im, -EBADMSG);
        return result == -EOVERFLOW ? sl_import_misfit_status(im, -E2BIG) : result;
}

/* What the node has taken is no longer the draft's. */
static int give_bodies(struct sl_graph *graph, uint32_t index, struct sl_draft *draft)
{
        int result = 0;

        for (uint32_t i = 0; i < draft->n_bodies && result == 0; i++) {
                result = sl_graph_add_body(graph, index, draft->bodies[i]);
                if (result == 0)
                        draft->bodies[i] = NULL;
        }
        return result;
}

int sl_import_emit(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft, const uint32_t *outputs)
{
        uint32_t index;
        int result = sl_graph_add_node(
                im->graph, draft->op, node->name, draft->inputs, draft->n_inputs, outputs, draft->n_outputs, &index);

        if (result < 0)
                return result;
        im->graph->nodes[index].attrs = draft->attrs;
        result = give_bodies(im->graph, index, draft);
        if (result == 0)
                result = sl_parameters_absorb(im->graph, index, im->error);
        if (result == 0) {
                result = sl_graph_infer_node(im->graph, index, im->error);
                im->contradicts = result == -EINVAL;
        }
        for (uint32_t i = 0; i < draft->n_outputs && result == 0; i++)
                if (outputs[i] != SL_VALUE_NONE)
                        result = check_size(im, outputs[i]);
        if (result == 0)
                result = fold(im, index);
        return as_import_error(im, result);
}

static int add_output(struct sl_importer *im, const char *name, uint32_t *ret_value)
{
        const struct sl_tensor nothing = {0};

        if (im->graph->n_values >= im->limits->values)
                return sl_error_set(im->error, E2BIG, "more than %u values", im->limits->values);
        return sl_graph_add_value(im->graph, name, SL_VALUE_COMPUTED, &nothing, ret_value);
}

int sl_import_emit_step(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft, uint32_t *ret_values)
{
        int result = 0;

        for (uint32_t i = 0; i < draft->n_outputs && result == 0; i++)
                result = add_output(im, node->name, &ret_values[i]);
        return result < 0 ? result : sl_import_emit(im, node, draft, ret_values);
}

/* The value that is to be output @output of the file's node; one without a name where that is left out, for a kernel still needs a
 * place to put it. */
static int add_named(struct sl_importer *im, const struct sl_onnx_node *node, uint32_t output, uint32_t *ret_value)
{
        bool given = output < node->proto->n_output;
        struct sl_symbol *symbol = given ? sl_symbols_find(&im->symbols, node->proto->output[output]) : NULL;
        int result = add_output(im, symbol ? symbol->name : node->name, ret_value);

        if (result == 0 && symbol)
                symbol->value = *ret_value;
        return result;
}

int sl_import_emit_last(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft)
{
        uint32_t outputs[SL_NODE_OUTPUTS_MAX];

        for (uint32_t i = 0; i < draft->n_outputs; i++) {
                int result = add_named(im, node, i, &outputs[i]);

                if (result < 0)
                        return result;
        }
        return sl_import_emit(im, node, draft, outputs);
}

int sl_import_emit_output(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft, uint32_t output)
{
        uint32_t value;
        int result = add_named(im, node, output, &value);

        return result < 0 ? result : sl_import_emit(im, node, draft, &value);
}

int sl_import_bind(struct sl_importer *im, const struct sl_onnx_node *node, uint32_t value)
{
        struct sl_symbol *symbol = sl_symbols_find(&im->symbols, node->proto->output[0]);

        if (!symbol)
                return sl_import_wrong(im, node, "its output has no name");
        symbol->value = value;
        return 0;
}
