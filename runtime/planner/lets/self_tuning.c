/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Self-tuning as gpu-lets guides it by a profile: each model wants the smallest let that bears its rate, or whole devices and the
 * smallest let for the rest. Where all of these fit, they have them; else no model has more than a max-min fair share of all units,
 * those that want least first, each share rounded up to lets that exist. No let has turns.
 *
 * A device has at most lets_max lets; large lets are placed first, each where least is left. Units of different classes count
 * alike.
 *
 * Sources: A. Dhakal, S. G. Kulkarni, K. K. Ramakrishnan, "GSLICE: controlled spatial sharing of GPUs for a scalable inference
 * platform", SoCC 2020; gpu-lets (partition.h), section 6.1, for the guidance.
 */
#include "schedulers.h"

#include <errno.h>
#include <stdlib.h>

#define NS 1e9

/* What a model wants: @n_whole devices and a let of @units; 0 units: none beside these. */
struct wish {
        uint32_t model, n_whole, units;
        uint32_t total;
};

static double bears(const struct sl_partition_board *board, uint32_t slot, uint32_t model)
{
        double objective_ns = (double)board->problem->demands[model].objective_ns, rate = 0;

        for (uint32_t b = 1; b <= board->times->batch_max; b++) {
                double latency = sl_partition_latency(board->times, sl_board_class(board, 0), slot, model, b);

                if (latency > 0 && 2 * latency <= objective_ns)
                        rate = b * NS / latency;
        }
        return rate;
}

/* By the first device's class. */
static struct wish wish_of(const struct sl_partition_board *board, uint32_t model)
{
        const struct sl_partition_sizes *sizes = &board->times->sizes[sl_board_class(board, 0)];
        double left = board->left[model], whole = bears(board, sizes->n - 1, model);
        struct wish wish = {.model = model};

        if (!(whole > 0) || !(left > 0))
                return wish;
        double devices = left / whole;
        wish.n_whole = devices < board->problem->costs->n_devices ? (uint32_t)devices : board->problem->costs->n_devices;
        left -= wish.n_whole * whole;
        for (uint32_t slot = 0; slot < sizes->n && left > 0 && !wish.units; slot++)
                if (sizes->is_let[slot] && bears(board, slot, model) >= left)
                        wish.units = sizes->units[slot];
        wish.total = wish.n_whole * sizes->units[sizes->n - 1] + wish.units;
        return wish;
}

static int compare_wishes(const void *a, const void *b)
{
        const struct wish *x = a, *y = b;

        if (x->total != y->total)
                return x->total < y->total ? -1 : 1;
        return x->model < y->model ? -1 : 1;
}

/* No more than @units, in lets that exist, the last of them as large as is needed to have at least that. */
static void limit(const struct sl_partition_board *board, struct wish *wish, uint32_t units)
{
        const struct sl_partition_sizes *sizes = &board->times->sizes[sl_board_class(board, 0)];
        uint32_t whole = sizes->units[sizes->n - 1];

        if (wish->total <= units)
                return;
        wish->n_whole = units / whole;
        wish->units = 0;
        for (uint32_t slot = 0; slot < sizes->n && units % whole && !wish->units; slot++)
                if (sizes->is_let[slot] && sizes->units[slot] >= units % whole)
                        wish->units = sizes->units[slot];
        wish->total = wish->n_whole * whole + wish->units;
}

/* Where least is left beside it; SL_PARTITION_NONE: nowhere. */
static uint32_t place_let(struct sl_partition_board *board, uint32_t units)
{
        uint32_t best = SL_PARTITION_NONE, least = UINT32_MAX, n;

        for (uint32_t d = 0; d < board->problem->costs->n_devices; d++) {
                uint32_t unused = sl_board_unused(board, d, &n);
                bool fits = unused >= units && n < board->problem->options.lets_max;

                if (fits && unused < least && sl_partition_slot(board->times, sl_board_class(board, d), units) != SL_COST_NONE) {
                        best = d;
                        least = unused;
                }
        }
        return best == SL_PARTITION_NONE ? SL_PARTITION_NONE : sl_board_add(board, best, units);
}

static bool place_model(struct sl_partition_board *board, uint32_t model, uint32_t units)
{
        uint32_t let = place_let(board, units);
        double taken;

        if (let == SL_PARTITION_NONE)
                return false;
        if (!sl_board_fill(board, let, model, board->left[model], &taken)) {
                board->n_lets--;
                return false;
        }
        board->left[model] = taken < board->left[model] ? board->left[model] - taken : 0;
        return true;
}

/* All wishes, large lets first. */
static void place_all(struct sl_partition_board *board, const struct wish *wishes, uint32_t n)
{
        const struct sl_partition_sizes *sizes = &board->times->sizes[sl_board_class(board, 0)];

        for (uint32_t i = 0; i < n; i++)
                for (uint32_t k = 0; k < wishes[i].n_whole; k++)
                        place_model(board, wishes[i].model, sizes->units[sizes->n - 1]);
        for (uint32_t slot = sizes->n; slot-- > 0;)
                for (uint32_t i = 0; i < n; i++)
                        if (wishes[i].units == sizes->units[slot])
                                place_model(board, wishes[i].model, wishes[i].units);
}

/* Those that want least first; what they do not want is the others'. */
static void share_fairly(const struct sl_partition_board *board, struct wish *wishes, uint32_t n)
{
        uint32_t units = 0, sharing = 0;

        for (uint32_t d = 0; d < board->problem->costs->n_devices; d++)
                units += sl_board_units(board, d);
        for (uint32_t i = 0; i < n; i++)
                sharing += wishes[i].total > 0;
        for (uint32_t i = 0; i < n; i++) {
                if (!wishes[i].total)
                        continue;
                limit(board, &wishes[i], units / sharing--);
                units -= wishes[i].total < units ? wishes[i].total : units;
        }
}

int sl_partition_self_tuning_work(struct sl_partition_board *board)
{
        uint32_t n = board->problem->costs->n_models;
        struct wish *wishes = calloc(n, sizeof(*wishes));

        if (!wishes)
                return -ENOMEM;
        for (uint32_t m = 0; m < n; m++)
                wishes[m] = wish_of(board, m);
        qsort(wishes, n, sizeof(*wishes), compare_wishes);
        place_all(board, wishes, n);
        if (!sl_board_is_done(board)) {
                sl_board_clear(board);
                share_fairly(board, wishes, n);
                place_all(board, wishes, n);
        }
        free(wishes);
        return 0;
}

int sl_partition_self_tuning(const struct sl_partition_problem *problem, struct sl_partition_schedule **ret_schedule)
{
        return sl_partition_of_work(problem, sl_partition_self_tuning_work, ret_schedule);
}
