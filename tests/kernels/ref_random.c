/*
 * Nodes at random, most of them nonsense: shape rules and ref kernels must refuse or compute, and never reach outside their
 * tensors. Worth most under the sanitizers. The seed is fixed: a failure repeats.
 */
#include "examples.h"
#include "node_bench.h"

#include <stdlib.h>
#include <string.h>

#define ROUNDS       40000 /* at most, for each operator */
#define ENOUGH       400   /* that were computed */
#define TENSOR_BYTES 2048

struct random {
        uint64_t state;
};

static uint32_t next(struct random *random, uint32_t limit)
{
        random->state = random->state * 6364136223846793005ull + 1442695040888963407ull;
        return (uint32_t)(random->state >> 33) % limit;
}

static int64_t pick(struct random *random, const int64_t *values, uint32_t n_values)
{
        return values[next(random, n_values)];
}

static int64_t dim(struct random *random)
{
        static const int64_t rare[] = {0, SL_DIM_BATCH, SL_DIM_UNKNOWN, -3, 1ll << 31, INT64_MAX};

        return next(random, 40) ? 1 + next(random, 4) : pick(random, rare, 6);
}

static int64_t value(struct random *random)
{
        static const int64_t rare[] = {INT64_MIN, INT64_MAX, INT32_MIN, INT32_MAX, -9, 9};

        return next(random, 12) ? (int64_t)next(random, 6) - 2 : pick(random, rare, 6);
}

static struct sl_shape shape(struct random *random, uint32_t rank)
{
        struct sl_shape made = {.rank = next(random, 8) ? rank : next(random, 6)};

        for (uint32_t i = 0; i < made.rank; i++)
                made.dims[i] = dim(random);
        return made;
}

/* Shapes that are alike let more nodes through. */
static struct sl_shape like(struct random *random, const struct sl_shape *other)
{
        struct sl_shape made = *other;

        if (next(random, 3) == 0)
                return shape(random, 1 + next(random, 2));
        for (uint32_t i = 0; i < made.rank; i++)
                if (next(random, 6) == 0)
                        made.dims[i] = dim(random);
        return made;
}

static void attributes(struct random *random, struct sl_node_desc *node)
{
        for (uint32_t i = next(random, 6); i; i--) {
                uint32_t id = next(random, SL_ATTR_COUNT), count = next(random, 3) ? node->inputs[0].shape.rank : next(random, 6);
                int64_t ints[SL_ATTR_INTS_MAX];

                for (uint32_t k = 0; k < SL_ATTR_INTS_MAX; k++)
                        ints[k] = value(random);
                if (id == SL_ATTR_AXIS || id == SL_ATTR_GROUP || id == SL_ATTR_TO || id == SL_ATTR_LAYOUT || next(random, 5) == 0)
                        sl_attrs_set_int(&node->attrs, id, id == SL_ATTR_TO ? (int64_t)next(random, 18) : value(random));
                else if (next(random, 8) == 0)
                        sl_attrs_set_float(&node->attrs, id, (double)value(random));
                else
                        sl_attrs_set_ints(&node->attrs, id, ints, count);
        }
}

static void small_list(struct random *random, struct sl_node_desc *node, uint32_t id, uint32_t count, int64_t least)
{
        int64_t ints[SL_ATTR_INTS_MAX];

        for (uint32_t i = 0; i < count && i < SL_ATTR_INTS_MAX; i++)
                ints[i] = next(random, 60) ? least + next(random, 3) : value(random);
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
        struct sl_tensor *tensor = &node->inputs[next(random, node->n_inputs)];

        if (next(random, 3) == 0)
                return;
        if (tensor->shape.rank && next(random, 3))
                tensor->shape.dims[next(random, tensor->shape.rank)] = dim(random);
        else if (node->attrs.count && next(random, 3))
                node->attrs.items[next(random, node->attrs.count)].ints[next(random, 4)] = value(random);
        else if (next(random, 3))
                attributes(random, node);
        else if (next(random, 2))
                node->n_outputs = 1 + next(random, 3);
        else
                node->n_inputs = 1 + next(random, node->n_inputs);
        if (next(random, 4) == 0)
                disturb(random, node);
}

/* Floats of one width become those of another. */
static void change_floats(struct random *random, struct sl_node_desc *node)
{
        static const uint32_t floats[] = {SL_DTYPE_F32, SL_DTYPE_F16, SL_DTYPE_BF16, SL_DTYPE_F64};
        uint32_t dtype = floats[next(random, 4)];

        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (node->inputs[i].dtype == SL_DTYPE_F32)
                        node->inputs[i].dtype = dtype;
}

static struct sl_node_desc random_node(struct random *random, uint32_t op)
{
        static const uint32_t dtypes[] = {
                SL_DTYPE_F32, SL_DTYPE_F32, SL_DTYPE_F16, SL_DTYPE_I64, SL_DTYPE_U8, SL_DTYPE_BOOL, SL_DTYPE_I8};
        struct sl_node_desc node = bench_node(op);
        uint32_t dtype = dtypes[next(random, 7)], n_inputs = next(random, 6);

        if (next(random, 8) && example_node(op, &node)) {
                if (next(random, 2))
                        change_floats(random, &node);
                disturb(random, &node);
                return node;
        }
        node.n_outputs = next(random, 6) ? 1 : next(random, 4);
        bench_input(&node, dtype, shape(random, 1 + next(random, 4)));
        while (node.n_inputs < n_inputs)
                bench_input(&node, next(random, 8) ? dtype : dtypes[next(random, 7)], like(random, &node.inputs[0].shape));
        if (node.op == SL_OP_GATHER && n_inputs > 1)
                node.inputs[1].dtype = SL_DTYPE_I64;
        attributes(random, &node);
        make_likelier(random, &node);
        node.epilogue.has_residual = next(random, 12) == 0;
        return node;
}

static bool is_small(const struct sl_node_desc *node)
{
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (node->inputs[i].dtype != SL_DTYPE_NONE && sl_tensor_bytes(&node->inputs[i]) > TENSOR_BYTES)
                        return false;
        for (uint32_t i = 0; i < node->n_outputs; i++)
                if (sl_tensor_bytes(&node->outputs[i]) > TENSOR_BYTES)
                        return false;
        return true;
}

/* Exactly as large as the tensor, so that a sanitizer sees one byte too far. */
static void *tensor_memory(struct random *random, const struct sl_tensor *tensor)
{
        uint64_t bytes = tensor->dtype == SL_DTYPE_NONE ? 0 : sl_tensor_bytes(tensor);
        uint8_t *memory = malloc(bytes ? bytes : 1);

        for (uint64_t i = 0; i < bytes; i++)
                memory[i] = next(random, 3) ? 0 : (uint8_t)next(random, 256);
        return memory;
}

static void launch(struct random *random, const struct sl_node_desc *node, struct sl_kernel *kernel)
{
        void *inputs[SL_NODE_INPUTS_MAX], *outputs[SL_NODE_OUTPUTS_MAX];

        for (uint32_t i = 0; i < node->n_inputs; i++)
                inputs[i] = tensor_memory(random, &node->inputs[i]);
        for (uint32_t i = 0; i < node->n_outputs; i++)
                outputs[i] = tensor_memory(random, &node->outputs[i]);
        void *scratch = malloc(sl_backend_ref.scratch_bytes(kernel) + 1);
        struct sl_binding binding = {.inputs = (const void *const *)inputs, .outputs = outputs, .scratch = scratch};
        int r = sl_backend_ref.launch(kernel, &binding);

        cr_assert(r == 0 || (r == -ERANGE && (sl_op_traits(node->op) & SL_OP_INDEXES)), "%s: %d", sl_op_name(node->op), r);
        free(scratch);
        for (uint32_t i = 0; i < node->n_inputs; i++)
                free(inputs[i]);
        for (uint32_t i = 0; i < node->n_outputs; i++)
                free(outputs[i]);
}

/* Room for the most that it can count. */
static void bound_outputs(struct sl_node_desc *node)
{
        int64_t bound = sl_op_bound(node, NULL);

        for (uint32_t i = 0; i < node->n_outputs && bound >= 0; i++)
                for (uint32_t d = 0; d < node->outputs[i].shape.rank; d++)
                        if (node->outputs[i].shape.dims[d] == SL_DIM_UNKNOWN)
                                node->outputs[i].shape.dims[d] = bound;
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
                bound_outputs(node);
        if (r || !sl_backend_ref.supports(node) || !is_small(node))
                return false;
        if (node->op == SL_OP_RANGE || sl_backend_ref.compile(node, NULL, constants, &kernel, &error))
                return false;
        launch(random, node, kernel);
        sl_backend_ref.kernel_free(kernel);
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
                struct sl_node_desc node = random_node(&random, next(&random, SL_OP_COUNT));
                struct sl_error error = {""};

                for (uint32_t k = 0; k < node.n_inputs; k++)
                        if (node.inputs[k].shape.rank && next(&random, 3))
                                node.inputs[k].shape.dims[next(&random, 4) ? 0 : next(&random, node.inputs[k].shape.rank)] =
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
