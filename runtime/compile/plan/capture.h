/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notes what a run of a plan of any size does, node by node while the interpreter runs it, and makes a replay of it (run_replay.h).
 *
 * Each value that the run makes has a number, which its holders carry. A value is *fixed* when it follows from the sizes alone:
 * what Shape and Size make, and what is made of fixed values and constants. Small fixed values are kept, and the nodes that make
 * them run no more. A run is no replay's whose attributes, or lengths, followed from other values, or of which a node will have a
 * better kernel later. One thread; between runs it holds nothing of any.
 */
#pragma once

#include "ref/dynamic.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_capture;
struct sl_plan_operand;
struct sl_plan_step;
struct sl_run_replay;

/* Return: 0, -ENOMEM. */
int sl_capture_new(struct sl_capture **ret_capture);
struct sl_capture *sl_capture_free(struct sl_capture *capture);

/* Before the first node of a run with so many inputs, which are the values 1 to @n_inputs. */
void sl_capture_begin(struct sl_capture *capture, uint32_t n_inputs);

/* For sl_dynamic; lives as long as the capture. */
const struct sl_dynamic_recorder *sl_capture_recorder(const struct sl_capture *capture);

/* Input @index has so many bytes at these sizes, and may have to be copied. */
void sl_capture_input(struct sl_capture *capture, uint32_t index, uint64_t bytes);

/* The nodes that follow are those of @step. */
void sl_capture_step(struct sl_capture *capture, const struct sl_plan_step *step);

/* The step at hand has written @live to @operand, an output of the plan. */
void sl_capture_output(struct sl_capture *capture, const struct sl_plan_operand *operand, const struct sl_live *live);

/* A value has been written to the workspace; which one lies there. 0: none that is known. */
void sl_capture_place(struct sl_capture *capture, uint64_t offset, uint32_t value);
uint32_t sl_capture_value(const struct sl_capture *capture, uint64_t offset);

/* What the run does is not all noted. */
void sl_capture_give_up(struct sl_capture *capture);

/* No run of the plan will ever have a replay: that follows from its nodes alone. */
bool sl_capture_varies(const struct sl_capture *capture);

/* The run is over. @is_done: it has ended well. Return: a replay of it; NULL: there is none, or no memory. */
struct sl_run_replay *sl_capture_end(struct sl_capture *capture, bool is_done);
