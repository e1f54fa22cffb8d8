/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads under way, from the start to a loaded model. Control thread only; nothing waits.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_registry;
struct sl_served;

/* Tokens of watched compilations have this bit; the name is found by the rest. */
#define SL_LOADS_TOKEN (1ull << 62)

/* The name is served by, or waits for, the model of another one of the same file. False: there is none, the model has to be loaded.
 */
bool sl_loads_follow(struct sl_registry *registry, struct sl_served *served);

/* There is one. Changes nothing. */
bool sl_loads_has_twin(const struct sl_registry *registry, const struct sl_served *served);

/* Begins to load; what fails is reported. */
void sl_loads_start(struct sl_registry *registry, struct sl_served *served);

/* Goes on with a load that has something to say; @token: of a watched one whose event has come. */
void sl_loads_advance(struct sl_registry *registry, struct sl_served *served);
void sl_loads_compiled(struct sl_registry *registry, uint64_t token);

/* One that has waited for a process, or for a file to be read, so long that others may go ahead of it does not count as under way.
 */
void sl_loads_step_aside(struct sl_registry *registry, struct sl_served *served, uint64_t now_ns);

/* It need wait no longer, but for its turn to find or make its plan. */
bool sl_loads_wants_turn(const struct sl_served *served);

/* Goes on with one that is due. Return: when it is the next time, by sl_clock_ns(); UINT64_MAX: never. */
uint64_t sl_loads_look(struct sl_registry *registry, struct sl_served *served, uint64_t now_ns);

/* Ends what is under way at once. */
void sl_loads_cancel(struct sl_registry *registry, struct sl_served *served);

/* The same, if it is under way and need not be waited for. Return: whether it was. The caller says what becomes of the name. */
bool sl_loads_give_up(struct sl_registry *registry, struct sl_served *served);
