/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One level of load and all its repeats: the figures of each, what they say together, and all that was counted. One thread.
 */
#pragma once

#include "load_figures.h"

#define SL_LOAD_REPEATS_MAX 100u

struct sl_load_point {
        struct sl_load_level level;
        char label[96]; /* "closed, 8 in flight", "poisson, 2000/s": says what was asked for, and is the same in every run of it */
        uint32_t n_repeats;
        double figures[SL_LOAD_FIGURES_N][SL_LOAD_REPEATS_MAX];
        double measured_s[SL_LOAD_REPEATS_MAX];
        struct sl_tally tally;           /* of all repeats */
        struct sl_tally_slice *timeline; /* SL_TALLY_SLICES for each repeat */
        struct sl_verdict verdict;       /* of all repeats together */
};

/* Return: 0, -ENOMEM. */
int sl_load_point_init(struct sl_load_point *point, const struct sl_load_options *options, const struct sl_load_level *level);
void sl_load_point_deinit(struct sl_load_point *point);

/* Runs @repeats of it. Return: 0, -errno with text. */
int sl_load_point_run(struct sl_load_point *point, struct sl_load_session *session, uint32_t repeats, struct starling_error *error);

/*
 * What the repeats say: their mean with its interval. A quantile is that of all values together, so that quantiles are in order;
 * its interval is that of the repeats' own, and there is none where single repeats are too short for it.
 */
struct sl_estimate sl_load_point_figure(const struct sl_load_point *point, enum sl_load_figure figure);

/* The percentile of the objective over all repeats; NaN: too few values. */
double sl_load_point_percentile(const struct sl_load_point *point, double share);
