/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often a network names the class that it should, on samples of a dataset; and between which shares the true one lies.
 * One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_dataset;
struct sl_error;
struct sl_graph;
struct sl_lower_options;

struct sl_score {
        uint64_t samples, right, classes;
        bool probabilities; /* every row lies in [0,1] and sums to 1 at most, within 0.001 */
        bool sums_to_one;   /* and to no less */
};

struct sl_score_options {
        const struct sl_lower_options *lowering;
        uint64_t first;        /* samples before it are not looked at */
        const int64_t *labels; /* [count], of each sample of the dataset; NULL: nothing is right or wrong */
        int32_t *classes;      /* [count], what the network says of each sample that is looked at; NULL */
};

/*
 * Return: 0; -EINVAL a sample that is not finite, a label that is no class, a result that is not finite, no rows of classes at
 * output 0; what compiler and kernels say; the text names sample and port.
 */
int sl_score(const struct sl_graph *graph, const struct sl_dataset *samples, const struct sl_score_options *options,
        struct sl_score *ret_score, struct sl_error *error);

/*
 * Between these the true share lies in 95 of 100 cases. @samples 0: 0 and 1.
 *
 * Sources: E. B. Wilson, Probable inference, the law of succession, and statistical inference (1927).
 */
void sl_score_interval(uint64_t right, uint64_t samples, double *ret_low, double *ret_high);
