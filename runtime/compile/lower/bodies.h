/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bodies of a program's steps, lowered like the program itself: each has a placement, a schedule and a memory plan of its own.
 * A body's workspace is the front of its step's scratch (rounds.h). Compiler's process only; one owner thread.
 */
#pragma once

#include "format.h"

#include <stdint.h>

struct sl_step_choice;
struct sl_error;
struct sl_graph;
struct sl_packing;
struct sl_plan_info;
struct sl_program;
struct sl_tuning;

/* Nodes of a graph and of all bodies below it. */
uint32_t sl_bodies_count_nodes(const struct sl_graph *graph);

/*
 * Places the bodies of all steps of @program, whose placement and schedule are there, and those below them. @source: the graph that
 * the program is of, before it was specialised. Return: as sl_placement_new(); the text names the node around the body.
 */
int sl_bodies_new(
        const struct sl_graph *source, const struct sl_plan_info *info, struct sl_program *program, struct sl_error *error);
void sl_bodies_free(struct sl_program *program);

/* sl_tune() for each body of the programs, which are those of one graph at several sizes. @choices: of all nodes, by their numbers.
 */
int sl_bodies_tune(struct sl_program *programs, uint32_t n_programs, const struct sl_tuning *tuning, struct sl_step_choice *choices,
        struct sl_error *error);

/* sl_packing_walk() for each of them. */
int sl_bodies_pack(struct sl_packing *packing, struct sl_program *program, bool *ret_again, struct sl_error *error);

/* Memory plans of the bodies; then the steps around them know their scratch. Return: 0; -ENOMEM; -EOVERFLOW; -EINVAL. */
int sl_bodies_place(struct sl_program *program);
