/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the dynamic steps of a program: those whose shapes, or whose path, depend on the data of the request. Slots hold what they
 * make; what has a static shape goes to its place in the workspace or in a port's buffer. One thread, that of the instance.
 *
 * Nothing in a plan file says that a slot is filled when it is read, or that a body makes what its node wants: that is looked at
 * here, and -EIO is the answer.
 */
#pragma once

#include "plan_map.h"
#include "ref/dynamic.h"

struct sl_capture;
struct sl_executable;
struct sl_executable_step;
struct sl_instance_part;
struct sl_kernel_cache;
struct sl_open_output;
struct sl_pace;
struct sl_sessions;
struct sl_team_room;

struct sl_interpreter {
        const struct sl_plan *plan;
        struct sl_dynamic dynamic;
        struct sl_sessions *sessions;
        struct sl_pace *pace;
        const struct sl_team_room *room; /* of steps that are cut */
        struct sl_capture *capture;      /* notes the run; NULL */
        struct sl_open_output *open;     /* NULL: no output is open */
        struct sl_instance_part *parts;  /* of the run, whose outputs are cut by rows; NULL: it has none */
        uint32_t n_parts;
        int64_t rows;                      /* of all of them */
        int too_small;                     /* -EMSGSIZE: an open output did not fit */
        uint64_t *step_ns;                 /* of the run: what each step took, by its number; NULL: nobody asks */
        const struct sl_plan_step *failed; /* of the run: the innermost step that ended it; NULL: none */
        uint64_t inner_ns;                 /* that steps of bodies have taken since the step around them began */
};

/* Before the first step of a run. @pace: that of the run. @sessions: the instance's. @kernels: for steps whose shapes are known by
 * then; NULL: all on `ref`.
 */
void sl_interpreter_begin(struct sl_interpreter *interpreter, const struct sl_plan *plan, const struct sl_plan_program *program,
        struct sl_pace *pace, struct sl_sessions *sessions, struct sl_kernel_cache *kernels, struct sl_open_output *open,
        struct sl_error *error);

/* One dynamic step of @executable. Return: 0; what sl_dynamic_run() says; -EIO the plan contradicts itself. */
int sl_interpreter_step(
        struct sl_interpreter *interpreter, struct sl_executable *executable, const struct sl_executable_step *step);

/* For the capture of the run: @step, which is not dynamic, has run. */
void sl_interpreter_note(
        struct sl_interpreter *interpreter, const struct sl_executable *executable, const struct sl_executable_step *step);

/* Writes @live, PLAIN, which @step has made, to @operand, an output of the plan. Return: 0; -EIO the plan contradicts itself. */
int sl_interpreter_write(struct sl_interpreter *interpreter, struct sl_executable *executable, const struct sl_plan_step *step,
        const struct sl_plan_operand *operand, struct sl_live *live);

/* The slots of a body, empty, for one round of @step. Return: 0; -ENOMEM. */
int sl_interpreter_make_slots(struct sl_interpreter *interpreter, const struct sl_plan_step *step, struct sl_executable *body,
        struct sl_live *ret_memory);
void sl_interpreter_end_slots(struct sl_interpreter *interpreter, struct sl_executable *body, struct sl_live *memory);

/* Ends what the slots of @executable hold: after the last step of a run, or after one that failed. */
void sl_interpreter_drop_slots(struct sl_interpreter *interpreter, struct sl_executable *executable);
