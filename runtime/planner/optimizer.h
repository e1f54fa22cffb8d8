/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The optimizer: WFD, then from several starts BGO and simulated annealing, and a last climb through all neighbours from the best
 * of them; every matrix where there are few. It is never below WFD, nor below BGO with the same seed. The answer carries its gap to
 * the device-time bound. Where WFD finds no room for one batch size of all models, it is tried with smaller ones
 * (sl_worst_fit_within()).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_error;
struct sl_matrix;
struct sl_search;

struct sl_optimizer_options {
        uint32_t default_batch; /* of WFD, at most */
        uint32_t starts;
        uint32_t benches; /* of each annealing */
        uint32_t max_neighs, max_iter;
        double exhaustive_max; /* matrices; with so many or fewer all are tried */
        uint64_t seed;
};

struct sl_optimum {
        double worst_fit_score, greedy_score, score; /* of WFD; of BGO with the seed as it is; of the answer */
        double bound;                                /* samples a second that no allocation exceeds */
        double gap; /* 1 - throughput / bound; 0 when all were tried. Only for the throughput, else -1 */
        bool exhaustive, stopped;
        uint64_t benches;
};

/* 8 starts, 20,000 benches each, and all of up to 100,000 matrices. */
struct sl_optimizer_options sl_optimizer_defaults(const struct sl_search *search);

/* @matrix is overwritten. Return: 0, also when it was told to stop; what WFD, the bound and the bench say. */
int sl_optimize(struct sl_search *search, const struct sl_optimizer_options *options, struct sl_matrix *matrix,
        struct sl_optimum *ret_optimum, struct sl_error *error);
