/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of the choice of layouts, with a clock by which every launch takes equally long: the placement with fewer nodes wins.
 */
#include "graph.h"
#include "lower.h"
#include "network.h"
#include "placement.h"
#include "tune.h"
#include "tune_layout.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static struct network net;
static struct sl_program program;
static struct sl_lower_options options;
static struct sl_placement_wish *wishes;
static uint64_t now_ns, tick_ns;

static uint64_t now(void)
{
        return now_ns += tick_ns;
}

static struct sl_tuning tuning = {.options = &options, .clock = now, .until_ns = UINT64_MAX};

/* Greedily, the convolution makes CHANNELS_LAST of the input; a reorder turns the output, or a pool whose output is one pixel. */
static void build(bool pooled)
{
        uint32_t x;

        network_init(&net);
        x = network_input(&net, SL_DTYPE_F32, DIMS(1, 8, 9, 7));
        x = network_conv(&net, x, 8, 32, 3, 1, 1);
        if (pooled)
                x = network_apply(&net, SL_OP_GLOBAL_AVERAGE_POOL, x);
        network_output(&net, x);
        network_finish(&net);
        cr_assert_eq(sl_graph_specialise(net.graph, 1, &program.graph, NULL), 0);
        cr_assert_eq(sl_placement_new(program.graph, "cpu", NULL, &program.placement, NULL), 0);
        cr_assert_eq(program.placement->n_reorders, !pooled);
        sl_lower_options_init(&options);
}

static void teardown(void)
{
        free(wishes);
        sl_placement_free(program.placement);
        sl_graph_free(program.graph);
        network_deinit(&net);
}

TestSuite(tune_layout, .fini = teardown);

Test(tune_layout, a_reorder_that_another_layout_saves_is_saved)
{
        build(false);
        tick_ns = 1000;
        cr_assert_eq(sl_tune_layouts(&program, 1, &tuning, &wishes), 0);
        cr_assert_not_null(wishes);
        cr_expect(wishes[0].wanted && wishes[0].in == SL_LAYOUT_PLAIN && wishes[0].out == SL_LAYOUT_PLAIN);
        sl_placement_free(program.placement);
        program.placement = NULL;
        cr_assert_eq(sl_placement_new_as(program.graph, "cpu", NULL, wishes, &program.placement, NULL), 0);
        cr_expect_eq(program.placement->n_reorders, 0);
}

Test(tune_layout, placements_stay_where_nothing_is_clearly_faster)
{
        build(true);
        tick_ns = 1000;
        cr_assert_eq(sl_tune_layouts(&program, 1, &tuning, &wishes), 0);
        cr_expect_null(wishes);
}

Test(tune_layout, placements_stay_when_the_time_is_over)
{
        build(false);
        tick_ns = 1000;
        tuning.until_ns = 5000;
        cr_assert_eq(sl_tune_layouts(&program, 1, &tuning, &wishes), 0);
        cr_expect_null(wishes);
}

Test(tune_layout, a_wish_that_no_backend_can_grant_changes_nothing)
{
        struct sl_placement_wish odd = {.wanted = true, .in = SL_LAYOUT_CHANNELS_LAST, .out = SL_LAYOUT_PLAIN};
        struct sl_placement *placement;

        build(false);
        cr_assert_eq(sl_placement_new_as(program.graph, "cpu", NULL, &odd, &placement, NULL), 0);
        cr_expect_eq(placement->n_reorders, 1);
        sl_placement_free(placement);
}
