/* SPDX-License-Identifier: Apache-2.0 */
#include "dynamic.h"

#include "absorb.h"
#include "backend.h"
#include "base/bytes.h"
#include "base/error.h"
#include "kernels.h"
#include "pace.h"

#include <inttypes.h>
#include <string.h>

int sl_dynamic_step(struct sl_dynamic *dynamic, uint32_t op)
{
        if (!dynamic->steps_left)
                return sl_error_set(
                        dynamic->error, E2BIG, "%s: the limit of steps that one run may take is reached", sl_op_name(op));
        dynamic->steps_left--;
        return dynamic->pace ? sl_stop_look(&dynamic->pace->stop) : 0;
}

int sl_dynamic_work(struct sl_dynamic *dynamic, uint32_t op, uint64_t work)
{
        if (work > dynamic->work_left)
                return sl_error_set(dynamic->error, E2BIG,
                        "%s: work of %" PRIu64 " elementary steps, one run of the model may take %" PRIu64 " more", sl_op_name(op),
                        work, dynamic->work_left);
        dynamic->work_left -= work;
        return 0;
}

static int no_memory(struct sl_dynamic *dynamic, const struct sl_node_desc *node)
{
        return sl_error_set(dynamic->error, ENOMEM, "%s: its outputs do not fit the dynamic memory of %llu bytes",
                sl_op_name(node->op), (unsigned long long)dynamic->pool.limit_bytes);
}

/* Shapes from the actual inputs; a dimension that the operator counts is, for now, the most that it can be. */
static int shape_outputs(struct sl_dynamic *dynamic, struct sl_node_desc *node, const void *const *data)
{
        int r = sl_op_infer(node, dynamic->error);
        int64_t bound = 0;

        if (r < 0)
                return r;
        if (sl_op_traits(node->op) & SL_OP_COUNTS)
                bound = sl_op_bound(node, data);
        if (bound < 0)
                return sl_error_set(dynamic->error, (int)-bound, "%s: its values give no length", sl_op_name(node->op));
        for (uint32_t i = 0; i < node->n_outputs; i++) {
                struct sl_shape *shape = &node->outputs[i].shape;

                for (uint32_t d = 0; d < shape->rank; d++)
                        if (shape->dims[d] == SL_DIM_UNKNOWN)
                                shape->dims[d] = bound;
                if (sl_tensor_bytes(&node->outputs[i]) > INT64_MAX)
                        return sl_error_set(dynamic->error, EOVERFLOW, "%s: output %u is too large", sl_op_name(node->op), i);
        }
        return 0;
}

static int run_kernel(const struct sl_dynamic_kernel *kernel, const struct sl_node_desc *node, const struct sl_binding *binding)
{
        return kernel->backend ? kernel->backend->runner->launch(kernel->kernel, binding) : sl_ref_run(node, binding);
}

static int launch(struct sl_dynamic *dynamic, const struct sl_node_desc *node, const struct sl_dynamic_kernel *kernel,
        const void *const *data, struct sl_live *outputs, int64_t *made)
{
        uint64_t scratch_bytes =
                kernel->backend ? kernel->backend->runner->scratch_bytes(kernel->kernel) : sl_ref_scratch_bytes(node);
        struct sl_tensor bytes = {.dtype = SL_DTYPE_U8, .shape = {.rank = 1, .dims = {(int64_t)scratch_bytes}}};
        void *pointers[SL_NODE_OUTPUTS_MAX];
        struct sl_live scratch = {0};
        int r = scratch_bytes ? sl_live_make(&dynamic->pool, &bytes, &scratch) : 0;

        for (uint32_t i = 0; i < node->n_outputs && r == 0; i++) {
                r = sl_live_make(&dynamic->pool, &node->outputs[i], &outputs[i]);
                pointers[i] = outputs[i].data;
        }
        if (r < 0)
                r = no_memory(dynamic, node);
        if (r == 0) {
                r = run_kernel(kernel, node,
                        &(struct sl_binding){.inputs = data,
                                .outputs = pointers,
                                .scratch = scratch.data,
                                .made = made,
                                .pace = dynamic->pace,
                                .draws = dynamic->pace ? &dynamic->pace->draws : NULL});
                if (r < 0)
                        sl_error_set(dynamic->error, -r, "%s: %s", sl_op_name(node->op), strerror(-r));
        }
        sl_live_drop(&dynamic->pool, &scratch);
        return r;
}

/* What was counted is the size of every dimension that the rule left unknown. */
static void trim(const struct sl_shape *rule, int64_t made, struct sl_live *output)
{
        for (uint32_t d = 0; d < rule->rank && made >= 0; d++)
                if (rule->dims[d] == SL_DIM_UNKNOWN && made < output->tensor.shape.dims[d])
                        output->tensor.shape.dims[d] = made;
}

static int run_node(struct sl_dynamic *dynamic, struct sl_node_desc *node, const void *const *data, struct sl_live *outputs)
{
        struct sl_shape rules[SL_NODE_OUTPUTS_MAX] = {0};
        struct sl_dynamic_kernel kernel = {.backend = NULL};
        uint64_t work = 0;
        int64_t made = -1;
        int r = sl_op_infer(node, dynamic->error);

        for (uint32_t i = 0; i < node->n_outputs && r == 0; i++)
                rules[i] = node->outputs[i].shape;
        if (r == 0)
                r = shape_outputs(dynamic, node, data);
        if (r == 0) {
                work = sl_op_work(node);
                r = sl_dynamic_work(dynamic, node->op, work);
        }
        if (r == 0 && dynamic->find && !dynamic->find(dynamic->find_context, node, work, &kernel))
                kernel.backend = NULL;
        if (r == 0)
                r = launch(dynamic, node, &kernel, data, outputs, &made);
        for (uint32_t i = 0; i < node->n_outputs && r == 0; i++)
                trim(&rules[i], made, &outputs[i]);
        return r;
}

int sl_dynamic_run(struct sl_dynamic *dynamic, struct sl_node_desc *node, const struct sl_live *inputs, struct sl_live *ret_outputs)
{
        const void *data[SL_NODE_INPUTS_MAX] = {0};
        struct sl_live outputs[SL_NODE_OUTPUTS_MAX] = {0};
        int r = sl_dynamic_step(dynamic, node->op);

        for (uint32_t i = 0; i < node->n_inputs; i++) {
                node->inputs[i] = inputs[i].tensor;
                data[i] = inputs[i].data;
        }
        if (r == 0) {
                r = sl_op_absorb(node, data, dynamic->error);
                if (r < 0)
                        sl_error_prefix(dynamic->error, r, "%s", sl_op_name(node->op));
        }
        if (r == 0)
                r = run_node(dynamic, node, data, outputs);
        for (uint32_t i = 0; i < node->n_outputs && r < 0; i++)
                sl_live_drop(&dynamic->pool, &outputs[i]);
        if (r == 0)
                memcpy(ret_outputs, outputs, node->n_outputs * sizeof(*outputs));
        return r;
}
