/* SPDX-License-Identifier: Apache-2.0 */
#include "seats.h"

#include "base/clock.h"
#include "base/error.h"
#include "cores.h"
#include "let.h"
#include "stats.h"

#include <stdio.h>
#include <time.h>

static uint64_t unix_ns(void)
{
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        return (uint64_t)now.tv_sec * SL_NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

static void change_state(struct sl_worker_stats *shown, enum sl_stats_worker_state state)
{
        shown->state = state;
        shown->since_ns = sl_clock_ns();
}

static void describe(const struct sl_seats *seats, const struct sl_let *let, int32_t core, struct sl_worker_stats *shown)
{
        shown->core = let ? sl_first_core(&let->cpus) : core;
        shown->let = let && let->stats ? sl_stats_let_index(seats->stats, let->stats) : SL_STATS_NONE;
        shown->batch_max = seats->batch_max;
        shown->pid = 0;
        change_state(shown, SL_STATS_WORKER_STARTING);
}

static struct sl_worker_stats *new_seat(const struct sl_seats *seats, const struct sl_let *let, int32_t core)
{
        struct sl_worker_stats shown = {0}, *seat;

        snprintf(shown.model, sizeof(shown.model), "%s", seats->model);
        snprintf(shown.executor, sizeof(shown.executor), "%s", seats->executor);
        describe(seats, let, core, &shown);
        sl_stats_worker_add(seats->stats, &shown, seats->with_histograms, &seat);
        return seat;
}

/* One that was on the same let, so that it goes on counting for that, or the last one. */
static struct sl_worker_stats *take_vacant(struct sl_seats *seats, const struct sl_let *let)
{
        uint32_t index = let && let->stats ? sl_stats_let_index(seats->stats, let->stats) : SL_STATS_NONE, at = --seats->n_vacant;
        struct sl_worker_stats *last = seats->vacant[at], *seat;

        for (uint32_t i = at; i > 0 && seats->vacant[at]->let != index; i--)
                if (seats->vacant[i - 1]->let == index)
                        at = i - 1;
        seat = seats->vacant[at];
        seats->vacant[at] = last;
        return seat;
}

struct sl_worker_stats *sl_seats_take(struct sl_seats *seats, const struct sl_let *let, int32_t core)
{
        struct sl_worker_stats shown, *seat;

        if (!seats->n_vacant)
                return new_seat(seats, let, core);
        seat = take_vacant(seats, let);
        sl_stats_worker_shown(seat, &shown);
        describe(seats, let, core, &shown);
        shown.restarts++;
        sl_stats_worker_show(seat, &shown);
        return seat;
}

void sl_seat_started(struct sl_worker_stats *seat, uint32_t pid)
{
        struct sl_worker_stats shown;

        sl_stats_worker_shown(seat, &shown);
        shown.pid = pid;
        sl_stats_worker_show(seat, &shown);
}

void sl_seat_show(struct sl_worker_stats *seat, enum sl_stats_worker_state state)
{
        struct sl_worker_stats shown;

        if (!seat || seat->state == state)
                return;
        sl_stats_worker_shown(seat, &shown);
        change_state(&shown, state);
        sl_stats_worker_show(seat, &shown);
}

void sl_seats_vacate(struct sl_seats *seats, struct sl_worker_stats *seat, const char *why, bool backs_off)
{
        struct sl_worker_stats shown;

        if (!seat)
                return;
        sl_stats_worker_shown(seat, &shown);
        shown.pid = 0;
        shown.ended_unix_ns = unix_ns();
        sl_error_fit(why, shown.why, sizeof(shown.why));
        change_state(&shown, backs_off ? SL_STATS_WORKER_BACKING_OFF : SL_STATS_WORKER_ENDED);
        sl_stats_worker_show(seat, &shown);
        seats->vacant[seats->n_vacant++] = seat;
}

void sl_seats_leave(const struct sl_seats *seats, struct sl_worker_stats *seat)
{
        sl_stats_worker_remove(seats->stats, seat);
}

void sl_seats_trim(struct sl_seats *seats, uint32_t n)
{
        while (seats->n_vacant > n)
                sl_seats_leave(seats, seats->vacant[--seats->n_vacant]);
}
