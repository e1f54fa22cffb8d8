/* SPDX-License-Identifier: Apache-2.0 */
#include "tune_layout.h"

#include "backend.h"
#include "base/cleanup.h"
#include "graph.h"
#include "layout.h"
#include "lower_options.h"
#include "placement.h"
#include "program.h"
#include "timed_runs.h"
#include "tune.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Runs of each placement: every algorithm of a node takes several turns. */
#define RUNS 12

/* What the other chain must gain. */
#define MARGIN 0.02

/* A reorder that was not timed moves each element by itself: it takes as long as so many times its bytes in a stream. */
#define REORDER_TIMES 6

enum { GREEDY, OTHER, N_PLACEMENTS };

/* All of one node or value; times are shares of what the greedy placement takes as a whole, summed over batch sizes. */
struct prices {
        struct sl_layout_way (*ways)[N_PLACEMENTS]; /* of each node */
        bool *settled;                              /* of each node: it has one way only */
        double *reorders;                           /* of each value */
};

struct layout_tuner {
        const struct sl_tuning *tuning;
        const struct sl_graph *source; /* of the smallest batch */
        struct prices prices;
        struct sl_placement_wish *plain; /* one for each node */
        struct sl_node_desc desc;        /* too large for the stack of a deep call */
};

/* One placement at one batch size, with what was timed. */
struct staging {
        const struct sl_placement *placement;
        struct sl_timed_node *timed_nodes;
        struct sl_timed_runs *timed;
};

SL_DEFINE_CLEANUP(struct sl_placement *, sl_placement_free)

static bool may_take(const struct layout_tuner *tuner, uint32_t algorithm)
{
        return tuner->tuning->options->winograd || !sl_algorithm_is_approximate(algorithm);
}

static void list_algorithms(
        struct layout_tuner *tuner, const struct sl_placement *placement, uint32_t node, struct sl_timed_node *timed_node)
{
        uint32_t all[SL_ALGORITHM_COUNT], n = 0;

        memset(&tuner->desc, 0, sizeof(tuner->desc));
        if (placement->backends[node] && sl_graph_describe(placement->graph, node, &tuner->desc) == 0)
                n = placement->backends[node]->planner->algorithms(&placement->target, &tuner->desc, all, NULL);
        for (uint32_t i = 0; i < n; i++) {
                if (may_take(tuner, all[i]))
                        timed_node->algorithms[timed_node->n_algorithms++] = all[i];
        }
}

static int set_up(struct layout_tuner *tuner, const struct sl_placement *placement, uint64_t until_ns, struct staging *staging)
{
        staging->placement = placement;
        staging->timed_nodes = calloc(placement->graph->n_nodes + 1u, sizeof(*staging->timed_nodes));
        if (!staging->timed_nodes)
                return -ENOMEM;
        for (uint32_t i = 0; i < placement->graph->n_nodes; i++)
                list_algorithms(tuner, placement, i, &staging->timed_nodes[i]);
        return sl_timed_runs_new(placement, staging->timed_nodes, tuner->tuning->clock, until_ns, &staging->timed);
}

static void tear_down(struct staging *staging)
{
        sl_timed_runs_free(staging->timed);
        free(staging->timed_nodes);
}

/* The fastest of its algorithms; 0 where nothing was timed. */
static double microseconds(const struct sl_timed_node *timed_node)
{
        double least = INFINITY;

        for (uint32_t i = 0; i < (timed_node->n_algorithms ? timed_node->n_algorithms : 1); i++)
                least = fmin(least, timed_node->microseconds[i] > 0 ? timed_node->microseconds[i] : INFINITY);
        return isfinite(least) ? least : 0;
}

static double whole(const struct staging *staging)
{
        double sum = 0;

        for (uint32_t i = 0; i < staging->placement->graph->n_nodes; i++)
                sum += microseconds(&staging->timed_nodes[i]);
        return sum > 0 ? sum : 1;
}

static struct sl_layout_way way_of(const struct sl_graph *graph, const struct sl_node *node, double seconds)
{
        uint32_t in = node->n_inputs ? node->inputs[0] : SL_VALUE_NONE, out = node->n_outputs ? node->outputs[0] : SL_VALUE_NONE;

        return (struct sl_layout_way){.in = in == SL_VALUE_NONE ? SL_LAYOUT_PLAIN : graph->values[in].tensor.layout,
                .out = out == SL_VALUE_NONE ? SL_LAYOUT_PLAIN : graph->values[out].tensor.layout,
                .seconds = seconds};
}

static bool same_way(const struct sl_layout_way *a, const struct sl_layout_way *b)
{
        return a->in == b->in && a->out == b->out;
}

/* A node that the walk places otherwise at another batch size is left to it. */
static void add_node(struct layout_tuner *tuner, uint32_t origin, uint32_t which, bool first, const struct sl_layout_way *way)
{
        struct sl_layout_way *price = &tuner->prices.ways[origin][which];

        if (first)
                *price = *way;
        else if (same_way(price, way))
                price->seconds += way->seconds;
        else
                tuner->prices.settled[origin] = true;
}

static void add_prices(struct layout_tuner *tuner, const struct staging *staging, uint32_t which, bool first, double share)
{
        const struct sl_graph *graph = staging->placement->graph;

        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                const struct sl_node *node = &graph->nodes[i];
                uint32_t origin = staging->placement->origins[i];
                struct sl_layout_way way = way_of(graph, node, microseconds(&staging->timed_nodes[i]) / share);

                if (origin != SL_VALUE_NONE)
                        add_node(tuner, origin, which, first, &way);
        }
}

/* What a reorder takes, of those that one of the two placements has. */
static void find_reorders(const struct layout_tuner *tuner, const struct staging *staging, double *us)
{
        const struct sl_graph *graph = staging->placement->graph;

        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                const struct sl_node *node = &graph->nodes[i];

                if (staging->placement->origins[i] == SL_VALUE_NONE && node->op == SL_OP_REORDER &&
                        node->inputs[0] < tuner->source->n_values)
                        us[node->inputs[0]] = microseconds(&staging->timed_nodes[i]);
        }
}

static bool has_price(const struct sl_value *value)
{
        return value->kind != SL_VALUE_CONSTANT && sl_shape_is_static(&value->tensor.shape) &&
               !sl_placement_bytes_agree(&value->tensor);
}

static double guess_reorder_us(const struct staging *stagings, const struct sl_value *value)
{
        return 2 * REORDER_TIMES * 1e6 * (double)sl_tensor_bytes(&value->tensor) / stagings[GREEDY].placement->target.core.far;
}

static int price_reorders(struct layout_tuner *tuner, const struct sl_graph *source, const struct staging *stagings, double share)
{
        SL_CLEANUP(sl_cleanup_free) double *us = calloc(source->n_values + 1u, sizeof(*us));

        if (!us)
                return -ENOMEM;
        for (uint32_t i = 0; i < N_PLACEMENTS; i++)
                find_reorders(tuner, &stagings[i], us);
        for (uint32_t i = 0; i < source->n_values; i++) {
                const struct sl_value *value = &source->values[i];

                if (has_price(value))
                        tuner->prices.reorders[i] += (us[i] > 0 ? us[i] : guess_reorder_us(stagings, value)) / share;
        }
        return 0;
}

/* In turns, so that the clock of the processor drifts for both; until the time is over, but each algorithm once. */
static int run_in_turns(struct layout_tuner *tuner, const struct staging *stagings, uint64_t until_ns)
{
        int r = 0;

        for (uint32_t i = 0; i < RUNS * N_PLACEMENTS && r == 0; i++) {
                if (tuner->tuning->clock() > until_ns)
                        return i < SL_ALGORITHM_COUNT * N_PLACEMENTS ? -ETIME : 0;
                r = sl_timed_runs_next(stagings[i % N_PLACEMENTS].timed);
        }
        return r;
}

static int time_both(struct layout_tuner *tuner, const struct sl_program *program, bool first, uint64_t until_ns)
{
        SL_CLEANUP(sl_cleanup_sl_placement_free) struct sl_placement *other = NULL;
        struct staging stagings[N_PLACEMENTS] = {0};
        int r = sl_placement_new_as(program->graph, sl_lower_options_backend(tuner->tuning->options), &program->placement->target,
                tuner->plain, &other, NULL);

        if (r == 0)
                r = set_up(tuner, program->placement, until_ns, &stagings[GREEDY]);
        if (r == 0)
                r = set_up(tuner, other, until_ns, &stagings[OTHER]);
        if (r == 0)
                r = run_in_turns(tuner, stagings, until_ns);
        if (r == 0) {
                double share = whole(&stagings[GREEDY]);

                for (uint32_t i = 0; i < N_PLACEMENTS; i++)
                        add_prices(tuner, &stagings[i], i, first, share);
                r = price_reorders(tuner, program->graph, stagings, share);
        }
        for (uint32_t i = 0; i < N_PLACEMENTS; i++)
                tear_down(&stagings[i]);
        return r;
}

/* The nodes as layout.h wants them; @reads: room for all inputs. @n_ways: 1 for the greedy placement alone. */
static void pose(const struct layout_tuner *tuner, uint32_t n_ways, struct sl_layout_node *nodes, struct sl_layout_read *reads)
{
        for (uint32_t i = 0; i < tuner->source->n_nodes; i++) {
                const struct sl_node *node = &tuner->source->nodes[i];
                const struct sl_layout_way *ways = tuner->prices.ways[i];

                nodes[i] = (struct sl_layout_node){.ways = ways, .reads = reads, .makes = node->outputs};
                nodes[i].n_ways = tuner->prices.settled[i] || same_way(&ways[GREEDY], &ways[OTHER]) ? 1 : n_ways;
                if (node->dead)
                        continue;
                for (uint32_t k = 0; k < node->n_inputs; k++) {
                        if (node->inputs[k] == SL_VALUE_NONE || tuner->source->values[node->inputs[k]].kind == SL_VALUE_CONSTANT)
                                continue;
                        *reads++ = (struct sl_layout_read){node->inputs[k], !sl_placement_follows(node, k)};
                        nodes[i].n_reads++;
                }
                nodes[i].n_makes = node->n_outputs;
        }
}

static int solve(const struct layout_tuner *tuner, uint32_t n_ways, uint32_t *ret_ways, double *ret_seconds)
{
        const struct sl_graph *graph = tuner->source;
        SL_CLEANUP(sl_cleanup_free) struct sl_layout_node *nodes = calloc(graph->n_nodes + 1u, sizeof(*nodes));
        SL_CLEANUP(sl_cleanup_free) struct sl_layout_read *reads = NULL;
        struct sl_layout_problem problem = {.n_nodes = graph->n_nodes,
                .n_values = graph->n_values,
                .n_outputs = graph->n_outputs,
                .nodes = nodes,
                .reorder_seconds = tuner->prices.reorders,
                .outputs = graph->outputs};
        size_t n_reads = 1;

        for (uint32_t i = 0; i < graph->n_nodes; i++)
                n_reads += graph->nodes[i].n_inputs;
        reads = calloc(n_reads, sizeof(*reads));
        if (!nodes || !reads)
                return -ENOMEM;
        pose(tuner, n_ways, nodes, reads);
        return sl_layout_solve(&problem, ret_ways, ret_seconds);
}

static int wish(const struct layout_tuner *tuner, const uint32_t *ways, struct sl_placement_wish **ret_wishes)
{
        struct sl_placement_wish *wishes = calloc(tuner->source->n_nodes + 1u, sizeof(*wishes));

        if (!wishes)
                return -ENOMEM;
        for (uint32_t i = 0; i < tuner->source->n_nodes; i++) {
                const struct sl_layout_way *way = &tuner->prices.ways[i][ways[i]];

                wishes[i] = (struct sl_placement_wish){.wanted = !tuner->prices.settled[i], .in = way->in, .out = way->out};
        }
        *ret_wishes = wishes;
        return 0;
}

/* Only if it is clearly faster than the greedy placement, by the same prices. */
static int decide(const struct layout_tuner *tuner, struct sl_placement_wish **ret_wishes)
{
        SL_CLEANUP(sl_cleanup_free) uint32_t *ways = calloc(tuner->source->n_nodes + 1u, sizeof(*ways));
        double greedy = 0, best = 0;
        int r = ways ? solve(tuner, 1, ways, &greedy) : -ENOMEM;

        if (r == 0)
                r = solve(tuner, N_PLACEMENTS, ways, &best);
        if (r == 0 && best < greedy * (1 - MARGIN))
                r = wish(tuner, ways, ret_wishes);
        return r;
}

static int tune(
        struct layout_tuner *tuner, const struct sl_program *programs, uint32_t n_programs, struct sl_placement_wish **ret_wishes)
{
        uint64_t now = tuner->tuning->clock(), until_ns = now;
        int r = 0;

        if (tuner->tuning->until_ns > now)
                until_ns += (tuner->tuning->until_ns - now) / 3;
        for (uint32_t i = 0; i < tuner->source->n_nodes; i++)
                tuner->plain[i] = (struct sl_placement_wish){.wanted = true, .in = SL_LAYOUT_PLAIN, .out = SL_LAYOUT_PLAIN};
        r = time_both(tuner, &programs[0], true, n_programs > 1 ? now + (until_ns - now) / 2 : until_ns);
        if (r == 0)
                r = decide(tuner, ret_wishes);
        if (r < 0 || !*ret_wishes || n_programs == 1)
                return r;
        /* What gains nothing at the smallest batch is not worth the time at the largest. */
        free(*ret_wishes);
        *ret_wishes = NULL;
        r = time_both(tuner, &programs[n_programs - 1], false, until_ns);
        return r < 0 ? r : decide(tuner, ret_wishes);
}

int sl_tune_layouts(const struct sl_program *programs, uint32_t n_programs, const struct sl_tuning *tuning,
        struct sl_placement_wish **ret_wishes)
{
        SL_CLEANUP(sl_cleanup_free) struct layout_tuner *tuner = calloc(1, sizeof(*tuner));
        uint32_t n_nodes = programs[0].graph->n_nodes, n_values = programs[0].graph->n_values;
        SL_CLEANUP(sl_cleanup_free) void *ways = calloc(n_nodes + 1u, sizeof(*tuner->prices.ways));
        SL_CLEANUP(sl_cleanup_free) bool *settled = calloc(n_nodes + 1u, sizeof(*settled));
        SL_CLEANUP(sl_cleanup_free) double *reorders = calloc(n_values + 1u, sizeof(*reorders));
        SL_CLEANUP(sl_cleanup_free) struct sl_placement_wish *plain = calloc(n_nodes + 1u, sizeof(*plain));

        if (!tuner || !ways || !settled || !reorders || !plain)
                return -ENOMEM;
        *tuner = (struct layout_tuner){
                .tuning = tuning, .source = programs[0].graph, .prices = {ways, settled, reorders}, .plain = plain};
        *ret_wishes = NULL;
        /* Two placements with all their weights: a model that just fits stays as it is. */
        (void)tune(tuner, programs, n_programs, ret_wishes);
        return 0;
}
