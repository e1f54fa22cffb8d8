/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What holds of control whatever happens to it, checked at each step and at each moment, from what is there (runtime/sim/control.h)
 * and not from what converge says.
 */
#pragma once

#include "control.h"

struct sl_control_watch {
        const char *broken; /* the first rule that was; NULL: none. A literal */
        uint32_t broken_name;
        uint32_t n_steps;
        uint64_t log; /* of all steps */
        struct {
                bool used, serves;
                uint64_t want;
                uint64_t loaded, released; /* for which want it has been loaded last; */
                uint64_t planned;          /* for which its plan alone; */
                uint64_t workers;          /* which set it has begun last, */
                uint32_t cores;            /* on which cores */
                uint32_t old;              /* of a name in a group that is held: workers from before */
                uint64_t group;
        } names[SL_SIM_NAMES];
        struct {
                bool waits;
                uint32_t before[SL_SIM_USERS]; /* loads of others since it waits */
        } users[SL_SIM_USERS];
        uint32_t count[SL_STEP_KIND_COUNT], awaited[SL_AWAIT_COUNT]; /* how often */
        uint32_t undone; /* names, a bit each, of a group that is being undone */
        struct sl_sim_set before[SL_SIM_NAMES];
};

/* Before it is carried out. @awaits: of the same call. */
void sl_control_watch_step(struct sl_control_watch *watch, const struct sl_sim_control *control, const struct sl_step *step,
        const enum sl_await *awaits);

/* After a step, or whatever else has happened. */
void sl_control_watch_moment(struct sl_control_watch *watch, const struct sl_sim_control *control);

/* There are no more steps. @due_ns: as converge said. */
void sl_control_watch_quiet(
        struct sl_control_watch *watch, const struct sl_sim_control *control, const enum sl_await *awaits, uint64_t due_ns);

/* Nothing is due any more. */
void sl_control_watch_end(struct sl_control_watch *watch, const struct sl_sim_control *control);
