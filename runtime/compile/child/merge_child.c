/* SPDX-License-Identifier: Apache-2.0 */
#include "merge_child.h"

#include "backend.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "graph.h"
#include "lower.h"
#include "lower_options.h"
#include "merge/merge.h"
#include "model_file.h"
#include "model_import.h"
#include "node_alone.h"
#include "node_costs.h"
#include "placement.h"
#include "timed_runs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define WHOLE_RUNS      8             /* of a whole plan, of which each node's shortest counts */
#define WHOLE_BYTES_MAX (64ull << 20) /* of constants that are laid together: what has more is not made twice */
#define LEAST_GAIN      0.03          /* what stays below it by the costs would hardly gain when it is measured */
#define RUN_SECONDS     50e-9         /* that an instance takes beside its nodes, on an EPYC of family 25 */

SL_DEFINE_CLEANUP(struct sl_graph *, sl_graph_free)
SL_DEFINE_CLEANUP(struct sl_lowered *, sl_lowered_free)
SL_DEFINE_CLEANUP(struct sl_node_costs *, sl_node_costs_free)
SL_DEFINE_CLEANUP(struct sl_timed_runs *, sl_timed_runs_free)

struct graphs {
        uint32_t n;
        struct sl_graph *all[SL_MATCH_GRAPHS_MAX];
};

static void graphs_deinit(struct graphs *graphs)
{
        while (graphs->n)
                sl_graph_free(graphs->all[--graphs->n]);
}

static int import(const struct sl_model_file *model, const struct sl_lower_options *lowering, struct sl_graph **ret_graph,
        struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_graph_free) struct sl_graph *graph = NULL;
        int r = sl_model_import(model, lowering, &graph, error);

        if (r == 0)
                r = sl_lower_prepare(graph, lowering, error);
        if (r == 0 && sl_graph_draws(graph))
                r = sl_error_set(error, ENOTSUP, "models that draw random numbers are not merged");
        if (r == 0 && lowering->optional_inputs == SL_OPTIONALS_GIVEN)
                r = sl_error_set(error, ENOTSUP, "models with optional_inputs are not merged");
        if (r == 0 && sl_lower_asks_for_halves(graph, lowering))
                r = sl_error_set(error, ENOTSUP, "products or weights in halves are not merged");
        if (r == 0)
                *ret_graph = sl_take(graph);
        return r < 0 ? sl_error_prefix(error, r, "model \"%s\"", model->path) : 0;
}

static int import_all(const struct sl_model_file *models, uint32_t n, const struct sl_lower_options *lowering,
        struct graphs *graphs, struct sl_error *error)
{
        int r = 0;

        for (; graphs->n < n && r == 0; graphs->n += r == 0)
                r = import(&models[graphs->n], lowering, &graphs->all[graphs->n], error);
        return r;
}

static void note(const struct sl_merge_notes *notes, const struct sl_merge_report *report, const struct sl_graph *first)
{
        char text[SL_ERROR_TEXT_BYTES];

        snprintf(text, sizeof(text), "%u nodes are common, %u of them merged", report->n_common, report->n_merged);
        notes->add(notes->context, text);
        if (report->wanted_bytes > report->copied_bytes) {
                snprintf(text, sizeof(text),
                        "%llu of %llu bytes of weights are copied into other forms; without merge_copies %llu would be",
                        (unsigned long long)report->copied_bytes, (unsigned long long)report->lanes_bytes,
                        (unsigned long long)report->wanted_bytes);
                notes->add(notes->context, text);
        }
        if (report->wanted_bytes > report->copied_bytes && report->apart_seconds > 0) {
                snprintf(text, sizeof(text), "with those it would be %.1f us by the costs of nodes", 1e6 * report->wanted_seconds);
                notes->add(notes->context, text);
        }
        if (report->apart_seconds > 0) {
                snprintf(text, sizeof(text), "by the costs of nodes %.1f us apart, %.1f merged", 1e6 * report->apart_seconds,
                        1e6 * report->seconds);
                notes->add(notes->context, text);
        }
        for (uint32_t i = 0; i < report->n_breaks && i < SL_MATCH_BREAKS_MAX; i++)
                notes->add(notes->context, report->breaks[i].text);
        for (uint32_t i = 0; i < report->n_islands && i < SL_MERGE_ISLANDS_MAX; i++) {
                snprintf(text, sizeof(text), "node \"%s\" stays apart: %s", first->nodes[report->islands[i].node].name,
                        report->islands[i].reason);
                notes->add(notes->context, text);
        }
}

static int explain_nothing(const struct sl_merge_report *report, struct sl_error *error)
{
        if (!report->n_common)
                return sl_error_set(
                        error, ENODATA, "they have nothing in common: %s", report->n_breaks ? report->breaks[0].text : "no node");
        if (!report->n_merged)
                return sl_error_set(error, ENODATA, "none of the %u common nodes is cheaper merged: of the first, %s",
                        report->n_common, report->n_islands ? report->islands[0].reason : "nothing is known");
        return sl_error_set(error, ENODATA, "by the costs of its nodes merging gains less than %.0f %%: %.1f us apart, %.1f merged",
                100 * LEAST_GAIN, 1e6 * report->apart_seconds, 1e6 * report->seconds);
}

static struct sl_node_host host_of(const struct sl_lower_options *lowering)
{
        return (struct sl_node_host){
                sl_backend_find(sl_lower_options_backend(lowering)), sl_lower_options_target(lowering), lowering->batch_max};
}

/* What is less than a page is nobody's to share, and the tables of a plan are ten times as much as this. */
static struct sl_merge_copies copies_of(const struct sl_lower_options *lowering, struct sl_node_host *host)
{
        return (struct sl_merge_copies){.bytes = sl_node_alone_copies,
                .context = host,
                .share_max = lowering->merge_copies,
                .lane_bytes_max = lowering->merge_copies > 0 ? SL_MERGE_LANE_BYTES : 0};
}

static int merge_all(const struct graphs *graphs, const struct sl_lower_options *lowering, const struct sl_merge_costs *costs,
        struct sl_graph *merged, struct sl_merge_report *report, struct sl_error *error)
{
        struct sl_node_host host = host_of(lowering);
        const struct sl_merge_copies copies = copies_of(lowering, &host);

        return sl_merge((const struct sl_graph *const *)graphs->all, graphs->n,
                &(struct sl_merge_options){.costs = costs, .copies = &copies, .least_gain = LEAST_GAIN, .run_seconds = RUN_SECONDS},
                merged, report, error);
}

/* Without time to find out what nodes cost, Algorithm 1 decides. */
static int merge(const struct graphs *graphs, const struct sl_lower_options *lowering, struct sl_graph *merged,
        struct sl_merge_report *report, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_node_costs_free) struct sl_node_costs *costs = NULL;
        struct sl_merge_costs asked = {.seconds = sl_node_costs_seconds, .batch = 1};
        const struct sl_node_host host = host_of(lowering);
        uint64_t until_ns = sl_clock_ns() + (uint64_t)(lowering->merge_seconds * (double)SL_NS_PER_SECOND);

        if (lowering->merge_seconds <= 0)
                return merge_all(graphs, lowering, NULL, merged, report, error);
        if (sl_node_costs_new(&host, until_ns, &costs) < 0)
                return sl_error_set(error, ENOMEM, "no memory for the costs of nodes");
        asked.context = costs;
        return merge_all(graphs, lowering, &asked, merged, report, error);
}

/* ---- whole plans ---- */

/* One way to merge, with the passes of the backend behind it. */
struct way {
        struct sl_graph *graph;
        struct sl_merge_report report;
};

static bool has_neighbours(const struct sl_graph *graph)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                if (graph->nodes[i].op == SL_OP_LANED_CONV)
                        return true;
        return false;
}

/* Its nodes one behind the other at the smallest batch, each in its place. Infinite: that is not known. */
static double time_whole(const struct sl_graph *graph, const struct sl_lower_options *lowering)
{
        SL_CLEANUP(sl_cleanup_sl_lowered_free) struct sl_lowered *lowered = NULL;
        SL_CLEANUP(sl_cleanup_sl_timed_runs_free) struct sl_timed_runs *timed = NULL;
        SL_CLEANUP(sl_cleanup_free) struct sl_timed_node *nodes = NULL;
        uint64_t until_ns = sl_clock_ns() + (uint64_t)(lowering->merge_seconds * (double)SL_NS_PER_SECOND);
        const struct sl_placement *placement;
        struct sl_error unheard;
        double seconds = 0;

        if (sl_lowered_new(graph, lowering, &lowered, &unheard) < 0)
                return INFINITY;
        placement = lowered->programs[0].placement;
        nodes = calloc(placement->graph->n_nodes + 1u, sizeof(*nodes));
        if (!nodes || sl_timed_runs_new(placement, nodes, sl_clock_ns, until_ns, &timed) < 0)
                return INFINITY;
        for (uint32_t i = 0; i < WHOLE_RUNS; i++)
                if (sl_timed_runs_next(timed) < 0)
                        return INFINITY;
        for (uint32_t i = 0; i < placement->graph->n_nodes; i++)
                seconds += isfinite(nodes[i].microseconds[0]) ? 1e-6 * nodes[i].microseconds[0] : 0;
        return seconds;
}

/* Lanes as neighbours wherever that goes: nodes by themselves do not show what their neighbours leave in the caches. */
static int merge_neighbours(
        const struct graphs *graphs, const struct sl_lower_options *lowering, struct way *ret_way, struct sl_error *error)
{
        struct sl_node_host host = host_of(lowering);
        const struct sl_merge_copies copies = copies_of(lowering, &host);
        int r = sl_graph_new(&ret_way->graph) < 0 ? -ENOMEM : 0;

        if (r == 0)
                r = sl_merge((const struct sl_graph *const *)graphs->all, graphs->n,
                        &(struct sl_merge_options){.copies = &copies, .neighbours = true}, ret_way->graph, &ret_way->report, error);
        if (r != 1 || !has_neighbours(ret_way->graph) || ret_way->report.stacked_bytes > WHOLE_BYTES_MAX)
                return r < 0 ? r : -ENODATA;
        return sl_lower_finish(ret_way->graph, lowering, error);
}

/* @merged, with the passes of the backend behind it, becomes the faster whole plan. What cannot be tried is not missed. */
static void try_neighbours(const struct graphs *graphs, const struct sl_lower_options *lowering, struct sl_graph **merged,
        struct sl_merge_report *report, const struct sl_merge_notes *notes)
{
        struct way way = {0};
        struct sl_error unheard;

        if (lowering->merge_seconds > 0 && merge_neighbours(graphs, lowering, &way, &unheard) == 0) {
                double by_costs = time_whole(*merged, lowering), whole = time_whole(way.graph, lowering);
                char text[SL_ERROR_TEXT_BYTES];

                snprintf(text, sizeof(text),
                        "whole plans: %.1f us by the costs of nodes, %.1f with lanes as neighbours wherever that goes",
                        1e6 * by_costs, 1e6 * whole);
                notes->add(notes->context, text);
                if (whole < (1 - LEAST_GAIN) * by_costs) {
                        struct sl_graph *slower = *merged;

                        way.report.seconds = report->seconds;
                        way.report.apart_seconds = report->apart_seconds;
                        way.report.wanted_seconds = report->wanted_seconds;
                        way.report.wanted_bytes = report->wanted_bytes;
                        *report = way.report;
                        *merged = way.graph;
                        way.graph = slower;
                }
        }
        sl_graph_free(way.graph);
}

static int lower(struct sl_graph *merged, const struct sl_lower_options *lowering, const struct sl_merge_report *report, int fd,
        struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_lowered_free) struct sl_lowered *lowered = NULL;
        int r = sl_lowered_new_in(merged, lowering, NULL, fd, &lowered, error);

        if (r < 0)
                return sl_error_prefix(error, r, "merged");
        lowered->info.n_lanes = report->n_lanes;
        lowered->info.n_common = report->n_common;
        lowered->info.n_merged = report->n_merged;
        lowered->info.stacked_bytes = report->stacked_bytes;
        return sl_lowered_write_unsummed(lowered, fd, error);
}

int sl_merge_child(const struct sl_model_file *models, uint32_t n_models, const struct sl_lower_options *lowering, int fd,
        const struct sl_merge_notes *notes, struct sl_error *error)
{
        SL_CLEANUP(graphs_deinit) struct graphs graphs = {0};
        SL_CLEANUP(sl_cleanup_sl_graph_free) struct sl_graph *merged = NULL;
        struct sl_merge_report report;
        int r = import_all(models, n_models, lowering, &graphs, error);

        if (r < 0)
                return r;
        if (sl_graph_new(&merged) < 0)
                return sl_error_set(error, ENOMEM, "no memory for a graph");
        r = merge(&graphs, lowering, merged, &report, error);
        if (r < 0)
                return sl_error_prefix(error, r, "merging %u models", n_models);
        if (r == 0) {
                note(notes, &report, graphs.all[0]);
                return explain_nothing(&report, error);
        }
        r = sl_lower_finish(merged, lowering, error);
        if (r < 0)
                return sl_error_prefix(error, r, "merged");
        try_neighbours(&graphs, lowering, &merged, &report, notes);
        note(notes, &report, graphs.all[0]);
        return lower(merged, lowering, &report, fd, error);
}
