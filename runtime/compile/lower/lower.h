/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph lowered for every batch size of its ladder: what write.c puts into a plan file, and what figures are read from.
 * In memory only, of the compiler's process and of tools. One owner thread.
 */
#pragma once

#include "graph.h"
#include "lower_options.h"
#include "plan.h"
#include "program.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_base_plan;
struct sl_error;
struct sl_graph;
struct sl_step_choice;
struct sl_packing;

struct sl_lowered {
        struct sl_lower_options options;
        struct sl_plan_info info; /* complete but for the bytes of weights, which the writer finds out */
        struct sl_program programs[SL_PLAN_BATCHES_MAX];
        struct sl_packing *packing;
        struct sl_step_choice *choices; /* of each node of the source graph, then of its bodies */
        uint32_t n_choices;
        const struct sl_base_plan *base;
};

/*
 * @graph: imported and rewritten by the passes; must outlive the result.
 * Sets the calling thread's OpenMP thread count to one. Return: 0; -EINVAL, -ENOTSUP, -E2BIG, -EOVERFLOW, -ENOMEM; the text names
 * the batch size and the node, or the limit.
 */
int sl_lowered_new(const struct sl_graph *graph, const struct sl_lower_options *options, struct sl_lowered **ret_lowered,
        struct sl_error *error);

/*
 * The same, when the plan file is known: an empty @fd, open for reading and writing. Large constants are packed right into it,
 * which saves a copy of them; sl_lowered_write() must get the same one. @base: a plan of other sizes of the model, with which it
 * shares what is equal, and whose algorithms it prefers; NULL: it stands alone. Borrowed until the result is freed.
 * Return: as above; -ENOSPC the file system is full.
 */
int sl_lowered_new_in(const struct sl_graph *graph, const struct sl_lower_options *options, const struct sl_base_plan *base, int fd,
        struct sl_lowered **ret_lowered, struct sl_error *error);
struct sl_lowered *sl_lowered_free(struct sl_lowered *lowered);

/*
 * The passes, and before them float16 becomes float32 (but for `ref`); then what the precision wants: bf16 (also where the file
 * says that it is that variant) narrows the graph where sl_lower_narrows(); int8 asks for a file whose operators are quantized.
 * Return: 0; -ENOTSUP nothing is quantized; what the passes say.
 */
int sl_lower_rewrite(struct sl_graph *graph, const struct sl_lower_options *options, struct sl_error *error);

/*
 * What the backend plans with, opened: before the process gives up files, as nothing is opened later. May take seconds. Return: 0;
 * -ENOENT a library is not there.
 */
int sl_lower_open(const struct sl_lower_options *options, struct sl_error *error);

/* The same in two parts, between which graphs are merged: as far as the portable passes, and from those of the backend on. */
int sl_lower_prepare(struct sl_graph *graph, const struct sl_lower_options *options, struct sl_error *error);
int sl_lower_finish(struct sl_graph *graph, const struct sl_lower_options *options, struct sl_error *error);

/* Whether options or file ask for products in bfloat16, where there are such, or for weights in halves. Pure. */
bool sl_lower_asks_for_halves(const struct sl_graph *graph, const struct sl_lower_options *options);

/*
 * Whether the backend multiplies in bfloat16 on this processor; where it does not, bf16 is computed as float32, which is more
 * exact. Pure.
 */
bool sl_lower_narrows(const struct sl_lower_options *options);

/* The largest batch of the ladder. Pure. */
uint32_t sl_lower_ladder_max(const struct sl_lower_options *options);

/* What the options let an import take. Pure. */
struct sl_graph_limits sl_lower_graph_limits(const struct sl_lower_options *options);

/* Writes the plan file to @fd, from its start, and completes lowered->info. Return: 0, -ENOMEM, -E2BIG, -errno of write. */
int sl_lowered_write(struct sl_lowered *lowered, int fd, struct sl_error *error);

/* The same without the checksum, for memory that its owner seals (plan_sum.h). */
int sl_lowered_write_unsummed(struct sl_lowered *lowered, int fd, struct sl_error *error);

/* Completes lowered->info and writes nothing. Return: 0, -ENOMEM. */
int sl_lowered_measure(struct sl_lowered *lowered, struct sl_error *error);
