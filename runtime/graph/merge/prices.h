/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In which forms each common node can be, and what that costs. Each form is rehearsed: the nodes that would be added are added to a
 * graph of their own, without data, and the caller is asked what they cost. Private to this folder; one owner thread.
 */
#pragma once

#include "merge/merge.h"
#include "merge/weave.h"

#define SL_PRICED_FORMS_MAX 5 /* LANE, APART, axis 1, the last axis, INNER */

struct sl_priced_form {
        uint32_t form;
        double seconds; /* 0 without costs */
        uint64_t copied_bytes;
};

struct sl_priced_node {
        uint32_t n_forms;
        struct sl_priced_form forms[SL_PRICED_FORMS_MAX]; /* APART is the first, and always there */
};

struct sl_prices {
        const struct sl_match *match;
        const struct sl_merge_costs *costs;   /* NULL: nothing costs anything */
        const struct sl_merge_copies *copies; /* NULL: nobody counts them */
        uint64_t lanes_bytes, copies_max;     /* that all lanes have for themselves; that may be copied */
        double byte_seconds;                  /* that a copied byte costs besides: the assignment's to set */
        bool neighbours;                      /* Algorithm 1 takes INNER for axis 1 */
        struct sl_weave *weave;
        struct sl_graph *sized;       /* the first graph at the batch of the costs, or 1; NULL: nothing is counted */
        struct sl_priced_node *nodes; /* of each common node */
        float *turns;                 /* [joint][from][to], negative: not asked yet */
};

/* @costs, @copies: or NULL. Return: 0; -ENOMEM; what sl_graph_specialise() says. */
int sl_prices_new(const struct sl_match *match, const struct sl_merge_costs *costs, const struct sl_merge_copies *copies,
        struct sl_error *error, struct sl_prices **ret_prices);
struct sl_prices *sl_prices_free(struct sl_prices *prices);

/* NULL: it cannot be in that form. */
const struct sl_priced_form *sl_prices_find(const struct sl_prices *prices, uint32_t common, uint32_t form);

/* A number below SL_PRICED_FORMS_MAX for each form that a value can be priced in. */
uint32_t sl_prices_slot(uint32_t form);

/* Seconds from one form of a joint value to another; infinite where there is no way. */
double sl_prices_turn(struct sl_prices *prices, uint32_t joint, uint32_t from, uint32_t to);
