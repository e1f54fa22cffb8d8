/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Match, prices, an assignment, and then one walk over all graphs: own nodes of each as they stand before a common node, then that
 * node for all lanes.
 */
#include "merge/merge.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "merge/assign.h"
#include "merge/prices.h"
#include "merge/rows.h"
#include "merge/weave.h"
#include "pass.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

SL_DEFINE_CLEANUP(struct sl_match *, sl_match_free)
SL_DEFINE_CLEANUP(struct sl_prices *, sl_prices_free)
SL_DEFINE_CLEANUP(struct sl_weave *, sl_weave_free)

static int weave_own(struct sl_weave *weave, uint32_t lane, uint32_t from, uint32_t to)
{
        const struct sl_graph *graph = weave->match->graphs[lane];
        int r = 0;

        for (uint32_t i = from; i < to && r == 0; i++)
                if (!graph->nodes[i].dead)
                        r = sl_weave_own_node(weave, lane, i);
        return r;
}

/* Own nodes of all graphs up to the common node @common, or to the end. */
static int weave_between(struct sl_weave *weave, uint32_t common)
{
        const struct sl_match *match = weave->match;
        int r = 0;

        for (uint32_t g = 0; g < match->n_graphs && r == 0; g++)
                r = weave_own(weave, g, common ? match->nodes[g][common - 1] + 1 : 0,
                        common < match->n_common ? match->nodes[g][common] : match->graphs[g]->n_nodes);
        return r;
}

static int weave_common(struct sl_weave *weave, uint32_t common, uint32_t form)
{
        uint32_t node = weave->match->common[common];
        const struct sl_merge_row *row = sl_merge_row(weave->match->graphs[0]->nodes[node].op);

        if (form == SL_FORM_APART)
                return sl_weave_nodes_apart(weave, common);
        return form == SL_FORM_LANE ? row->lane(weave, node, form) : row->channel(weave, node, form);
}

static int weave_all(struct sl_weave *weave, const uint32_t *forms)
{
        int r = sl_weave_inputs(weave);

        for (uint32_t c = 0; c < weave->match->n_common && r == 0; c++) {
                r = weave_between(weave, c);
                if (r == 0)
                        r = weave_common(weave, c, forms[c]);
        }
        if (r == 0)
                r = weave_between(weave, weave->match->n_common);
        return r < 0 ? r : sl_weave_outputs(weave);
}

static void report_match(const struct sl_match *match, struct sl_merge_report *report)
{
        *report = (struct sl_merge_report){.n_lanes = match->n_graphs, .n_common = match->n_common, .n_breaks = match->n_breaks};
        memcpy(report->breaks, match->breaks, sizeof(report->breaks));
        for (uint32_t g = 0; g < match->n_graphs; g++) {
                report->first_input[g + 1] = report->first_input[g] + match->graphs[g]->n_inputs;
                report->first_output[g + 1] = report->first_output[g] + match->graphs[g]->n_outputs;
        }
}

/* Why a common node is not merged although others are: its row says so, or it would not pay, or its shapes do not allow it. */
static const char *reason_of(const struct sl_prices *prices, uint32_t common, const struct sl_merge_report *report)
{
        uint32_t op = prices->match->graphs[0]->nodes[prices->match->common[common]].op;

        if (prices->nodes[common].n_forms > 1 && report->wanted_bytes > report->copied_bytes)
                return "it costs less apart, or a copy of its weights is above the bound";
        if (prices->nodes[common].n_forms > 1)
                return "it costs less apart";
        return sl_merge_row(op)->dimension == SL_MERGE_APART ? sl_merge_row(op)->becomes
                                                             : "its attributes, shapes or constants do not allow it";
}

static void report_forms(const struct sl_prices *prices, const uint32_t *forms, struct sl_merge_report *report)
{
        for (uint32_t c = 0; c < prices->match->n_common; c++) {
                if (forms[c] != SL_FORM_APART) {
                        report->n_merged++;
                        continue;
                }
                if (report->n_islands < SL_MERGE_ISLANDS_MAX)
                        report->islands[report->n_islands] =
                                (struct sl_merge_island){prices->match->common[c], reason_of(prices, c, report)};
                report->n_islands++;
        }
}

static int report_seconds(
        struct sl_prices *prices, const uint32_t *forms, const uint32_t *algorithm_1, struct sl_merge_report *report)
{
        int r = sl_assign_seconds(prices, forms, &report->seconds);

        if (r == 0)
                r = sl_assign_seconds(prices, algorithm_1, &report->algorithm_1_seconds);
        for (uint32_t c = 0; c < prices->match->n_common; c++)
                report->apart_seconds += prices->nodes[c].forms[0].seconds;
        return r;
}

/* Whatever it copies, and then within the bound. */
static int assign_by_costs(struct sl_prices *prices, const uint32_t *algorithm_1, uint32_t *forms, struct sl_merge_report *report)
{
        int r = sl_assign_cheapest(prices, algorithm_1, forms);

        report->wanted_bytes = r == 0 ? sl_assign_copied_bytes(prices, forms) : 0;
        if (r == 0)
                r = sl_assign_seconds(prices, forms, &report->wanted_seconds);
        if (r == 0 && prices->copies && report->wanted_bytes > prices->copies_max)
                r = sl_assign_cheapest_within(prices, algorithm_1, forms);
        return r < 0 ? r : report_seconds(prices, forms, algorithm_1, report);
}

static void assign_by_algorithm_1(
        const struct sl_prices *prices, const uint32_t *algorithm_1, uint32_t *forms, struct sl_merge_report *report)
{
        memcpy(forms, algorithm_1, prices->match->n_common * sizeof(*forms));
        report->wanted_bytes = sl_assign_copied_bytes(prices, forms);
        sl_assign_keep_within(prices, forms);
}

static int assign(struct sl_prices *prices, uint32_t *forms, struct sl_merge_report *report)
{
        uint64_t n = prices->match->n_common + 1ull;
        SL_CLEANUP(sl_cleanup_free) uint32_t *algorithm_1 = malloc(n * sizeof(*algorithm_1));
        int r = algorithm_1 ? sl_assign_algorithm_1(prices, algorithm_1) : -ENOMEM;

        if (r == 0 && prices->costs)
                r = assign_by_costs(prices, algorithm_1, forms, report);
        else if (r == 0)
                assign_by_algorithm_1(prices, algorithm_1, forms, report);
        if (r < 0)
                return r;
        report->copied_bytes = sl_assign_copied_bytes(prices, forms);
        report->lanes_bytes = prices->lanes_bytes;
        report_forms(prices, forms, report);
        return 0;
}

static bool gains(const struct sl_merge_options *options, const struct sl_merge_report *report)
{
        double apart = report->apart_seconds + report->n_lanes * options->run_seconds;

        return !options->costs || report->seconds + options->run_seconds <= apart * (1 - options->least_gain);
}

static int merge(const struct sl_match *match, const struct sl_merge_options *options, struct sl_graph *merged,
        struct sl_merge_report *report, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_prices_free) struct sl_prices *prices = NULL;
        SL_CLEANUP(sl_cleanup_sl_weave_free) struct sl_weave *weave = NULL;
        SL_CLEANUP(sl_cleanup_free) uint32_t *forms = malloc((match->n_common + 1ull) * sizeof(*forms));
        int r = forms ? sl_prices_new(match, options->costs, options->copies, error, &prices) : -ENOMEM;

        if (r == 0) {
                prices->neighbours = options->neighbours;
                r = assign(prices, forms, report);
        }
        if (r < 0 || !report->n_merged || !gains(options, report))
                return r;
        r = sl_weave_new(match, merged, error, &weave);
        if (r == 0)
                r = weave_all(weave, forms);
        if (r < 0)
                return r;
        report->n_turns = weave->n_turns;
        report->stacked_bytes = weave->stacked_bytes;
        report->laying_seconds = (double)weave->laying_ns / SL_NS_PER_SECOND;
        merged->opset = match->graphs[0]->opset;
        merged->ir_version = match->graphs[0]->ir_version;
        r = sl_graph_rename(merged, match->graphs[0]->name);
        return r < 0 ? r : 1;
}

int sl_merge(const struct sl_graph *const *graphs, uint32_t n_graphs, const struct sl_merge_options *options,
        struct sl_graph *merged, struct sl_merge_report *ret_report, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_match_free) struct sl_match *match = NULL;
        struct sl_merge_report report;
        int r = sl_match_new(graphs, n_graphs, &match, error);

        if (r < 0)
                return r;
        report_match(match, &report);
        r = merge(match, options, merged, &report, error);
        if (r == -ENOMEM)
                return sl_error_set(error, ENOMEM, "no memory to merge %u graphs of %u nodes", n_graphs, graphs[0]->n_nodes);
        if (r >= 0)
                *ret_report = report;
        return r;
}

int sl_pass_merge_lanes(const struct sl_graph *const *graphs, uint32_t n_graphs, struct sl_graph *merged, struct sl_error *error)
{
        struct sl_merge_report report;

        return sl_merge(graphs, n_graphs, &(struct sl_merge_options){0}, merged, &report, error);
}
