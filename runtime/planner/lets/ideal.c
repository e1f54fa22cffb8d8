/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ideal of gpu-lets (section 6.2): each way to part the devices is tried, and on each the models are placed as elastic
 * partitioning does, which then splits nothing. A device is one whole, or two lets that sum to it, or not used. Devices of one
 * class that stand one after another are alike, so of their ways only those in order are tried; at most WAYS_MAX, by the count of
 * the last device first.
 *
 * What elastic partitioning itself makes of the first devices, of all and of fewer, counts as well. So one more device, which may
 * be not used, never makes less of the others schedulable, as long as no more than WAYS_MAX are to be tried.
 */
#include "schedulers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WAYS_MAX 20000u

/* Ways of a class: two lets of units[i] and the rest; units[i] of all is one. */
struct ways {
        uint32_t n, first[SL_PARTITION_SLOTS];
};

static struct ways ways_of(const struct sl_partition_board *board, uint32_t class_index)
{
        const struct sl_partition_sizes *sizes = &board->times->sizes[class_index];
        uint32_t all = sizes->units[sizes->n - 1];
        struct ways ways = {.n = 0};

        ways.first[ways.n++] = all;
        for (uint32_t i = 0; i < sizes->n && board->problem->options.lets_max > 1; i++)
                for (uint32_t k = i; k + 1 < sizes->n; k++)
                        if (sizes->is_let[i] && sizes->is_let[k] && sizes->units[i] + sizes->units[k] == all)
                                ways.first[ways.n++] = sizes->units[i];
        return ways;
}

static void part(struct sl_partition_board *board, const struct ways *ways, const uint32_t *chosen)
{
        sl_board_clear(board);
        for (uint32_t d = 0; d < board->problem->costs->n_devices; d++) {
                const struct ways *w = &ways[sl_board_class(board, d)];

                if (chosen[d] == w->n)
                        continue;
                uint32_t all = sl_board_units(board, d), units = w->first[chosen[d]];
                sl_board_add(board, d, units);
                if (units < all)
                        sl_board_add(board, d, all - units);
        }
}

/* The next way in order; false: that was the last. */
static bool next_way(const struct sl_partition_board *board, const struct ways *ways, uint32_t *chosen)
{
        const struct sl_cost_device *devices = board->problem->costs->devices;

        for (uint32_t d = board->problem->costs->n_devices; d-- > 0;) {
                if (chosen[d] == ways[sl_board_class(board, d)].n)
                        continue;
                chosen[d]++;
                for (uint32_t k = d + 1; k < board->problem->costs->n_devices; k++)
                        chosen[k] = devices[k].class_index == devices[k - 1].class_index ? chosen[k - 1] : 0;
                return true;
        }
        return false;
}

/* The better of @best and the board's is in @best; the board's own lets are used up. */
static bool take_better(const struct sl_partition_board *board, struct sl_partition_schedule **best, double *lacking, int *r)
{
        double now = sl_board_lacking(board);
        struct sl_partition_schedule *schedule = NULL;

        if (*best && now >= *lacking)
                return (*best)->schedulable;
        *r = sl_board_schedule(board, &schedule);
        if (*r < 0)
                return true;
        sl_partition_schedule_free(*best);
        *best = schedule;
        *lacking = now;
        return schedule->schedulable;
}

static int search(struct sl_partition_board *board, struct ways *ways, uint32_t *chosen, struct sl_partition_schedule **ret_best)
{
        const struct sl_costs *costs = board->problem->costs;
        struct sl_partition_schedule *best = NULL;
        double lacking = 0;
        bool found = false;
        int r = 0;

        for (uint32_t n = costs->n_devices; n && !found && r == 0; n--) {
                sl_board_clear(board);
                r = sl_partition_elastic_work(board, n, true);
                found = r < 0 || take_better(board, &best, &lacking, &r);
        }
        for (uint32_t c = 0; c < costs->n_classes; c++)
                ways[c] = ways_of(board, c);
        for (uint32_t tried = 0; tried < WAYS_MAX && !found && r == 0; tried++) {
                part(board, ways, chosen);
                r = sl_partition_elastic_work(board, costs->n_devices, false);
                found = r < 0 || take_better(board, &best, &lacking, &r) || !next_way(board, ways, chosen);
        }
        if (r < 0)
                sl_partition_schedule_free(best);
        else
                *ret_best = best;
        return r;
}

int sl_partition_ideal(const struct sl_partition_problem *problem, struct sl_partition_schedule **ret_schedule)
{
        struct ways *ways = calloc(problem->costs->n_classes, sizeof(*ways));
        uint32_t *chosen = calloc(problem->costs->n_devices, sizeof(*chosen));
        struct sl_partition_times *times = NULL;
        struct sl_partition_board *board = NULL;
        int r = ways && chosen ? sl_partition_times_new(problem, &times) : -ENOMEM;

        r = r < 0 ? r : sl_board_new(problem, times, &board);
        r = r < 0 ? r : search(board, ways, chosen, ret_schedule);
        sl_board_free(board);
        sl_partition_times_free(times);
        free(chosen);
        free(ways);
        return r;
}
