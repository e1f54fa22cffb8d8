/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes at random, most of them nonsense: shape rules and ref kernels must refuse or compute, and never reach outside their
 * tensors. Worth most under the sanitizers. The seed is fixed: a failure repeats.
 */
#include "node_bench.h"
#include "random_node.h"

#include <stdlib.h>
#include <string.h>

#define ROUNDS       40000 /* at most, for each operator */
#define ENOUGH       400   /* that were computed */
#define TENSOR_BYTES 2048

static void launch(struct random *random, const struct sl_node_desc *node, struct sl_kernel *kernel)
{
        void *inputs[SL_NODE_INPUTS_MAX], *outputs[SL_NODE_OUTPUTS_MAX];

        for (uint32_t i = 0; i < node->n_inputs; i++)
                inputs[i] = random_tensor(random, &node->inputs[i]);
        for (uint32_t i = 0; i < node->n_outputs; i++)
                outputs[i] = random_tensor(random, &node->outputs[i]);
        void *scratch = malloc(sl_backend_ref.runner->scratch_bytes(kernel) + 1);
        struct sl_binding binding = {.inputs = (const void *const *)inputs, .outputs = outputs, .scratch = scratch};
        int r = sl_backend_ref.runner->launch(kernel, &binding);

        cr_assert(r == 0 || (r == -ERANGE && (sl_op_traits(node->op) & SL_OP_INDEXES)), "%s: %d", sl_op_name(node->op), r);
        free(scratch);
        for (uint32_t i = 0; i < node->n_inputs; i++)
                free(inputs[i]);
        for (uint32_t i = 0; i < node->n_outputs; i++)
                free(outputs[i]);
}

/* True when the node was accepted and computed. */
static bool comes_through(struct random *random, struct sl_node_desc *node)
{
        const void *constants[SL_NODE_INPUTS_MAX] = {NULL};
        struct sl_kernel *kernel = NULL;
        struct sl_error error = {""};
        int r = sl_op_infer(node, &error);

        cr_assert(!r == !error.text[0] && (!r || r == -EINVAL || r == -EOVERFLOW || r == -ENOTSUP), "%s: %d: \"%s\"",
                sl_op_name(node->op), r, error.text);
        if (!r && (sl_op_traits(node->op) & SL_OP_COUNTS) && node->op != SL_OP_RANGE)
                random_bound_outputs(node);
        if (r || !sl_backend_ref.planner->supports(NULL, node) || !random_is_small(node, TENSOR_BYTES))
                return false;
        if (node->op == SL_OP_RANGE || sl_backend_ref.runner->compile(NULL,
                                               &(struct sl_kernel_source){.node = node, .constants = constants}, &kernel, &error))
                return false;
        launch(random, node, kernel);
        sl_backend_ref.runner->kernel_free(kernel);
        return true;
}

Test(random_nodes, are_refused_or_computed_within_their_tensors)
{
        struct random random = {.state = 20240229};

        for (uint32_t op = 0; op < SL_OP_COUNT; op++) {
                int computed = 0;

                for (int i = 0; i < ROUNDS && computed < ENOUGH; i++) {
                        struct sl_node_desc node = random_node(&random, op);

                        computed += comes_through(&random, &node);
                }
                cr_expect(
                        computed || op == SL_OP_RANGE || (sl_op_traits(op) & SL_OP_CONTROL), "no %s came through", sl_op_name(op));
        }
}

/* The node as it is for one batch size. */
static struct sl_node_desc with_batch(const struct sl_node_desc *node, int64_t batch)
{
        struct sl_node_desc fixed = *node;

        for (uint32_t i = 0; i < fixed.n_inputs; i++)
                for (uint32_t d = 0; d < fixed.inputs[i].shape.rank; d++)
                        if (fixed.inputs[i].shape.dims[d] == SL_DIM_BATCH)
                                fixed.inputs[i].shape.dims[d] = batch;
        return fixed;
}

static void expect_agreement(const struct sl_node_desc *node, const struct sl_node_desc *fixed, int64_t batch)
{
        char text[SL_SHAPE_TEXT_BYTES], fixed_text[SL_SHAPE_TEXT_BYTES];

        for (uint32_t i = 0; i < node->n_outputs; i++) {
                const struct sl_shape *said = &node->outputs[i].shape, *got = &fixed->outputs[i].shape;
                bool agrees = said->rank == got->rank && node->outputs[i].dtype == fixed->outputs[i].dtype;

                for (uint32_t d = 0; d < said->rank && agrees; d++)
                        agrees = said->dims[d] == SL_DIM_UNKNOWN || got->dims[d] == SL_DIM_UNKNOWN ||
                                 got->dims[d] == (said->dims[d] == SL_DIM_BATCH ? batch : said->dims[d]);
                cr_assert(agrees, "%s: output %u is %s, but %s for a batch of %d", sl_op_name(node->op), i,
                        sl_shape_print(said, text), sl_shape_print(got, fixed_text), (int)batch);
        }
}

Test(random_nodes, carry_the_batch_only_where_every_batch_size_agrees)
{
        struct random random = {.state = 7};
        int carried = 0;

        for (int i = 0; i < 150000; i++) {
                struct sl_node_desc node = random_node(&random, random_next(&random, SL_OP_COUNT));
                struct sl_error error = {""};

                for (uint32_t k = 0; k < node.n_inputs; k++)
                        if (node.inputs[k].shape.rank && random_next(&random, 3))
                                node.inputs[k]
                                        .shape.dims[random_next(&random, 4) ? 0 : random_next(&random, node.inputs[k].shape.rank)] =
                                        SL_DIM_BATCH;
                if (sl_op_infer(&node, &error))
                        continue;
                for (int64_t batch = 1; batch <= 4; batch++) {
                        struct sl_node_desc fixed = with_batch(&node, batch);

                        /* Not every batch size fits what else the node says. */
                        if (sl_op_infer(&fixed, &error))
                                continue;
                        expect_agreement(&node, &fixed, batch);
                        carried += node.outputs[0].shape.rank && node.outputs[0].shape.dims[0] == SL_DIM_BATCH;
                }
        }
        cr_assert_gt(carried, 10000);
}
