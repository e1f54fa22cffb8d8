/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a node is said to cost against what it does. The kernels and shape rules of this program are built so that each basic block
 * that runs is counted (-fsanitize-coverage=trace-pc): no clock, so nothing depends on the machine, and no loop can be forgotten.
 */
#include "node_bench.h"
#include "pace.h"
#include "random_node.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS         20000 /* at most, for each operator */
#define ENOUGH         60    /* that were computed */
#define TENSOR_BYTES   (256 << 10)
#define WORK_MAX       (2 << 20)       /* of a node that is run */
#define BLOCKS_OF_STEP 48              /* basic blocks that an elementary step may be */
#define BLOCKS_OF_NODE 4000            /* that a launch may take besides */
#define BLOCKS_TO_END  100000          /* that it may take from the verdict to its end */
#define STEPS_OF_BLOCK 16              /* steps that may be said for each block and each element of the node's tensors */
#define SHORT_GRAIN    64              /* steps between two looks, so that small nodes are long ones */
#define VARIED_MAX     (WORK_MAX / 16) /* of a node that is launched with several kinds of data */
#define KINDS_OF_DATA  6
#define BLOCKS_BESIDE  100 /* that a launch takes with any data */
#define BLOCKS_OF_DATA 6   /* times as many blocks as other data, where they are said to decide on nothing */

static struct run {
        uint64_t blocks, limit;
        jmp_buf beyond;
        _Atomic int32_t *verdict; /* spoken at so many blocks; NULL: never */
        uint64_t verdict_at;
} run;

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
        if (++run.blocks == run.limit)
                longjmp(run.beyond, 1);
        if (run.verdict && run.blocks == run.verdict_at)
                atomic_store_explicit(run.verdict, -ECANCELED, memory_order_release);
}

struct memory {
        void *inputs[SL_NODE_INPUTS_MAX], *outputs[SL_NODE_OUTPUTS_MAX], *scratch;
};

/* Indices at random are hardly ever inside of their bounds: they are 0 in every second launch. */
static void memory_init(struct memory *memory, struct random *random, const struct sl_node_desc *node, struct sl_kernel *kernel)
{
        bool zeros = random_next(random, 2);

        for (uint32_t i = 0; i < node->n_inputs; i++) {
                memory->inputs[i] = random_tensor(random, &node->inputs[i]);
                if (zeros && (sl_op_traits(node->op) & SL_OP_INDEXES) && node->inputs[i].dtype != SL_DTYPE_NONE)
                        memset(memory->inputs[i], 0, sl_tensor_bytes(&node->inputs[i]));
        }
        for (uint32_t i = 0; i < node->n_outputs; i++)
                memory->outputs[i] = random_tensor(random, &node->outputs[i]);
        memory->scratch = malloc(sl_backend_ref.runner->scratch_bytes(kernel) + 1);
}

static void memory_deinit(struct memory *memory, const struct sl_node_desc *node)
{
        for (uint32_t i = 0; i < node->n_inputs; i++)
                free(memory->inputs[i]);
        for (uint32_t i = 0; i < node->n_outputs; i++)
                free(memory->outputs[i]);
        free(memory->scratch);
}

/* Basic blocks that the launch takes; @limit when they are more. */
static uint64_t blocks_of(
        struct sl_kernel *kernel, const struct memory *memory, struct sl_pace *pace, uint64_t limit, int *ret_result)
{
        struct sl_binding binding = {.inputs = (const void *const *)memory->inputs,
                .outputs = memory->outputs,
                .scratch = memory->scratch,
                .pace = pace};

        uint64_t blocks;

        run.blocks = 0;
        run.limit = limit;
        if (setjmp(run.beyond)) {
                run = (struct run){.blocks = 0};
                return limit;
        }
        *ret_result = sl_backend_ref.runner->launch(kernel, &binding);
        blocks = run.blocks;
        run = (struct run){.blocks = 0};
        return blocks;
}

static uint64_t elements_of(const struct sl_node_desc *node)
{
        uint64_t sum = 0;

        for (uint32_t i = 0; i < node->n_inputs; i++)
                sum += node->inputs[i].dtype == SL_DTYPE_NONE ? 0 : sl_shape_elements(&node->inputs[i].shape);
        for (uint32_t i = 0; i < node->n_outputs; i++)
                sum += sl_shape_elements(&node->outputs[i].shape);
        return sum;
}

static bool has_no_elements(const struct sl_node_desc *node)
{
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (node->inputs[i].dtype != SL_DTYPE_NONE && !sl_shape_elements(&node->inputs[i].shape))
                        return true;
        return !sl_shape_elements(&node->outputs[0].shape);
}

/* How much it does is data-dependent as well: what is said is a bound for any. */
static bool depends_on_data(const struct sl_node_desc *node)
{
        return (sl_op_traits(node->op) & (SL_OP_INDEXES | SL_OP_COUNTS)) || node->op == SL_OP_PAIR_CLASSES;
}

static void print_node(const struct sl_node_desc *node)
{
        char text[SL_SHAPE_TEXT_BYTES];

        for (uint32_t i = 0; i < node->n_inputs; i++)
                fprintf(stderr, "  input %u: %s %s\n", i, sl_dtype_name(node->inputs[i].dtype),
                        sl_shape_print(&node->inputs[i].shape, text));
        for (uint32_t i = 0; i < node->n_outputs; i++)
                fprintf(stderr, "  output %u: %s %s\n", i, sl_dtype_name(node->outputs[i].dtype),
                        sl_shape_print(&node->outputs[i].shape, text));
        for (uint32_t i = 0; i < node->attrs.count; i++)
                fprintf(stderr, "  attribute %s: %" PRId64 " [%" PRId64 ",%" PRId64 "]\n", sl_attr_name(node->attrs.items[i].id),
                        node->attrs.items[i].i, node->attrs.items[i].ints[0], node->attrs.items[i].ints[1]);
}

/* Never more than is said; and not much less, where neither data nor a lack of elements cut it short. */
static void compare(struct random *random, const struct sl_node_desc *node, struct sl_kernel *kernel)
{
        uint64_t work = sl_op_work(node), limit = work * BLOCKS_OF_STEP + BLOCKS_OF_NODE, blocks;
        struct memory memory;
        bool fits;
        int r = 0;

        memory_init(&memory, random, node, kernel);
        blocks = blocks_of(kernel, &memory, NULL, limit, &r);
        fits = depends_on_data(node) || has_no_elements(node) || work <= STEPS_OF_BLOCK * (blocks + elements_of(node));
        if (blocks == limit || !fits)
                print_node(node);
        cr_expect_lt(blocks, limit, "%s: %" PRIu64 " steps are said, %" PRIu64 " blocks ran, and more were to come",
                sl_op_name(node->op), work, blocks);
        cr_expect(fits, "%s: %" PRIu64 " steps are said, %" PRIu64 " blocks ran", sl_op_name(node->op), work, blocks);
        memory_deinit(&memory, node);
}

/* Ended from outside when it has begun, the launch ends within some steps, however long it would have been. */
static void interrupt(struct random *random, const struct sl_node_desc *node, struct sl_kernel *kernel)
{
        _Atomic int32_t verdict = 0;
        struct sl_pace pace;
        struct memory memory;
        uint64_t blocks;
        int r = 0;

        memory_init(&memory, random, node, kernel);
        sl_pace_start(&pace, &(struct sl_stop){.verdict = &verdict}, UINT64_MAX);
        pace.grain = pace.left = SHORT_GRAIN;
        run.verdict = &verdict; /* as long as the launch lasts */
        run.verdict_at = BLOCKS_OF_NODE;
        blocks = blocks_of(kernel, &memory, &pace, sl_op_work(node) * BLOCKS_OF_STEP + BLOCKS_OF_NODE, &r);
        if (blocks > BLOCKS_OF_NODE + BLOCKS_TO_END)
                print_node(node);
        cr_expect_leq(blocks, BLOCKS_OF_NODE + BLOCKS_TO_END, "%s: goes on for %" PRIu64 " blocks after it was ended",
                sl_op_name(node->op), blocks);
        cr_expect(r == 0 || r == -ECANCELED || r == -ERANGE, "%s: %d", sl_op_name(node->op), r);
        memory_deinit(&memory, node);
}

/* What element @k is of that kind of data: zeros, as a trial may be of, ascending and descending ones, large ones. */
static double value_of(int kind, uint64_t k)
{
        switch (kind) {
        case 0:
                return 0;
        case 1:
                return (double)(k % 4096);
        case 2:
                return 1000.0 * (double)(k % 64);
        case 3:
                return -(double)(k % 4096);
        default:
                return 1e30;
        }
}

/* The last kind is at random. Integers, which may be indices and lengths, are small. */
static void fill_kind(const struct sl_node_desc *node, int kind, struct memory *memory)
{
        for (uint32_t i = 0; i < node->n_inputs && kind < KINDS_OF_DATA - 1; i++) {
                uint32_t dtype = node->inputs[i].dtype;
                uint64_t n = dtype == SL_DTYPE_NONE ? 0 : (uint64_t)sl_shape_elements(&node->inputs[i].shape);

                for (uint64_t k = 0; k < n; k++)
                        if (dtype == SL_DTYPE_F32)
                                ((float *)memory->inputs[i])[k] = (float)value_of(kind, k);
                        else if (dtype == SL_DTYPE_F64)
                                ((double *)memory->inputs[i])[k] = value_of(kind, k);
                        else if (dtype == SL_DTYPE_I32)
                                ((int32_t *)memory->inputs[i])[k] = kind;
                        else if (dtype == SL_DTYPE_I64)
                                ((int64_t *)memory->inputs[i])[k] = kind;
        }
}

/* The shapes are the same, and so is what is done, unless it is said that the data decide. */
static void vary(struct random *random, const struct sl_node_desc *node, struct sl_kernel *kernel)
{
        uint64_t limit = sl_op_work(node) * BLOCKS_OF_STEP + BLOCKS_OF_NODE, least = UINT64_MAX, most = 0;

        if (sl_op_data_work(node) || sl_op_work(node) > VARIED_MAX)
                return;
        for (int kind = 0; kind < KINDS_OF_DATA; kind++) {
                struct memory memory;
                uint64_t blocks;
                int r = 0;

                memory_init(&memory, random, node, kernel);
                fill_kind(node, kind, &memory);
                blocks = blocks_of(kernel, &memory, NULL, limit, &r);
                memory_deinit(&memory, node);
                if (r < 0) /* an index that is out of range ends it */
                        continue;
                least = blocks < least ? blocks : least;
                most = blocks > most ? blocks : most;
        }
        if (most && most > BLOCKS_OF_DATA * (least + BLOCKS_BESIDE))
                print_node(node);
        cr_expect(!most || most <= BLOCKS_OF_DATA * (least + BLOCKS_BESIDE),
                "%s: %" PRIu64 " blocks ran, and with other data %" PRIu64 ", which are said to decide on nothing",
                sl_op_name(node->op), least, most);
}

static bool comes_through(struct random *random, struct sl_node_desc *node,
        void (*check)(struct random *random, const struct sl_node_desc *node, struct sl_kernel *kernel))
{
        const void *constants[SL_NODE_INPUTS_MAX] = {NULL};
        struct sl_kernel *kernel = NULL;

        if (sl_op_infer(node, NULL))
                return false;
        if ((sl_op_traits(node->op) & SL_OP_COUNTS) && node->op != SL_OP_RANGE)
                random_bound_outputs(node);
        if (!random_is_small(node, TENSOR_BYTES) || !sl_backend_ref.planner->supports(NULL, node) || sl_op_work(node) > WORK_MAX)
                return false;
        if (sl_backend_ref.runner->compile(NULL, &(struct sl_kernel_source){.node = node, .constants = constants}, &kernel, NULL))
                return false;
        check(random, node, kernel);
        sl_backend_ref.runner->kernel_free(kernel);
        return true;
}

static void check_operators(
        uint64_t seed, int enough, void (*check)(struct random *random, const struct sl_node_desc *node, struct sl_kernel *kernel))
{
        static const int64_t large[] = {0, 8, 60, 300};
        struct random random = {.state = seed};

        for (uint32_t op = 0; op < SL_OP_COUNT; op++) {
                int computed = 0;

                for (int i = 0; i < ROUNDS && computed < enough; i++) {
                        random.large = large[random_next(&random, 4)];

                        struct sl_node_desc node = random_node(&random, op);

                        computed += comes_through(&random, &node, check);
                }
                cr_expect(
                        computed || op == SL_OP_RANGE || (sl_op_traits(op) & SL_OP_CONTROL), "no %s came through", sl_op_name(op));
        }
}

Test(work, that_a_node_is_said_to_be_is_what_it_does_within_a_factor)
{
        check_operators(20261122, ENOUGH, compare);
}

Test(work, a_launch_that_is_ended_ends_within_some_steps)
{
        check_operators(1122, ENOUGH, interrupt);
}

Test(work, that_data_decide_on_is_said_to_be_theirs)
{
        check_operators(1128, ENOUGH / 3, vary);
}

/* So that nobody is told that a trial with one kind of data says what others take (runtime/serve/execute/inline_executor.h). */
Test(work, of_what_counts_or_has_bodies_is_the_datas)
{
        struct random random = {.state = 28};

        for (uint32_t op = 0; op < SL_OP_COUNT; op++) {
                struct sl_node_desc node = random_node(&random, op);

                if (sl_op_traits(op) & (SL_OP_COUNTS | SL_OP_CONTROL))
                        cr_expect_eq(sl_op_data_work(&node), UINT64_MAX, "%s", sl_op_name(op));
        }
}
