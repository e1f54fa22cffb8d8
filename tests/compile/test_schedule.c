/* SPDX-License-Identifier: Apache-2.0 */
#include "backend.h"
#include "cpu/base/isa.h"
#include "figures.h"
#include "lower_options.h"
#include "network.h"
#include "placement.h"
#include "schedule.h"

#include <criterion/criterion.h>

static struct network net;
static struct sl_placement *placement;
static struct sl_schedule *schedule;

static void begin(void)
{
        network_init(&net);
}

/* All graphs here are static already. */
static void plan_it(const char *backend)
{
        struct sl_error *no_text = NULL;

        network_finish(&net);
        cr_assert_eq(sl_placement_new(net.graph, backend, NULL, &placement, no_text), 0);
        cr_assert_eq(sl_schedule_new(placement, false, &schedule), 0);
        cr_assert_eq(sl_schedule_place(schedule), 0);
}

static void end(void)
{
        schedule = sl_schedule_free(schedule);
        placement = sl_placement_free(placement);
        network_deinit(&net);
}

static uint32_t count_ops(uint32_t op)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < placement->graph->n_nodes; i++)
                n += placement->graph->nodes[i].op == op;
        return n;
}

TestSuite(schedule, .init = begin, .fini = end);

Test(schedule, a_chain_of_relus_runs_in_one_block)
{
        uint32_t x = network_input(&net, SL_DTYPE_F32, DIMS(1, 1000));

        for (uint32_t i = 0; i < 10; i++)
                x = network_apply(&net, SL_OP_RELU, x);
        network_output(&net, x);
        plan_it("ref");
        cr_assert_eq(schedule->n_blocks, 1);
        cr_assert_eq(schedule->workspace_bytes, 4032);
        cr_assert_eq(schedule->n_steps, 10);
}

Test(schedule, inputs_and_outputs_are_the_callers_own_buffers)
{
        uint32_t x = network_input(&net, SL_DTYPE_F32, DIMS(1, 16));
        uint32_t y = network_apply(&net, SL_OP_RELU, x);

        network_output(&net, y);
        plan_it("ref");
        cr_assert_eq(schedule->workspace_bytes, 0);
        cr_assert_eq(schedule->storages[x].place, SL_PLACE_INPUT);
        cr_assert_eq(schedule->storages[y].place, SL_PLACE_OUTPUT);
        cr_assert_eq(schedule->n_steps, 1);
}

Test(schedule, a_value_with_a_later_reader_is_not_overwritten)
{
        uint32_t x = network_input(&net, SL_DTYPE_F32, DIMS(1, 16));
        uint32_t a = network_apply(&net, SL_OP_RELU, x), b = network_apply(&net, SL_OP_NEG, a);

        network_output(&net, network_node(&net, SL_OP_ADD, VALUES(b, a), 0, NULL));
        plan_it("ref");
        cr_assert_eq(schedule->n_blocks, 2);
        cr_assert_neq(schedule->storages[a].index, schedule->storages[b].index);
}

Test(schedule, a_value_read_twice_by_one_node_is_not_overwritten)
{
        uint32_t x = network_input(&net, SL_DTYPE_F32, DIMS(1, 16));
        uint32_t a = network_apply(&net, SL_OP_RELU, x);
        uint32_t b = network_node(&net, SL_OP_ADD, VALUES(a, a), 0, NULL);

        network_output(&net, network_apply(&net, SL_OP_NEG, b));
        plan_it("ref");
        cr_assert_neq(schedule->storages[a].index, schedule->storages[b].index);
}

Test(schedule, a_view_shares_the_bytes_of_its_source_and_keeps_them_alive)
{
        uint32_t x = network_input(&net, SL_DTYPE_F32, DIMS(1, 4, 4));
        uint32_t a = network_apply(&net, SL_OP_RELU, x);
        uint32_t view = network_node(&net, SL_OP_FLATTEN, VALUES(a), ATTRS({SL_ATTR_AXIS, 0, {1}}));
        uint32_t b = network_apply(&net, SL_OP_NEG, a), c = network_apply(&net, SL_OP_EXP, view);

        network_output(&net, network_apply(&net, SL_OP_RELU, b));
        network_output(&net, network_apply(&net, SL_OP_RELU, c));
        plan_it("ref");
        cr_assert_eq(schedule->storages[a].place, SL_PLACE_WORKSPACE);
        cr_assert_eq(schedule->storages[a].index, schedule->storages[view].index);
        cr_assert_neq(schedule->storages[a].index, schedule->storages[b].index);
        cr_assert_eq(schedule->storages[c].index, schedule->storages[view].index, "the last reader works in place");
}

Test(schedule, a_view_of_a_fresh_value_is_written_straight_into_the_output)
{
        uint32_t x = network_input(&net, SL_DTYPE_F32, DIMS(1, 4, 4));
        uint32_t a = network_apply(&net, SL_OP_RELU, x);

        network_output(&net, network_node(&net, SL_OP_FLATTEN, VALUES(a), ATTRS({SL_ATTR_AXIS, 0, {1}})));
        plan_it("ref");
        cr_assert_eq(schedule->n_steps, 1);
        cr_assert_eq(schedule->storages[a].place, SL_PLACE_OUTPUT);
}

Test(schedule, outputs_that_no_node_makes_are_copied)
{
        uint32_t x = network_input(&net, SL_DTYPE_F32, DIMS(1, 16)), constant = network_weights(&net, DIMS(3));
        uint32_t y = network_apply(&net, SL_OP_RELU, x);

        network_output(&net, x);
        network_output(&net, constant);
        network_output(&net, y);
        network_output(&net, y);
        plan_it("ref");
        cr_assert_eq(schedule->n_steps, 4);
        cr_assert_eq(schedule->steps[1].copy_value, x);
        cr_assert_eq(schedule->steps[2].copy_value, constant);
        cr_assert_eq(schedule->steps[3].copy_value, y);
        cr_assert_eq(schedule->steps[3].copy_output, 3);
}

Test(schedule, integers_that_nodes_still_read_are_not_kept_in_the_callers_buffer)
{
        uint32_t x = network_input(&net, SL_DTYPE_F32, DIMS(4, 16));
        uint32_t best = network_node(&net, SL_OP_ARG_MAX, VALUES(x), ATTRS({SL_ATTR_AXIS, 0, {1}}, {SL_ATTR_KEEPDIMS, 0, {0}}));

        network_output(&net, best);
        network_output(&net,
                network_node(&net, SL_OP_GATHER, VALUES(network_weights(&net, DIMS(16, 3)), best), ATTRS({SL_ATTR_AXIS, 0, {0}})));
        plan_it("ref");
        cr_assert_eq(schedule->storages[best].place, SL_PLACE_WORKSPACE);
        cr_assert_eq(schedule->n_steps, 3);
}

Test(schedule, on_ref_everything_is_plain_and_nothing_is_reordered)
{
        uint32_t x = network_input(&net, SL_DTYPE_F32, DIMS(1, 3, 8, 8));

        x = network_conv(&net, x, 3, 16, 3, 1, 1);
        network_output(&net, network_apply(&net, SL_OP_RELU, x));
        plan_it("ref");
        cr_assert_eq(count_ops(SL_OP_REORDER), 0);
        cr_assert_eq(placement->graph->values[x].tensor.layout, SL_LAYOUT_PLAIN);
}

Test(schedule, a_mean_over_all_pixels_and_a_shuffle_take_channels_last_as_it_is)
{
        uint32_t x = network_conv(&net, network_input(&net, SL_DTYPE_F32, DIMS(1, 8, 8, 8)), 8, 16, 3, 1, 1);

        x = network_node(&net, SL_OP_CHANNEL_SHUFFLE, VALUES(x),
                ATTRS({SL_ATTR_AXIS, 0, {1}}, {SL_ATTR_GROUP, 0, {2}}, {SL_ATTR_SPLIT, 1, {16}}));
        network_output(&net,
                network_node(&net, SL_OP_REDUCE_MEAN, VALUES(x), ATTRS({SL_ATTR_AXES, 2, {2, 3}}, {SL_ATTR_KEEPDIMS, 0, {0}})));
        plan_it("cpu");
        cr_assert_eq(count_ops(SL_OP_REORDER), 0);
        cr_assert_eq(placement->graph->values[x].tensor.layout, SL_LAYOUT_CHANNELS_LAST);
}

Test(schedule, on_cpu_a_chain_of_convolutions_stays_channels_last_until_the_end)
{
        uint32_t x = network_input(&net, SL_DTYPE_F32, DIMS(1, 16, 8, 8)), a, b, c;

        a = network_conv(&net, x, 16, 16, 3, 1, 1);
        b = network_batch_norm(&net, a, 16);
        c = network_conv(&net, network_apply(&net, SL_OP_RELU, b), 16, 16, 3, 1, 1);
        network_output(&net, network_node(&net, SL_OP_ADD, VALUES(c, a), 0, NULL));
        plan_it("cpu");
        cr_assert_eq(placement->graph->values[a].tensor.layout, SL_LAYOUT_CHANNELS_LAST);
        cr_assert_eq(placement->graph->values[c].tensor.layout, SL_LAYOUT_CHANNELS_LAST);
        cr_assert_leq(count_ops(SL_OP_REORDER), 2, "one at each end at most");
        cr_assert_eq(placement->graph->values[placement->graph->outputs[0]].tensor.layout, SL_LAYOUT_PLAIN);
}

Test(schedule, a_wide_convolution_between_input_and_output_has_own_kernels_to_choose_from)
{
        uint32_t algorithms[SL_ALGORITHM_COUNT], x = network_input(&net, SL_DTYPE_F32, DIMS(1, 64, 56, 56));
        struct sl_node_desc node;

        if (!sl_cpu_has_avx2())
                cr_skip_test("this processor has no AVX2");
        network_output(&net, network_conv(&net, x, 64, 64, 3, 1, 1));
        plan_it("cpu");
        for (uint32_t i = 0; i < placement->graph->n_nodes; i++) {
                if (placement->graph->nodes[i].op != SL_OP_CONV)
                        continue;
                cr_assert_eq(sl_graph_describe(placement->graph, i, &node), 0);
                cr_expect_eq(node.inputs[0].layout, SL_LAYOUT_CHANNELS_LAST);
                cr_expect_geq(placement->backends[i]->planner->algorithms(NULL, &node, algorithms, NULL), 4,
                        "tiles need channels last on both sides");
        }
}

Test(schedule, one_pixel_needs_no_reorder)
{
        uint32_t x = network_input(&net, SL_DTYPE_F32, DIMS(1, 16, 8, 8)), pooled, flat;

        x = network_conv(&net, x, 16, 32, 3, 1, 1);
        pooled = network_apply(&net, SL_OP_GLOBAL_AVERAGE_POOL, x);
        flat = network_node(&net, SL_OP_FLATTEN, VALUES(pooled), ATTRS({SL_ATTR_AXIS, 0, {1}}));
        network_output(&net, flat);
        plan_it("cpu");
        cr_assert_leq(placement->n_reorders, 1, "only the model's input may need one");
        cr_assert_eq(schedule->storages[pooled].place, SL_PLACE_OUTPUT);
}

static uint32_t turn(uint32_t x, int64_t a, int64_t b, int64_t c)
{
        return network_node(&net, SL_OP_TRANSPOSE, VALUES(x), ATTRS({SL_ATTR_PERM, 3, {a, b, c}}));
}

static uint32_t count_steps_of(uint32_t op)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < placement->graph->n_nodes; i++)
                n += placement->graph->nodes[i].op == op && placement->backends[i];
        return n;
}

/* Tokens to an image, a convolution, and back to tokens. */
static uint32_t mix_pixels(uint32_t tokens)
{
        uint32_t image = network_node(&net, SL_OP_RESHAPE, VALUES(turn(tokens, 0, 2, 1)), ATTRS({SL_ATTR_SHAPE, 4, {2, 16, 7, 7}}));

        image = network_conv(&net, image, 16, 16, 3, 1, 16);
        return turn(network_node(&net, SL_OP_RESHAPE, VALUES(image), ATTRS({SL_ATTR_SHAPE, 3, {2, 16, 49}})), 0, 2, 1);
}

Test(schedule, tokens_become_an_image_with_channels_last_and_back_without_a_step)
{
        network_output(&net, mix_pixels(network_input(&net, SL_DTYPE_F32, DIMS(2, 49, 16))));
        plan_it("cpu");
        cr_expect_eq(count_steps_of(SL_OP_TRANSPOSE), 0);
        cr_expect_eq(count_steps_of(SL_OP_REORDER), 0);
}

Test(schedule, on_ref_tokens_that_become_an_image_are_moved)
{
        network_output(&net, mix_pixels(network_input(&net, SL_DTYPE_F32, DIMS(2, 49, 16))));
        plan_it("ref");
        cr_expect_eq(count_steps_of(SL_OP_TRANSPOSE), 2);
        cr_expect_eq(count_ops(SL_OP_REORDER), 0);
}

Test(schedule, a_transpose_that_moves_axes_of_one_only_is_a_view)
{
        uint32_t x = network_apply(&net, SL_OP_RELU, network_input(&net, SL_DTYPE_F32, DIMS(8, 1, 12)));

        network_output(&net, network_apply(&net, SL_OP_EXP, turn(x, 1, 0, 2)));
        network_output(&net, network_apply(&net, SL_OP_EXP, turn(x, 2, 1, 0)));
        plan_it("ref");
        cr_expect_eq(count_steps_of(SL_OP_TRANSPOSE), 1);
}

Test(schedule, a_reshape_of_the_channels_needs_them_apart)
{
        uint32_t x = network_conv(&net, network_input(&net, SL_DTYPE_F32, DIMS(1, 16, 6, 6)), 16, 16, 3, 1, 1);

        x = network_node(&net, SL_OP_RESHAPE, VALUES(x), ATTRS({SL_ATTR_SHAPE, 4, {1, 4, 4, 36}}));
        network_output(&net, network_apply(&net, SL_OP_EXP, x));
        plan_it("cpu");
        cr_expect_geq(count_steps_of(SL_OP_REORDER), 1);
}

Test(schedule, figures_say_what_sharing_saves)
{
        uint32_t x = network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 8, 16, 16));
        struct sl_compile_figures figures;
        struct sl_lower_options options;
        uint32_t n_convolutions = 0;

        for (uint32_t i = 0; i < 6; i++)
                x = network_conv(&net, x, 8, 8, 3, 1, 1);
        network_output(&net, x);
        network_finish(&net);
        sl_lower_options_init(&options);
        options.batch_max = 4;
        cr_assert_eq(sl_compile_figures(net.graph, &options, &figures, NULL), 0);
        cr_assert_eq(figures.n_batches, 3);
        for (uint32_t i = 0; i < 3; i++) {
                cr_assert_eq(figures.memory[i].batch, 1u << i);
                cr_assert_geq(figures.memory[i].workspace_bytes, figures.lower_bound_bytes[i]);
                cr_assert_lt(figures.memory[i].workspace_bytes, figures.memory[i].sum_bytes);
        }
        cr_assert_geq(figures.weights_bytes, 6 * (8 * 8 * 9 + 8) * sizeof(float));
        for (uint32_t i = 0; i < figures.n_nodes; i++) {
                n_convolutions += !strcmp(figures.nodes[i].operator, "Conv");
                cr_assert_str_eq(figures.nodes[i].backend, "cpu");
        }
        cr_assert_eq(n_convolutions, 6);
        sl_compile_figures_free(&figures);
}

static uint32_t concat(uint32_t a, uint32_t b)
{
        return network_node(&net, SL_OP_CONCAT, VALUES(a, b), ATTRS({SL_ATTR_AXIS, 0, {1}}));
}

static uint32_t add_chain(uint32_t x)
{
        for (uint32_t i = 0; i < 5; i++)
                x = network_conv(&net, x, i ? 8 << (i % 3) : 8, 8 << ((i + 1) % 3), 3, 1, 1);
        return x;
}

static uint32_t add_residuals(uint32_t x)
{
        for (uint32_t i = 0; i < 5; i++)
                x = network_node(&net, SL_OP_ADD,
                        VALUES(x, network_conv(&net, network_conv(&net, x, 8, 16, 1, 1, 1), 16, 8, 3, 1, 1)), 0, NULL);
        return x;
}

static uint32_t add_dense_block(uint32_t x)
{
        for (int64_t channels = 8; channels < 64; channels += 4)
                x = concat(x, network_conv(&net, network_conv(&net, x, channels, 16, 1, 1, 1), 16, 4, 3, 1, 1));
        return x;
}

static uint32_t add_branches(uint32_t x)
{
        uint32_t wide = network_conv(&net, network_conv(&net, x, 8, 24, 1, 1, 1), 24, 12, 3, 1, 1);
        uint32_t deep =
                network_conv(&net, network_conv(&net, network_conv(&net, x, 8, 4, 1, 1, 1), 4, 20, 3, 1, 1), 20, 8, 3, 1, 1);

        return concat(concat(wide, deep), network_conv(&net, x, 8, 4, 1, 1, 1));
}

Test(schedule, a_workspace_stays_within_a_twentieth_of_its_bound)
{
        static uint32_t (*const shapes[])(uint32_t x) = {add_chain, add_residuals, add_dense_block, add_branches};
        struct sl_lower_options options;

        sl_lower_options_init(&options);
        options.batch_max = 2;
        for (uint32_t s = 0; s < sizeof(shapes) / sizeof(*shapes); s++) {
                struct sl_compile_figures figures;

                network_deinit(&net);
                network_init(&net);
                network_output(&net, shapes[s](network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 8, 24, 24))));
                network_finish(&net);
                cr_assert_eq(sl_compile_figures(net.graph, &options, &figures, NULL), 0);
                for (uint32_t i = 0; i < figures.n_batches; i++)
                        cr_expect_leq(figures.memory[i].workspace_bytes,
                                figures.lower_bound_bytes[i] + figures.lower_bound_bytes[i] / 20, "graph %u", s);
                sl_compile_figures_free(&figures);
        }
}
