/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several models of one architecture as one graph: the same operators once, over all of them, and what each has for itself beside.
 * Pure but for memory; runs in the compiler's process and in tools; one owner thread.
 */
#pragma once

#include "merge/match.h"

#include <stdint.h>

struct sl_error;
struct sl_graph;
struct sl_node_desc;

/* What nodes cost where the merged graph will run: the caller's, who has measured it. */
struct sl_merge_costs {
        /*
         * Seconds of one node of static shapes: a grouped convolution, a laned product, the Transpose, Concat or Split of a
         * reorder. @constants: bit i says that input i is constant. Views cost nothing and are not asked for.
         */
        double (*seconds)(void *context, const struct sl_node_desc *node, uint64_t constants);
        void *context;
        int64_t batch; /* at which sizes; 1 and more */
};

/* How much of the weights may be there twice: a form that packs them otherwise than each lane by itself has a copy of them. */
struct sl_merge_copies {
        /*
         * Bytes of the constants of @node that its lanes do not have for themselves, where each lane alone has @single; NULL: of
         * all of them. Of static shapes; @constants as above.
         */
        uint64_t (*bytes)(void *context, const struct sl_node_desc *node, const struct sl_node_desc *single, uint64_t constants);
        void *context;
        double share_max;        /* of the bytes that all lanes have for themselves; */
        uint64_t lane_bytes_max; /* or, if that is more, so many of each lane */
};

struct sl_merge_options {
        const struct sl_merge_costs *costs;   /* NULL: Algorithm 1 decides; else what is cheapest, of which that is one */
        const struct sl_merge_copies *copies; /* NULL: as much as it takes. What is beyond the bound stays apart */
        bool neighbours;   /* without costs: where Algorithm 1 folds lanes into channels they are neighbours, as far as that goes */
        double least_gain; /* with costs: nothing is merged unless it is cheaper than apart by this share; 0: by anything */
        double run_seconds; /* what a run takes beside its nodes: apart each lane's, merged one */
};

#define SL_MERGE_ISLANDS_MAX 8

/* A common node that stays apart. */
struct sl_merge_island {
        uint32_t node;      /* of the first graph */
        const char *reason; /* static */
};

struct sl_merge_report {
        uint32_t n_lanes;
        uint32_t n_common, n_merged; /* nodes of the first graph: in all graphs; of those, one node for all lanes */
        uint32_t n_turns;            /* values that are needed in more than one form */
        uint32_t n_breaks, n_islands;
        struct sl_match_break breaks[SL_MATCH_BREAKS_MAX]; /* where the common part ends, and why; the first ones */
        struct sl_merge_island islands[SL_MERGE_ISLANDS_MAX];
        uint64_t stacked_bytes; /* of constants that are laid together, and no longer those of the graphs */
        uint64_t copied_bytes;  /* of those, by copies->bytes, that the lanes have besides; */
        uint64_t wanted_bytes;  /* that they would without a bound; */
        uint64_t lanes_bytes;   /* and of all that they have for themselves */
        double laying_seconds;  /* what writing those took */
        double seconds, algorithm_1_seconds, apart_seconds,
                wanted_seconds; /* by the costs, of the common part: as made; as Algorithm 1 would; apart; without a bound */

        /* Ports of lane l: from first_input[l] up to first_input[l + 1], in the order of its graph; outputs likewise. */
        uint32_t first_input[SL_MATCH_GRAPHS_MAX + 1], first_output[SL_MATCH_GRAPHS_MAX + 1];
};

/*
 * @graphs: checked, with the portable passes behind them; of float constants none is made one with another's by its value.
 * @merged: an empty graph. Constants that stay apart are those of @graphs, which outlive it. Its ports have the number of their
 * lane and a slash in front of their names. @ret_report: always filled, but on failure. Return: 1 merged; 0 nothing is: @merged is
 * as it was; -EINVAL fewer than 2 or more than SL_MATCH_GRAPHS_MAX graphs; -ENOMEM, -E2BIG.
 */
int sl_merge(const struct sl_graph *const *graphs, uint32_t n_graphs, const struct sl_merge_options *options,
        struct sl_graph *merged, struct sl_merge_report *ret_report, struct sl_error *error);
