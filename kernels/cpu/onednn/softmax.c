/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/reduce/softmax.h"
#include "cpu/onednn/describe.h"

bool sl_cpu_describe_softmax(const struct sl_node_desc *node, struct sl_cpu_call *call)
{
        struct sl_softmax s;

        if (!sl_softmax_read(node, &s) || s.inner != 1 || node->epilogue.activation || node->epilogue.has_residual)
                return false;
        call->spec.kind = s.logarithm ? SL_PRIMITIVE_LOG_SOFTMAX : SL_PRIMITIVE_SOFTMAX;
        call->spec.source = sl_describe_dense(SL_DTYPE_F32, 2, (int64_t[]){s.outer, s.count});
        call->spec.result = call->spec.source;
        call->spec.axis = 1;
        return true;
}
