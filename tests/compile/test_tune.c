/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of the choice of algorithms, with a backend whose approximate algorithm is as wrong and as slow as a test wants.
 */
#include "backend.h"
#include "base/clock.h"
#include "base_plan.h"
#include "graph.h"
#include "lower.h"
#include "network.h"
#include "placement.h"
#include "tune_splits.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N_PROGRAMS 3
#define N_NODES    2

struct sl_kernel {
        struct sl_kernel *exact;
        int64_t batch;
        bool approximate;
};

/* What the approximate algorithm does in this test; each test is a process of its own. */
static double wrong_by;
static uint64_t now_ns, slow_by_ns, exact_slow_by_ns;
static int64_t slow_batch; /* 0: every batch */
static double guess_at_largest = 1;
static uint32_t n_launches;
static int64_t units_of_parts;             /* along the rows; 0: it cannot be cut */
static uint64_t part_ns[SL_AXIS_COUNT][3]; /* of the part that begins with unit i */

static struct sl_program programs[N_PROGRAMS];

/* Time that passes only while a kernel runs. */
static uint64_t now(void)
{
        return now_ns;
}

static bool takes(const struct sl_target *target, const struct sl_node_desc *node)
{
        int64_t algorithm = sl_attrs_int(&node->attrs, SL_ATTR_ALGORITHM, SL_ALGORITHM_AUTO);

        (void)target;
        return algorithm == SL_ALGORITHM_AUTO || algorithm == SL_ALGORITHM_DIRECT || algorithm == SL_ALGORITHM_WINOGRAD_4;
}

static uint32_t list(const struct sl_target *target, const struct sl_node_desc *node, uint32_t ret_algorithms[SL_ALGORITHM_COUNT],
        double ret_seconds[SL_ALGORITHM_COUNT])
{
        (void)target;
        ret_algorithms[0] = SL_ALGORITHM_WINOGRAD_4;
        ret_algorithms[1] = SL_ALGORITHM_DIRECT;
        if (ret_seconds) {
                ret_seconds[0] = node->inputs[0].shape.dims[0] == programs[N_PROGRAMS - 1].batch ? guess_at_largest : 1;
                ret_seconds[1] = 2;
        }
        return 2;
}

static int pack(const struct sl_target *target, const struct sl_node_desc *node, uint32_t index, struct sl_packed *ret_packed)
{
        (void)target, (void)node, (void)index;
        *ret_packed = (struct sl_packed){0};
        return 0;
}

static int build(
        struct sl_session *session, const struct sl_kernel_source *source, struct sl_kernel **ret_kernel, struct sl_error *error)
{
        struct sl_kernel *kernel = calloc(1, sizeof(*kernel));

        kernel->approximate = sl_attrs_int(&source->node->attrs, SL_ATTR_ALGORITHM, 0) == SL_ALGORITHM_WINOGRAD_4;
        kernel->batch = source->node->inputs[0].shape.dims[0];
        *ret_kernel = kernel;
        return sl_backend_ref.runner->compile(session, source, &kernel->exact, error);
}

static size_t scratch(const struct sl_kernel *kernel)
{
        return sl_backend_ref.runner->scratch_bytes(kernel->exact);
}

static int launch(struct sl_kernel *kernel, const struct sl_binding *binding)
{
        bool slow = !slow_batch || kernel->batch == slow_batch;
        int r = sl_backend_ref.runner->launch(kernel->exact, binding);
        float *output = binding->outputs[0];

        n_launches++;
        if (kernel->approximate)
                output[0] += (float)wrong_by * 10;
        if (binding->part)
                now_ns += part_ns[binding->part->axis][binding->part->first];
        else if (slow)
                now_ns += kernel->approximate ? slow_by_ns : exact_slow_by_ns;
        return r;
}

static int64_t units(const struct sl_kernel *kernel, uint32_t axis)
{
        (void)kernel;
        return axis == SL_AXIS_ROWS ? units_of_parts : 0;
}

static struct sl_kernel *release(struct sl_kernel *kernel)
{
        if (kernel)
                sl_backend_ref.runner->kernel_free(kernel->exact);
        free(kernel);
        return NULL;
}

static const struct sl_planner fake_planner = {.supports = takes, .algorithms = list, .pack = pack};

static const struct sl_runner fake_runner = {
        .compile = build, .scratch_bytes = scratch, .units = units, .launch = launch, .kernel_free = release};

static const struct sl_backend fake = {.name = "ref", .planner = &fake_planner, .runner = &fake_runner};

static struct network net;
static struct sl_step_choice choices[N_NODES];
static struct sl_lower_options options;
static struct sl_tuning tuning = {.options = &options, .clock = now, .until_ns = UINT64_MAX};

/* A constant of float32, cut off to bfloat16. */
static uint32_t make_narrow(uint32_t value)
{
        struct sl_value *constant = &net.graph->values[value];
        uint64_t n = sl_shape_elements(&constant->tensor.shape);
        uint16_t *halves = sl_graph_alloc(net.graph, n * sizeof(*halves));

        for (uint64_t i = 0; i < n; i++) /* the upper half of each */
                memcpy(&halves[i], (const char *)constant->data + i * sizeof(float) + 2, sizeof(*halves));
        constant->data = halves;
        constant->data_bytes = n * sizeof(*halves);
        constant->tensor.dtype = SL_DTYPE_BF16;
        return value;
}

static uint32_t add_narrow_conv(uint32_t x)
{
        uint32_t weights = make_narrow(network_weights(&net, DIMS(20, 4, 3, 3))),
                 bias = make_narrow(network_weights(&net, DIMS(20)));

        return network_node(&net, SL_OP_CONV, VALUES(x, weights, bias),
                ATTRS({SL_ATTR_KERNEL_SHAPE, 2, {3, 3}}, {SL_ATTR_STRIDES, 2, {1, 1}}, {SL_ATTR_PADS, 4, {1, 1, 1, 1}},
                        {SL_ATTR_DILATIONS, 2, {1, 1}}, {SL_ATTR_GROUP, 0, {1}}));
}

static void set_up(uint32_t dtype)
{
        uint32_t x;

        network_init(&net);
        x = network_input(&net, dtype, DIMS(SL_DIM_BATCH, 4, 9, 7));
        x = dtype == SL_DTYPE_BF16 ? add_narrow_conv(x) : network_conv(&net, x, 4, 20, 3, 1, 1);
        x = network_apply(&net, SL_OP_RELU, x);
        network_output(&net, x);
        network_finish(&net);
        for (uint32_t p = 0; p < N_PROGRAMS; p++) {
                programs[p].batch = p * 2 + 1;
                cr_assert_eq(sl_graph_specialise(net.graph, programs[p].batch, &programs[p].graph, NULL), 0);
                cr_assert_eq(sl_placement_new(programs[p].graph, "ref", NULL, &programs[p].placement, NULL), 0);
                programs[p].placement->backends[0] = &fake;
        }
        sl_lower_options_init(&options);
}

static void setup(void)
{
        set_up(SL_DTYPE_F32);
}

static void setup_narrow(void)
{
        set_up(SL_DTYPE_BF16);
}

static void teardown(void)
{
        for (uint32_t p = 0; p < N_PROGRAMS; p++) {
                free(programs[p].part_times);
                sl_placement_free(programs[p].placement);
                sl_graph_free(programs[p].graph);
        }
        network_deinit(&net);
}

TestSuite(tune, .init = setup, .fini = teardown);
TestSuite(tune_bf16, .init = setup_narrow, .fini = teardown);

static void expect(uint32_t algorithm, uint32_t reason)
{
        cr_assert_eq(sl_tune(programs, N_PROGRAMS, &tuning, choices, N_NODES, NULL), 0);
        cr_expect_eq(choices[0].algorithm, algorithm, "algorithm %u", choices[0].algorithm);
        cr_expect_eq(choices[0].reason, reason, "reason %u", choices[0].reason);
        for (uint32_t p = 0; p < N_PROGRAMS; p++)
                cr_expect_eq(sl_attrs_int(&programs[p].placement->graph->nodes[0].attrs, SL_ATTR_ALGORITHM, 0), algorithm);
        cr_expect_eq(choices[1].reason, SL_CHOICE_NONE, "a Relu has no choice");
}

Test(tune, off_takes_the_first_guess_at_every_batch)
{
        wrong_by = 1e-6;
        expect(SL_ALGORITHM_WINOGRAD_4, SL_CHOICE_GUESS);
        cr_expect_gt(choices[0].relative_error, 0);
        cr_expect_lt(choices[0].relative_error, 1e-4);
}

Test(tune, off_passes_over_what_is_too_inexact)
{
        wrong_by = 1e-2;
        expect(SL_ALGORITHM_DIRECT, SL_CHOICE_INEXACT);
        cr_expect_eq(choices[0].passed_over, SL_ALGORITHM_WINOGRAD_4);
        cr_expect_gt(choices[0].relative_error, 1e-4);
}

Test(tune, the_bound_is_that_of_the_options)
{
        wrong_by = 1e-2;
        options.max_relative_error = 1;
        expect(SL_ALGORITHM_WINOGRAD_4, SL_CHOICE_GUESS);
}

Test(tune, a_result_that_is_no_number_is_inexact)
{
        wrong_by = NAN;
        options.max_relative_error = 1;
        expect(SL_ALGORITHM_DIRECT, SL_CHOICE_INEXACT);
}

Test(tune, approximate_algorithms_can_be_ruled_out)
{
        options.winograd = false;
        expect(SL_ALGORITHM_DIRECT, SL_CHOICE_RULED_OUT);
        options.tune = SL_TUNE_QUICK;
        expect(SL_ALGORITHM_DIRECT, SL_CHOICE_RULED_OUT);
}

/* A base plan of the same node by @algorithm. */
static struct sl_base_plan *base_by(uint32_t algorithm)
{
        struct sl_base_plan *base;
        struct network other;
        uint32_t x;
        int fd;

        network_init(&other);
        x = network_input(&other, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 4, 5, 5));
        network_output(&other, network_conv(&other, x, 4, 20, 3, 1, 1));
        other.graph->nodes[0].name = "conv";
        cr_assert_eq(sl_attrs_set_int(&other.graph->nodes[0].attrs, SL_ATTR_ALGORITHM, algorithm), 0);
        network_finish(&other);
        fd = network_plan_fd(&other, "ref", 1);
        cr_assert_eq(sl_base_plan_open(fd, &base, NULL), 0);
        close(fd);
        network_deinit(&other);
        for (uint32_t p = 0; p < N_PROGRAMS; p++)
                programs[p].placement->graph->nodes[0].name = "conv";
        return base;
}

Test(tune, the_algorithm_of_the_base_goes_before_the_guess_and_is_not_timed)
{
        struct sl_base_plan *base = base_by(SL_ALGORITHM_DIRECT);

        tuning.base = base;
        expect(SL_ALGORITHM_DIRECT, SL_CHOICE_BASE);
        options.tune = SL_TUNE_QUICK;
        exact_slow_by_ns = 20 * SL_NS_PER_MS;
        expect(SL_ALGORITHM_DIRECT, SL_CHOICE_BASE);
        cr_expect_eq(choices[0].n_timed, 0);
        sl_base_plan_free(base);
}

Test(tune, an_algorithm_of_the_base_that_is_not_supported_here_is_left)
{
        struct sl_base_plan *base = base_by(SL_ALGORITHM_BLOCKED);

        tuning.base = base;
        expect(SL_ALGORITHM_WINOGRAD_4, SL_CHOICE_GUESS);
        sl_base_plan_free(base);
}

Test(tune, an_algorithm_of_the_base_that_is_too_inexact_here_is_left)
{
        struct sl_base_plan *base = base_by(SL_ALGORITHM_WINOGRAD_4);

        tuning.base = base;
        wrong_by = 1e-2;
        expect(SL_ALGORITHM_DIRECT, SL_CHOICE_INEXACT);
        sl_base_plan_free(base);
}

Test(tune, quick_takes_the_faster_whatever_the_guess)
{
        options.tune = SL_TUNE_QUICK;
        slow_by_ns = 20 * SL_NS_PER_MS;
        expect(SL_ALGORITHM_DIRECT, SL_CHOICE_FASTEST);
        cr_expect_eq(choices[0].n_timed, 2);
}

Test(tune, quick_takes_the_approximate_one_when_it_is_faster_and_exact_enough)
{
        options.tune = SL_TUNE_QUICK;
        wrong_by = 1e-7;
        exact_slow_by_ns = 20 * SL_NS_PER_MS;
        expect(SL_ALGORITHM_WINOGRAD_4, SL_CHOICE_FASTEST);
}

Test(tune, quick_measures_the_error_on_the_activations_of_the_model)
{
        options.tune = SL_TUNE_QUICK;
        wrong_by = 1e-2;
        exact_slow_by_ns = 20 * SL_NS_PER_MS;
        expect(SL_ALGORITHM_DIRECT, SL_CHOICE_INEXACT);
}

Test(tune, off_asks_the_model_of_the_backend_at_both_ends_of_the_ladder)
{
        guess_at_largest = 3;
        expect(SL_ALGORITHM_WINOGRAD_4, SL_CHOICE_GUESS);
        guess_at_largest = 5;
        expect(SL_ALGORITHM_DIRECT, SL_CHOICE_GUESS);
}

Test(tune, off_never_looks_at_the_time)
{
        slow_by_ns = 20 * SL_NS_PER_MS;
        for (int i = 0; i < 3; i++)
                expect(SL_ALGORITHM_WINOGRAD_4, SL_CHOICE_GUESS);
        cr_expect_eq(n_launches, 3, "one for the error of each");
}

Test(tune, full_times_every_size_and_quick_the_smallest_and_the_largest)
{
        slow_batch = programs[1].batch;
        slow_by_ns = 20 * SL_NS_PER_MS;
        exact_slow_by_ns = 0;
        options.tune = SL_TUNE_FULL;
        expect(SL_ALGORITHM_DIRECT, SL_CHOICE_FASTEST);
        n_launches = 0;
        slow_by_ns = 0;
        options.tune = SL_TUNE_QUICK;
        cr_assert_eq(sl_tune(programs, N_PROGRAMS, &tuning, choices, N_NODES, NULL), 0);
        cr_expect_eq(n_launches, 2 + 2 * 2 * 4, "the reference run, and at two sizes two algorithms four times");
}

Test(tune, the_first_guess_stays_unless_another_is_clearly_faster)
{
        options.tune = SL_TUNE_QUICK;
        slow_by_ns = 20 * SL_NS_PER_MS + 100 * SL_NS_PER_US;
        exact_slow_by_ns = 20 * SL_NS_PER_MS;
        cr_assert_eq(sl_tune(programs, N_PROGRAMS, &tuning, choices, N_NODES, NULL), 0);
        cr_expect_eq(choices[0].algorithm, SL_ALGORITHM_WINOGRAD_4);
        cr_expect_eq(choices[0].n_timed, 2);
}

Test(tune, what_there_is_no_time_for_is_guessed)
{
        options.tune = SL_TUNE_FULL;
        tuning.until_ns = SL_NS_PER_SECOND;
        slow_by_ns = exact_slow_by_ns = 600 * SL_NS_PER_MS;
        expect(SL_ALGORITHM_WINOGRAD_4, SL_CHOICE_GUESS);
        cr_expect_eq(n_launches, 2, "the reference run, and its error");
}

/* What their results are rounded by would hide the error. */
Test(tune_bf16, the_bound_holds_for_what_is_not_rounded_yet)
{
        wrong_by = 1e-6;
        expect(SL_ALGORITHM_WINOGRAD_4, SL_CHOICE_GUESS);
        cr_expect_gt(choices[0].relative_error, 0);
        cr_expect_lt(choices[0].relative_error, 1e-4);
        memset(choices, 0, sizeof(choices));
        wrong_by = 1e-4;
        expect(SL_ALGORITHM_DIRECT, SL_CHOICE_INEXACT);
        cr_expect_lt(choices[0].relative_error, 1.0 / 512);
}

Test(tune_bf16, quick_measures_the_error_on_the_activations_of_the_model)
{
        options.tune = SL_TUNE_QUICK;
        exact_slow_by_ns = 20 * SL_NS_PER_MS;
        wrong_by = 1e-6;
        expect(SL_ALGORITHM_WINOGRAD_4, SL_CHOICE_FASTEST);
        cr_expect_gt(choices[0].relative_error, 0);
        cr_expect_lt(choices[0].relative_error, 1e-4);
        memset(choices, 0, sizeof(choices));
        wrong_by = 3e-5;
        expect(SL_ALGORITHM_DIRECT, SL_CHOICE_INEXACT);
        cr_expect_lt(choices[0].relative_error, 1.0 / 512);
}

Test(tune_bf16, approximate_algorithms_can_be_ruled_out)
{
        options.winograd = false;
        expect(SL_ALGORITHM_DIRECT, SL_CHOICE_RULED_OUT);
}

static const struct sl_part_times *times_of(uint32_t program)
{
        return programs[program].part_times;
}

Test(tune, the_longest_part_of_a_team_is_timed_beside_the_whole)
{
        options.tune = SL_TUNE_QUICK;
        options.team_size = 3;
        units_of_parts = 3;
        slow_by_ns = exact_slow_by_ns = 20 * SL_NS_PER_US;
        part_ns[SL_AXIS_ROWS][0] = 11 * SL_NS_PER_US;
        part_ns[SL_AXIS_ROWS][1] = 13 * SL_NS_PER_US;
        part_ns[SL_AXIS_ROWS][2] = 12 * SL_NS_PER_US;
        cr_assert_eq(sl_tune_splits(programs, N_PROGRAMS, &tuning), 0);
        cr_expect_null(times_of(1), "quick times both ends of the ladder");
        for (uint32_t p = 0; p < N_PROGRAMS; p += N_PROGRAMS - 1) {
                cr_assert_not_null(times_of(p));
                cr_expect_eq(times_of(p)->members, 3);
                cr_expect_float_eq(times_of(p)->seconds[SL_AXIS_NONE], 20e-6, 1e-9);
                cr_expect_float_eq(times_of(p)->seconds[SL_AXIS_ROWS], 13e-6, 1e-9);
                cr_expect(isinf(times_of(p)->seconds[SL_AXIS_COLUMNS]), "it has none");
        }
}

Test(tune, parts_are_timed_for_teams_alone)
{
        options.team_size = 2;
        units_of_parts = 2;
        cr_assert_eq(sl_tune_splits(programs, N_PROGRAMS, &tuning), 0, "tune is off");
        options.tune = SL_TUNE_QUICK;
        options.teams = false;
        cr_assert_eq(sl_tune_splits(programs, N_PROGRAMS, &tuning), 0);
        options.teams = true;
        options.team_size = 1;
        cr_assert_eq(sl_tune_splits(programs, N_PROGRAMS, &tuning), 0);
        cr_expect_eq(n_launches, 0);
        for (uint32_t p = 0; p < N_PROGRAMS; p++)
                cr_expect_null(times_of(p));
}

Test(tune, a_choice_says_why)
{
        char text[SL_CHOICE_TEXT_BYTES];

        wrong_by = 1e-2;
        expect(SL_ALGORITHM_DIRECT, SL_CHOICE_INEXACT);
        sl_choice_text(&choices[0], text);
        cr_expect_not_null(strstr(text, "direct, winograd-4 is too inexact, error "), "%s", text);
        sl_choice_text(&choices[1], text);
        cr_expect_str_empty(text);
}
