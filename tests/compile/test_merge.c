/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merged networks compute what the single ones do. Networks at random, of one architecture with own nodes and heads here and there,
 * are merged by Algorithm 1 and by what costs at random say; the oracle is each network by itself.
 *
 * STARLING_RANDOM_SEED and STARLING_RANDOM_ROUNDS try other networks, and as many as you like.
 */
#include "backend.h"
#include "base/clock.h"
#include "base/error.h"
#include "base_plan.h"
#include "evaluate.h"
#include "independence.h"
#include "lower.h"
#include "merge/merge.h"
#include "pass.h"
#include "plan.h"
#include "random_lanes.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SEED      1
#define ROUNDS    1000000 /* the time ends it before */
#define SECONDS   4
#define TOLERANCE 1e-5
#define PORTS     64

struct merging {
        struct random_lanes lanes;
        struct sl_graph *merged;
        struct sl_merge_report report;
        uint32_t n_inputs, n_outputs;
        void *inputs[PORTS], *wanted[PORTS], *got[PORTS];
        uint64_t output_bytes[PORTS];
};

static uint32_t n_left_out; /* plans of which idle lanes leave something out */

static void *bytes_new(uint64_t bytes)
{
        void *data = aligned_alloc(64, (bytes + 64) & ~63ull);

        cr_assert_not_null(data);
        memset(data, 0xff, bytes);
        return data;
}

/* A cost of each operator, and of each node by its work: what is cheapest changes from trial to trial. */
static double dice_seconds(void *context, const struct sl_node_desc *node, uint64_t constants)
{
        uint64_t seed = *(const uint64_t *)context ^ (node->op * 0x9e3779b97f4a7c15u);
        uint64_t work = sl_op_work(node);

        cr_assert_neq(work, UINT64_MAX, "a node of unknown size is asked for");
        seed = (seed ^ seed >> 29) * 0xbf58476d1ce4e5b9u + constants;
        return 1e-6 * (double)(seed >> 40) / (double)(1 << 20) + 1e-9 * (double)work;
}

static void merge(struct merging *m, const struct sl_merge_options *options)
{
        const struct sl_graph *graphs[RANDOM_LANES_MAX];
        struct sl_error error = {0};
        int r;

        for (uint32_t i = 0; i < m->lanes.n; i++)
                graphs[i] = m->lanes.nets[i].graph;
        cr_assert_eq(sl_graph_new(&m->merged), 0);
        r = sl_merge(graphs, m->lanes.n, options, m->merged, &m->report, &error);
        cr_assert_geq(r, 0, "%s", error.text);
        if (r == 0) {
                m->merged = sl_graph_free(m->merged);
                return;
        }
        cr_assert_eq(sl_graph_check(m->merged, &error), 0, "%s", error.text);
}

/* What each network makes of inputs of its own, one after the other. */
static void run_lanes(struct merging *m, int64_t batch)
{
        for (uint32_t l = 0; l < m->lanes.n; l++) {
                struct network *net = &m->lanes.nets[l];
                struct sl_error error = {0};
                struct sl_graph *graph;
                uint32_t first_input = m->n_inputs, first_output = m->n_outputs;

                cr_assert_eq(sl_graph_specialise(net->graph, batch, &graph, &error), 0, "%s", error.text);
                for (uint32_t i = 0; i < graph->n_inputs; i++) {
                        uint64_t bytes = sl_tensor_bytes(&graph->values[graph->inputs[i]].tensor);
                        float *data = bytes_new(bytes);

                        for (uint64_t k = 0; k < bytes / sizeof(float); k++)
                                data[k] = network_random(net);
                        m->inputs[m->n_inputs++] = data;
                }
                for (uint32_t i = 0; i < graph->n_outputs; i++) {
                        uint64_t bytes = sl_tensor_bytes(&graph->values[graph->outputs[i]].tensor);

                        m->output_bytes[m->n_outputs] = bytes;
                        m->got[m->n_outputs] = bytes_new(bytes);
                        m->wanted[m->n_outputs++] = bytes_new(bytes);
                }
                cr_assert_eq(
                        sl_graph_evaluate(graph, (const void *const *)m->inputs + first_input, m->wanted + first_output, &error), 0,
                        "%s", error.text);
                sl_graph_free(graph);
        }
}

static void forget_ports(struct merging *m)
{
        for (uint32_t i = 0; i < m->n_inputs; i++)
                free(m->inputs[i]);
        for (uint32_t i = 0; i < m->n_outputs; i++) {
                free(m->wanted[i]);
                free(m->got[i]);
        }
        m->n_inputs = m->n_outputs = 0;
}

static void compare(const struct merging *m, const char *how)
{
        for (uint32_t i = 0; i < m->n_outputs; i++) {
                const float *got = m->got[i], *wanted = m->wanted[i];
                double worst = 0, largest = 1;

                for (uint64_t k = 0; k < m->output_bytes[i] / sizeof(float); k++) {
                        if (isnan(wanted[k]) && isnan(got[k]))
                                continue;
                        worst = fmax(worst, isnan(got[k]) != isnan(wanted[k]) ? INFINITY : fabs((double)got[k] - wanted[k]));
                        largest = fmax(largest, fabs((double)wanted[k]));
                }
                if (worst > TOLERANCE * largest)
                        sl_graph_print(m->merged, stderr);
                cr_assert_leq(
                        worst, TOLERANCE * largest, "%s: output %u is %g off, its largest value is %g", how, i, worst, largest);
        }
}

static void evaluate_merged(struct merging *m, int64_t batch)
{
        struct sl_error error = {0};
        struct sl_graph *graph;

        cr_assert_eq(sl_graph_specialise(m->merged, batch, &graph, &error), 0, "%s", error.text);
        cr_assert_eq(sl_graph_evaluate(graph, (const void *const *)m->inputs, m->got, &error), 0, "%s", error.text);
        sl_graph_free(graph);
        compare(m, "evaluated");
}

/* @lanes: how many it was merged from; 0: it was not. */
static struct sl_plan *plan_of(const struct sl_graph *graph, uint32_t lanes, bool ref)
{
        struct sl_lower_options options;
        struct sl_lowered *lowered;
        struct sl_plan *plan;
        struct sl_error error = {0};
        int fd = memfd_create("plan", MFD_CLOEXEC);

        sl_lower_options_init(&options);
        options.batch_max = 2;
        options.backend = ref;
        cr_assert_eq(sl_lowered_new(graph, &options, &lowered, &error), 0, "%s", error.text);
        lowered->info.n_lanes = lanes;
        cr_assert_eq(sl_lowered_write(lowered, fd, &error), 0, "%s", error.text);
        sl_lowered_free(lowered);
        cr_assert_eq(sl_plan_open(fd, &plan, &error), 0, "%s", error.text);
        close(fd);
        return plan;
}

static struct sl_instance *instance_of(const struct sl_plan *plan)
{
        struct sl_instance *instance;
        struct sl_error error = {0};

        cr_assert_eq(sl_instance_new(plan, sl_plan_info(plan)->batches[sl_plan_info(plan)->n_batches - 1], &instance, &error), 0,
                "%s", error.text);
        return instance;
}

static bool is_idle(const struct merging *m, uint64_t idle, const uint32_t *firsts, uint32_t port)
{
        uint32_t lane = 0;

        while (lane + 1 < m->lanes.n && port >= firsts[lane + 1])
                lane++;
        return idle >> lane & 1;
}

/* Lanes that nobody looks at bring no numbers. The instance is a new one: what was computed before is not there to be found. */
static void run_idle(struct merging *m, const struct sl_plan *plan, uint32_t batch, uint64_t idle)
{
        struct sl_instance *instance = instance_of(plan);
        void *inputs[PORTS], *outputs[PORTS], *nothing = bytes_new(1 << 20);

        for (uint32_t i = 0; i < m->n_inputs; i++)
                inputs[i] = is_idle(m, idle, m->report.first_input, i) ? nothing : m->inputs[i];
        for (uint32_t i = 0; i < m->n_outputs; i++)
                outputs[i] = bytes_new(m->output_bytes[i]);
        n_left_out += sl_instance_idle(instance, idle);
        cr_assert_eq(sl_instance_run(instance, batch, (const void *const *)inputs, outputs), 0);
        for (uint32_t i = 0; i < m->n_outputs; i++) {
                if (!is_idle(m, idle, m->report.first_output, i))
                        cr_assert_arr_eq(outputs[i], m->got[i], m->output_bytes[i], "output %u, idle %llx", i, (unsigned long long)idle);
                free(outputs[i]);
        }
        free(nothing);
        sl_instance_free(instance);
}

static void run_plan(struct merging *m, uint32_t batch, bool ref, uint64_t seed)
{
        struct sl_plan *plan = plan_of(m->merged, m->lanes.n, ref);
        struct sl_instance *instance = instance_of(plan);

        cr_assert_eq(sl_instance_run(instance, batch, (const void *const *)m->inputs, m->got), 0);
        compare(m, ref ? "on ref" : "on cpu");
        sl_instance_free(instance);
        run_idle(m, plan, batch, seed * 0x9e3779b97f4a7c15u >> 40);
        run_idle(m, plan, batch, ~(1ull << seed % m->lanes.n));
        sl_plan_free(plan);
}

static void run_backend_passes(struct merging *m)
{
        const struct sl_pass_options options = {.backend = sl_backend_find("cpu")};
        struct sl_error error = {0};

        cr_assert_eq(sl_passes_run_phase(m->merged, SL_PASS_BACKEND, &options, &error), 0, "%s", error.text);
}

static bool is_batchable(const struct sl_graph *graph)
{
        struct sl_graph *one, *many;
        bool independent;

        cr_assert_eq(sl_graph_specialise(graph, 1, &one, NULL), 0);
        cr_assert_eq(sl_graph_specialise(graph, 3, &many, NULL), 0);
        independent = sl_samples_are_independent(one, many, 3);
        sl_graph_free(one);
        sl_graph_free(many);
        return independent;
}

static void expect_batchable(const struct merging *m)
{
        bool all = true;

        for (uint32_t i = 0; i < m->lanes.n; i++)
                all = all && is_batchable(m->lanes.nets[i].graph);
        if (all && !is_batchable(m->merged))
                sl_graph_print(m->merged, stderr);
        cr_assert(!all || is_batchable(m->merged));
}

/* Samples of one batch are independent in the merged graph where they are in the single ones. */
static void try_merged(struct merging *m, uint64_t seed)
{
        int64_t batch = 1 + (int64_t)(seed % 2);

        expect_batchable(m);
        batch = is_batchable(m->merged) ? batch : 1;
        run_lanes(m, batch);
        evaluate_merged(m, batch);
        if (seed % 3 == 0) {
                run_backend_passes(m);
                run_plan(m, (uint32_t)batch, seed % 6 == 0, seed);
        }
        forget_ports(m);
        m->merged = sl_graph_free(m->merged);
}

/* Products with bias and activation, as a perceptron has them. */
static void build_perceptron(struct network *net, uint64_t seed)
{
        static const int64_t widths[] = {64, 96, 33, 10};
        uint32_t x;

        network_init(net);
        net->state += seed * 0x9e3779b97f4a7c15u;
        x = network_input(net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, widths[0]));
        for (uint32_t i = 0; i < 3; i++) {
                uint32_t weights = network_weights(net, DIMS(widths[i + 1], widths[i])),
                         bias = network_weights(net, DIMS(widths[i + 1]));

                x = network_node(net, SL_OP_GEMM, VALUES(x, weights, bias), ATTRS({SL_ATTR_TRANS_B, 0, {1}}));
                x = network_apply(net, SL_OP_RELU, x);
        }
        network_output(net, x);
        network_finish(net);
}

static void run_single(struct merging *m, uint32_t lane, uint32_t batch, void *output)
{
        struct sl_plan *plan = plan_of(m->lanes.nets[lane].graph, 0, false);
        struct sl_instance *instance;

        cr_assert_eq(sl_instance_new(plan, 2, &instance, NULL), 0);
        cr_assert_eq(sl_instance_run(instance, batch, (const void *const *)&m->inputs[lane], &output), 0);
        sl_instance_free(instance);
        sl_plan_free(plan);
}

Test(merge, a_lane_of_a_product_has_the_bits_of_the_single_one)
{
        static struct merging m;

        m = (struct merging){.lanes = {.n = 5}};
        for (uint32_t i = 0; i < m.lanes.n; i++) {
                build_perceptron(&m.lanes.nets[i], i);
                cr_assert_eq(sl_passes_run_phase(m.lanes.nets[i].graph, SL_PASS_PORTABLE, &(struct sl_pass_options){0}, NULL), 0);
        }
        merge(&m, &(struct sl_merge_options){0});
        cr_assert_eq(m.report.n_merged, 3);
        for (uint32_t batch = 1; batch <= 2; batch++) {
                run_lanes(&m, batch);
                run_plan(&m, batch, false, 0);
                for (uint32_t i = 0; i < m.lanes.n; i++) {
                        run_single(&m, i, batch, m.wanted[i]);
                        cr_expect_arr_eq(m.got[i], m.wanted[i], m.output_bytes[i], "lane %u of batch %u", i, batch);
                }
                forget_ports(&m);
        }
        sl_graph_free(m.merged);
        random_lanes_deinit(&m.lanes);
}

/* Bytes of the file, which holds what its base does not. */
static int compile_on(const struct sl_graph *graph, const struct sl_base_plan *base, uint64_t *ret_bytes)
{
        struct sl_lower_options options;
        struct sl_lowered *lowered;
        struct sl_error error = {0};
        int fd = memfd_create("plan", MFD_CLOEXEC);

        sl_lower_options_init(&options);
        options.batch_max = 2;
        cr_assert_eq(sl_lowered_new_in(graph, &options, base, fd, &lowered, &error), 0, "%s", error.text);
        cr_assert_eq(sl_lowered_write(lowered, fd, &error), 0, "%s", error.text);
        *ret_bytes = lowered->info.weights_bytes;
        sl_lowered_free(lowered);
        return fd;
}

/* Wide enough that what lies in multiples of a line is nearly all of it. */
static void build_wide(struct network *net, uint64_t seed)
{
        uint32_t x;

        network_init(net);
        net->state += seed * 0x9e3779b97f4a7c15u;
        x = network_input(net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 64));
        for (uint32_t i = 0; i < 3; i++) {
                x = network_node(net, SL_OP_GEMM, VALUES(x, network_weights(net, DIMS(64, 64)), network_weights(net, DIMS(64))),
                        ATTRS({SL_ATTR_TRANS_B, 0, {1}}));
                x = network_apply(net, SL_OP_RELU, x);
        }
        x = network_node(net, SL_OP_LAYER_NORM, VALUES(x, network_scales(net, DIMS(64)), network_weights(net, DIMS(64))), 0, NULL);
        network_output(net, x);
        network_finish(net);
}

static double at_once(void *context, const struct sl_node_desc *node, uint64_t constants)
{
        (void)context;
        (void)constants;
        return node->op == SL_OP_TRANSPOSE ? 1 : 1e-6;
}

static void check_derived(struct merging *m, struct sl_plan *base, int fd, uint32_t lane)
{
        struct sl_plan *derived;
        struct sl_instance *instance;
        struct sl_error error = {0};
        void *output = m->got[lane];

        cr_assert_eq(sl_plan_open_on(fd, base, &derived, &error), 0, "%s", error.text);
        cr_assert_eq(sl_instance_new(derived, 2, &instance, &error), 0, "%s", error.text);
        cr_assert_eq(sl_instance_run(instance, 1, (const void *const *)&m->inputs[lane], &output), 0);
        sl_instance_free(instance);
        sl_plan_free(derived);
}

Test(merge, weights_of_merged_and_single_plans_are_there_once)
{
        const struct sl_merge_costs costs = {.seconds = at_once, .batch = 1};
        uint64_t merged_bytes, alone = 0, together, bytes;
        struct sl_base_plan *base;
        struct sl_plan *plan;
        static struct merging m;
        int fd, base_fd;

        m = (struct merging){.lanes = {.n = 6}};
        for (uint32_t i = 0; i < m.lanes.n; i++) {
                build_wide(&m.lanes.nets[i], i);
                cr_assert_eq(sl_passes_run_phase(m.lanes.nets[i].graph, SL_PASS_PORTABLE, &(struct sl_pass_options){0}, NULL), 0);
        }
        merge(&m, &(struct sl_merge_options){.costs = &costs});
        cr_assert_eq(m.report.n_merged, 4);
        run_lanes(&m, 1);
        base_fd = compile_on(m.merged, NULL, &merged_bytes);
        cr_assert_eq(sl_base_plan_open(base_fd, &base, NULL), 0);
        cr_assert_eq(sl_plan_open(base_fd, &plan, NULL), 0);
        together = merged_bytes;
        for (uint32_t i = 0; i < m.lanes.n; i++) {
                close(compile_on(m.lanes.nets[i].graph, NULL, &bytes));
                alone += bytes;
                fd = compile_on(m.lanes.nets[i].graph, base, &bytes);
                together += bytes;
                check_derived(&m, plan, fd, i);
                close(fd);
        }
        compare(&m, "derived from the merged plan");
        cr_expect_leq(together, alone + alone / 10, "%llu bytes with the merged plan, %llu without", (unsigned long long)together,
                (unsigned long long)alone);
        forget_ports(&m);
        close(base_fd);
        sl_base_plan_free(base);
        sl_plan_free(plan);
        sl_graph_free(m.merged);
        random_lanes_deinit(&m.lanes);
}

static uint64_t from_environment(const char *name, uint64_t fallback)
{
        const char *text = getenv(name);

        return text ? strtoull(text, NULL, 10) : fallback;
}

/* What the merged graph costs is what was said of it: own nodes apart, which nobody is asked about. */
static void expect_cost(const struct merging *m, const struct sl_merge_costs *costs)
{
        struct sl_node_desc desc;
        struct sl_graph *graph;
        double sum = 0;

        if (m->report.n_breaks)
                return;
        cr_assert_eq(sl_graph_specialise(m->merged, costs->batch, &graph, NULL), 0);
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                const struct sl_node *node = &graph->nodes[i];
                uint64_t constants = 0;

                if (node->dead || (sl_op_traits(node->op) & SL_OP_VIEW) || sl_graph_describe(graph, i, &desc) < 0)
                        continue;
                for (uint32_t k = 0; k < node->n_inputs; k++)
                        constants |= (uint64_t)(sl_graph_is_constant(graph, node->inputs[k])) << k;
                sum += costs->seconds(costs->context, &desc, constants);
        }
        sl_graph_free(graph);
        cr_assert_float_eq(sum, m->report.seconds, 1e-4 * sum, "%g s are made, %g s were said", sum, m->report.seconds);
}

static void merge_at_random(uint64_t seed, uint32_t *n_merged)
{
        const struct sl_merge_costs costs = {.seconds = dice_seconds, .context = &seed, .batch = 1 + (int64_t)(seed % 4)};
        static struct merging m;
        uint32_t lanes = 2 + (uint32_t)(seed * 0x9e3779b97f4a7c15u >> 60) % (RANDOM_LANES_MAX - 1);

        memset(&m, 0, sizeof(m));
        random_lanes_init(&m.lanes, seed, lanes);
        for (uint32_t i = 0; i < lanes && seed % 2; i++)
                cr_assert_eq(sl_passes_run_phase(m.lanes.nets[i].graph, SL_PASS_PORTABLE, &(struct sl_pass_options){0}, NULL), 0);
        for (uint32_t neighbours = 0; neighbours < 2; neighbours++) {
                merge(&m, &(struct sl_merge_options){.neighbours = neighbours});
                if (m.merged)
                        try_merged(&m, seed);
        }
        merge(&m, &(struct sl_merge_options){.costs = &costs});
        cr_assert_leq(m.report.seconds, m.report.algorithm_1_seconds * (1 + 1e-9) + 1e-15);
        if (m.merged) {
                *n_merged += 1;
                expect_cost(&m, &costs);
                try_merged(&m, seed);
        }
        random_lanes_deinit(&m.lanes);
}

Test(merge, merged_networks_compute_what_single_ones_do, .timeout = 60)
{
        uint64_t first = from_environment("STARLING_RANDOM_SEED", SEED), n = from_environment("STARLING_RANDOM_ROUNDS", ROUNDS);
        uint64_t until = sl_clock_ns() + SECONDS * SL_NS_PER_SECOND, i = 0;
        uint32_t n_merged = 0;

        for (; i < n && (sl_clock_ns() < until || n != ROUNDS); i++) {
                if (getenv("STARLING_RANDOM_SEED"))
                        fprintf(stderr, "seed %llu\n", (unsigned long long)(first + i));
                merge_at_random(first + i, &n_merged);
        }
        cr_log_info("%llu networks, %u of them merged by cost; idle lanes leave something out of %u plans", (unsigned long long)i,
                n_merged, n_left_out);
        cr_expect_gt(n_merged, i / 4);
        cr_expect_gt(n_left_out, i / 4);
}
