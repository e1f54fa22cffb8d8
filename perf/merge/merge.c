/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What merging copies of one model gains on one core: plans of the single models run one after the other, beside the plan that
 * Algorithm 1 makes of them, the same with the lanes of a channel as neighbours, and the one that the measured costs of its nodes
 * find cheapest. The copies have weights of their own. All are checked against the single ones; the time is that of the fastest of
 * many turns, in which each runs three times.
 *
 *     bench-merge [--steps] MODEL.onnx|mlp:64,128,10|conv:CHANNELS,SIDE LANES...
 *
 * --steps prints besides what each step of the merged plans takes at the least, clock included.
 */
#include "merge/merge.h"
#include "backend.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/processor.h"
#include "copies.h"
#include "graph.h"
#include "lower.h"
#include "node_alone.h"
#include "node_costs.h"
#include "pass.h"
#include "plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LANES_MAX COPIES_MAX
#define PORTS_MAX 64
#define TURNS_MIN 5
#define TURNS_MAX 400
#define RUNS      3 /* of a turn: a plan that serves finds the caches as it has left them */
#define TURNS_NS  (4ull * 1000 * 1000 * 1000)
#define COSTS_NS  (20ull * 1000 * 1000 * 1000)

struct compiled {
        struct sl_plan *plan;
        struct sl_instance *instance;
        uint64_t best_ns, weights_bytes;
        void *outputs[PORTS_MAX];
};

struct bench {
        uint32_t n;
        struct sl_graph *graphs[LANES_MAX];
        struct compiled singles[LANES_MAX], by_paper, neighbours, by_cost;
        uint32_t n_inputs, n_outputs; /* of all lanes */
        void *inputs[PORTS_MAX];
        uint64_t output_bytes[PORTS_MAX];
        uint64_t singles_ns;
};

/* The passes of the backend are part of what is measured, so they run on a copy. */
static void compile(const struct sl_graph *graph, struct compiled *compiled)
{
        const struct sl_pass_options passes = {.backend = &sl_backend_cpu};
        struct sl_lower_options options;
        struct sl_lowered *lowered = NULL;
        struct sl_graph *copy = NULL;
        struct sl_error error = {""};
        int fd = memfd_create("plan", MFD_CLOEXEC);

        sl_lower_options_init(&options);
        options.batch_max = 1;
        if (sl_graph_copy(graph, &copy) < 0 || sl_passes_run_phase(copy, SL_PASS_BACKEND, &passes, &error) < 0 ||
                sl_lowered_new_in(copy, &options, NULL, fd, &lowered, &error) < 0 || sl_lowered_write(lowered, fd, &error) < 0 ||
                sl_plan_open(fd, &compiled->plan, &error) < 0 ||
                sl_instance_new(compiled->plan, 1, &compiled->instance, &error) < 0)
                copies_die(graph->name, error.text);
        compiled->weights_bytes = lowered->info.weights_bytes;
        compiled->best_ns = UINT64_MAX;
        sl_lowered_free(lowered);
        sl_graph_free(copy);
        close(fd);
}

static void compiled_deinit(struct compiled *compiled)
{
        if (!compiled->plan)
                return;
        for (uint32_t i = 0; i < PORTS_MAX; i++)
                free(compiled->outputs[i]);
        sl_instance_free(compiled->instance);
        sl_plan_free(compiled->plan);
}

static void make_ports(struct bench *b)
{
        uint64_t state = 7;

        for (uint32_t l = 0; l < b->n; l++) {
                const struct sl_plan_info *info = sl_plan_info(b->singles[l].plan);

                if (b->n_inputs + info->n_inputs > PORTS_MAX || b->n_outputs + info->n_outputs > PORTS_MAX)
                        copies_die("ports", "more than 64");
                for (uint32_t i = 0; i < info->n_inputs; i++)
                        b->inputs[b->n_inputs++] = copies_input_new(&info->inputs[i], 1, &state);
                for (uint32_t i = 0; i < info->n_outputs; i++) {
                        struct sl_tensor tensor = {.dtype = info->outputs[i].dtype, .shape = info->outputs[i].shape};

                        if (info->outputs[i].batch_axis == 0)
                                tensor.shape.dims[0] = 1;
                        b->output_bytes[b->n_outputs] = sl_tensor_bytes(&tensor);
                        b->singles[l].outputs[i] = copies_bytes_new(sl_tensor_bytes(&tensor));
                        b->by_paper.outputs[b->n_outputs] = copies_bytes_new(sl_tensor_bytes(&tensor));
                        b->neighbours.outputs[b->n_outputs] = copies_bytes_new(sl_tensor_bytes(&tensor));
                        b->by_cost.outputs[b->n_outputs++] = copies_bytes_new(sl_tensor_bytes(&tensor));
                }
        }
}

static void run(struct compiled *compiled, void *const *inputs)
{
        uint64_t from = sl_clock_ns();
        int r = sl_instance_run(compiled->instance, 1, (const void *const *)inputs, compiled->outputs);

        if (r < 0)
                copies_die("run", strerror(-r));
        from = sl_clock_ns() - from;
        if (from < compiled->best_ns)
                compiled->best_ns = from;
}

static void run_singles(struct bench *b)
{
        uint64_t from = sl_clock_ns();

        for (uint32_t l = 0, first = 0; l < b->n; l++) {
                run(&b->singles[l], b->inputs + first);
                first += sl_plan_info(b->singles[l].plan)->n_inputs;
        }
        from = sl_clock_ns() - from;
        if (from < b->singles_ns)
                b->singles_ns = from;
}

/* The largest difference to the single plans' outputs, in parts of the largest value. */
static double difference(const struct bench *b, const struct compiled *merged)
{
        double worst = 0;

        for (uint32_t l = 0, at = 0; l < b->n; l++)
                for (uint32_t i = 0; i < sl_plan_info(b->singles[l].plan)->n_outputs; i++, at++) {
                        const float *got = merged->outputs[at], *wanted = b->singles[l].outputs[i];
                        double off = 0, largest = 1e-30;

                        for (uint64_t k = 0; k < b->output_bytes[at] / sizeof(float); k++) {
                                off = fmax(off, isnan(got[k]) ? INFINITY : fabs((double)got[k] - wanted[k]));
                                largest = fmax(largest, fabs((double)wanted[k]));
                        }
                        worst = fmax(worst, off / largest);
                }
        return worst;
}

static void print_row(const struct bench *b, const char *name, const struct sl_merge_report *report, double merge_seconds,
        const struct compiled *merged)
{
        if (!merged->plan) {
                printf("  %-12s nothing is merged: %u nodes common, merging took %.3f s\n", name, report->n_common, merge_seconds);
                return;
        }
        printf("  %-12s %9.1f us = %5.2f x  %u of %u nodes merged, %u turned, merging %.3f s, weights %llu bytes, off by %.1e\n",
                name, (double)merged->best_ns / 1e3, (double)b->singles_ns / (double)merged->best_ns, report->n_merged,
                report->n_common, report->n_turns, merge_seconds, (unsigned long long)merged->weights_bytes, difference(b, merged));
}

static double merge(
        struct bench *b, const struct sl_merge_options *options, struct sl_merge_report *report, struct compiled *compiled)
{
        struct sl_graph *merged;
        struct sl_error error = {""};
        uint64_t from = sl_clock_ns();
        int r = sl_graph_new(&merged);

        if (r == 0)
                r = sl_merge((const struct sl_graph *const *)b->graphs, b->n, options, merged, report, &error);
        if (r < 0)
                copies_die("merge", error.text);
        from = sl_clock_ns() - from;
        if (r == 1)
                compile(merged, compiled);
        sl_graph_free(merged);
        return (double)from / SL_NS_PER_SECOND;
}

static void run_merged(struct bench *b, struct compiled *merged)
{
        for (uint32_t k = 0; merged->plan && k < RUNS; k++)
                run(merged, b->inputs);
}

static void measure(struct bench *b)
{
        uint64_t until = sl_clock_ns() + TURNS_NS;

        for (uint32_t i = 0; i < TURNS_MIN || (i < TURNS_MAX && sl_clock_ns() < until); i++) {
                for (uint32_t k = 0; k < RUNS; k++)
                        run_singles(b);
                run_merged(b, &b->by_paper);
                run_merged(b, &b->neighbours);
                run_merged(b, &b->by_cost);
        }
}

static void print_step(const struct sl_plan *plan, uint64_t step, uint64_t ns)
{
        struct sl_step_info info;
        char shape[SL_SHAPE_TEXT_BYTES];

        if (sl_plan_step_info(plan, 1, step, &info) < 0)
                copies_die("steps", "they contradict each other");
        printf("    %9.2f us  %-24s %-5s %-10s %-28s %s\n", (double)ns / 1e3, info.operator_name, info.backend, info.algorithm,
                sl_shape_print(&info.out.shape, shape), info.name);
}

/* The least time of each step, over many runs. */
static void print_steps(const struct compiled *compiled, void *const *inputs)
{
        uint64_t n = compiled->plan ? sl_plan_steps(compiled->plan, 1) : 0, *took = copies_bytes_new(n * sizeof(*took)),
                 *best = copies_bytes_new(n * sizeof(*best));

        for (uint32_t i = 0; n && i < TURNS_MAX; i++) {
                if (sl_instance_run_timed(compiled->instance, 1, (const void *const *)inputs, compiled->outputs, took) < 0)
                        copies_die("run", "it failed");
                for (uint64_t s = 0; s < n; s++)
                        best[s] = i && best[s] < took[s] ? best[s] : took[s];
        }
        for (uint64_t s = 0; s < n; s++)
                print_step(compiled->plan, s, best[s]);
        free(took);
        free(best);
}

static void bench(const char *model, uint32_t lanes, bool steps)
{
        static struct bench b;
        struct sl_merge_report paper, neighbours, cost;
        struct sl_node_costs *costs = NULL;
        double paper_seconds, neighbours_seconds, cost_seconds;
        uint64_t bytes = 0;

        b = (struct bench){.n = lanes, .singles_ns = UINT64_MAX};
        for (uint32_t l = 0; l < lanes; l++) {
                b.graphs[l] = copies_load(model, l, 0);
                compile(b.graphs[l], &b.singles[l]);
                bytes += b.singles[l].weights_bytes;
        }
        if (sl_node_costs_new(&(struct sl_node_host){&sl_backend_cpu, sl_target_typical, 1}, sl_clock_ns() + COSTS_NS, &costs) < 0)
                copies_die("memory", "none left");
        paper_seconds = merge(&b, &(struct sl_merge_options){0}, &paper, &b.by_paper);
        neighbours_seconds = merge(&b, &(struct sl_merge_options){.neighbours = true}, &neighbours, &b.neighbours);
        cost_seconds = merge(&b,
                &(struct sl_merge_options){.costs = &(struct sl_merge_costs){sl_node_costs_seconds, costs, 1}, .least_gain = 0.03},
                &cost, &b.by_cost);
        make_ports(&b);
        measure(&b);
        printf("%s, %u lanes, batch 1: single plans one after the other %.1f us, weights %llu bytes\n", model, lanes,
                (double)b.singles_ns / 1e3, (unsigned long long)bytes);
        print_row(&b, "Algorithm 1", &paper, paper_seconds, &b.by_paper);
        if (steps)
                print_steps(&b.by_paper, b.inputs);
        print_row(&b, "neighbours", &neighbours, neighbours_seconds, &b.neighbours);
        if (steps)
                print_steps(&b.neighbours, b.inputs);
        print_row(&b, "cheapest", &cost, cost_seconds, &b.by_cost);
        if (steps)
                print_steps(&b.by_cost, b.inputs);
        sl_node_costs_free(costs);
        for (uint32_t i = 0; i < b.n_inputs; i++)
                free(b.inputs[i]);
        for (uint32_t l = 0; l < lanes; l++) {
                compiled_deinit(&b.singles[l]);
                sl_graph_free(b.graphs[l]);
        }
        compiled_deinit(&b.by_paper);
        compiled_deinit(&b.neighbours);
        compiled_deinit(&b.by_cost);
}

int main(int argc, char **argv)
{
        char processor[SL_PROCESSOR_BYTES];

        bool steps = argc > 1 && !strcmp(argv[1], "--steps");

        argc -= steps;
        argv += steps;
        if (argc < 3)
                copies_die("usage", "bench-merge [--steps] MODEL.onnx|mlp:64,128,10|conv:CHANNELS,SIDE LANES...");
        sl_processor_name(processor);
        printf("%s\n", processor);
        for (int i = 2; i < argc; i++) {
                long lanes = strtol(argv[i], NULL, 10);

                if (lanes < 2 || lanes > LANES_MAX)
                        copies_die(argv[i], "2 to 64 lanes are wanted");
                bench(argv[1], (uint32_t)lanes, steps);
                fflush(stdout);
        }
        return 0;
}
