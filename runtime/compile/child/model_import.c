/* SPDX-License-Identifier: Apache-2.0 */
#include "model_import.h"

#include "graph.h"
#include "import.h"
#include "lower.h"
#include "lower_options.h"
#include "model_file.h"
#include "signature_plan.h"

#include <errno.h>

int sl_model_import(const struct sl_model_file *model, const struct sl_lower_options *lowering, struct sl_graph **ret_graph,
        struct sl_error *error)
{
        struct sl_graph_limits limits = sl_lower_graph_limits(lowering);
        struct sl_lower_options single = *lowering;
        int r = sl_import_onnx_file(model, &limits, &lowering->shapes, ret_graph, error);

        if (r != -EDOM || sl_signature_bind(model, 1, &single) < 0)
                return r;
        return sl_import_onnx_file(model, &limits, &single.shapes, ret_graph, NULL) == 0 ? 0 : r;
}
