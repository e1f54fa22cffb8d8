/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How each name stands, as the stats page shows it: its state, its loads, and whether its members have the workers that they should
 * have. A name has its slot as long as the registry knows it, and what serves under it counts there. Control thread.
 */
#pragma once

#include <stdbool.h>

struct sl_model_counting;
struct sl_registry;
struct sl_served;

/* Where what is served under this name counts, with histograms that it @records in; sl_stats_model_remove() is due for each call. A
 * line in the log says what has no room.
 */
void sl_standing_count(
        struct sl_registry *registry, struct sl_served *served, bool records, struct sl_model_counting *ret_counting);

/* Writes what has changed since the last call. A name that is not used shows nothing, and one of which news is due nothing new. */
void sl_standing_show(struct sl_registry *registry, struct sl_served *served);

/* The name is about to be free. */
void sl_standing_forget(struct sl_registry *registry, struct sl_served *served);
