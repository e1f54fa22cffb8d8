/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Squishy bin packing. Saturated bins first: the largest batch b with 2 L(b) within the objective, as many bins as its rate fills.
 * What is left of each model then, by falling occupancy L(b) / cycle of the largest b with L(b) + b / rate within the objective, is
 * merged into the bin that is fullest with it among those that bear the shorter cycle, or begins one.
 *
 * Bins are whole devices, or halves. In what order models of the same
 * occupancy come the text leaves open: that of the costs.
 *
 * Sources: H. Shen et al., "Nexus: a GPU cluster engine for accelerating DNN-based video analysis", SOSP 2019, section 6.1,
 * algorithm 1; halves: gpu-lets (partition.h), section 3.1, figure 4.
 */
#include "schedulers.h"

#include <errno.h>
#include <stdlib.h>

#define NS 1e9

struct item {
        uint32_t model;
        double occupancy;
};

static int bins_add(struct sl_partition_board *board, bool halves)
{
        for (uint32_t d = 0; d < board->problem->costs->n_devices; d++) {
                const struct sl_partition_sizes *sizes = &board->times->sizes[sl_board_class(board, d)];
                bool halved = halves && sizes->half != SL_COST_NONE;

                for (uint32_t i = 0; i < (halved ? 2u : 1u); i++)
                        if (sl_board_add(board, d, sizes->units[halved ? sizes->half : sizes->n - 1]) == SL_PARTITION_NONE)
                                return -ENOMEM;
        }
        return 0;
}

/* Saturated bins of a model, as many as its rate fills. */
static void saturate(struct sl_partition_board *board, uint32_t model)
{
        for (uint32_t bin = 0; bin < board->n_lets; bin++) {
                uint32_t batch = board->lets[bin].n_places ? 0 : sl_board_saturating(board, bin, model);
                double taken;

                if (batch && board->left[model] * sl_board_latency(board, bin, model, batch) >= batch * NS &&
                        sl_board_fill(board, bin, model, board->left[model], &taken))
                        board->left[model] -= taken;
        }
}

/* Of what is left of a model, alone in a bin that is empty. */
static double occupancy_alone(struct sl_partition_board *board, uint32_t model)
{
        double taken, occupancy = 0;

        for (uint32_t bin = 0; bin < board->n_lets; bin++)
                if (!board->lets[bin].n_places && sl_board_fill(board, bin, model, board->left[model], &taken)) {
                        occupancy = sl_board_busy(board, bin) / board->lets[bin].cycle_ns;
                        sl_board_restore(board);
                        return occupancy;
                }
        return occupancy;
}

static int compare_items(const void *a, const void *b)
{
        const struct item *x = a, *y = b;

        if (x->occupancy > y->occupancy || x->occupancy < y->occupancy)
                return x->occupancy > y->occupancy ? -1 : 1;
        return x->model < y->model ? -1 : 1;
}

/* The bin that is fullest with the model merged into it; it is merged there. */
static bool merge_fullest(struct sl_partition_board *board, uint32_t model)
{
        uint32_t best = SL_PARTITION_NONE;
        double most = 0;

        for (uint32_t bin = 0; bin < board->n_lets; bin++) {
                if (!board->lets[bin].n_places || !sl_board_merge(board, bin, model, board->left[model]))
                        continue;
                double occupancy = sl_board_busy(board, bin) / board->lets[bin].cycle_ns;
                if (occupancy > most) {
                        best = bin;
                        most = occupancy;
                }
                sl_board_restore(board);
        }
        return best != SL_PARTITION_NONE && sl_board_merge(board, best, model, board->left[model]);
}

static bool begin_bin(struct sl_partition_board *board, uint32_t model)
{
        double taken;

        for (uint32_t bin = 0; bin < board->n_lets; bin++)
                if (!board->lets[bin].n_places && sl_board_fill(board, bin, model, board->left[model], &taken)) {
                        board->left[model] -= taken;
                        return true;
                }
        return false;
}

static void place_residues(struct sl_partition_board *board, struct item *items)
{
        uint32_t n = 0;

        for (uint32_t m = 0; m < board->problem->costs->n_models; m++)
                if (board->left[m] > 1e-9 * board->problem->demands[m].rate)
                        items[n++] = (struct item){m, occupancy_alone(board, m)};
        qsort(items, n, sizeof(*items), compare_items);
        for (uint32_t i = 0; i < n; i++) {
                if (merge_fullest(board, items[i].model))
                        board->left[items[i].model] = 0;
                else
                        begin_bin(board, items[i].model);
        }
}

static int pack(struct sl_partition_board *board, bool halves)
{
        struct item *items = calloc(board->problem->costs->n_models, sizeof(*items));
        int r = items ? bins_add(board, halves) : -ENOMEM;

        for (uint32_t m = 0; m < board->problem->costs->n_models && r == 0; m++)
                saturate(board, m);
        if (r == 0)
                place_residues(board, items);
        free(items);
        return r;
}

int sl_partition_sbp_work(struct sl_partition_board *board)
{
        return pack(board, false);
}

int sl_partition_sbp_halves_work(struct sl_partition_board *board)
{
        return pack(board, true);
}

int sl_partition_of_work(
        const struct sl_partition_problem *problem, sl_partition_work *work, struct sl_partition_schedule **ret_schedule)
{
        struct sl_partition_times *times = NULL;
        struct sl_partition_board *board = NULL;
        int r = sl_partition_times_new(problem, &times);

        r = r < 0 ? r : sl_board_new(problem, times, &board);
        r = r < 0 ? r : work(board);
        r = r < 0 ? r : sl_board_schedule(board, ret_schedule);
        sl_board_free(board);
        sl_partition_times_free(times);
        return r;
}

int sl_partition_sbp(const struct sl_partition_problem *problem, struct sl_partition_schedule **ret_schedule)
{
        return sl_partition_of_work(problem, sl_partition_sbp_work, ret_schedule);
}

int sl_partition_sbp_halves(const struct sl_partition_problem *problem, struct sl_partition_schedule **ret_schedule)
{
        return sl_partition_of_work(problem, sl_partition_sbp_halves_work, ret_schedule);
}
