/* SPDX-License-Identifier: Apache-2.0 */
#include "lanes.h"

#include "base/error.h"
#include "evaluate.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#define PORTS 128

struct ports {
        uint32_t n_inputs, n_outputs;
        float *inputs[PORTS], *wanted[PORTS], *got[PORTS];
        uint64_t elements[PORTS]; /* of outputs */
};

struct sl_graph *lanes_merge(
        struct network *nets, uint32_t n, const struct sl_merge_costs *costs, struct sl_merge_report *ret_report)
{
        const struct sl_graph *graphs[SL_MATCH_GRAPHS_MAX];
        struct sl_graph *merged;
        struct sl_error error = {0};

        for (uint32_t i = 0; i < n; i++)
                graphs[i] = nets[i].graph;
        cr_assert_eq(sl_graph_new(&merged), 0);
        cr_assert_eq(
                sl_merge(graphs, n, &(struct sl_merge_options){.costs = costs}, merged, ret_report, &error), 1, "%s", error.text);
        cr_assert_eq(sl_graph_check(merged, &error), 0, "%s", error.text);
        return merged;
}

static void run_network(struct network *net, int64_t batch, struct ports *ports)
{
        uint32_t first_input = ports->n_inputs, first_output = ports->n_outputs;
        struct sl_error error = {0};
        struct sl_graph *graph;

        cr_assert_eq(sl_graph_specialise(net->graph, batch, &graph, &error), 0, "%s", error.text);
        for (uint32_t i = 0; i < graph->n_inputs; i++) {
                uint64_t n = sl_shape_elements(&graph->values[graph->inputs[i]].tensor.shape);
                float *data = calloc(n + 1, sizeof(*data));

                for (uint64_t k = 0; k < n; k++)
                        data[k] = network_random(net);
                ports->inputs[ports->n_inputs++] = data;
        }
        for (uint32_t i = 0; i < graph->n_outputs; i++) {
                uint64_t n = sl_shape_elements(&graph->values[graph->outputs[i]].tensor.shape);

                ports->elements[ports->n_outputs] = n;
                ports->got[ports->n_outputs] = calloc(n + 1, sizeof(float));
                ports->wanted[ports->n_outputs++] = calloc(n + 1, sizeof(float));
        }
        cr_assert_eq(sl_graph_evaluate(graph, (const void *const *)ports->inputs + first_input,
                             (void **)ports->wanted + first_output, &error),
                0, "%s", error.text);
        sl_graph_free(graph);
}

static void compare(const struct ports *ports, double tolerance)
{
        for (uint32_t i = 0; i < ports->n_outputs; i++)
                for (uint64_t k = 0; k < ports->elements[i]; k++)
                        cr_assert_leq(fabs((double)ports->got[i][k] - ports->wanted[i][k]),
                                tolerance * fmax(1, fabs((double)ports->wanted[i][k])), "output %u, element %llu: %g, wanted %g", i,
                                (unsigned long long)k, (double)ports->got[i][k], (double)ports->wanted[i][k]);
}

void lanes_expect_equal(struct network *nets, uint32_t n, const struct sl_graph *merged, int64_t batch, double tolerance)
{
        static struct ports ports;
        struct sl_error error = {0};
        struct sl_graph *graph;

        ports = (struct ports){0};
        for (uint32_t i = 0; i < n; i++)
                run_network(&nets[i], batch, &ports);
        cr_assert_eq(sl_graph_specialise(merged, batch, &graph, &error), 0, "%s", error.text);
        cr_assert_eq(sl_graph_evaluate(graph, (const void *const *)ports.inputs, (void **)ports.got, &error), 0, "%s", error.text);
        sl_graph_free(graph);
        compare(&ports, tolerance);
        for (uint32_t i = 0; i < PORTS; i++) {
                free(ports.inputs[i]);
                free(ports.wanted[i]);
                free(ports.got[i]);
        }
}

uint32_t lanes_count(const struct sl_graph *graph, uint32_t op)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < graph->n_nodes; i++)
                n += !graph->nodes[i].dead && graph->nodes[i].op == op;
        return n;
}

const struct sl_node *lanes_find(const struct sl_graph *graph, uint32_t op)
{
        cr_assert_eq(lanes_count(graph, op), 1, "%u nodes of %s", lanes_count(graph, op), sl_op_name(op));
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                if (!graph->nodes[i].dead && graph->nodes[i].op == op)
                        return &graph->nodes[i];
        return NULL;
}
