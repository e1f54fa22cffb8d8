/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "board.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CLOSE 1e-6

static int let_check(const struct sl_partition_board *board, uint32_t i, struct sl_error *error)
{
        const struct sl_costs *costs = board->problem->costs;
        const struct sl_partition_let *let = &board->lets[i];

        if (let->device >= costs->n_devices)
                return sl_error_set(error, EINVAL, "lets: let %u is of device %u of %u", i, let->device, costs->n_devices);
        const char *name = costs->devices[let->device].name;
        uint32_t slot = sl_partition_slot(board->times, sl_board_class(board, let->device), let->units);
        if (slot == SL_COST_NONE)
                return sl_error_set(
                        error, EINVAL, "lets: let %u of \"%s\" has %u units, no size of its class", i, name, let->units);
        if (!let->n_places || let->n_places > board->problem->options.places_max)
                return sl_error_set(error, EINVAL, "lets: let %u of \"%s\" has %u models, from 1 to %u", i, name, let->n_places,
                        board->problem->options.places_max);
        for (uint32_t p = 0; p < let->n_places; p++) {
                const struct sl_partition_place *place = &let->places[p];

                if (place->model >= costs->n_models || !place->batch || place->batch > board->times->batch_max ||
                        !(place->rate > 0))
                        return sl_error_set(error, EINVAL, "lets: let %u of \"%s\" has model %u, batch %u, %g requests a second", i,
                                name, place->model, place->batch, place->rate);
                for (uint32_t k = 0; k < p; k++)
                        if (let->places[k].model == place->model)
                                return sl_error_set(error, EINVAL, "lets: let %u of \"%s\" has \"%s\" twice", i, name,
                                        costs->models[place->model].name);
        }
        return 0;
}

static int device_check(const struct sl_partition_board *board, uint32_t device, struct sl_error *error)
{
        uint64_t units = 0, all = sl_board_units(board, device);
        uint32_t n = 0;

        for (uint32_t i = 0; i < board->n_lets; i++)
                if (board->lets[i].device == device) {
                        units += board->lets[i].units;
                        n++;
                }
        const char *name = board->problem->costs->devices[device].name;
        if (units > all)
                return sl_error_set(error, EINVAL, "lets: those of \"%s\" have %llu units, the device %llu", name,
                        (unsigned long long)units, (unsigned long long)all);
        if (n > SL_PARTITION_OF_DEVICE)
                return sl_error_set(error, EINVAL, "lets: \"%s\" has %u lets, at most %u", name, n, SL_PARTITION_OF_DEVICE);
        return 0;
}

/* Memory and objectives. */
static int let_holds(struct sl_partition_board *board, uint32_t i, struct sl_error *error)
{
        const char *name = board->problem->costs->devices[board->lets[i].device].name;
        double cycle_ns = board->lets[i].cycle_ns;

        if (!sl_board_holds(board, i, cycle_ns))
                return sl_error_set(error, EINVAL,
                        "lets: let %u of \"%s\", cycle %.0f ns, batches %.0f ns: an objective or a rate is missed", i, name,
                        cycle_ns, sl_board_busy(board, i));
        return sl_board_settle(board, i) ? 0
                                         : sl_error_set(error, EINVAL, "lets: the workers of \"%s\" do not fit its memory", name);
}

static int model_check(const struct sl_partition_board *board, const struct sl_partition_schedule *schedule, uint32_t model,
        struct sl_error *error)
{
        double rate = board->problem->demands[model].rate, found = schedule->lacking[model];

        for (uint32_t i = 0; i < board->n_lets; i++)
                for (uint32_t p = 0; p < board->lets[i].n_places; p++)
                        found += board->lets[i].places[p].model == model ? board->lets[i].places[p].rate : 0;
        const char *name = board->problem->costs->models[model].name;
        if (!(found >= rate * (1 - CLOSE) && found <= rate * (1 + CLOSE)))
                return sl_error_set(
                        error, EINVAL, "lets: model \"%s\": %g requests a second are borne or lacking, of %g", name, found, rate);
        if (schedule->schedulable && schedule->lacking[model] > board->problem->options.dropped_rate)
                return sl_error_set(error, EINVAL, "lets: model \"%s\" lacks %g requests a second of a schedule that bears all",
                        name, schedule->lacking[model]);
        return 0;
}

static int parts_check(struct sl_partition_board *board, const struct sl_partition_schedule *schedule, struct sl_error *error)
{
        int r = 0;

        for (uint32_t i = 0; i < board->n_lets && r == 0; i++)
                r = let_check(board, i, error);
        for (uint32_t d = 0; d < board->problem->costs->n_devices && r == 0; d++)
                r = device_check(board, d, error);
        for (uint32_t i = 0; i < board->n_lets && r == 0; i++)
                r = let_holds(board, i, error);
        for (uint32_t m = 0; m < board->problem->costs->n_models && r == 0; m++)
                r = model_check(board, schedule, m, error);
        return r;
}

int sl_partition_check(
        const struct sl_partition_problem *problem, const struct sl_partition_schedule *schedule, struct sl_error *error)
{
        struct sl_partition_times *times = NULL;
        struct sl_partition_board *board = NULL;
        int r = sl_partition_problem_check(problem, error);

        if (r == 0 && schedule->n_lets > problem->costs->n_devices * SL_PARTITION_OF_DEVICE)
                r = sl_error_set(error, EINVAL, "lets: %u of them on %u devices, at most %u each", schedule->n_lets,
                        problem->costs->n_devices, SL_PARTITION_OF_DEVICE);
        if (r < 0)
                return r;
        r = sl_partition_times_new(problem, &times);
        r = r < 0 ? r : sl_board_new(problem, times, &board);
        if (r == 0) {
                board->n_lets = schedule->n_lets;
                memcpy(board->lets, schedule->lets, schedule->n_lets * sizeof(*board->lets));
                r = parts_check(board, schedule, error);
        }
        sl_board_free(board);
        sl_partition_times_free(times);
        return r == -ENOMEM ? sl_error_set(error, ENOMEM, "lets: out of memory") : r;
}
