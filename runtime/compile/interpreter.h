/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the dynamic steps of a plan: those whose shapes, or whose path, hang on the data of the request. Slots hold what they make;
 * what has a static shape goes to its place in the workspace or in the caller's buffers. One thread, that of the instance.
 *
 * Nothing in a plan file says that a slot is filled when it is read, or that a body makes what its node wants: that is looked at
 * here, and -EIO is the answer.
 */
#pragma once

#include "plan_map.h"
#include "ref/dynamic.h"

struct sl_open_output;
struct sl_pace;

struct sl_interpreter {
        const struct sl_plan *plan;
        struct sl_dynamic dynamic;
        uint8_t *workspace;
        struct sl_pace *pace;
        const void *const *inputs; /* of this run, the caller's */
        void *const *outputs;
        struct sl_open_output *open; /* NULL: no output is open */
        struct sl_live *slots;       /* of the program that runs; owned */
        uint64_t n_slots;
        int too_small; /* -EMSGSIZE: an open output did not fit */
};

/* Room for the slots of the largest of @n_programs programs. @pace is that of each run. Return: 0, -ENOMEM. */
int sl_interpreter_init(struct sl_interpreter *interpreter, const struct sl_plan *plan, uint32_t n_programs, uint8_t *workspace,
        struct sl_pace *pace);
void sl_interpreter_deinit(struct sl_interpreter *interpreter);

/* Before the first step of a run, and after the last, or after one that failed. */
void sl_interpreter_begin(struct sl_interpreter *interpreter, const struct sl_plan_program *program, const void *const *inputs,
        void *const *outputs, struct sl_open_output *open, struct sl_error *error);
void sl_interpreter_end(struct sl_interpreter *interpreter);

/* One dynamic step. Return: 0; what sl_dynamic_run() says; -EIO the plan contradicts itself. */
int sl_interpreter_step(struct sl_interpreter *interpreter, const struct sl_plan_step *step);
