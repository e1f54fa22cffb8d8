/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is wanted and what is there, as the step function sees it (../../converge/fleet.h). Control thread only.
 */
#pragma once

#include <stdint.h>

struct sl_fleet;
struct sl_fleet_group;
struct sl_registry;
struct sl_step;

/* Good until anything changes. @group: room for the one that may be under way. */
void sl_fleet_view(struct sl_registry *registry, struct sl_fleet_group *group, struct sl_fleet *ret_fleet);

/* The fleet has those names alone that are awake: what its steps say of places there they say of indices of the table from now on.
 */
void sl_fleet_name_steps(const struct sl_registry *registry, struct sl_step *steps, uint32_t n);
