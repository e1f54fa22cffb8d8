/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of passes share: a small model before and after a pass, which must compute the same.
 */
#pragma once

#include "builder.h"

#define BATCH 3

struct sl_error;

typedef int (*pass_fn)(struct sl_graph *graph, struct sl_error *error);

/*
 * Imports a model of one input of @n_in floats and one output of @n_out (for BATCH samples), runs the pass, checks, and compares
 * the outputs of both. Returns the graph after the pass.
 */
struct sl_graph *run_pass(struct builder *b, pass_fn pass, size_t n_in, size_t n_out);

/* The graph prints as @wanted. */
void expect_text(const struct sl_graph *graph, const char *wanted);
