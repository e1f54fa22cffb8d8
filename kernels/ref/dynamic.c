/* SPDX-License-Identifier: Apache-2.0 */
#include "dynamic.h"

#include "absorb.h"
#include "backend.h"
#include "base/bytes.h"
#include "base/error.h"
#include "kernels.h"
#include "layouts.h"
#include "own_time.h"
#include "pace.h"
#include "shape/mbconv.h"

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
        return sl_pool_explain(&dynamic->pool, sl_op_name(node->op), dynamic->error);
}

/* A dimension that the operator counts is, for now, the most that it can be. */
static int bound_outputs(struct sl_dynamic *dynamic, struct sl_node_desc *node, const void *const *data)
{
        int64_t bound = sl_op_traits(node->op) & SL_OP_COUNTS ? sl_op_bound(node, data) : 0;

        if (bound < 0)
                return sl_error_set(dynamic->error, (int)-bound, "%s: its values give no length", sl_op_name(node->op));
        for (uint32_t i = 0; i < node->n_outputs; i++) {
                struct sl_shape *shape = &node->outputs[i].shape;

                for (uint32_t d = 0; d < shape->rank; d++)
                        if (shape->dims[d] == SL_DIM_UNKNOWN)
                                shape->dims[d] = bound;
                if (sl_tensor_bytes(&node->outputs[i]) > INT64_MAX)
                        return sl_error_set(dynamic->error, EOVERFLOW, "%s: output %u has more than %lld bytes",
                                sl_op_name(node->op), i, (long long)INT64_MAX);
        }
        return 0;
}

static int run_kernel(const struct sl_dynamic_kernel *kernel, const struct sl_node_desc *node, const struct sl_binding *binding)
{
        uint64_t begun_ns;
        int r;

        if (kernel->backend)
                return kernel->backend->runner->launch(kernel->kernel, binding);
        if (!kernel->spent_ns)
                return sl_ref_run(node, binding);
        begun_ns = sl_own_ns();
        r = sl_ref_run(node, binding);
        *kernel->spent_ns += sl_own_ns() - begun_ns;
        return r;
}

static void note_launch(struct sl_dynamic *dynamic, const struct sl_node_desc *node, const struct sl_dynamic_kernel *kernel,
        const struct sl_live *inputs, struct sl_live *outputs, uint64_t scratch_bytes)
{
        const struct sl_dynamic_recorder *recorder = dynamic->recorder;

        if (recorder)
                recorder->launched(recorder->context, &(struct sl_dynamic_launch){.node = node,
                                                              .kernel = kernel,
                                                              .inputs = inputs,
                                                              .outputs = outputs,
                                                              .scratch_bytes = scratch_bytes});
}

/* @lives: what the node reads, where that is not packed. */
static int launch(struct sl_dynamic *dynamic, const struct sl_node_desc *node, const struct sl_dynamic_kernel *kernel,
        const struct sl_live *lives, struct sl_live *outputs, int64_t *made)
{
        uint64_t scratch_bytes =
                kernel->backend ? kernel->backend->runner->scratch_bytes(kernel->kernel) : sl_ref_scratch_bytes(node);
        struct sl_tensor bytes = {.dtype = SL_DTYPE_U8, .shape = {.rank = 1, .dims = {(int64_t)scratch_bytes}}};
        const void *inputs[SL_NODE_INPUTS_MAX];
        void *pointers[SL_NODE_OUTPUTS_MAX];
        struct sl_live scratch = {0};
        int r = scratch_bytes ? sl_live_make(&dynamic->pool, &bytes, &scratch) : 0;

        for (uint32_t i = 0; i < node->n_inputs; i++)
                inputs[i] = i < SL_DYNAMIC_PACKED_MAX && kernel->packed[i] ? kernel->packed[i] : lives[i].data;
        for (uint32_t i = 0; i < node->n_outputs && r == 0; i++) {
                r = sl_live_make(&dynamic->pool, &node->outputs[i], &outputs[i]);
                pointers[i] = outputs[i].data;
        }
        if (r < 0)
                r = no_memory(dynamic, node);
        if (r == 0) {
                r = run_kernel(kernel, node,
                        &(struct sl_binding){.inputs = inputs,
                                .outputs = pointers,
                                .scratch = scratch.data,
                                .made = made,
                                .pace = dynamic->pace,
                                .draws = dynamic->pace ? &dynamic->pace->draws : NULL});
                if (r < 0)
                        sl_error_set(dynamic->error, -r, "%s: %s", sl_op_name(node->op), strerror(-r));
                else
                        note_launch(dynamic, node, kernel, lives, outputs, scratch_bytes);
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

/* Of constants, their data; those that hold a parameter are attributes by now. */
static void list_constants(const struct sl_node_desc *node, const struct sl_live *inputs, const void **ret_constants)
{
        for (uint32_t i = 0; i < node->n_inputs; i++)
                ret_constants[i] = inputs[i].constant && node->inputs[i].dtype != SL_DTYPE_NONE ? inputs[i].data : NULL;
}

static bool find(struct sl_dynamic *dynamic, const struct sl_dynamic_wish *wish, struct sl_dynamic_kernel *ret_kernel)
{
        struct sl_dynamic_wish asked = *wish;

        asked.returns = dynamic->recorder != NULL;
        return dynamic->find && dynamic->find(dynamic->find_context, &asked, ret_kernel);
}

/* In the layouts that its tensors have. */
static int run_as_it_lies(struct sl_dynamic *dynamic, const struct sl_dynamic_wish *wish, const struct sl_live *inputs,
        struct sl_live *outputs, int64_t *made)
{
        struct sl_dynamic_kernel kernel;

        kernel.spent_ns = NULL;
        if (!find(dynamic, wish, &kernel)) {
                kernel.backend = NULL;
                memset(kernel.packed, 0, sizeof(kernel.packed));
        }
        return launch(dynamic, wish->node, &kernel, inputs, outputs, made);
}

static int reorder(struct sl_dynamic *dynamic, enum sl_layout layout, const struct sl_live *live, struct sl_live *ret_turned)
{
        struct sl_node_desc node = {.op = SL_OP_REORDER, .n_inputs = 1, .n_outputs = 1, .inputs = {live->tensor}};
        const struct sl_dynamic_wish wish = {.node = &node, .work = (uint64_t)sl_shape_elements(&live->tensor.shape)};

        node.outputs[0] = live->tensor;
        node.outputs[0].layout = layout;
        return run_as_it_lies(dynamic, &wish, live, ret_turned, NULL);
}

/* @live, a holder of its own, lies in @layout then. Return: 0; what a run says. */
static int turn(struct sl_dynamic *dynamic, enum sl_layout layout, struct sl_live *live)
{
        bool agrees = live->tensor.layout == layout || sl_layouts_agree(&live->tensor);
        struct sl_live turned = {0};
        int r = agrees ? 0 : reorder(dynamic, layout, live, &turned);

        if (r < 0)
                sl_live_drop(&dynamic->pool, &turned);
        if (r < 0 || agrees) {
                live->tensor.layout = agrees ? layout : live->tensor.layout;
                return r;
        }
        sl_live_drop(&dynamic->pool, live);
        *live = turned;
        return 0;
}

int sl_dynamic_settle(struct sl_dynamic *dynamic, struct sl_live *live)
{
        return live->tensor.dtype == SL_DTYPE_NONE ? 0 : turn(dynamic, SL_LAYOUT_PLAIN, live);
}

static void drop_all(struct sl_dynamic *dynamic, struct sl_live *lives, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++)
                sl_live_drop(&dynamic->pool, &lives[i]);
}

/* Inputs as the node says that they lie. @ret_turned: holders of their own; dropped where it fails. */
static int turn_inputs(
        struct sl_dynamic *dynamic, const struct sl_node_desc *node, const struct sl_live *inputs, struct sl_live *ret_turned)
{
        int r = 0;

        for (uint32_t i = 0; i < node->n_inputs && r == 0; i++) {
                ret_turned[i] = sl_live_share(&inputs[i]);
                if (node->inputs[i].dtype == SL_DTYPE_NONE)
                        continue;
                ret_turned[i].tensor.shape = node->inputs[i].shape;
                r = turn(dynamic, node->inputs[i].layout, &ret_turned[i]);
                if (r < 0)
                        drop_all(dynamic, ret_turned, i + 1);
        }
        return r;
}

static bool has_moved(const struct sl_node_desc *node, const struct sl_live *inputs)
{
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (node->inputs[i].dtype != SL_DTYPE_NONE && node->inputs[i].layout != inputs[i].tensor.layout &&
                        !sl_layouts_agree(&node->inputs[i]))
                        return true;
        return false;
}

static int run_turned(struct sl_dynamic *dynamic, const struct sl_dynamic_wish *wish, const struct sl_live *inputs,
        struct sl_live *outputs, int64_t *made)
{
        const struct sl_node_desc *node = wish->node;
        struct sl_live turned[SL_NODE_INPUTS_MAX];
        int r = turn_inputs(dynamic, node, inputs, turned);

        if (r < 0)
                return r;
        r = run_as_it_lies(dynamic, wish, turned, outputs, made);
        drop_all(dynamic, turned, node->n_inputs);
        return r;
}

/* Return: 1 it ran; 0 there is no such kernel; an error. */
static int run_last(
        struct sl_dynamic *dynamic, const struct sl_dynamic_wish *wish, const struct sl_live *inputs, struct sl_live *outputs)
{
        struct sl_node_desc last = *wish->node;
        struct sl_dynamic_wish asked = *wish;
        struct sl_dynamic_kernel kernel;
        int r;

        if (!sl_layouts_set_last(&last))
                return 0;
        asked.node = &last;
        asked.at_once = true;
        if (!find(dynamic, &asked, &kernel))
                return 0;
        r = has_moved(&last, inputs) ? run_turned(dynamic, &asked, inputs, outputs, NULL)
                                     : launch(dynamic, &last, &kernel, inputs, outputs, NULL);
        return r < 0 ? r : 1;
}

static bool is_plain(const struct sl_node_desc *node)
{
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (node->inputs[i].dtype != SL_DTYPE_NONE && node->inputs[i].layout != SL_LAYOUT_PLAIN)
                        return false;
        return true;
}

static int run_plain(struct sl_dynamic *dynamic, const struct sl_dynamic_wish *wish, struct sl_node_desc *node,
        const struct sl_live *inputs, struct sl_live *outputs, int64_t *made)
{
        if (is_plain(node))
                return run_as_it_lies(dynamic, wish, inputs, outputs, made);
        for (uint32_t i = 0; i < node->n_inputs; i++)
                node->inputs[i].layout = SL_LAYOUT_PLAIN;
        return run_turned(dynamic, wish, inputs, outputs, made);
}

static int run_parts(
        struct sl_dynamic *dynamic, const struct sl_node_desc *node, const struct sl_live *inputs, struct sl_live *ret_output);

/* In the layouts and on the kernels that suit its shapes, which are static. */
static int run_best(
        struct sl_dynamic *dynamic, struct sl_node_desc *node, const struct sl_live *inputs, struct sl_live *outputs, int64_t *made)
{
        const void *constants[SL_NODE_INPUTS_MAX];
        const struct sl_dynamic_wish wish = {.node = node, .constants = constants, .work = sl_op_work(node)};
        int r = 0;

        list_constants(node, inputs, constants);
        if (dynamic->layouts && sl_layouts_wants_last(node))
                r = run_last(dynamic, &wish, inputs, outputs);
        if (r != 0)
                return r < 0 ? r : 0;
        if (node->op == SL_OP_MBCONV)
                return run_parts(dynamic, node, inputs, &outputs[0]);
        return run_plain(dynamic, &wish, node, inputs, outputs, made);
}

#define CONV_INPUTS 4

/* An inverted bottleneck for which there is no kernel at this size: one convolution after the other, each on its best. */
static int run_parts(
        struct sl_dynamic *dynamic, const struct sl_node_desc *node, const struct sl_live *inputs, struct sl_live *ret_output)
{
        struct sl_live image = sl_live_share(&inputs[SL_MBCONV_IMAGE]);
        int r = 0;

        for (int part = 0; part < SL_MBCONV_PARTS && r == 0; part++) {
                uint32_t weights = sl_mbconv_weights(part);
                struct sl_live lives[CONV_INPUTS], made = {0};
                struct sl_node_desc conv;

                if (!sl_mbconv_has(node, part))
                        continue;
                r = sl_mbconv_conv(node, part, &conv, dynamic->error);
                if (r < 0)
                        break;
                lives[0] = image;
                lives[1] = inputs[weights];
                lives[2] = conv.inputs[2].dtype == SL_DTYPE_NONE ? (struct sl_live){.data = NULL} : inputs[weights + 1];
                lives[3] = inputs[node->n_inputs - 1]; /* the residual, where it is read */
                for (uint32_t i = 0; i < conv.n_inputs; i++)
                        conv.inputs[i].layout = lives[i].tensor.layout;
                r = run_best(dynamic, &conv, lives, &made, NULL);
                sl_live_drop(&dynamic->pool, &image);
                image = made;
        }
        *ret_output = image;
        return r;
}

static int run_shaped(
        struct sl_dynamic *dynamic, struct sl_node_desc *node, const struct sl_live *inputs, struct sl_live *outputs, int64_t *made)
{
        int r = sl_dynamic_work(dynamic, node->op, sl_op_work(node));

        return r < 0 ? r : run_best(dynamic, node, inputs, outputs, made);
}

static int run_node(struct sl_dynamic *dynamic, struct sl_node_desc *node, const struct sl_live *inputs, const void *const *data,
        struct sl_live *outputs)
{
        struct sl_shape rules[SL_NODE_OUTPUTS_MAX];
        int64_t made = -1;
        int r = sl_op_infer(node, dynamic->error);

        for (uint32_t i = 0; i < node->n_outputs && r == 0; i++)
                rules[i] = node->outputs[i].shape;
        if (r == 0)
                r = bound_outputs(dynamic, node, data);
        if (r == 0)
                r = run_shaped(dynamic, node, inputs, outputs, &made);
        for (uint32_t i = 0; i < node->n_outputs && r == 0; i++)
                trim(&rules[i], made, &outputs[i]);
        return r;
}

int sl_dynamic_run(struct sl_dynamic *dynamic, struct sl_node_desc *node, const struct sl_live *inputs, struct sl_live *ret_outputs)
{
        const void *data[SL_NODE_INPUTS_MAX];
        struct sl_live outputs[SL_NODE_OUTPUTS_MAX] = {0};
        int r = sl_dynamic_step(dynamic, node->op);

        for (uint32_t i = 0; i < node->n_inputs; i++) {
                node->inputs[i] = inputs[i].tensor;
                data[i] = inputs[i].data;
        }
        if (r == 0 && dynamic->recorder)
                dynamic->recorder->begin(dynamic->recorder->context, node, inputs);
        if (r == 0) {
                r = sl_op_absorb(node, data, dynamic->error);
                if (r < 0)
                        sl_error_prefix(dynamic->error, r, "%s", sl_op_name(node->op));
        }
        if (r == 0)
                r = run_node(dynamic, node, inputs, data, outputs);
        for (uint32_t i = 0; i < node->n_outputs && r < 0; i++)
                sl_live_drop(&dynamic->pool, &outputs[i]);
        if (r == 0)
                memcpy(ret_outputs, outputs, node->n_outputs * sizeof(*outputs));
        return r;
}
