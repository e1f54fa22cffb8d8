/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a shape rule says of sizes that are not known: nothing that some sizes would belie. Nodes at random that are accepted lose
 * some of their dimensions, and then have to be accepted, or not be settled, with outputs that say no more than is so. The seed is
 * fixed.
 */
#include "node_bench.h"
#include "random_node.h"

#include <stdio.h>

#define ROUNDS 20000 /* at most, for each operator */
#define ENOUGH 600   /* that were accepted */

static bool is_static(const struct sl_node_desc *node)
{
        for (uint32_t i = 0; i < node->n_inputs; i++)
                for (uint32_t d = 0; d < node->inputs[i].shape.rank; d++)
                        if (node->inputs[i].shape.dims[d] < 0)
                                return false;
        return true;
}

/* One dimension in two, or in six. */
static struct sl_node_desc without_sizes(struct random *random, const struct sl_node_desc *node)
{
        struct sl_node_desc open = *node;
        uint32_t one_in = random_next(random, 2) ? 2 : 6;

        for (uint32_t i = 0; i < open.n_inputs; i++)
                for (uint32_t d = 0; d < open.inputs[i].shape.rank; d++)
                        if (random_next(random, one_in) == 0)
                                open.inputs[i].shape.dims[d] = SL_DIM_UNKNOWN;
        return open;
}

static bool is_told(const struct sl_shape *open, const struct sl_shape *shape)
{
        if (open->rank != shape->rank)
                return false;
        for (uint32_t d = 0; d < shape->rank; d++)
                if (open->dims[d] >= 0 && shape->dims[d] >= 0 && open->dims[d] != shape->dims[d])
                        return false;
        return true;
}

/* Most parameters of one element may be a vector of it. */
static void lengthen_scalars(struct random *random, struct sl_node_desc *node)
{
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (!node->inputs[i].shape.rank && node->inputs[i].dtype != SL_DTYPE_NONE && random_next(random, 2))
                        node->inputs[i].shape = SHAPE(1);
}

static void print_node(const struct sl_node_desc *node, char *text, size_t bytes)
{
        size_t used = 0;

        for (uint32_t i = 0; i < node->n_inputs && used < bytes; i++) {
                char shape[SL_SHAPE_TEXT_BYTES];

                used += (size_t)snprintf(
                        text + used, bytes - used, "%s%s", i ? " " : "", sl_shape_print(&node->inputs[i].shape, shape));
        }
}

static void expect_nothing_false(struct random *random, const struct sl_node_desc *node, const struct sl_node_desc *inferred)
{
        struct sl_node_desc open = without_sizes(random, node);
        struct sl_error error = {""};
        int r = sl_op_infer(&open, &error);
        char text[1024], shape[SL_SHAPE_TEXT_BYTES], open_shape[SL_SHAPE_TEXT_BYTES];

        print_node(&open, text, sizeof(text));
        cr_expect(r == 0 || r == -ENOTSUP || r == -EOVERFLOW, "%s of %s: %d \"%s\"", sl_op_name(node->op), text, r, error.text);
        for (uint32_t i = 0; i < node->n_outputs && r == 0; i++)
                cr_expect(is_told(&open.outputs[i].shape, &inferred->outputs[i].shape), "%s of %s: output %u is %s, but may be %s",
                        sl_op_name(node->op), text, i, sl_shape_print(&open.outputs[i].shape, open_shape),
                        sl_shape_print(&inferred->outputs[i].shape, shape));
}

Test(shapes_unknown, are_refused_only_where_no_sizes_would_do_and_tell_only_what_is_so)
{
        struct random random = {.state = 20261129};

        for (uint32_t op = 0; op < SL_OP_COUNT; op++) {
                int accepted = 0;

                for (int i = 0; i < ROUNDS && accepted < ENOUGH; i++) {
                        struct sl_node_desc node = random_node(&random, op), inferred;

                        lengthen_scalars(&random, &node);
                        inferred = node;
                        if (!is_static(&node) || sl_op_infer(&inferred, NULL) < 0)
                                continue;
                        accepted++;
                        for (int k = 0; k < 4; k++)
                                expect_nothing_false(&random, &node, &inferred);
                }
                cr_expect(accepted || (sl_op_traits(op) & SL_OP_CONTROL), "no %s was accepted", sl_op_name(op));
        }
}
