/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why an allocation is no better: what limits it, and what one more device of each kind would bring. On stdout.
 */
#pragma once

struct optimize_task;
struct sl_error;
struct sl_matrix;
struct sl_optimizer_options;
struct sl_search;

/* Return: 0; -errno. */
int optimize_explain(const struct optimize_task *task, const struct sl_search *search, const struct sl_optimizer_options *options,
        const struct sl_matrix *matrix, double score, struct sl_error *error);
