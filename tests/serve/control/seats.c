/* SPDX-License-Identifier: Apache-2.0 */
/* Seats in the stats page: who follows a worker process that has ended. */
#include "seats.h"

#include "base/error.h"
#include "let.h"
#include "stats.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[] = "/tmp/starling-seats-XXXXXX";

static struct sl_stats *make_stats(void)
{
        struct sl_stats *stats = NULL;
        struct sl_error error = {""};

        cr_assert(mkdtemp(folder));
        cr_assert_eq(sl_stats_create(&(struct sl_stats_options){.name = "seats", .directory = folder, .wait_name = "epoll"}, &stats,
                             &error),
                0, "%s", error.text);
        return stats;
}

static struct sl_let make_let(struct sl_stats *stats, const char *name)
{
        struct sl_let_stats shown = {.at_once = 1};
        struct sl_let let = {.stats = NULL};

        snprintf(shown.name, sizeof(shown.name), "%s", name);
        cr_assert_eq(sl_stats_let_add(stats, &shown, &let.stats), 0);
        return let;
}

/* Both GPUs' processes have ended: each worker goes on counting where one of its own GPU did. */
Test(seats, go_to_who_follows_on_the_same_let)
{
        struct sl_stats *stats = make_stats();
        struct sl_let lets[] = {make_let(stats, "gpu:0"), make_let(stats, "gpu:1"), make_let(stats, "gpu:2")};
        struct sl_seats seats = {.stats = stats, .model = "a", .executor = "process"};
        struct sl_worker_stats *of[4], *other;

        for (uint32_t i = 0; i < 4; i++)
                of[i] = sl_seats_take(&seats, &lets[i % 2], -1);
        for (uint32_t i = 0; i < 4; i++)
                sl_seats_vacate(&seats, of[i], "ended", false);
        for (uint32_t i = 0; i < 3; i++) {
                struct sl_worker_stats *next = sl_seats_take(&seats, &lets[i % 2], -1);

                cr_expect(next == of[i % 2] || next == of[2 + i % 2], "%u", i);
                cr_expect_eq(next->restarts, 1);
        }
        other = sl_seats_take(&seats, &lets[2], -1);
        cr_expect(other == of[1] || other == of[3], "what nobody of its own takes is for anybody");
        cr_expect_eq(seats.n_vacant, 0);
        sl_stats_free(stats);
        rmdir(folder);
}
