/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elastic partitioning. Models by falling rate; while something is left of one:
 *
 *     size     the smaller of the most efficient one and of the least that bears what is left
 *     best fit free lets by rising size, the first that is large enough; a whole device is split, once
 *     batch    the largest whose building, computing and interference are within the objective; the neighbour's is looked at again
 *     merge    into the fullest allocated let where all objectives hold; then the split is reverted
 *
 * The algorithm's listing is not in our text of the paper: this is its section 4.3 in words. Left open there, and read so:
 *
 *     - the most efficient size is the one of greatest curvature of the rate that a let bears over its size, both as shares of the
 *       whole device's, by differences of neighbouring sizes; (0, 0) is a point of the curve. Where nothing bends it is the whole.
 *     - what is left of a split is a let of the next smaller size that the costs know.
 *     - a saturated let is not merged: it has no turn to spare.
 *
 * The authors' code differs; partition.h has each of its choices as an option.
 *
 * Sources: gpu-lets (partition.h), section 4.3; https://github.com/casys-kaist/glet, src/scheduler, for what the options are.
 */
#include "schedulers.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define NS 1e9

/* Requests a second of a model that has a let of the slot for itself; 0: it meets its objective with no batch. */
static double bears(const struct sl_partition_board *board, uint32_t class_index, uint32_t slot, uint32_t model)
{
        double objective_ns = (double)board->problem->demands[model].objective_ns, rate = 0;

        for (uint32_t b = 1; b <= board->times->batch_max; b++) {
                double latency = sl_partition_latency(board->times, class_index, slot, model, b);

                if (latency > 0 && 2 * latency <= objective_ns)
                        rate = b * NS / latency;
        }
        return rate;
}

/* How much the curve bends down at @y[1], where its slope changes; @x and @y of three neighbours. */
static double curvature(const double x[3], const double y[3])
{
        double before = (y[1] - y[0]) / (x[1] - x[0]), after = (y[2] - y[1]) / (x[2] - x[1]);
        double slope = (y[2] - y[0]) / (x[2] - x[0]);

        return 2 * (before - after) / (x[2] - x[0]) / pow(1 + slope * slope, 1.5);
}

/* The slot where another unit ceases to pay. */
static uint32_t most_efficient(const struct sl_partition_board *board, uint32_t class_index, uint32_t model)
{
        const struct sl_partition_sizes *sizes = &board->times->sizes[class_index];
        double of_all = bears(board, class_index, sizes->n - 1, model), units = sizes->units[sizes->n - 1];
        double x[3] = {0, 0, 0}, y[3] = {0, 0, 0}, most = 1e-6;
        uint32_t best = sizes->n - 1, last = SL_PARTITION_NONE;

        if (!(of_all > 0))
                return best;
        for (uint32_t slot = 0; slot < sizes->n; slot++) {
                if (!sizes->is_let[slot])
                        continue;
                x[2] = sizes->units[slot] / units;
                y[2] = bears(board, class_index, slot, model) / of_all;
                double gain = board->problem->options.by_gain ? (y[2] - y[1]) / (x[2] - x[1]) : 0;
                double bend = board->problem->options.by_gain || last == SL_PARTITION_NONE ? gain : curvature(x, y);
                if (bend > most) {
                        most = bend;
                        best = board->problem->options.by_gain ? slot : last;
                }
                last = slot;
                x[0] = x[1], x[1] = x[2];
                y[0] = y[1], y[1] = y[2];
        }
        return best;
}

/* The smallest slot that bears @rate; the whole where none does. */
static uint32_t least_required(const struct sl_partition_board *board, uint32_t class_index, uint32_t model, double rate)
{
        const struct sl_partition_sizes *sizes = &board->times->sizes[class_index];

        for (uint32_t slot = 0; slot < sizes->n; slot++)
                if (sizes->is_let[slot] && bears(board, class_index, slot, model) >= rate)
                        return slot;
        return sizes->n - 1;
}

static uint32_t wanted_units(const struct sl_partition_board *board, uint32_t class_index, uint32_t model, double rate)
{
        uint32_t efficient = most_efficient(board, class_index, model), least = least_required(board, class_index, model, rate);

        return board->times->sizes[class_index].units[efficient < least ? efficient : least];
}

static bool is_whole(const struct sl_partition_board *board, uint32_t let)
{
        return board->lets[let].units == sl_board_units(board, board->lets[let].device);
}

/* The let becomes one of @units, and the rest of its device a free one of the largest size that there is room for. */
static void split(struct sl_partition_board *board, uint32_t let, uint32_t units)
{
        const struct sl_partition_sizes *sizes = &board->times->sizes[sl_board_class(board, board->lets[let].device)];
        uint32_t rest = board->lets[let].units - units;

        board->lets[let].units = units;
        for (uint32_t slot = sizes->n; slot-- > 0;)
                if (sizes->is_let[slot] && sizes->units[slot] <= rest) {
                        sl_board_add(board, board->lets[let].device, sizes->units[slot]);
                        return;
                }
}

static void revert_split(struct sl_partition_board *board, uint32_t let, uint32_t units, uint32_t n_lets)
{
        board->n_lets = n_lets;
        board->lets[let].units = units;
        board->lets[let].n_places = 0;
        board->lets[let].cycle_ns = 0;
}

/* The next free let behind @units and @let, by rising size; SL_PARTITION_NONE: there is none. */
static uint32_t next_free(const struct sl_partition_board *board, uint32_t n_devices, uint32_t units, uint32_t let)
{
        uint32_t next = SL_PARTITION_NONE;

        for (uint32_t i = 0; i < board->n_lets; i++) {
                const struct sl_partition_let *l = &board->lets[i];
                bool behind = let == SL_PARTITION_NONE || l->units > units || (l->units == units && i > let);

                if (!l->n_places && l->device < n_devices && behind &&
                        (next == SL_PARTITION_NONE || l->units < board->lets[next].units))
                        next = i;
        }
        return next;
}

/* Into the allocated let that is fullest with it. */
static bool merge(struct sl_partition_board *board, uint32_t n_devices, uint32_t except, uint32_t model, double rate)
{
        uint32_t best = SL_PARTITION_NONE;
        double most = 0;

        for (uint32_t i = 0; i < board->n_lets; i++) {
                if (i == except || !board->lets[i].n_places || board->lets[i].device >= n_devices ||
                        !sl_board_merge(board, i, model, rate))
                        continue;
                double occupancy = sl_board_busy(board, i) / board->lets[i].cycle_ns;
                sl_board_restore(board);
                if (occupancy > most) {
                        most = occupancy;
                        best = i;
                }
        }
        return best != SL_PARTITION_NONE && sl_board_merge(board, best, model, rate);
}

/* One more let for the model, or a place on one. */
static bool find_best_fit(struct sl_partition_board *board, uint32_t n_devices, bool splits, uint32_t model, bool smaller)
{
        uint32_t lets_max = board->problem->options.lets_max;

        for (uint32_t let = SL_PARTITION_NONE, units = 0; (let = next_free(board, n_devices, units, let)) != SL_PARTITION_NONE;) {
                uint32_t n_lets = board->n_lets;
                double rate = board->left[model], taken;

                units = board->lets[let].units;
                uint32_t wanted = wanted_units(board, sl_board_class(board, board->lets[let].device), model, rate);
                if (units < wanted && !smaller)
                        continue;
                if (splits && lets_max > 1 && is_whole(board, let) && wanted < units)
                        split(board, let, wanted);
                if (!sl_board_fill(board, let, model, rate, &taken)) {
                        revert_split(board, let, units, n_lets);
                        continue;
                }
                struct sl_partition_let filled = board->lets[let];
                if (!board->problem->options.merges_last && taken >= rate) {
                        board->lets[let].n_places = 0;
                        if (merge(board, n_devices, let, model, rate)) {
                                revert_split(board, let, units, n_lets);
                                board->left[model] = 0;
                                return true;
                        }
                        board->lets[let] = filled;
                }
                board->left[model] = taken < rate ? rate - taken : 0;
                return true;
        }
        if (!merge(board, n_devices, SL_PARTITION_NONE, model, board->left[model]))
                return false;
        board->left[model] = 0;
        return true;
}

struct order {
        uint32_t model;
        double key; /* falling */
};

static int compare_orders(const void *a, const void *b)
{
        const struct order *x = a, *y = b;

        if (x->key > y->key || x->key < y->key)
                return x->key > y->key ? -1 : 1;
        return x->model < y->model ? -1 : 1;
}

static void schedule_model(struct sl_partition_board *board, uint32_t n_devices, bool splits, uint32_t model)
{
        const struct sl_partition_options *options = &board->problem->options;
        double least = options->dropped_rate, close = 1e-9 * board->problem->demands[model].rate;

        while (board->left[model] > (least > close ? least : close))
                if (!find_best_fit(board, n_devices, splits, model, false) &&
                        !(options->takes_smaller && find_best_fit(board, n_devices, splits, model, true)))
                        return;
}

int sl_partition_elastic_work(struct sl_partition_board *board, uint32_t n_devices, bool splits)
{
        uint32_t n_models = board->problem->costs->n_models;
        struct order *orders = calloc(n_models, sizeof(*orders));

        if (!orders)
                return -ENOMEM;
        for (uint32_t d = 0; d < n_devices && splits; d++)
                sl_board_add(board, d, sl_board_units(board, d));
        for (uint32_t m = 0; m < n_models; m++) {
                const struct sl_partition_demand *demand = &board->problem->demands[m];

                orders[m] = (struct order){
                        m, board->problem->options.by_work ? -demand->rate * (double)demand->objective_ns : demand->rate};
        }
        qsort(orders, n_models, sizeof(*orders), compare_orders);
        for (uint32_t i = 0; i < n_models; i++)
                schedule_model(board, n_devices, splits, orders[i].model);
        free(orders);
        return 0;
}

static int work(struct sl_partition_board *board)
{
        return sl_partition_elastic_work(board, board->problem->costs->n_devices, true);
}

int sl_partition_elastic(const struct sl_partition_problem *problem, struct sl_partition_schedule **ret_schedule)
{
        return sl_partition_of_work(problem, work, ret_schedule);
}
