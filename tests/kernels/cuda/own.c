/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The own kernels against ref: nodes at random, of every operator that they run, in every type and layout. The kernels are the CUDA
 * sources compiled for the host, launched as on a GPU; a sanitizer sees what they touch. With STARLING_TRY_GPU they are those of
 * the build, on the machine's GPU.
 */
#include "base/error.h"
#include "cuda/own/builder.h"
#include "host/kernels.h"
#include "node_bench.h"
#include "own_device.h"
#include "random_node.h"
#include "shape/attention.h"
#include "shape/recurrent.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS       12000 /* at most, for each operator */
#if defined(__SANITIZE_ADDRESS__)
#define ENOUGH 15 /* that were computed: what a kernel touches depends on few of a node's features; values are release's */
#else
#define ENOUGH 60
#endif
#define TENSOR_BYTES 2048
#define LARGE        37 /* more than a warp, a tile, several vectors */
#define LARGE_BYTES  (1 << 16)

/* A tensor's data at an address that is a multiple of its elements, and of nothing more by chance. */
struct data {
        void *memory;
        char *at;
};

static struct data allocate(struct random *random, const struct sl_tensor *tensor)
{
        size_t bytes = tensor->dtype == SL_DTYPE_NONE ? 0 : (size_t)sl_tensor_bytes(tensor);
        size_t shift = random_next(random, 3) ? 0 : sl_dtype_bytes(tensor->dtype);
        struct data data = {.memory = malloc(bytes + shift + 1)};

        data.at = (char *)data.memory + shift;
        memset(data.at, 0x5a, bytes);
        return data;
}

/* Where one number that is none would make all results none. */
static bool only_finite;

static float random_float(struct random *random)
{
        static const float rare[] = {0, -0.0f, 1, -1, 0.5f, 2, INFINITY, -INFINITY, NAN};

        if (!only_finite && random_next(random, 40) == 0)
                return rare[random_next(random, 9)];
        return (float)random_next(random, 1 << 16) / 8192.0f - 4;
}

static void fill(struct random *random, const struct sl_tensor *tensor, void *data)
{
        uint64_t elements = tensor->dtype == SL_DTYPE_NONE ? 0 : sl_shape_elements(&tensor->shape);
        struct sl_node_desc cast = bench_node(SL_OP_CAST);
        float *floats = malloc(elements * sizeof(float) + 1);
        int64_t *integers = malloc(elements * sizeof(int64_t) + 1);
        bool is_float = sl_dtype_is_float(tensor->dtype);

        for (uint64_t i = 0; i < elements; i++) {
                floats[i] = random_float(random);
                integers[i] =
                        random_next(random, 12) ? (int64_t)random_next(random, 12) - 4 : (int64_t)random_next(random, 1u << 31);
        }
        bench_input(&cast, is_float ? SL_DTYPE_F32 : SL_DTYPE_I64, tensor->shape);
        sl_attrs_set_int(&cast.attrs, SL_ATTR_TO, tensor->dtype);
        if (elements)
                cr_assert_eq(bench_run(&cast, INPUTS(is_float ? (void *)floats : (void *)integers), &data), 0);
        free(floats);
        free(integers);
}

/* Lengths of sequences, most of which are some. */
static void fill_lengths(struct random *random, const struct sl_node_desc *node, int32_t *lengths)
{
        bool recurrent = node->op == SL_OP_LSTM || node->op == SL_OP_GRU || node->op == SL_OP_RNN;
        struct sl_recurrence r = {.gates = 0};

        if (!recurrent || sl_recurrence_read(node, &r, NULL) || random_next(random, 4) == 0)
                return;
        for (int64_t i = 0; i < r.batch; i++)
                lengths[i] = (int32_t)random_next(random, (uint32_t)r.steps + 1);
}

/* Keys that are masked for some queries; all of them for others, or a block and more of the first. In float32 by what is least,
 * too. */
static void fill_mask(struct random *random, const struct sl_node_desc *node, void *mask)
{
        const struct sl_tensor *tensor = &node->inputs[SL_ATTENTION_MASK];
        uint64_t keys = (uint64_t)tensor->shape.dims[3], rows = sl_shape_elements(&tensor->shape) / keys;
        bool wide = tensor->dtype == SL_DTYPE_F32;
        float least = random_next(random, 2) ? -INFINITY : -FLT_MAX;

        for (uint64_t row = 0; row < rows; row++) {
                uint32_t kind = (uint32_t)random_next(random, 6);
                uint64_t end = kind == 0 ? keys : kind == 1 ? 70 : 0;

                for (uint64_t key = 0; key < keys; key++) {
                        if (key >= end && random_next(random, 5))
                                continue;
                        if (wide)
                                ((float *)mask)[row * keys + key] = least;
                        else
                                ((uint16_t *)mask)[row * keys + key] = tensor->dtype == SL_DTYPE_F16 ? 0xfc00 : 0xff80;
                }
        }
}

/* The same elements in another layout. */
static void relayout(const struct sl_tensor *from, const void *in, const struct sl_tensor *to, void *out)
{
        struct sl_node_desc node = {.op = SL_OP_REORDER, .n_inputs = 1, .n_outputs = 1, .inputs = {*from}, .outputs = {*to}};
        struct sl_kernel *kernel;
        struct sl_error error = {""};

        if (from->layout == to->layout) {
                memcpy(out, in, sl_tensor_bytes(from));
                return;
        }
        sl_attrs_set_int(&node.attrs, SL_ATTR_LAYOUT, to->layout);
        cr_assert_eq(sl_backend_ref.runner->compile(
                             NULL, &(struct sl_kernel_source){.node = &node, .constants = INPUTS(NULL)}, &kernel, &error),
                0, "%s", error.text);
        sl_backend_ref.runner->launch(kernel, &(struct sl_binding){.inputs = INPUTS(in), .outputs = (void *[]){out}});
        sl_backend_ref.runner->kernel_free(kernel);
}

static double tolerance_of(uint32_t dtype)
{
        return dtype == SL_DTYPE_F32 ? 2e-5 : dtype == SL_DTYPE_F16 ? 4e-3 : 3e-2;
}

/* As float32, which holds every value of the narrower types. */
static float element(const void *data, uint64_t i, uint32_t dtype)
{
        struct sl_node_desc cast = bench_node(SL_OP_CAST);
        float value;

        if (dtype == SL_DTYPE_F32)
                return ((const float *)data)[i];
        bench_input(&cast, dtype, SCALAR);
        sl_attrs_set_int(&cast.attrs, SL_ATTR_TO, SL_DTYPE_F32);
        bench_run(&cast, INPUTS((const char *)data + i * sl_dtype_bytes(dtype)), (void *[]){&value});
        return value;
}

static bool is_near(float got, float want, double tolerance)
{
        if (isnan(want) || isnan(got))
                return isnan(want) && isnan(got);
        if (isinf(want) || isinf(got))
                return got == want;
        return fabs((double)got - (double)want) <= tolerance * fmax(1, fabs((double)want));
}

static void expect_same(const struct sl_node_desc *node, uint32_t output, const void *got, const void *want)
{
        const struct sl_tensor *tensor = &node->outputs[output];
        uint64_t elements = sl_shape_elements(&tensor->shape);
        size_t bytes = sl_dtype_bytes(tensor->dtype);
        bool exact = !sl_dtype_is_float(tensor->dtype) || tensor->dtype == SL_DTYPE_F64;
        char shape[SL_SHAPE_TEXT_BYTES];

        for (uint64_t i = 0; i < elements; i++) {
                if (!memcmp((const char *)got + i * bytes, (const char *)want + i * bytes, bytes))
                        continue;
                cr_assert(!exact, "%s of %s %s: element %llu of output %u is another", sl_op_name(node->op),
                        sl_dtype_name(tensor->dtype), sl_shape_print(&node->inputs[0].shape, shape), (unsigned long long)i, output);
                float a = element(got, i, tensor->dtype), b = element(want, i, tensor->dtype);
                cr_assert(is_near(a, b, tolerance_of(tensor->dtype)),
                        "%s of %s %s: element %llu of output %u is %.9g, %.9g is right", sl_op_name(node->op),
                        sl_dtype_name(tensor->dtype), sl_shape_print(&node->inputs[0].shape, shape), (unsigned long long)i, output,
                        (double)a, (double)b);
        }
}

/* The node over tensors that lie otherwise. */
struct trial {
        struct sl_node_desc node;
        struct data inputs[SL_NODE_INPUTS_MAX], outputs[SL_NODE_OUTPUTS_MAX];
        int result;
};

static void run_on_ref(struct trial *trial)
{
        const struct sl_node_desc *node = &trial->node;
        const void *inputs[SL_NODE_INPUTS_MAX], *constants[SL_NODE_INPUTS_MAX] = {NULL};
        void *outputs[SL_NODE_OUTPUTS_MAX], *scratch;
        struct sl_kernel *kernel;
        struct sl_error error = {""};
        int64_t made = 0;

        for (uint32_t i = 0; i < node->n_inputs; i++)
                inputs[i] = trial->inputs[i].at;
        for (uint32_t i = 0; i < node->n_outputs; i++)
                outputs[i] = trial->outputs[i].at;
        cr_assert_eq(sl_backend_ref.runner->compile(
                             NULL, &(struct sl_kernel_source){.node = node, .constants = constants}, &kernel, &error),
                0, "%s: %s", sl_op_name(node->op), error.text);
        scratch = malloc(sl_backend_ref.runner->scratch_bytes(kernel) + 1);
        trial->result = sl_backend_ref.runner->launch(
                kernel, &(struct sl_binding){.inputs = inputs, .outputs = outputs, .scratch = scratch, .made = &made});
        free(scratch);
        sl_backend_ref.runner->kernel_free(kernel);
}

static void run_own(struct trial *trial)
{
        CUdeviceptr inputs[SL_NODE_INPUTS_MAX], outputs[SL_NODE_OUTPUTS_MAX];
        struct sl_own_binding binding = {.inputs = inputs, .outputs = outputs};
        uint32_t error_word = 0;
        int64_t made = 0;
        struct sl_own_plan plan;
        void *scratch;

        for (uint32_t i = 0; i < trial->node.n_inputs; i++)
                inputs[i] = (CUdeviceptr)(uintptr_t)trial->inputs[i].at;
        for (uint32_t i = 0; i < trial->node.n_outputs; i++)
                outputs[i] = (CUdeviceptr)(uintptr_t)trial->outputs[i].at;
        cr_assert_eq(sl_cuda_own_plan(&trial->node, &plan), 0);
        scratch = aligned_alloc(256, (plan.scratch_bytes + 256) & ~255ull);
        binding.scratch = (CUdeviceptr)(uintptr_t)scratch;
        binding.error_word = (CUdeviceptr)(uintptr_t)&error_word;
        binding.made = (CUdeviceptr)(uintptr_t)&made;
        if (own_device_wanted())
                own_device_run(&trial->node, &plan, &binding);
        else
                host_run_plan(&plan, &binding);
        cr_assert(!error_word || plan.checks);
        trial->result = error_word ? -ERANGE : 0;
        free(scratch);
        sl_cuda_own_plan_deinit(&plan);
}

static void trial_free(struct trial *trial)
{
        for (uint32_t i = 0; i < trial->node.n_inputs; i++)
                free(trial->inputs[i].memory);
        for (uint32_t i = 0; i < trial->node.n_outputs; i++)
                free(trial->outputs[i].memory);
}

static void trial_init(struct random *random, const struct sl_node_desc *node, struct trial *trial)
{
        *trial = (struct trial){.node = *node};
        for (uint32_t i = 0; i < node->n_inputs; i++)
                trial->inputs[i] = allocate(random, &node->inputs[i]);
        for (uint32_t i = 0; i < node->n_outputs; i++)
                trial->outputs[i] = allocate(random, &node->outputs[i]);
}

/* @own: the node, whose tensors may lie in other layouts than those of @node. */
static void expect_agreement(struct random *random, const struct sl_node_desc *node, const struct sl_node_desc *own)
{
        struct trial want, got;

        trial_init(random, node, &want);
        trial_init(random, own, &got);
        for (uint32_t i = 0; i < node->n_inputs; i++) {
                if (node->inputs[i].dtype == SL_DTYPE_NONE)
                        continue;
                fill(random, &node->inputs[i], want.inputs[i].at);
                if (i == SL_RNN_LENGTHS)
                        fill_lengths(random, node, (int32_t *)(void *)want.inputs[i].at);
                if (node->op == SL_OP_ROW_ATTENTION && i == SL_ATTENTION_MASK)
                        fill_mask(random, node, want.inputs[i].at);
                relayout(&node->inputs[i], want.inputs[i].at, &own->inputs[i], got.inputs[i].at);
        }
        run_on_ref(&want);
        run_own(&got);
        /* Of an output without elements nothing is launched that could find an index out of range; ref looks at each. */
        if (sl_shape_elements(&node->outputs[0].shape) > 0)
                cr_assert_eq(got.result, want.result, "%s: %d, %d is right", sl_op_name(node->op), got.result, want.result);
        for (uint32_t i = 0; i < node->n_outputs && !want.result; i++) {
                struct data plain = allocate(random, &node->outputs[i]);

                relayout(&own->outputs[i], got.outputs[i].at, &node->outputs[i], plain.at);
                expect_same(node, i, plain.at, want.outputs[i].at);
                free(plain.memory);
        }
        trial_free(&want);
        trial_free(&got);
}

/* Spatial operators keep the layout of their images, elementwise ones that of all tensors. */
static bool make_channels_last(struct sl_node_desc *node)
{
        uint32_t traits = sl_op_traits(node->op), rank = node->inputs[0].shape.rank;

        if (!(traits & (SL_OP_SPATIAL | SL_OP_ELEMENTWISE | SL_OP_READS_LAST)) || rank < 3 || rank > 5)
                return false;
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (node->inputs[i].shape.rank == rank && node->inputs[i].dtype != SL_DTYPE_NONE)
                        node->inputs[i].layout = SL_LAYOUT_CHANNELS_LAST;
        for (uint32_t i = 0; i < node->n_outputs && !(traits & SL_OP_READS_LAST); i++)
                if (node->outputs[i].shape.rank == rank)
                        node->outputs[i].layout = SL_LAYOUT_CHANNELS_LAST;
        return true;
}

/* True when the node was accepted and computed. */
static bool comes_through(struct random *random, struct sl_node_desc *node)
{
        uint64_t bytes_max = random->large ? LARGE_BYTES : TENSOR_BYTES;
        struct sl_error error = {""};
        struct sl_node_desc last;

        if (sl_op_infer(node, &error))
                return false;
        if (sl_op_traits(node->op) & SL_OP_COUNTS)
                random_bound_outputs(node);
        if (!random_is_small(node, bytes_max) || !sl_cuda_own_supports(node))
                return false;
        cr_assert(sl_backend_ref.planner->supports(NULL, node), "%s: ref does not run it", sl_op_name(node->op));
        expect_agreement(random, node, node);
        last = *node;
        if (make_channels_last(&last) && sl_cuda_own_supports(&last))
                expect_agreement(random, node, &last);
        return true;
}

static void check_at_random(int64_t large, int enough)
{
        struct random random = {.state = 20240229, .large = large};

        for (uint32_t op = 0; op < SL_OP_COUNT; op++) {
                int computed = 0;

                /* A weight that is 0, as a half at least, makes what is infinite none; a Resize leaves out what has such a weight.
                 */
                only_finite = op == SL_OP_ROW_ATTENTION || op == SL_OP_RESIZE;
                for (int i = 0; i < ROUNDS && computed < enough && sl_own_runs(op); i++) {
                        struct sl_node_desc node = random_node(&random, op);

                        computed += comes_through(&random, &node);
                }
                cr_expect(computed || large || !sl_own_runs(op), "no %s came through", sl_op_name(op));
        }
}

Test(random_nodes, agree_with_ref_on_nodes_at_random)
{
        check_at_random(0, ENOUGH);
}

Test(random_nodes, agree_with_ref_on_larger_nodes_at_random)
{
        check_at_random(LARGE, ENOUGH / 3);
}

static struct sl_node_desc add_node(uint32_t dtype, struct sl_shape a, struct sl_shape b)
{
        struct sl_node_desc node = bench_node(SL_OP_ADD);
        struct sl_error error = {""};

        bench_input(&node, dtype, a);
        bench_input(&node, dtype, b);
        cr_assert_eq(sl_op_infer(&node, &error), 0, "%s", error.text);
        return node;
}

static struct sl_node_desc transpose_node(uint32_t dtype, struct sl_shape shape, int64_t a, int64_t b, int64_t c)
{
        struct sl_node_desc node = bench_node(SL_OP_TRANSPOSE);
        struct sl_error error = {""};

        bench_input(&node, dtype, shape);
        BENCH_INTS(&node, SL_ATTR_PERM, a, b, c);
        cr_assert_eq(sl_op_infer(&node, &error), 0, "%s", error.text);
        return node;
}

/* By tiles, with some that are cut off on either side; and in rows, which stay whole. */
Test(known_nodes, transposes_agree_with_ref)
{
        static const uint32_t dtypes[] = {SL_DTYPE_U8, SL_DTYPE_BF16, SL_DTYPE_F32, SL_DTYPE_I64};
        struct random random = {.state = 5};

        for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
                struct sl_node_desc nodes[] = {transpose_node(dtypes[i], SHAPE(3, 40, 33), 0, 2, 1),
                        transpose_node(dtypes[i], SHAPE(70, 2, 31), 2, 1, 0), transpose_node(dtypes[i], SHAPE(9, 64, 2), 1, 2, 0),
                        transpose_node(dtypes[i], SHAPE(9, 5, 16), 1, 0, 2)};

                for (size_t k = 0; k < sizeof(nodes) / sizeof(nodes[0]); k++)
                        expect_agreement(&random, &nodes[k], &nodes[k]);
        }
}

struct layer {
        enum sl_op op;
        uint32_t dtype;
        int64_t steps, batch, inputs, units, direction, batch_first;
};

static void input_or_none(struct random *random, struct sl_node_desc *node, uint32_t dtype, struct sl_shape shape)
{
        bench_input(node, random_next(random, 3) ? dtype : SL_DTYPE_NONE, shape);
}

/* Of a layer that has whatever else a layer may have, by chance. */
static struct sl_node_desc recurrent_node(struct random *random, const struct layer *l)
{
        int64_t gates = l->op == SL_OP_LSTM ? 4 : l->op == SL_OP_GRU ? 3 : 1, directions = l->direction == 2 ? 2 : 1;
        int64_t functions = directions * (l->op == SL_OP_LSTM ? 3 : l->op == SL_OP_GRU ? 2 : 1), kinds[6];
        struct sl_shape state = l->batch_first ? SHAPE(l->batch, directions, l->units) : SHAPE(directions, l->batch, l->units);
        struct sl_node_desc node = bench_node(l->op);
        struct sl_error error = {""};

        node.n_outputs = l->op == SL_OP_LSTM ? 3 : 2;
        bench_input(&node, l->dtype, l->batch_first ? SHAPE(l->batch, l->steps, l->inputs) : SHAPE(l->steps, l->batch, l->inputs));
        bench_input(&node, l->dtype, SHAPE(directions, gates * l->units, l->inputs));
        bench_input(&node, l->dtype, SHAPE(directions, gates * l->units, l->units));
        input_or_none(random, &node, l->dtype, SHAPE(directions, 2 * gates * l->units));
        input_or_none(random, &node, SL_DTYPE_I32, SHAPE(l->batch));
        input_or_none(random, &node, l->dtype, state);
        if (l->op == SL_OP_LSTM) {
                input_or_none(random, &node, l->dtype, state);
                input_or_none(random, &node, l->dtype, SHAPE(directions, 3 * l->units));
        }
        for (int64_t i = 0; i < functions; i++)
                kinds[i] = random_next(random, 2) ? SL_GATE_SIGMOID : (int64_t)random_next(random, SL_GATE_COUNT);
        if (random_next(random, 2))
                sl_attrs_set_ints(&node.attrs, SL_ATTR_ACTIVATIONS, kinds, (uint32_t)functions);
        sl_attrs_set_floats(&node.attrs, SL_ATTR_ACTIVATION_ALPHA, (double[]){0.5, 0.25, 0.75, 0.5, 0.1, 1}, (uint32_t)functions);
        sl_attrs_set_floats(&node.attrs, SL_ATTR_ACTIVATION_BETA, (double[]){0.1, 0.5, 0, 1, 0.2, 0.5}, (uint32_t)functions);
        sl_attrs_set_int(&node.attrs, SL_ATTR_DIRECTION, l->direction);
        sl_attrs_set_int(&node.attrs, SL_ATTR_LAYOUT, l->batch_first);
        sl_attrs_set_int(&node.attrs, SL_ATTR_LINEAR_BEFORE_RESET, random_next(random, 2));
        sl_attrs_set_int(&node.attrs, SL_ATTR_INPUT_FORGET, random_next(random, 4) == 0);
        if (random_next(random, 3) == 0)
                sl_attrs_set_float(&node.attrs, SL_ATTR_CLIP, 1.5);
        cr_assert_eq(sl_op_infer(&node, &error), 0, "%s", error.text);
        return node;
}

/* In one block for all steps and in a launch for each, in all directions, types and layouts. */
Test(known_nodes, recurrent_layers_agree_with_ref)
{
        static const enum sl_op ops[] = {SL_OP_LSTM, SL_OP_GRU, SL_OP_RNN};
        static const uint32_t dtypes[] = {SL_DTYPE_F32, SL_DTYPE_F16, SL_DTYPE_BF16};
        struct random random = {.state = 8};

        for (uint32_t i = 0; i < 54; i++) {
                const struct layer layer = {.op = ops[i % 3],
                        .dtype = dtypes[i / 3 % 3],
                        .steps = 1 + random_next(&random, 4),
                        .batch = 1 + random_next(&random, 6),
                        .inputs = 1 + random_next(&random, 5),
                        .units = i % 7 ? 3 + i % 5 : 66,
                        .direction = i / 9 % 3,
                        .batch_first = i / 27};
                struct sl_node_desc node = recurrent_node(&random, &layer);

                expect_agreement(&random, &node, &node);
        }
}

/* Queries, keys and values side by side in one tensor, or each in its own; a mask of any shape that goes. */
static struct sl_node_desc attention_node(struct random *random, uint32_t dtype)
{
        int64_t batch = 1 + random_next(random, 2), heads = 1 + random_next(random, 3), depth = 8 * (1 + random_next(random, 16));
        int64_t width = random_next(random, 2) ? depth : 8 * (1 + random_next(random, 16));
        int64_t rows = 1 + random_next(random, 90), keys = random_next(random, 2) ? rows : 1 + random_next(random, 150), rest[3];
        struct sl_node_desc node = bench_node(SL_OP_ROW_ATTENTION);
        struct sl_error error = {""};

        for (int i = 0; i < 3; i++) {
                rest[i] = 8 * random_next(random, 3);
                bench_input(&node, dtype, SHAPE(batch, i ? keys : rows, heads * (i == 2 ? width : depth) + rest[i]));
        }
        if (random_next(random, 2))
                bench_input(&node, random_next(random, 2) ? dtype : SL_DTYPE_F32,
                        SHAPE(random_next(random, 2) ? batch : 1, random_next(random, 2) ? heads : 1,
                                random_next(random, 2) ? rows : 1, random_next(random, 4) ? keys : 1));
        sl_attrs_set_int(&node.attrs, SL_ATTR_GROUP, heads);
        sl_attrs_set_ints(&node.attrs, SL_ATTR_SHAPE, (int64_t[]){depth, width}, 2);
        sl_attrs_set_ints(&node.attrs, SL_ATTR_STARTS, rest, 3);
        sl_attrs_set_float(&node.attrs, SL_ATTR_ALPHA, 1 / sqrt((double)depth));
        sl_attrs_set_int(&node.attrs, SL_ATTR_GUARD, only_finite && random_next(random, 2)); /* 0 times what is none is none */
        cr_assert_eq(sl_op_infer(&node, &error), 0, "%s", error.text);
        return node;
}

/* Of heads that a kernel is made for and of others, with what is left of a block of rows and of keys. */
Test(known_nodes, attention_of_halves_agrees_with_ref)
{
        struct random random = {.state = 21};

        for (uint32_t i = 0; i < 40; i++) {
                struct sl_node_desc node;

                only_finite = i % 4 > 0;
                node = attention_node(&random, i % 2 ? SL_DTYPE_F16 : SL_DTYPE_BF16);
                expect_agreement(&random, &node, &node);
        }
}

/* Whole vectors of 16 bytes and what is left of them, several blocks, broadcast along each dimension. */
Test(known_nodes, agree_with_ref_on_tensors_of_many_vectors)
{
        static const uint32_t dtypes[] = {SL_DTYPE_F32, SL_DTYPE_F16, SL_DTYPE_BF16, SL_DTYPE_I32};
        struct random random = {.state = 3};

        for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
                struct sl_node_desc nodes[] = {
                        add_node(dtypes[i], SHAPE(3, 1001), SHAPE(3, 1001)),
                        add_node(dtypes[i], SHAPE(2, 5, 16, 8), SHAPE(5, 1, 1)),
                        add_node(dtypes[i], SHAPE(2, 5, 16, 8), SHAPE(8)),
                        add_node(dtypes[i], SHAPE(4, 1, 24), SHAPE(1, 6, 24)),
                        add_node(dtypes[i], SHAPE(1, 7), SHAPE(9, 1)),
                        add_node(dtypes[i], SHAPE(4099), SCALAR),
                };

                for (size_t k = 0; k < sizeof(nodes) / sizeof(nodes[0]); k++)
                        for (int turn = 0; turn < 4; turn++)
                                expect_agreement(&random, &nodes[k], &nodes[k]);
        }
}

static struct sl_node_desc row_node(enum sl_op op, uint32_t dtype, int64_t rows, int64_t size)
{
        struct sl_node_desc node = bench_node(op);
        struct sl_error error = {""};

        bench_input(&node, dtype, SHAPE(rows, size));
        if (op == SL_OP_LAYER_NORM)
                bench_input(&node, dtype, SHAPE(size));
        if (op == SL_OP_REDUCE_SUM || op == SL_OP_REDUCE_MAX)
                BENCH_INTS(&node, SL_ATTR_AXES, 1);
        if (op == SL_OP_ARG_MAX)
                sl_attrs_set_int(&node.attrs, SL_ATTR_AXIS, 1);
        cr_assert_eq(sl_op_infer(&node, &error), 0, "%s", error.text);
        return node;
}

/* By a warp and by a block, in vectors and in elements. */
Test(known_nodes, long_rows_agree_with_ref)
{
        static const enum sl_op ops[] = {
                SL_OP_SOFTMAX, SL_OP_LOG_SOFTMAX, SL_OP_LAYER_NORM, SL_OP_REDUCE_SUM, SL_OP_REDUCE_MAX, SL_OP_ARG_MAX};
        static const uint32_t dtypes[] = {SL_DTYPE_F32, SL_DTYPE_F16, SL_DTYPE_BF16};
        static const int64_t sizes[] = {64, 1001, 1536, 2049};
        struct random random = {.state = 11};

        for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]) * 12; i++) {
                struct sl_node_desc node = row_node(ops[i / 12], dtypes[i % 3], 3, sizes[i / 3 % 4]);

                /* A sum of halves that are rounded once may be far from 0 by its terms. */
                if (ops[i / 12] == SL_OP_REDUCE_SUM && dtypes[i % 3] == SL_DTYPE_F32)
                        node.op = SL_OP_REDUCE_MEAN;
                expect_agreement(&random, &node, &node);
        }
}

/* The path of a real device: kernels are looked up by their names and launched on a stream, later. */
Test(own, kernels_run_on_a_stream_of_a_driver)
{
        struct fake_cuda_options options = fake_cuda_defaults();
        struct sl_node_desc node = add_node(SL_DTYPE_F32, SHAPE(2, 3), SHAPE(3));
        float a[] = {1, 2, 3, 4, 5, 6}, b[] = {10, 20, 30}, sum[6];
        struct sl_cuda_driver driver;
        struct sl_cuda_own own;
        struct sl_own_plan plan;
        struct sl_error error = {""};
        CUdeviceptr memory;
        CUstream stream;

        options.kernels = host_kernels;
        options.n_kernels = SL_OWN_KERNEL_COUNT;
        fake_cuda_begin(&options, &driver);
        cr_assert_eq(sl_cuda_own_open(&driver, &own, &error), 0, "%s", error.text);
        cr_assert_eq(sl_cuda_own_plan(&node, &plan), 0);
        driver.mem_alloc(&memory, 3 * 256);
        driver.stream_create_with_priority(&stream, CU_STREAM_NON_BLOCKING, 0);
        driver.memcpy_htod_async(memory, a, sizeof(a), stream);
        driver.memcpy_htod_async(memory + 256, b, sizeof(b), stream);
        struct sl_own_binding binding = {.inputs = (CUdeviceptr[]){memory, memory + 256}, .outputs = (CUdeviceptr[]){memory + 512}};
        cr_assert_eq(sl_cuda_own_launch(&own, &plan, &binding, stream), CUDA_SUCCESS);
        driver.memcpy_dtoh_async(sum, memory + 512, sizeof(sum), stream);
        driver.stream_synchronize(stream);
        for (int i = 0; i < 6; i++)
                cr_assert_eq(sum[i], a[i] + b[i % 3]);
        driver.stream_destroy(stream);
        driver.mem_free(memory);
        sl_cuda_own_plan_deinit(&plan);
        sl_cuda_own_close(&own);
        cr_assert_eq(fake_cuda_held(), 0);
}

Test(own, kernels_that_do_not_load_are_named)
{
        struct fake_cuda_options options = fake_cuda_defaults();
        struct sl_cuda_driver driver;
        struct sl_cuda_own own;
        struct sl_error error = {""};

        options.kernels = host_kernels;
        options.n_kernels = SL_OWN_KERNEL_COUNT;
        fake_cuda_begin(&options, &driver);
        fake_cuda_fail(FAKE_CUDA_library_load_data, 1, CUDA_ERROR_NO_BINARY_FOR_GPU);
        cr_assert_lt(sl_cuda_own_open(&driver, &own, &error), 0);
        cr_assert_not_null(strstr(error.text, "loading the elementwise kernels"), "%s", error.text);
        fake_cuda_fail(FAKE_CUDA_library_get_kernel, 2, CUDA_ERROR_NOT_FOUND);
        cr_assert_lt(sl_cuda_own_open(&driver, &own, &error), 0);
        cr_assert_not_null(strstr(error.text, "looking for kernel sl_"), "%s", error.text);
        cr_assert_eq(fake_cuda_held(), 0);
}
