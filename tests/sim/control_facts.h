/* SPDX-License-Identifier: Apache-2.0 */
/* What there is of the names of a simulated control, said once more, without converge's own words for it. */
#pragma once

#include "control.h"
#include "step.h"

#include <stdbool.h>
#include <stdint.h>

bool is_serving(const struct sl_sim_control_name *name);

/* And computes them. */
bool has_something(const struct sl_sim_control_name *name);

bool is_served(const struct sl_sim_control_name *name);
bool is_under_way(const struct sl_sim_control_name *name);

/* The model that members would have of it; 0: none. */
uint64_t member_serial(const struct sl_sim_control *c, uint32_t i);

bool has_members(const struct sl_sim_control *c, const struct sl_sim_control_name *name);

/* A member that is not there, and has neither failed nor is it unwanted. */
bool member_comes(const struct sl_sim_control *c, uint32_t i);

bool waits_for_member(const struct sl_sim_control *c, const struct sl_sim_control_name *name);

/* It serves just the models that its members have now. */
bool is_composed_of_members(const struct sl_sim_control *c, const struct sl_sim_control_name *name);

const struct sl_sim_control_group *group_of(const struct sl_sim_control *c, uint64_t number);

/* A compiler that was killed will be gone. */
bool compiler_ends(const struct sl_sim_control *c);

uint32_t loads_of(const struct sl_sim_control *c, uint64_t file, uint32_t but);

/* Another name serves the same model as it is wanted. */
bool is_kept_by_other(const struct sl_sim_control *c, uint32_t i);

bool is_loaded_elsewhere(const struct sl_sim_control *c, uint32_t i);

/* The plan of another name is none that @name has had enough of. */
bool will_do(const struct sl_sim_control *c, const struct sl_sim_control_name *name, uint32_t plan);

/* As it is wanted, by another model than the name has itself. */
bool is_served_elsewhere(const struct sl_sim_control *c, uint32_t i);

bool base_loads(const struct sl_sim_control *c, uint32_t i, uint64_t due_ns);
bool is_member(const struct sl_sim_control *c, uint32_t i);

/* It may be unloaded: nobody uses it, and it comes back when somebody asks. */
bool may_go(const struct sl_sim_control *c, uint32_t i);

/* Its plan is there, without workers. */
bool is_on_standby(const struct sl_sim_control_name *name);

/* And may be unloaded. */
bool may_lose_plan(const struct sl_sim_control *c, uint32_t i);

/* It waits for memory, and not for a place. */
bool lacks_memory(const struct sl_sim_control *c, uint32_t i);

/* One that could make room for @room was used before that, and is not what @room is sizes of. */
bool has_older(const struct sl_sim_control *c, uint64_t idle_ns, uint32_t room);

/* A model, or a load that is not wanted any more. */
bool something_leaves(const struct sl_sim_control *c);

/* Models that names have, and those that are loaded for names which have none of their own. */
uint32_t count_models(const struct sl_sim_control *c);

bool is_full(const struct sl_sim_control *c);

/* Some name waits for the room of just this one; @ret_for_memory: for its memory. */
bool makes_room(const struct sl_sim_control *c, uint64_t idle_ns, const enum sl_await *awaits, bool *ret_for_memory);

bool has_failed(const struct sl_sim_control_name *name);

/* A plan that is to stay is all that is left after either time. */
uint64_t standby_after_ns(const struct sl_sim_control_name *name);

bool is_over(uint64_t idle_ns, uint64_t after_ns, uint64_t now_ns);
