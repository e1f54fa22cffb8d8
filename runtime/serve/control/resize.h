/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From one set of workers to another, in number or in the batches that they take, while the model serves: what a reload does where nothing else of the configuration has
 * changed. Workers join as they are ready, and leave when they have answered what they have; the model, its plan and its queue
 * stay. Control thread only; nothing waits.
 */
#pragma once

#include <stdbool.h>

struct sl_registry;
struct sl_served;

/* The name is ready, and wants another number of workers than it was last known to have. */
bool sl_resize_needed(const struct sl_served *served);

/* Begins, or goes on. Where memory is short, or a worker cannot start, it stays as it was, and whoever asked is told why. Of a
 * model with open dimensions its sizes are meant. */
void sl_resize_advance(struct sl_registry *registry, struct sl_served *served);
