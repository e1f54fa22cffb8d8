/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From one set of workers to another, while the model serves. Workers join as they are ready, and leave when they have answered
 * what they have; the model, its plan and its queue stay. Control thread only; nothing waits.
 */
#pragma once

struct sl_registry;
struct sl_served;

/* Begins to go over to the wanted set. Where memory is short it stays as it was, and whoever asked is told why. Of a model with
 * open dimensions its sizes are meant. */
void sl_staffing_begin(struct sl_registry *registry, struct sl_served *served);

/* Those that are ready join; one that cannot start undoes the change. */
void sl_staffing_hear(struct sl_registry *registry, struct sl_served *served);

/* Which cores there are has changed: whatever set it has, the wanted one is looked at again. */
void sl_staffing_again(struct sl_served *served);
