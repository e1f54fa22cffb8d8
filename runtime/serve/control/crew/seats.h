/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seats of a model's workers, as the stats page shows them. A process that ends leaves its seat vacant; the next one that
 * starts takes it and goes on counting there, while the old one may still be answered for: both are counted by the dispatcher.
 *
 *     (none) --sl_seats_take--> taken --sl_seats_vacate--> vacant --sl_seats_take--> taken, restarts + 1
 *        ^                        |                          |
 *        +-------sl_seats_leave---+--------sl_seats_trim-----+
 *
 * Control thread only.
 */
#pragma once

#include "stats_layout.h"
#include "workers.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_let;
struct sl_stats;

struct sl_seats {
        struct sl_stats *stats;
        const char *model, *executor; /* "thread", "process", "inline" */
        uint32_t batch_max;
        bool with_histograms;
        uint32_t n_vacant;
        struct sl_worker_stats *vacant[SL_WORKERS_MAX]; /* the last first */
};

/* A vacant seat, or a new one, for a worker that starts on @let; NULL: on the dispatcher's core, @core. */
struct sl_worker_stats *sl_seats_take(struct sl_seats *seats, const struct sl_let *let, int32_t core);

/* Of one that has a process. */
void sl_seat_started(struct sl_worker_stats *seat, uint32_t pid);

void sl_seat_show(struct sl_worker_stats *seat, enum sl_stats_worker_state state);

/* Its process has ended. @backs_off: the next one starts later. */
void sl_seats_vacate(struct sl_seats *seats, struct sl_worker_stats *seat, const char *why, bool backs_off);

/* Nobody follows. NULL is fine. */
void sl_seats_leave(const struct sl_seats *seats, struct sl_worker_stats *seat);

/* No more than @n stay vacant: fewer workers are wanted. */
void sl_seats_trim(struct sl_seats *seats, uint32_t n);
