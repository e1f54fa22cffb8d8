/* SPDX-License-Identifier: Apache-2.0 */
#include "cycle.h"

#define NS 1e9

/* A let's places with batches, while these are looked for. */
struct looking {
        double latencies[SL_PARTITION_PLACES_MAX], busy_ns;
        uint32_t fullest;  /* the place whose batch is full soonest */
        double full_ns;    /* when it is */
        double longest_ns; /* the cycle that this and the objectives allow */
};

static void look(const struct sl_partition_board *board, const struct sl_partition_let *let, struct looking *looking)
{
        bool all = board->problem->options.worst == SL_PARTITION_ALL_BATCHES;

        looking->busy_ns = 0;
        for (uint32_t i = 0; i < let->n_places; i++)
                looking->busy_ns += looking->latencies[i];
        looking->fullest = 0;
        looking->full_ns = looking->longest_ns = let->places[0].batch * NS / let->places[0].rate;
        for (uint32_t i = 0; i < let->n_places; i++) {
                double full_ns = let->places[i].batch * NS / let->places[i].rate, latency = looking->latencies[i];
                double objective_ns = (double)board->problem->demands[let->places[i].model].objective_ns;
                double until_ns = latency > 0 ? objective_ns - (all ? looking->busy_ns : latency) : 0;

                if (full_ns < looking->full_ns) {
                        looking->full_ns = full_ns;
                        looking->fullest = i;
                }
                looking->longest_ns = until_ns < looking->longest_ns ? until_ns : looking->longest_ns;
        }
        looking->longest_ns = looking->full_ns < looking->longest_ns ? looking->full_ns : looking->longest_ns;
}

/* More comes than the let computes in any batches, neighbours or not. */
static bool is_too_much(const struct sl_partition_board *board, const struct sl_partition_let *let)
{
        uint32_t class_index = sl_board_class(board, let->device), slot = sl_partition_slot(board->times, class_index, let->units);
        double busy = 0;

        for (uint32_t i = 0; i < let->n_places; i++)
                busy += let->places[i].rate / NS * sl_partition_cheapest(board->times, class_index, slot, let->places[i].model);
        return busy > 1 + 1e-9;
}

bool sl_cycle_find(struct sl_partition_board *board, uint32_t let)
{
        struct sl_partition_let *l = &board->lets[let], before = *l, best = *l;
        struct looking looking;
        double least = 2;

        if (is_too_much(board, l))
                return false;
        for (uint32_t i = 0; i < l->n_places; i++) {
                l->places[i].batch = 1;
                looking.latencies[i] = sl_board_latency(board, let, l->places[i].model, 1);
        }
        for (;;) {
                look(board, l, &looking);
                if (looking.busy_ns <= looking.longest_ns && looking.busy_ns / looking.longest_ns < least) {
                        least = looking.busy_ns / looking.longest_ns;
                        l->cycle_ns = looking.longest_ns;
                        best = *l;
                }
                struct sl_partition_place *place = &l->places[looking.fullest];
                if (looking.longest_ns < looking.full_ns || place->batch == board->times->batch_max)
                        break;
                place->batch++;
                looking.latencies[looking.fullest] = sl_board_latency(board, let, place->model, place->batch);
        }
        *l = least <= 1 ? best : before;
        return least <= 1;
}
