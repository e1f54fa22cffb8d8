/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which nodes several graphs have in common. The common part may be a prefix, an inner region or several: each graph keeps what is
 * its own between them. What is common stands in the same order in every graph, so that own and common nodes never wait for each
 * other in a circle. Takes time in proportion to all nodes. Immutable once made; one owner thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_error;
struct sl_graph;

#define SL_MATCH_GRAPHS_MAX 64
#define SL_MATCH_TEXT_BYTES 320

/* Where the common part ends for the first time, or begins late. */
struct sl_match_break {
        uint32_t node;  /* of the first graph; SL_VALUE_NONE: behind its last one */
        uint32_t graph; /* the one that differs */
        char text[SL_MATCH_TEXT_BYTES];
};

#define SL_MATCH_BREAKS_MAX 8

struct sl_match {
        uint32_t n_graphs;
        const struct sl_graph *const *graphs; /* borrowed */
        uint32_t n_common;
        uint32_t *common;    /* nodes of the first graph, in order */
        uint32_t *number_of; /* of each node of the first graph: i, or SL_VALUE_NONE */
        uint32_t **nodes;    /* [graph][i]: which of its nodes is the i-th common one */
        uint32_t **lane_of;  /* [graph][value of the first graph]: which of its values that is; SL_VALUE_NONE */
        uint32_t **joint_of; /* [graph][value of the graph]: which value of the first; SL_VALUE_NONE */
        bool *joint;         /* of each value of the first graph: a common node makes it */
        uint32_t n_breaks;   /* runs of own nodes of the first graph, and one if another has some behind them */
        struct sl_match_break breaks[SL_MATCH_BREAKS_MAX]; /* the first ones */
};

/*
 * @graphs: checked, with the portable passes behind them, two to SL_MATCH_GRAPHS_MAX; they outlive the match.
 * Return: 0, however little they have in common; -EINVAL their number; -ENOMEM.
 */
int sl_match_new(const struct sl_graph *const *graphs, uint32_t n_graphs, struct sl_match **ret_match, struct sl_error *error);
struct sl_match *sl_match_free(struct sl_match *match);

/* All live nodes of all graphs are common: the models differ in their weights alone. */
bool sl_match_is_whole(const struct sl_match *match);
