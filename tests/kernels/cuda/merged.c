/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merged networks (runtime/graph/merge) on the backend "cuda" compute what the single ones do: networks at random of one
 * architecture, with nodes and heads that are one's alone, are merged and run on a GPU that is not there. The oracle is each
 * network by itself, on ref.
 */
#include "backend.h"
#include "base/error.h"
#include "evaluate.h"
#include "fake_ground.h"
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

#define ROUNDS    60
#define BATCH     2
#define TOLERANCE 1e-4
#define PORTS     64

/* The ports of all lanes, one lane after the other. */
static struct {
        uint32_t n_inputs, n_outputs;
        void *inputs[PORTS], *wanted[PORTS], *got[PORTS];
        uint64_t output_bytes[PORTS];
} ports;

static void *bytes_new(uint64_t bytes)
{
        void *data = aligned_alloc(64, (bytes + 64) & ~63ull);

        cr_assert_not_null(data);
        return data;
}

static void run_single(struct network *net, uint32_t batch)
{
        void **inputs = ports.inputs + ports.n_inputs, **wanted = ports.wanted + ports.n_outputs;
        struct sl_error error = {""};
        struct sl_graph *graph;

        cr_assert_eq(sl_graph_specialise(net->graph, batch, &graph, &error), 0, "%s", error.text);
        for (uint32_t i = 0; i < graph->n_inputs; i++) {
                uint64_t bytes = sl_tensor_bytes(&graph->values[graph->inputs[i]].tensor);
                float *data = ports.inputs[ports.n_inputs++] = bytes_new(bytes);

                for (uint64_t k = 0; k < bytes / sizeof(float); k++)
                        data[k] = network_random(net);
        }
        for (uint32_t i = 0; i < graph->n_outputs; i++) {
                uint64_t bytes = sl_tensor_bytes(&graph->values[graph->outputs[i]].tensor);

                ports.output_bytes[ports.n_outputs] = bytes;
                ports.got[ports.n_outputs] = bytes_new(bytes);
                ports.wanted[ports.n_outputs++] = bytes_new(bytes);
        }
        cr_assert_eq(sl_graph_evaluate(graph, (const void *const *)inputs, wanted, &error), 0, "%s", error.text);
        sl_graph_free(graph);
}

static struct sl_plan *plan_of(struct sl_graph *graph)
{
        const struct sl_pass_options passes = {.backend = sl_backend_find("cuda")};
        struct sl_lower_options options;
        struct sl_lowered *lowered;
        struct sl_plan *plan;
        struct sl_error error = {""};
        int fd = memfd_create("plan", MFD_CLOEXEC);

        (void)fake_ground(); /* which plans are for */
        cr_assert_eq(sl_passes_run_phase(graph, SL_PASS_BACKEND, &passes, &error), 0, "%s", error.text);
        sl_lower_options_init(&options);
        cr_assert_eq(sl_lower_options_parse(&options, "backend=cuda", &error), 0, "%s", error.text);
        options.batch_max = BATCH;
        cr_assert_eq(sl_lowered_new(graph, &options, &lowered, &error), 0, "%s", error.text);
        cr_assert_eq(sl_lowered_write(lowered, fd, &error), 0, "%s", error.text);
        sl_lowered_free(lowered);
        cr_assert_eq(sl_plan_open(fd, &plan, &error), 0, "%s", error.text);
        close(fd);
        return plan;
}

static void run_merged(const struct sl_plan *plan, uint32_t batch)
{
        struct sl_instance *instance;
        struct sl_error error = {""};

        cr_assert_eq(sl_instance_new_on(plan, batch, fake_ground(), &instance, &error), 0, "%s", error.text);
        cr_assert_eq(sl_instance_run(instance, batch, (const void *const *)ports.inputs, ports.got), 0);
        sl_instance_free(instance);
}

/* Of samples that are not independent there is a plan for one alone. */
static void run_lanes(struct random_lanes *lanes, struct sl_graph *merged)
{
        struct sl_plan *plan = plan_of(merged);
        const struct sl_plan_info *info = sl_plan_info(plan);
        uint32_t batch = info->batches[info->n_batches - 1];

        for (uint32_t i = 0; i < lanes->n; i++)
                run_single(&lanes->nets[i], batch);
        run_merged(plan, batch);
        sl_plan_free(plan);
}

static void compare(uint64_t seed)
{
        for (uint32_t i = 0; i < ports.n_outputs; i++) {
                const float *got = ports.got[i], *wanted = ports.wanted[i];
                float worst = 0, largest = 1;

                for (uint64_t k = 0; k < ports.output_bytes[i] / sizeof(float); k++) {
                        worst = fmaxf(worst, isnan(got[k]) != isnan(wanted[k]) ? INFINITY : fabsf(got[k] - wanted[k]));
                        largest = fmaxf(largest, fabsf(wanted[k]));
                }
                cr_assert_leq(worst, TOLERANCE * largest, "seed %d: output %u is %g off, its largest value is %g", (int)seed, i,
                        (double)worst, (double)largest);
        }
}

static void forget_ports(void)
{
        for (uint32_t i = 0; i < ports.n_inputs; i++)
                free(ports.inputs[i]);
        for (uint32_t i = 0; i < ports.n_outputs; i++) {
                free(ports.got[i]);
                free(ports.wanted[i]);
        }
        ports.n_inputs = ports.n_outputs = 0;
}

/* Return: how many nodes of the networks are one for all of them. */
static uint32_t try_seed(uint64_t seed, bool neighbours, uint32_t n_ops[SL_OP_COUNT])
{
        const struct sl_merge_options options = {.neighbours = neighbours};
        const struct sl_graph *graphs[RANDOM_LANES_MAX];
        struct sl_merge_report report = {0};
        struct random_lanes lanes;
        struct sl_error error = {""};
        struct sl_graph *merged;

        random_lanes_init(&lanes, seed, 2 + (uint32_t)seed % 4);
        for (uint32_t i = 0; i < lanes.n; i++)
                graphs[i] = lanes.nets[i].graph;
        cr_assert_eq(sl_graph_new(&merged), 0);
        if (sl_merge(graphs, lanes.n, &options, merged, &report, &error) == 1) {
                run_lanes(&lanes, merged);
                for (uint32_t i = 0; i < merged->n_nodes; i++)
                        n_ops[merged->nodes[i].op] += !merged->nodes[i].dead;
                compare(seed);
                forget_ports();
        }
        sl_graph_free(merged);
        random_lanes_deinit(&lanes);
        return report.n_merged;
}

Test(merged, networks_compute_what_the_single_ones_do)
{
        static uint32_t n_ops[SL_OP_COUNT];
        uint32_t n_merged = 0;

        for (uint64_t seed = 1; seed <= ROUNDS; seed++)
                n_merged += try_seed(seed, seed % 2, n_ops);
        cr_expect_gt(n_merged, ROUNDS);
        cr_expect_gt(n_ops[SL_OP_LANED_CONV], 0);
        cr_expect_gt(n_ops[SL_OP_CONV], 0);
        cr_expect_gt(n_ops[SL_OP_MATMUL], 0);
}
