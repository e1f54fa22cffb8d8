/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of ../../converge/step.h, carried out and counted. Control thread only; nothing waits.
 */
#pragma once

#include <stdbool.h>

struct sl_registry;

/* Once: the slots of the stats page in which steps are counted. */
void sl_act_count(struct sl_registry *registry);

/* Steps until there are none; registry->due_ns: when to look again. Return: there are none; false: so many were enough for a turn.
 */
bool sl_act(struct sl_registry *registry);
