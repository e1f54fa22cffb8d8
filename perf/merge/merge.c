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
#include "graph.h"
#include "import.h"
#include "lower.h"
#include "node_costs.h"
#include "pass.h"
#include "plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LANES_MAX 64
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

static void die(const char *what, const char *why)
{
        fprintf(stderr, "bench-merge: %s: %s\n", what, why);
        exit(1);
}

static float random_float(uint64_t *state)
{
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        return (float)(int32_t)(uint32_t)(*state >> 32) / 2147483648.0f;
}

static void *bytes_new(uint64_t bytes)
{
        void *data = aligned_alloc(64, (bytes + 64) & ~63ull);

        if (!data)
                die("memory", "none left");
        memset(data, 0, bytes);
        return data;
}

/* Weights of lane @lane: a little larger or smaller than those of the file. */
static void perturb(struct sl_graph *graph, uint32_t lane)
{
        uint64_t state = lane + 1;

        for (uint32_t i = 0; i < graph->n_values && lane; i++) {
                struct sl_value *value = &graph->values[i];
                const float *from = sl_graph_constant(graph, i);
                float *data;

                if (!from || value->dead || value->tensor.dtype != SL_DTYPE_F32 || value->data_bytes <= sizeof(float))
                        continue;
                data = sl_graph_alloc(graph, value->data_bytes);
                if (!data)
                        die("memory", "none left");
                for (uint64_t k = 0; k < value->data_bytes / sizeof(float); k++)
                        data[k] = from[k] * (1 + 0.02f * random_float(&state));
                value->data = data;
                sl_graph_drop_copies(graph);
        }
}

static uint32_t add_constant(struct sl_graph *graph, uint32_t rank, const int64_t *dims, uint64_t seed)
{
        struct sl_tensor tensor = {.dtype = SL_DTYPE_F32, .shape.rank = rank};
        uint32_t value = SL_VALUE_NONE;
        float *data;

        memcpy(tensor.shape.dims, dims, rank * sizeof(*dims));
        data = sl_graph_alloc(graph, sl_tensor_bytes(&tensor));
        for (uint64_t i = 0; data && i < sl_shape_elements(&tensor.shape); i++)
                data[i] = 0.2f * random_float(&seed);
        if (!data || sl_graph_add_constant(graph, "weights", &tensor, data, &value) < 0)
                die("memory", "none left");
        return value;
}

static uint32_t add_node(struct sl_graph *graph, uint32_t op, const uint32_t *inputs, uint32_t n_inputs, uint32_t *ret_node)
{
        const struct sl_tensor nothing = {.dtype = SL_DTYPE_F32};
        char name[32];
        uint32_t value = SL_VALUE_NONE;

        snprintf(name, sizeof(name), "node%u", graph->n_nodes);
        if (sl_graph_add_value(graph, name, SL_VALUE_COMPUTED, &nothing, &value) < 0 ||
                sl_graph_add_node(graph, op, name, inputs, n_inputs, &value, 1, ret_node) < 0)
                die("memory", "none left");
        return value;
}

static uint32_t add_input(struct sl_graph *graph, struct sl_shape shape)
{
        struct sl_tensor tensor = {.dtype = SL_DTYPE_F32, .shape = shape};
        uint32_t value = SL_VALUE_NONE;

        if (sl_graph_add_value(graph, "input", SL_VALUE_INPUT, &tensor, &value) < 0)
                die("memory", "none left");
        return value;
}

/* Products with a bias and a Relu behind each but the last. */
static uint32_t build_mlp(struct sl_graph *graph, const int64_t *widths, uint32_t n, uint32_t x)
{
        uint32_t node;

        for (uint32_t i = 0; i + 1 < n; i++) {
                const uint32_t inputs[] = {
                        x, add_constant(graph, 2, &widths[i], i), add_constant(graph, 1, &widths[i + 1], i + 99)};

                x = add_node(graph, SL_OP_MATMUL, inputs, 3, &node);
                graph->nodes[node].epilogue.activation = i + 2 < n ? SL_ACT_RELU : SL_ACT_NONE;
        }
        return x;
}

/* Eight convolutions of 3x3 one behind the other, with a bias and a Relu. */
static uint32_t build_convolutions(struct sl_graph *graph, int64_t channels, uint32_t x)
{
        const int64_t dims[] = {channels, channels, 3, 3}, pads[] = {1, 1, 1, 1}, ones[] = {1, 1}, window[] = {3, 3};
        uint32_t node;

        for (uint32_t i = 0; i < 8; i++) {
                const uint32_t inputs[] = {x, add_constant(graph, 4, dims, i), add_constant(graph, 1, dims, i + 99)};
                struct sl_attrs *attrs;

                x = add_node(graph, SL_OP_CONV, inputs, 3, &node);
                attrs = &graph->nodes[node].attrs;
                if (sl_attrs_set_ints(attrs, SL_ATTR_KERNEL_SHAPE, window, 2) < 0 ||
                        sl_attrs_set_ints(attrs, SL_ATTR_PADS, pads, 4) < 0 ||
                        sl_attrs_set_ints(attrs, SL_ATTR_STRIDES, ones, 2) < 0 ||
                        sl_attrs_set_ints(attrs, SL_ATTR_DILATIONS, ones, 2) < 0 || sl_attrs_set_int(attrs, SL_ATTR_GROUP, 1) < 0)
                        die("attributes", "no room");
                graph->nodes[node].epilogue.activation = SL_ACT_RELU;
        }
        return x;
}

static uint32_t read_numbers(const char *text, int64_t *ret_numbers, uint32_t room)
{
        uint32_t n = 0;

        for (char *end; n < room && *text; text = *end ? end + 1 : end) {
                ret_numbers[n] = strtoll(text, &end, 10);
                if (end == text || ret_numbers[n] < 1 || ret_numbers[n] > 65536)
                        die(text, "a number from 1 to 65536 is wanted");
                n++;
        }
        return n;
}

static struct sl_graph *build(const char *model)
{
        struct sl_graph *graph;
        struct sl_error error = {""};
        int64_t numbers[8];
        uint32_t n, x, y;

        if (sl_graph_new(&graph) < 0)
                die("memory", "none left");
        n = read_numbers(strchr(model, ':') + 1, numbers, 8);
        if (n < 2)
                die(model, "two numbers and more are wanted");
        if (!strncmp(model, "mlp:", 4)) {
                x = add_input(graph, (struct sl_shape){.rank = 2, .dims = {SL_DIM_BATCH, numbers[0]}});
                y = build_mlp(graph, numbers, n, x);
        } else {
                x = add_input(graph, (struct sl_shape){.rank = 4, .dims = {SL_DIM_BATCH, numbers[0], numbers[1], numbers[1]}});
                y = build_convolutions(graph, numbers[0], x);
        }
        if (sl_graph_infer(graph, &error) < 0 || sl_graph_set_ports(graph, &x, 1, &y, 1) < 0)
                die(model, error.text);
        return graph;
}

static struct sl_graph *load(const char *model, uint32_t lane)
{
        struct sl_graph *graph = NULL;
        struct sl_error error = {""};

        if (!strncmp(model, "mlp:", 4) || !strncmp(model, "conv:", 5))
                graph = build(model);
        else if (sl_import_onnx(model, NULL, &graph, &error) < 0)
                die(model, error.text);
        perturb(graph, lane);
        if (sl_passes_run_phase(graph, SL_PASS_PORTABLE, &(struct sl_pass_options){0}, &error) < 0)
                die(model, error.text);
        return graph;
}

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
                die(graph->name, error.text);
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

static void *input_new(const struct sl_port *port, uint64_t *state)
{
        struct sl_tensor tensor = {.dtype = port->dtype, .shape = port->shape};
        void *data;

        if (port->batch_axis == 0)
                tensor.shape.dims[0] = 1;
        data = bytes_new(sl_tensor_bytes(&tensor));
        for (uint64_t i = 0; i < sl_shape_elements(&tensor.shape); i++)
                if (port->dtype == SL_DTYPE_F32)
                        ((float *)data)[i] = random_float(state);
                else if (port->dtype == SL_DTYPE_I64)
                        ((int64_t *)data)[i] = 1;
        return data;
}

static void make_ports(struct bench *b)
{
        uint64_t state = 7;

        for (uint32_t l = 0; l < b->n; l++) {
                const struct sl_plan_info *info = sl_plan_info(b->singles[l].plan);

                if (b->n_inputs + info->n_inputs > PORTS_MAX || b->n_outputs + info->n_outputs > PORTS_MAX)
                        die("ports", "more than 64");
                for (uint32_t i = 0; i < info->n_inputs; i++)
                        b->inputs[b->n_inputs++] = input_new(&info->inputs[i], &state);
                for (uint32_t i = 0; i < info->n_outputs; i++) {
                        struct sl_tensor tensor = {.dtype = info->outputs[i].dtype, .shape = info->outputs[i].shape};

                        if (info->outputs[i].batch_axis == 0)
                                tensor.shape.dims[0] = 1;
                        b->output_bytes[b->n_outputs] = sl_tensor_bytes(&tensor);
                        b->singles[l].outputs[i] = bytes_new(sl_tensor_bytes(&tensor));
                        b->by_paper.outputs[b->n_outputs] = bytes_new(sl_tensor_bytes(&tensor));
                        b->neighbours.outputs[b->n_outputs] = bytes_new(sl_tensor_bytes(&tensor));
                        b->by_cost.outputs[b->n_outputs++] = bytes_new(sl_tensor_bytes(&tensor));
                }
        }
}

static void run(struct compiled *compiled, void *const *inputs)
{
        uint64_t from = sl_clock_ns();
        int r = sl_instance_run(compiled->instance, 1, (const void *const *)inputs, compiled->outputs);

        if (r < 0)
                die("run", strerror(-r));
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
                die("merge", error.text);
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
                die("steps", "they contradict each other");
        printf("    %9.2f us  %-24s %-5s %-10s %-28s %s\n", (double)ns / 1e3, info.operator_name, info.backend, info.algorithm,
                sl_shape_print(&info.out.shape, shape), info.name);
}

/* The least time of each step, over many runs. */
static void print_steps(const struct compiled *compiled, void *const *inputs)
{
        uint64_t n = compiled->plan ? sl_plan_steps(compiled->plan, 1) : 0, *took = bytes_new(n * sizeof(*took)),
                 *best = bytes_new(n * sizeof(*best));

        for (uint32_t i = 0; n && i < TURNS_MAX; i++) {
                if (sl_instance_run_timed(compiled->instance, 1, (const void *const *)inputs, compiled->outputs, took) < 0)
                        die("run", "it failed");
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
                b.graphs[l] = load(model, l);
                compile(b.graphs[l], &b.singles[l]);
                bytes += b.singles[l].weights_bytes;
        }
        if (sl_node_costs_new(&sl_backend_cpu, sl_clock_ns() + COSTS_NS, &costs) < 0)
                die("memory", "none left");
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
                die("usage", "bench-merge [--steps] MODEL.onnx|mlp:64,128,10|conv:CHANNELS,SIDE LANES...");
        sl_processor_name(processor);
        printf("%s\n", processor);
        for (int i = 2; i < argc; i++) {
                long lanes = strtol(argv[i], NULL, 10);

                if (lanes < 2 || lanes > LANES_MAX)
                        die(argv[i], "2 to 64 lanes are wanted");
                bench(argv[1], (uint32_t)lanes, steps);
                fflush(stdout);
        }
        return 0;
}
