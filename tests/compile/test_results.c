/* SPDX-License-Identifier: Apache-2.0 */
#include "backend.h"
#include "base/error.h"
#include "evaluate.h"
#include "lower.h"
#include "lower_options.h"
#include "network.h"
#include "pass.h"
#include "plan.h"
#include "stop.h"
#include "team.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BATCH_MAX 6 /* no power of two: the ladder is 1, 2, 4, 6 */
#define TOLERANCE 1e-5

struct batch {
        void *inputs[4], *expected[4], *outputs[4];
        uint64_t output_bytes[4];
};

static void *aligned_bytes(uint64_t bytes)
{
        void *data = aligned_alloc(64, (bytes + 64) & ~63ull);

        cr_assert_not_null(data);
        memset(data, 0xff, bytes);
        return data;
}

static void fill_input(struct network *net, const struct sl_tensor *tensor, void *data)
{
        uint64_t n = sl_shape_elements(&tensor->shape);

        for (uint64_t i = 0; i < n; i++) {
                if (tensor->dtype == SL_DTYPE_F32)
                        ((float *)data)[i] = network_random(net);
                else
                        ((int64_t *)data)[i] = (int64_t)(i % 5);
        }
}

static void batch_init(struct batch *batch, struct network *net, const struct sl_graph *graph)
{
        for (uint32_t i = 0; i < graph->n_inputs; i++) {
                const struct sl_tensor *tensor = &graph->values[graph->inputs[i]].tensor;

                batch->inputs[i] = aligned_bytes(sl_tensor_bytes(tensor));
                fill_input(net, tensor, batch->inputs[i]);
        }
        for (uint32_t i = 0; i < graph->n_outputs; i++) {
                batch->output_bytes[i] = sl_tensor_bytes(&graph->values[graph->outputs[i]].tensor);
                batch->expected[i] = aligned_bytes(batch->output_bytes[i]);
                batch->outputs[i] = aligned_bytes(batch->output_bytes[i]);
        }
}

static void batch_deinit(struct batch *batch)
{
        for (uint32_t i = 0; i < 4; i++) {
                free(batch->inputs[i]);
                free(batch->expected[i]);
                free(batch->outputs[i]);
        }
}

static void compare_floats(const float *got, const float *expected, uint64_t n, uint32_t size, const char *backend)
{
        double worst = 0, largest = 0;

        for (uint64_t i = 0; i < n; i++) {
                worst = fmax(worst, isnan(got[i]) ? INFINITY : fabs((double)got[i] - expected[i]));
                largest = fmax(largest, fabs((double)expected[i]));
        }
        cr_assert_leq(worst, TOLERANCE * largest, "batch %u on %s: error %g, largest value %g", size, backend, worst, largest);
}

/* @oracle is the network as it was built, whatever passes have made of it since. */
static void compare_size(
        struct network *net, const struct sl_graph *oracle, struct sl_instance *instance, uint32_t size, const char *backend)
{
        struct batch batch = {0};
        struct sl_error error = {0};
        struct sl_graph *graph;

        cr_assert_eq(sl_graph_specialise(oracle, size, &graph, &error), 0, "%s", error.text);
        batch_init(&batch, net, graph);
        cr_assert_eq(sl_graph_evaluate(graph, (const void *const *)batch.inputs, batch.expected, &error), 0, "%s", error.text);
        for (uint32_t round = 0; round < 2; round++) {
                cr_assert_eq(sl_instance_run(instance, size, (const void *const *)batch.inputs, batch.outputs), 0);
                for (uint32_t i = 0; i < graph->n_outputs; i++) {
                        if (graph->values[graph->outputs[i]].tensor.dtype == SL_DTYPE_F32)
                                compare_floats(batch.outputs[i], batch.expected[i], batch.output_bytes[i] / 4, size, backend);
                        else
                                cr_assert_arr_eq(batch.outputs[i], batch.expected[i], batch.output_bytes[i]);
                }
        }
        batch_deinit(&batch);
        sl_graph_free(graph);
}

/* Each team's outputs are those of the instance alone, to the bit. */
static void compare_teams(struct network *net, struct sl_instance *instance, const struct sl_graph *oracle, uint32_t size)
{
        static const uint32_t members[] = {2, 3, 4, 16, 1};
        struct sl_error error = {0};
        struct batch batch = {0};
        struct sl_graph *graph;

        cr_assert_eq(sl_graph_specialise(oracle, size, &graph, &error), 0, "%s", error.text);
        batch_init(&batch, net, graph);
        cr_assert_eq(sl_instance_run(instance, size, (const void *const *)batch.inputs, batch.expected), 0);
        for (size_t k = 0; k < sizeof(members) / sizeof(members[0]); k++) {
                const struct sl_team_options options = {.size = members[k], .spin_ns = SL_TEAM_SPIN_NS};
                struct sl_team *team;

                cr_assert_eq(sl_team_new(&options, &team, &error), 0, "%s", error.text);
                cr_assert_eq(sl_instance_use_team(instance, team, &error), 0, "%s", error.text);
                for (uint32_t i = 0; i < graph->n_outputs; i++)
                        memset(batch.outputs[i], 0xff, batch.output_bytes[i]);
                cr_assert_eq(sl_instance_run(instance, size, (const void *const *)batch.inputs, batch.outputs), 0);
                for (uint32_t i = 0; i < graph->n_outputs; i++)
                        cr_assert(!memcmp(batch.outputs[i], batch.expected[i], batch.output_bytes[i]),
                                "batch %u: output %u of a team of %u differs", size, i, members[k]);
                cr_assert_eq(sl_instance_use_team(instance, NULL, &error), 0);
                sl_team_free(team);
        }
        batch_deinit(&batch);
        sl_graph_free(graph);
}

static void compare_backend(struct network *net, const struct sl_graph *oracle, const char *backend, bool batchable)
{
        int fd = network_plan_fd(net, backend, BATCH_MAX);
        const struct sl_plan_info *info;
        struct sl_instance *instance;
        struct sl_error error = {0};
        struct sl_plan *plan;

        cr_assert_eq(sl_plan_open(fd, &plan, &error), 0, "%s", error.text);
        close(fd);
        info = sl_plan_info(plan);
        cr_assert_eq(info->batchable, batchable);
        cr_assert_eq(info->n_batches, batchable ? 4 : 1);
        cr_assert_eq(sl_instance_new(plan, BATCH_MAX, &instance, &error), 0, "%s", error.text);
        for (uint32_t i = 0; i < info->n_batches; i++) {
                compare_size(net, oracle, instance, info->batches[i], backend);
                compare_teams(net, instance, oracle, info->batches[i]);
        }
        sl_instance_free(instance);
        sl_plan_free(plan);
}

Test(results, what_ends_a_run_ends_it_between_steps_and_leaves_the_instance_as_good_as_before)
{
        _Atomic int32_t verdict = -ECANCELED;
        struct sl_instance *instance;
        struct sl_plan *plan;
        struct network net;
        float x[64] = {0}, y[64];
        int fd;

        network_init(&net);
        network_output(&net, network_apply(&net, SL_OP_ERF, network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 64))));
        network_finish(&net);
        fd = network_plan_fd(&net, "cpu", 1);
        cr_assert_eq(sl_plan_open(fd, &plan, NULL), 0);
        close(fd);
        cr_assert_eq(sl_instance_new(plan, 1, &instance, NULL), 0);
        sl_instance_watch(instance, &(struct sl_stop){.verdict = &verdict});
        cr_assert_eq(sl_instance_run(instance, 1, (const void *const[]){x}, (void *const[]){y}), -ECANCELED);
        sl_instance_watch(instance, &(struct sl_stop){.deadline_ns = 1});
        cr_assert_eq(sl_instance_run(instance, 1, (const void *const[]){x}, (void *const[]){y}), -ETIME);
        atomic_store(&verdict, 0);
        sl_instance_watch(instance, &(struct sl_stop){.verdict = &verdict, .deadline_ns = UINT64_MAX});
        cr_assert_eq(sl_instance_run(instance, 1, (const void *const[]){x}, (void *const[]){y}), 0);
        sl_instance_watch(instance, NULL);
        compare_size(&net, net.graph, instance, 1, "cpu");
        sl_instance_free(instance);
        sl_plan_free(plan);
        network_deinit(&net);
}

/* Each network before and after the passes, on each backend, at each size of the ladder. */
static void compare_all(struct network *net, bool batchable)
{
        struct sl_error error = {0};
        struct sl_graph *oracle;

        network_finish(net);
        cr_assert_eq(sl_graph_copy(net->graph, &oracle), 0);
        compare_backend(net, oracle, "ref", batchable);
        compare_backend(net, oracle, "cpu", batchable);
        cr_assert_eq(sl_passes_run(net->graph, &(struct sl_pass_options){.backend = sl_backend_find("cpu")}, &error), 0, "%s",
                error.text);
        compare_backend(net, oracle, "ref", batchable);
        compare_backend(net, oracle, "cpu", batchable);
        sl_graph_free(oracle);
        network_deinit(net);
}

/* Not from <omp.h>, which a compiler may lack. */
extern void omp_set_num_threads(int count);

/* oneDNN packs weights in one form for a thread and in another for several; which, depends on the sizes. */
Test(results, weights_are_packed_for_one_thread_whatever_the_compiler_may_use)
{
        static const int64_t channels[] = {128, 256, 256}, sides[] = {1, 2, 3};

        for (int threads = 2; threads <= 4; threads *= 2) {
                struct sl_instance *instance;
                struct sl_error error = {0};
                struct sl_plan *plan;
                struct network net;
                int fd;

                network_init(&net);
                for (uint32_t i = 0; i < 3; i++) {
                        uint32_t x = network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, channels[i], sides[i], sides[i]));

                        network_output(&net, network_conv(&net, x, channels[i], 24, 1, 1, 1));
                }
                network_finish(&net);
                omp_set_num_threads(threads);
                fd = network_plan_fd(&net, "cpu", 1);
                cr_assert_eq(sl_plan_open(fd, &plan, &error), 0, "%s", error.text);
                close(fd);
                cr_assert_eq(sl_instance_new(plan, 1, &instance, &error), 0, "%d threads: %s", threads, error.text);
                compare_size(&net, net.graph, instance, 1, "cpu");
                sl_instance_free(instance);
                sl_plan_free(plan);
                network_deinit(&net);
        }
}

static uint32_t residual_block(struct network *net, uint32_t x, int64_t channels)
{
        uint32_t y = network_apply(
                net, SL_OP_RELU, network_batch_norm(net, network_conv(net, x, channels, channels, 3, 1, 1), channels));

        y = network_batch_norm(net, network_conv(net, y, channels, channels, 3, 1, 1), channels);
        return network_apply(net, SL_OP_RELU, network_node(net, SL_OP_ADD, VALUES(y, x), 0, NULL));
}

static uint32_t classify(struct network *net, uint32_t x, int64_t features)
{
        uint32_t flat = network_node(net, SL_OP_FLATTEN, VALUES(x), ATTRS({SL_ATTR_AXIS, 0, {1}}));
        uint32_t weights = network_weights(net, DIMS(10, features)), bias = network_weights(net, DIMS(10));
        uint32_t logits = network_node(net, SL_OP_GEMM, VALUES(flat, weights, bias), ATTRS({SL_ATTR_TRANS_B, 0, {1}}));

        return network_node(net, SL_OP_SOFTMAX, VALUES(logits), ATTRS({SL_ATTR_AXIS, 0, {1}}));
}

Test(results, a_residual_network_agrees_with_the_oracle)
{
        struct network net;
        uint32_t x;

        network_init(&net);
        x = network_conv(&net, network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 3, 16, 16)), 3, 16, 3, 2, 1);
        x = residual_block(&net, residual_block(&net, x, 16), 16);
        network_output(&net, classify(&net, network_apply(&net, SL_OP_GLOBAL_AVERAGE_POOL, x), 16));
        compare_all(&net, true);
}

Test(results, depthwise_convolutions_and_a_gate_agree_with_the_oracle)
{
        struct network net;
        uint32_t x, gate;

        network_init(&net);
        x = network_conv(&net, network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 8, 9, 9)), 8, 24, 1, 1, 1);
        x = network_conv(&net, network_apply(&net, SL_OP_HARD_SWISH, x), 24, 24, 3, 2, 24);
        gate = network_conv(&net, network_apply(&net, SL_OP_GLOBAL_AVERAGE_POOL, x), 24, 24, 1, 1, 1);
        x = network_node(&net, SL_OP_MUL, VALUES(x, network_apply(&net, SL_OP_SIGMOID, gate)), 0, NULL);
        x = network_node(&net, SL_OP_ADD, VALUES(x, network_weights(&net, DIMS(24, 1, 1))), 0, NULL);
        network_output(&net, network_conv(&net, x, 24, 12, 1, 1, 1));
        compare_all(&net, true);
}

Test(results, branches_joined_by_concat_and_pools_agree_with_the_oracle)
{
        struct attribute window[] = {
                {SL_ATTR_KERNEL_SHAPE, 2, {2, 2}}, {SL_ATTR_STRIDES, 2, {2, 2}}, {SL_ATTR_PADS, 4, {0, 0, 0, 0}}};
        struct network net;
        uint32_t x, a, b;

        network_init(&net);
        x = network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 4, 12, 12));
        a = network_node(&net, SL_OP_MAX_POOL, VALUES(network_conv(&net, x, 4, 8, 3, 1, 1)), 3, window);
        b = network_node(&net, SL_OP_AVERAGE_POOL, VALUES(network_conv(&net, x, 4, 8, 1, 1, 1)), 3, window);
        x = network_node(&net, SL_OP_CONCAT, VALUES(a, b), ATTRS({SL_ATTR_AXIS, 0, {1}}));
        x = network_conv(&net, network_apply(&net, SL_OP_RELU, network_batch_norm(&net, x, 16)), 16, 8, 3, 1, 1);
        network_output(&net, x);
        network_output(&net, classify(&net, x, 8 * 6 * 6));
        compare_all(&net, true);
}

static uint32_t project(struct network *net, uint32_t x, int64_t from, int64_t to)
{
        uint32_t y = network_node(net, SL_OP_MATMUL, VALUES(x, network_weights(net, DIMS(from, to))), 0, NULL);

        return network_node(net, SL_OP_ADD, VALUES(y, network_weights(net, DIMS(to))), 0, NULL);
}

static uint32_t heads(struct network *net, uint32_t x, const int64_t perm[4])
{
        uint32_t split = network_node(net, SL_OP_RESHAPE, VALUES(x), ATTRS({SL_ATTR_SHAPE, 4, {0, 6, 2, 8}}));

        return network_node(net, SL_OP_TRANSPOSE, VALUES(split), ATTRS({SL_ATTR_PERM, 4, {perm[0], perm[1], perm[2], perm[3]}}));
}

static uint32_t attention(struct network *net, uint32_t x)
{
        static const int64_t rows[] = {0, 2, 1, 3}, columns[] = {0, 2, 3, 1};
        uint32_t q = heads(net, project(net, x, 16, 16), rows), k = heads(net, project(net, x, 16, 16), columns);
        uint32_t v = heads(net, project(net, x, 16, 16), rows);
        uint32_t scores = network_node(net, SL_OP_MATMUL, VALUES(q, k), 0, NULL);
        uint32_t weights = network_node(net, SL_OP_SOFTMAX, VALUES(scores), ATTRS({SL_ATTR_AXIS, 0, {3}}));
        uint32_t mixed = network_node(net, SL_OP_MATMUL, VALUES(weights, v), 0, NULL);
        uint32_t back = network_node(net, SL_OP_TRANSPOSE, VALUES(mixed), ATTRS({SL_ATTR_PERM, 4, {0, 2, 1, 3}}));

        return network_node(net, SL_OP_RESHAPE, VALUES(back), ATTRS({SL_ATTR_SHAPE, 3, {0, 6, 16}}));
}

Test(results, a_transformer_block_agrees_with_the_oracle)
{
        struct network net;
        uint32_t x, y;

        network_init(&net);
        x = network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 6, 16));
        y = network_node(&net, SL_OP_ADD, VALUES(x, attention(&net, x)), 0, NULL);
        y = network_node(&net, SL_OP_LAYER_NORM, VALUES(y, network_scales(&net, DIMS(16)), network_weights(&net, DIMS(16))),
                ATTRS({SL_ATTR_AXIS, 0, {2}}));
        y = network_node(&net, SL_OP_ADD,
                VALUES(y, project(&net, network_apply(&net, SL_OP_GELU, project(&net, y, 16, 32)), 32, 16)), 0, NULL);
        network_output(&net, y);
        compare_all(&net, true);
}

Test(results, tokens_that_become_images_and_back_agree_with_the_oracle)
{
        static const int64_t shapes[][4] = {{0, 16, 24}, {0, 4, 4, 24}};
        struct network net;
        uint32_t x, y;

        network_init(&net);
        x = network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 24, 16));
        y = network_node(&net, SL_OP_TRANSPOSE, VALUES(x), ATTRS({SL_ATTR_PERM, 3, {0, 2, 1}}));
        y = network_node(&net, SL_OP_RESHAPE, VALUES(y), 1, &(struct attribute){SL_ATTR_SHAPE, 4, {0, 16, 6, 4}});
        y = network_conv(&net, y, 16, 16, 3, 1, 16);
        network_output(&net, y);
        for (uint32_t i = 0; i < 2; i++) {
                uint32_t rank = 3 + i;
                struct attribute shape = {SL_ATTR_SHAPE, rank, {shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3]}};
                struct attribute perm = {SL_ATTR_PERM, rank, {0, rank - 1, 1, 2}};
                uint32_t view = network_node(&net, SL_OP_RESHAPE, VALUES(y), 1, &shape);

                network_output(&net, network_apply(&net, SL_OP_EXP, network_node(&net, SL_OP_TRANSPOSE, VALUES(view), 1, &perm)));
        }
        network_output(&net, network_conv(&net, network_conv(&net, y, 16, 16, 2, 2, 1), 16, 8, 1, 1, 1));
        compare_all(&net, true);
}

Test(results, embeddings_of_integers_agree_with_the_oracle_and_their_port_says_so)
{
        struct network net;
        struct sl_plan *plan;
        uint32_t ids, x;
        int fd;

        network_init(&net);
        ids = network_input(&net, SL_DTYPE_I64, DIMS(SL_DIM_BATCH, 7));
        x = network_node(&net, SL_OP_GATHER, VALUES(network_weights(&net, DIMS(5, 12)), ids), ATTRS({SL_ATTR_AXIS, 0, {0}}));
        network_output(
                &net, network_node(&net, SL_OP_REDUCE_MEAN, VALUES(x), ATTRS({SL_ATTR_AXES, 1, {1}}, {SL_ATTR_KEEPDIMS, 0, {0}})));
        network_output(&net, ids);
        network_finish(&net);
        fd = network_plan_fd(&net, "cpu", 2);
        cr_assert_eq(sl_plan_open(fd, &plan, NULL), 0);
        cr_assert_eq(sl_plan_info(plan)->inputs[0].indexes, 1);
        sl_plan_free(plan);
        close(fd);
        compare_all(&net, true);
}

Test(results, an_index_out_of_bounds_is_an_error_and_not_a_crash)
{
        const int64_t ids[] = {0, 5, -6, INT64_MAX, INT64_MIN};
        struct sl_instance *instance;
        struct sl_plan *plan;
        struct network net;
        uint32_t x;
        int fd;

        network_init(&net);
        x = network_input(&net, SL_DTYPE_I64, DIMS(SL_DIM_BATCH, 1));
        network_output(&net,
                network_node(&net, SL_OP_GATHER, VALUES(network_weights(&net, DIMS(5, 2)), x), ATTRS({SL_ATTR_AXIS, 0, {0}})));
        network_finish(&net);
        fd = network_plan_fd(&net, "cpu", 1);
        cr_assert_eq(sl_plan_open(fd, &plan, NULL), 0);
        close(fd);
        cr_assert_eq(sl_instance_new(plan, 1, &instance, NULL), 0);
        for (uint32_t i = 0; i < 5; i++) {
                const void *input = &ids[i];
                float result[2];
                void *output = result;

                cr_assert_eq(sl_instance_run(instance, 1, &input, &output), i ? -ERANGE : 0, "index %ld", ids[i]);
        }
        sl_instance_free(instance);
        sl_plan_free(plan);
        network_deinit(&net);
}

Test(results, a_model_fixed_at_one_sample_has_a_ladder_of_one)
{
        struct network net;
        uint32_t x;

        network_init(&net);
        x = network_input(&net, SL_DTYPE_F32, DIMS(1, 3, 8, 8));
        network_output(&net, classify(&net, network_conv(&net, x, 3, 4, 3, 1, 1), 4 * 64));
        compare_all(&net, false);
}

Test(results, a_model_whose_batch_does_not_lead_runs_whole)
{
        struct network net;
        uint32_t x;

        network_init(&net);
        x = network_input(&net, SL_DTYPE_F32, DIMS(5, SL_DIM_BATCH, 4));
        network_output(&net, network_apply(&net, SL_OP_TANH, x));
        compare_all(&net, false);
}

Test(results, a_reshape_that_fixes_the_batch_makes_a_ladder_of_one)
{
        struct network net;
        uint32_t x;

        network_init(&net);
        x = network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 4, 4));
        network_output(&net, network_node(&net, SL_OP_RESHAPE, VALUES(x), ATTRS({SL_ATTR_SHAPE, 2, {1, -1}})));
        compare_all(&net, false);
}

Test(results, a_model_that_mixes_samples_has_a_ladder_of_one)
{
        struct network net;
        uint32_t x;

        network_init(&net);
        x = network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 4));
        network_output(&net, network_node(&net, SL_OP_SOFTMAX, VALUES(x), ATTRS({SL_ATTR_AXIS, 0, {0}})));
        compare_all(&net, false);
}

static uint32_t pick(struct network *net, uint32_t n)
{
        return (uint32_t)((network_random(net) + 1) / 2 * (float)n) % n;
}

/* Takes one or two values of [N,4,6,6] and makes another, through views, shared inputs, other layouts. */
static uint32_t grow_randomly(struct network *net, uint32_t a, uint32_t b)
{
        uint32_t x;

        switch (pick(net, 10)) {
        case 0:
                return network_conv(net, a, 4, 4, 3, 1, 1);
        case 1:
                return network_node(net, SL_OP_ADD, VALUES(a, b), 0, NULL);
        case 2:
                return network_node(net, SL_OP_MUL, VALUES(a, network_scales(net, DIMS(4, 1, 1))), 0, NULL);
        case 3:
                x = network_node(net, SL_OP_CONCAT, VALUES(a, b), ATTRS({SL_ATTR_AXIS, 0, {1}}));
                return network_conv(net, x, 8, 4, 1, 1, 1);
        case 4:
                x = network_apply(net, SL_OP_TANH, network_node(net, SL_OP_FLATTEN, VALUES(a), ATTRS({SL_ATTR_AXIS, 0, {1}})));
                return network_node(net, SL_OP_RESHAPE, VALUES(x), ATTRS({SL_ATTR_SHAPE, 4, {0, 4, 6, 6}}));
        case 5:
                return network_node(net, SL_OP_TRANSPOSE, VALUES(a), ATTRS({SL_ATTR_PERM, 4, {0, 1, 3, 2}}));
        case 6:
                return network_apply(net, SL_OP_IDENTITY, a);
        case 7:
                x = network_apply(net, SL_OP_GLOBAL_AVERAGE_POOL, a);
                return network_node(net, SL_OP_SUB, VALUES(b, x), 0, NULL);
        case 8:
                return network_node(net, SL_OP_SOFTMAX, VALUES(a), ATTRS({SL_ATTR_AXIS, 0, {3}}));
        default:
                return network_apply(net, SL_OP_RELU, a);
        }
}

/* Any value may be an output: an input, a view, one that others read, the same one twice. */
static void build_randomly(struct network *net, uint64_t seed)
{
        uint32_t values[14];

        network_init(net);
        net->state = seed * 7919 + 1;
        values[0] = network_input(net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 4, 6, 6));
        values[1] = network_input(net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 4, 6, 6));
        for (uint32_t i = 2; i < 14; i++)
                values[i] = grow_randomly(net, values[i - 1 - pick(net, i < 4 ? i : 4)], values[pick(net, i)]);
        network_output(net, values[13]);
        network_output(net, values[pick(net, 14)]);
        network_output(net, values[2 + pick(net, 12)]);
}

Test(results, random_graphs_agree_with_the_oracle)
{
        for (uint64_t seed = 0; seed < 40; seed++) {
                struct network net;

                build_randomly(&net, seed);
                compare_all(&net, true);
        }
}

Test(results, a_tail_runs_as_the_largest_sizes_that_fit)
{
        struct sl_instance *instance;
        struct sl_plan *plan;
        struct network net;
        int fd;

        network_init(&net);
        network_output(&net, network_apply(&net, SL_OP_RELU, network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 4))));
        network_finish(&net);
        fd = network_plan_fd(&net, "ref", 16);
        cr_assert_eq(sl_plan_open(fd, &plan, NULL), 0);
        close(fd);
        cr_assert_eq(sl_instance_new(plan, 8, &instance, NULL), 0);
        cr_assert_eq(sl_instance_step(instance, 12), 8);
        cr_assert_eq(sl_instance_step(instance, 4), 4);
        cr_assert_eq(sl_instance_step(instance, 3), 2);
        cr_assert_eq(sl_instance_step(instance, 1), 1);
        cr_assert_eq(sl_instance_run(instance, 16, NULL, NULL), -EINVAL);
        cr_assert_eq(sl_instance_run(instance, 3, NULL, NULL), -EINVAL);
        sl_instance_free(instance);
        sl_plan_free(plan);
        network_deinit(&net);
}

Test(results, batch_sizes_share_one_copy_of_the_weights)
{
        struct sl_plan *one, *many;
        struct network net;
        int fd;

        network_init(&net);
        network_output(&net, network_conv(&net, network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 16, 8, 8)), 16, 16, 1, 1, 1));
        network_finish(&net);
        fd = network_plan_fd(&net, "cpu", 1);
        cr_assert_eq(sl_plan_open(fd, &one, NULL), 0);
        close(fd);
        fd = network_plan_fd(&net, "cpu", 32);
        cr_assert_eq(sl_plan_open(fd, &many, NULL), 0);
        close(fd);
        cr_assert_leq(sl_plan_info(many)->weights_bytes, sl_plan_info(one)->weights_bytes + sl_plan_info(one)->weights_bytes / 2);
        sl_plan_free(one);
        sl_plan_free(many);
        network_deinit(&net);
}

/* One sample's output, computed as part of @size samples in the steps that the instance gives. */
static void run_in_steps(struct sl_instance *instance, uint32_t size, const float *inputs, uint64_t in_floats, float *outputs)
{
        for (uint32_t done = 0, step; done < size; done += step) {
                const void *input = inputs + done * in_floats;
                void *output = outputs + done * 10;

                step = sl_instance_step(instance, size - done);
                cr_assert_gt(step, 0);
                cr_assert_eq(sl_instance_run(instance, step, &input, &output), 0);
        }
}

Test(results, batch_invariant_gives_a_sample_the_same_bits_in_any_batch)
{
        enum { SAMPLES = 5, FLOATS = 16 * 8 * 8 };
        static alignas(64) float inputs[SAMPLES * FLOATS], alone[SAMPLES * 10], together[SAMPLES * 10];
        struct sl_lower_options options;
        struct sl_instance *instance;
        struct sl_lowered *lowered;
        struct sl_plan *plan;
        struct network net;
        uint32_t x;
        int fd = memfd_create("plan", MFD_CLOEXEC);

        network_init(&net);
        x = network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 16, 8, 8));
        network_output(&net, classify(&net, residual_block(&net, x, 16), FLOATS));
        network_finish(&net);
        sl_lower_options_init(&options);
        options.batch_invariant = true;
        cr_assert_eq(sl_lowered_new(net.graph, &options, &lowered, NULL), 0);
        cr_assert_eq(sl_lowered_write(lowered, fd, NULL), 0);
        sl_lowered_free(lowered);
        cr_assert_eq(sl_plan_open(fd, &plan, NULL), 0);
        close(fd);
        cr_assert_eq(sl_plan_info(plan)->batchable, 1, "requests of any size are still taken");
        cr_assert_eq(sl_instance_new(plan, 32, &instance, NULL), 0);
        for (uint32_t i = 0; i < SAMPLES * FLOATS; i++)
                inputs[i] = network_random(&net);
        for (uint32_t i = 0; i < SAMPLES; i++)
                run_in_steps(instance, 1, inputs + i * FLOATS, FLOATS, alone + i * 10);
        run_in_steps(instance, SAMPLES, inputs, FLOATS, together);
        cr_assert_arr_eq(alone, together, sizeof(alone));
        sl_instance_free(instance);
        sl_plan_free(plan);
        network_deinit(&net);
}
