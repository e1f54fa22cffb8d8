/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program of a plan, ready to run: its kernels are compiled and its pointers are set, and so are those of the bodies of its
 * steps. A body is a program like any other. It runs inside its step: its workspace lies in the scratch of that step, its ports are
 * what the step gives it for one round. One thread, that of the instance.
 */
#pragma once

#include "backend.h"
#include "lane_parts.h"
#include "plan_map.h"
#include "rounds_layout.h"
#include "sessions.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_error;
struct sl_interpreter;
struct sl_live;
struct sl_pace;
struct sl_residence;
struct sl_resident_ports;

/* How a team of so many computes a step. */
struct sl_step_cut {
        struct sl_split split;
        int64_t units;  /* along its axis */
        uint32_t chain; /* steps from this one on that a team computes at once (chains.h); 0: it is behind in such a chain */
};

/* All of the instance's team, or all but one. */
enum { SL_CUT_ALL, SL_CUT_LESS, SL_CUTS };

struct sl_executable_step {
        const struct sl_plan_step *source;
        const struct sl_plan_session *session; /* with its backend; NULL: the interpreter runs it */
        struct sl_kernel *kernel;
        struct sl_binding binding; /* points into the pointer table */
        struct sl_step_cut cuts[SL_CUTS];
        int64_t stages; /* of each launch in parts */
        struct sl_executable *bodies[SL_STEP_BODIES_MAX];
        struct sl_rounds_layout *rounds; /* of a step with bodies */
        struct sl_lane_parts lanes;      /* of a merged plan: what which lanes need of it */
};

struct sl_executable_patch {
        void **slot;
        uint32_t place; /* SL_PLACE_INPUT or SL_PLACE_OUTPUT */
        uint32_t port;
};

struct sl_executable {
        const struct sl_plan *plan;
        const struct sl_plan_program *source;
        uint8_t *workspace;                     /* its own part of the instance's */
        const struct sl_residence *constants;   /* on a device; NULL: in the plan */
        const struct sl_resident_ports *copied; /* what of a run comes down from a device at its end; NULL: nothing */
        bool dynamic;                           /* some step is */
        uint32_t n_steps, n_patches;
        struct sl_executable_step *steps;
        struct sl_executable_patch *patches;
        void **pointers;
        const void **inputs; /* of a body: room for the ports of a round */
        void **outputs;
        uint64_t work;         /* of one round of a body: its steps that have kernels, in elementary steps of `ref` */
        uint64_t idle;         /* lanes that nobody looks at, as bits */
        bool skips;            /* there are steps that may be left out for such, in part or whole */
        uint64_t first_number; /* of its steps among all of the model's at this batch size: sl_plan_steps() */

        /* Of the run. */
        const void *const *port_inputs;
        void *const *port_outputs;
        struct sl_live *slots;
        uint32_t next; /* the step that is launched next */
        int verdict;   /* the first that has failed, while what is in flight goes on */
};

/*
 * Compiles program @number of the plan, whose workspace begins at @workspace, and all bodies below it. @pace: that of each run;
 * @sessions: one for each backend of the plan. They and the plan outlive it. Return: 0; -ENOMEM; -ENOTSUP; -EBADMSG the steps of
 * the file contradict what the kernels say.
 */
int sl_executable_new(const struct sl_plan *plan, uint64_t number, uint8_t *workspace, struct sl_pace *pace,
        const struct sl_sessions *sessions, struct sl_executable **ret_executable, struct sl_error *error);
struct sl_executable *sl_executable_free(struct sl_executable *executable);

/* Its workspace begins there from now on, and so do those of its bodies. Between runs. */
void sl_executable_move(struct sl_executable *executable, uint8_t *workspace);

/*
 * Its steps, and those of its bodies, are cut for a team of @members from now on, as the plan says; 1: none is. @ret_scratch_bytes
 * grows to what a member needs. Return: 0; -EBADMSG a step cannot be cut so; then it is to be
 * called again with 1.
 */
int sl_executable_split(struct sl_executable *executable, uint32_t members, uint64_t *ret_scratch_bytes, struct sl_error *error);

/*
 * From now on nobody looks at what lanes in @idle, as bits, give: parts of steps that they alone need are left out, unless a team
 * computes the step. Between runs. Return: whether there are such parts.
 */
bool sl_executable_idle(struct sl_executable *executable, uint64_t idle);

/* Bytes of its tables, those of its bodies included. Pure. */
uint64_t sl_executable_bytes(const struct sl_plan *plan, uint64_t number);

/* From here on inputs and outputs lie there; the arrays live as long as the run. */
void sl_executable_bind(struct sl_executable *executable, const void *const *inputs, void *const *outputs);

/*
 * All steps in order, between which it looks at the interpreter's pace. Nothing is in flight when it returns. Return: 0, or what a
 * step says.
 */
int sl_executable_run(struct sl_executable *executable, struct sl_interpreter *interpreter);

/*
 * The same in pieces: a run is begun by sl_executable_bind(), and goes on from where it is, as far as it comes without waiting for
 * a backend. Steps of bodies wait. Return: as above; -EINPROGRESS something is in flight: to be called again.
 */
int sl_executable_go_on(struct sl_executable *executable, struct sl_interpreter *interpreter);

/* All steps one behind the other in the one session that there is, which is left to its owner. Return: 0; what a launch says. */
int sl_executable_launch(struct sl_executable *executable, struct sl_interpreter *interpreter);
