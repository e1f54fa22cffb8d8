/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Administrators who wait for what they have asked of a name: that it serves as it is wanted, or that it has gone. Control thread
 * only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_error;
struct sl_registry;
struct sl_served;

/* @session 0: nobody asks. Return: 0; -EBUSY as many wait as may. */
int sl_askers_add(struct sl_served *served, uint64_t session, bool farewell, struct sl_error *error);

/* Those who wait for what is wanted; with @farewell for the end of the name. */
void sl_askers_answer(struct sl_registry *registry, struct sl_served *served, bool farewell, int status, const char *text);
bool sl_askers_wait(const struct sl_served *served, bool farewell);
