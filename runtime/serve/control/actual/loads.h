/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads under way, from the start to a loaded model. Control thread only; nothing waits.
 */
#pragma once

#include "standby.h"
#include "step.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_error;
struct sl_model;
struct sl_registry;
struct sl_served;

/* Tokens of watched compilations have this bit; the name is found by the rest. */
#define SL_LOADS_TOKEN (1ull << 62)

/* Begins to load what is wanted, or a part of it. Return: 0; -errno with text: nothing is under way. */
int sl_loads_start(struct sl_registry *registry, struct sl_served *served, enum sl_load_part part, struct sl_error *error);

/* How far it is, and since when it waits for a process or a file (fleet.h). */
enum sl_fleet_load sl_loads_stage(const struct sl_served *served);
uint64_t sl_loads_waits_since(const struct sl_served *served);

/* Goes on with all that have something to say, or are due. Return: when one is due the next time, by sl_clock_ns(); UINT64_MAX:
 * never. */
uint64_t sl_loads_hear(struct sl_registry *registry);

/* A watched one has an event of that token. */
void sl_loads_compiled(struct sl_registry *registry, uint64_t token);

/* It waits, and no longer counts as under way; it counts again, and goes on. */
void sl_loads_step_aside(struct sl_registry *registry, struct sl_served *served);
void sl_loads_resume(struct sl_registry *registry, struct sl_served *served);

/* It need wait no longer, but for its turn to find or make its plan. */
bool sl_loads_wants_turn(const struct sl_served *served);

/* What has been loaded, which is the caller's; the load is over. */
struct sl_model *sl_loads_take(struct sl_registry *registry, struct sl_served *served);

/* The plan that has been loaded, for standby; held by the caller. The load is over. */
struct sl_standby sl_loads_take_plan(struct sl_registry *registry, struct sl_served *served);

/* Why it has failed. Return: -errno. */
int sl_loads_explain(const struct sl_served *served, struct sl_error *error);

/* Compilers of loads that were cancelled may be gone: what was promised to them is free. */
void sl_loads_hear_gone(struct sl_registry *registry);

/* Ends it at once, however far it is. What its compiler was promised is free when that is gone. Without one does nothing. */
void sl_loads_cancel(struct sl_registry *registry, struct sl_served *served);
