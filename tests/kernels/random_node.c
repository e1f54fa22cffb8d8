/* SPDX-License-Identifier: Apache-2.0 */
#include "random_node.h"

#include "examples.h"
#include "node_bench.h"

#include <stdlib.h>

uint32_t random_next(struct random *random, uint32_t limit)
{
        random->state = random->state * 6364136223846793005ull + 1442695040888963407ull;
        return (uint32_t)(random->state >> 33) % limit;
}

static int64_t pick(struct random *random, const int64_t *values, uint32_t n_values)
{
        return values[random_next(random, n_values)];
}

static int64_t dim(struct random *random)
{
        static const int64_t rare[] = {0, SL_DIM_BATCH, SL_DIM_UNKNOWN, -3, 1ll << 31, INT64_MAX};

        if (random->large && random_next(random, 3) == 0)
                return random->large;
        return random_next(random, 40) ? 1 + random_next(random, 4) : pick(random, rare, 6);
}

static int64_t value(struct random *random)
{
        static const int64_t rare[] = {INT64_MIN, INT64_MAX, INT32_MIN, INT32_MAX, -9, 9};

        if (random->large && random_next(random, 4) == 0)
                return random->large;
        return random_next(random, 12) ? (int64_t)random_next(random, 6) - 2 : pick(random, rare, 6);
}

static struct sl_shape shape(struct random *random, uint32_t rank)
{
        struct sl_shape made = {.rank = random_next(random, 8) ? rank : random_next(random, 6)};

        for (uint32_t i = 0; i < made.rank; i++)
                made.dims[i] = dim(random);
        return made;
}

/* Shapes that are alike let more nodes through. */
static struct sl_shape like(struct random *random, const struct sl_shape *other)
{
        struct sl_shape made = *other;

        if (random_next(random, 3) == 0)
                return shape(random, 1 + random_next(random, 2));
        for (uint32_t i = 0; i < made.rank; i++)
                if (random_next(random, 6) == 0)
                        made.dims[i] = dim(random);
        return made;
}

static void attributes(struct random *random, struct sl_node_desc *node)
{
        for (uint32_t i = random_next(random, 6); i; i--) {
                uint32_t id = random_next(random, SL_ATTR_COUNT),
                         count = random_next(random, 3) ? node->inputs[0].shape.rank : random_next(random, 6);
                int64_t ints[SL_ATTR_INTS_MAX];

                for (uint32_t k = 0; k < SL_ATTR_INTS_MAX; k++)
                        ints[k] = value(random);
                if (id == SL_ATTR_AXIS || id == SL_ATTR_GROUP || id == SL_ATTR_TO || id == SL_ATTR_LAYOUT ||
                        random_next(random, 5) == 0)
                        sl_attrs_set_int(&node->attrs, id, id == SL_ATTR_TO ? (int64_t)random_next(random, 18) : value(random));
                else if (random_next(random, 8) == 0)
                        sl_attrs_set_float(&node->attrs, id, (double)value(random));
                else
                        sl_attrs_set_ints(&node->attrs, id, ints, count);
        }
}

static void small_list(struct random *random, struct sl_node_desc *node, uint32_t id, uint32_t count, int64_t least)
{
        int64_t ints[SL_ATTR_INTS_MAX];

        for (uint32_t i = 0; i < count && i < SL_ATTR_INTS_MAX; i++)
                ints[i] = random_next(random, 60) ? least + random_next(random, 3) : value(random);
        sl_attrs_set_ints(&node->attrs, id, ints, count);
}

/* Chance alone hardly ever meets what these operators ask for. */
static void make_likelier(struct random *random, struct sl_node_desc *node)
{
        uint32_t rank = node->inputs[0].shape.rank;

        if (rank >= 3 && (node->op == SL_OP_MAX_POOL || node->op == SL_OP_AVERAGE_POOL)) {
                node->n_inputs = 1;
                small_list(random, node, SL_ATTR_KERNEL_SHAPE, rank - 2, 1);
                small_list(random, node, SL_ATTR_PADS, 2 * (rank - 2), 0);
        }
        if (node->op == SL_OP_PAD) {
                node->n_inputs = 1;
                small_list(random, node, SL_ATTR_PADS, 2 * rank, -1);
        }
        if (rank >= 2 && (node->op == SL_OP_BATCH_NORM || node->op == SL_OP_INSTANCE_NORM)) {
                node->n_inputs = 1;
                while (node->n_inputs < (node->op == SL_OP_BATCH_NORM ? 5 : 3))
                        bench_input(node, node->inputs[0].dtype, SHAPE(node->inputs[0].shape.dims[1]));
        }
}

/* An example with something else in one place of it, now and then in two. */
static void disturb(struct random *random, struct sl_node_desc *node)
{
        struct sl_tensor *tensor = &node->inputs[random_next(random, node->n_inputs)];

        if (random_next(random, 3) == 0)
                return;
        if (tensor->shape.rank && random_next(random, 3))
                tensor->shape.dims[random_next(random, tensor->shape.rank)] = dim(random);
        else if (node->attrs.count && random_next(random, 3))
                node->attrs.items[random_next(random, node->attrs.count)].ints[random_next(random, 4)] = value(random);
        else if (random_next(random, 3))
                attributes(random, node);
        else if (random_next(random, 2))
                node->n_outputs = 1 + random_next(random, 3);
        else
                node->n_inputs = 1 + random_next(random, node->n_inputs);
        if (random_next(random, 4) == 0)
                disturb(random, node);
}

/* Floats of one width become those of another. */
static void change_floats(struct random *random, struct sl_node_desc *node)
{
        static const uint32_t floats[] = {SL_DTYPE_F32, SL_DTYPE_F16, SL_DTYPE_BF16, SL_DTYPE_F64};
        uint32_t dtype = floats[random_next(random, 4)];

        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (node->inputs[i].dtype == SL_DTYPE_F32)
                        node->inputs[i].dtype = dtype;
}

/* One length becomes another wherever it stands, so that the tensors still fit each other. */
static void stretch(struct random *random, struct sl_node_desc *node)
{
        const struct sl_shape *from = &node->inputs[random_next(random, node->n_inputs)].shape;
        int64_t old = from->rank ? from->dims[random_next(random, from->rank)] : 0;

        for (uint32_t i = 0; i < node->n_inputs && old; i++)
                for (uint32_t d = 0; d < node->inputs[i].shape.rank; d++)
                        if (node->inputs[i].shape.dims[d] == old)
                                node->inputs[i].shape.dims[d] = random->large;
}

struct sl_node_desc random_node(struct random *random, uint32_t op)
{
        static const uint32_t dtypes[] = {
                SL_DTYPE_F32, SL_DTYPE_F32, SL_DTYPE_F16, SL_DTYPE_I64, SL_DTYPE_U8, SL_DTYPE_BOOL, SL_DTYPE_I8};
        struct sl_node_desc node = bench_node(op);
        uint32_t dtype = dtypes[random_next(random, 7)], n_inputs = random_next(random, 6);

        if (random_next(random, 8) && example_node(op, random_next(random, 4), &node)) {
                if (random_next(random, 2))
                        change_floats(random, &node);
                if (random->large && random_next(random, 2))
                        stretch(random, &node);
                disturb(random, &node);
                return node;
        }
        node.n_outputs = random_next(random, 6) ? 1 : random_next(random, 4);
        bench_input(&node, dtype, shape(random, 1 + random_next(random, 4)));
        while (node.n_inputs < n_inputs)
                bench_input(&node, random_next(random, 8) ? dtype : dtypes[random_next(random, 7)],
                        like(random, &node.inputs[0].shape));
        if (node.op == SL_OP_GATHER && n_inputs > 1)
                node.inputs[1].dtype = SL_DTYPE_I64;
        attributes(random, &node);
        make_likelier(random, &node);
        node.epilogue.has_residual = random_next(random, 12) == 0;
        return node;
}

bool random_is_small(const struct sl_node_desc *node, uint64_t tensor_bytes)
{
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (node->inputs[i].dtype != SL_DTYPE_NONE && sl_tensor_bytes(&node->inputs[i]) > tensor_bytes)
                        return false;
        for (uint32_t i = 0; i < node->n_outputs; i++)
                if (sl_tensor_bytes(&node->outputs[i]) > tensor_bytes)
                        return false;
        return true;
}

void *random_tensor(struct random *random, const struct sl_tensor *tensor)
{
        uint64_t bytes = tensor->dtype == SL_DTYPE_NONE ? 0 : sl_tensor_bytes(tensor);
        uint8_t *memory = malloc(bytes ? bytes : 1);

        for (uint64_t i = 0; i < bytes; i++)
                memory[i] = random_next(random, 3) ? 0 : (uint8_t)random_next(random, 256);
        return memory;
}

void random_bound_outputs(struct sl_node_desc *node)
{
        int64_t bound = sl_op_bound(node, NULL);

        for (uint32_t i = 0; i < node->n_outputs && bound >= 0; i++)
                for (uint32_t d = 0; d < node->outputs[i].shape.rank; d++)
                        if (node->outputs[i].shape.dims[d] == SL_DIM_UNKNOWN)
                                node->outputs[i].shape.dims[d] = bound;
}
