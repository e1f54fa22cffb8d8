/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of passes share: a small model before and after a pass, which must compute the same.
 */
#pragma once

#include "builder.h"

#define BATCH_MAX 3

struct sl_error;

typedef int (*pass_fn)(struct sl_graph *graph, struct sl_error *error);

/*
 * Imports a model of one input and one output of floats, runs the pass, checks, and compares the outputs of both for 1 to BATCH_MAX
 * samples. Returns the graph after the pass.
 */
struct sl_graph *run_pass(struct builder *b, pass_fn pass);

/* The same; the graph after the pass prints as @wanted, or has @n nodes of @op. Frees the builder. */
void expect_after(struct builder *b, pass_fn pass, const char *wanted);
void expect_ops_after(struct builder *b, pass_fn pass, uint32_t op, uint32_t n);

/* The graph prints as @wanted. */
void expect_text(const struct sl_graph *graph, const char *wanted);
