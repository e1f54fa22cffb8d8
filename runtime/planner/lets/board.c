/* SPDX-License-Identifier: Apache-2.0 */
#include "board.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rates and cycles are quotients of each other: what is nearer than this is equal. */
#define CLOSE 1e-9
#define NS    1e9

static uint32_t room_of(const struct sl_partition_problem *problem)
{
        return problem->costs->n_devices * SL_PARTITION_OF_DEVICE;
}

int sl_board_new(
        const struct sl_partition_problem *problem, const struct sl_partition_times *times, struct sl_partition_board **ret_board)
{
        struct sl_partition_board *board = calloc(1, sizeof(*board));

        if (!board)
                return -ENOMEM;
        board->problem = problem;
        board->times = times;
        board->lets = calloc(room_of(problem), sizeof(*board->lets));
        board->kept = calloc(room_of(problem), sizeof(*board->kept));
        board->left = calloc(problem->costs->n_models, sizeof(*board->left));
        if (!board->lets || !board->kept || !board->left) {
                sl_board_free(board);
                return -ENOMEM;
        }
        sl_board_clear(board);
        *ret_board = board;
        return 0;
}

struct sl_partition_board *sl_board_free(struct sl_partition_board *board)
{
        if (!board)
                return NULL;
        free(board->lets);
        free(board->kept);
        free(board->left);
        free(board);
        return NULL;
}

void sl_board_clear(struct sl_partition_board *board)
{
        board->n_lets = 0;
        for (uint32_t m = 0; m < board->problem->costs->n_models; m++)
                board->left[m] = board->problem->demands[m].rate;
}

void sl_board_keep(struct sl_partition_board *board)
{
        memcpy(board->kept, board->lets, board->n_lets * sizeof(*board->lets));
        board->n_kept = board->n_lets;
}

void sl_board_restore(struct sl_partition_board *board)
{
        memcpy(board->lets, board->kept, board->n_kept * sizeof(*board->lets));
        board->n_lets = board->n_kept;
}

/* No more of a model's rate than it may drop, or than arithmetic leaves. */
static bool is_borne(const struct sl_partition_problem *problem, uint32_t model, double left)
{
        return left <= problem->options.dropped_rate || left <= CLOSE * problem->demands[model].rate;
}

bool sl_board_is_done(const struct sl_partition_board *board)
{
        for (uint32_t m = 0; m < board->problem->costs->n_models; m++)
                if (!is_borne(board->problem, m, board->left[m]))
                        return false;
        return true;
}

double sl_board_lacking(const struct sl_partition_board *board)
{
        double lacking = 0;

        for (uint32_t m = 0; m < board->problem->costs->n_models; m++)
                if (!is_borne(board->problem, m, board->left[m]))
                        lacking += board->left[m] / board->problem->demands[m].rate;
        return lacking;
}

static int compare_lets(const void *a, const void *b)
{
        const struct sl_partition_let *x = a, *y = b;

        if (x->device != y->device)
                return x->device < y->device ? -1 : 1;
        if (x->units != y->units)
                return x->units < y->units ? -1 : 1;
        return x->places[0].model < y->places[0].model ? -1 : x->places[0].model > y->places[0].model;
}

int sl_board_schedule(const struct sl_partition_board *board, struct sl_partition_schedule **ret_schedule)
{
        uint32_t n_models = board->problem->costs->n_models;
        struct sl_partition_schedule *schedule = calloc(1, sizeof(*schedule));

        if (!schedule)
                return -ENOMEM;
        schedule->lets = calloc(board->n_lets + 1, sizeof(*schedule->lets));
        schedule->lacking = calloc(n_models, sizeof(*schedule->lacking));
        if (!schedule->lets || !schedule->lacking) {
                sl_partition_schedule_free(schedule);
                return -ENOMEM;
        }
        for (uint32_t i = 0; i < board->n_lets; i++)
                if (board->lets[i].n_places)
                        schedule->lets[schedule->n_lets++] = board->lets[i];
        qsort(schedule->lets, schedule->n_lets, sizeof(*schedule->lets), compare_lets);
        schedule->schedulable = true;
        for (uint32_t m = 0; m < n_models; m++) {
                schedule->lacking[m] = board->left[m] > CLOSE * board->problem->demands[m].rate ? board->left[m] : 0;
                schedule->schedulable = schedule->schedulable && is_borne(board->problem, m, board->left[m]);
        }
        *ret_schedule = schedule;
        return 0;
}

uint32_t sl_board_class(const struct sl_partition_board *board, uint32_t device)
{
        return board->problem->costs->devices[device].class_index;
}

uint32_t sl_board_units(const struct sl_partition_board *board, uint32_t device)
{
        const struct sl_partition_sizes *sizes = &board->times->sizes[sl_board_class(board, device)];

        return sizes->units[sizes->n - 1];
}

uint32_t sl_board_unused(const struct sl_partition_board *board, uint32_t device, uint32_t *ret_lets)
{
        uint32_t units = sl_board_units(board, device), n = 0;

        for (uint32_t i = 0; i < board->n_lets; i++)
                if (board->lets[i].device == device) {
                        units -= board->lets[i].units;
                        n++;
                }
        *ret_lets = n;
        return units;
}

uint32_t sl_board_add(struct sl_partition_board *board, uint32_t device, uint32_t units)
{
        uint32_t n, unused = sl_board_unused(board, device, &n);

        if (n == SL_PARTITION_OF_DEVICE || unused < units)
                return SL_PARTITION_NONE;
        board->lets[board->n_lets] = (struct sl_partition_let){.device = device, .units = units};
        return board->n_lets++;
}

void sl_board_remove(struct sl_partition_board *board, uint32_t let)
{
        board->lets[let] = board->lets[--board->n_lets];
}

/* What the worst place of another let adds. */
static double added_by(const struct sl_partition_board *board, const struct sl_partition_let *other, uint32_t class_index,
        const struct sl_cost_running *running)
{
        double most = 0;

        for (uint32_t i = 0; i < other->n_places; i++) {
                const struct sl_cost_running beside = {other->places[i].model, other->places[i].batch, other->units};
                double added = sl_partition_slowdown(board->times, class_index, running, &beside) - 1;

                most = added > most ? added : most;
        }
        return most;
}

double sl_board_latency(const struct sl_partition_board *board, uint32_t let, uint32_t model, uint32_t batch)
{
        const struct sl_partition_let *l = &board->lets[let];
        uint32_t class_index = sl_board_class(board, l->device), slot = sl_partition_slot(board->times, class_index, l->units);
        double slowdown = 1;

        if (slot == SL_COST_NONE || batch > board->times->batch_max)
                return 0;
        if (board->problem->options.interference) {
                const struct sl_cost_running running = {model, batch, l->units};

                for (uint32_t i = 0; i < board->n_lets; i++)
                        if (i != let && board->lets[i].device == l->device)
                                slowdown += added_by(board, &board->lets[i], class_index, &running);
        }
        return slowdown * sl_partition_latency(board->times, class_index, slot, model, batch);
}

double sl_board_busy(const struct sl_partition_board *board, uint32_t let)
{
        const struct sl_partition_let *l = &board->lets[let];
        double busy = 0;

        for (uint32_t i = 0; i < l->n_places; i++)
                busy += sl_board_latency(board, let, l->places[i].model, l->places[i].batch);
        return busy;
}

bool sl_board_holds(const struct sl_partition_board *board, uint32_t let, double cycle_ns)
{
        const struct sl_partition_let *l = &board->lets[let];
        double busy = sl_board_busy(board, let);

        if (busy > cycle_ns * (1 + CLOSE))
                return false;
        for (uint32_t i = 0; i < l->n_places; i++) {
                const struct sl_partition_place *place = &l->places[i];
                double own = sl_board_latency(board, let, place->model, place->batch);
                double last = board->problem->options.worst == SL_PARTITION_ALL_BATCHES ? busy : own;

                if (own <= 0 || cycle_ns + last > (double)board->problem->demands[place->model].objective_ns * (1 + CLOSE) ||
                        place->rate * cycle_ns / NS > place->batch * (1 + CLOSE))
                        return false;
        }
        return true;
}

/* Bytes of the places of a let; @ret_models: those that are on the memory already, and then those of the let as well. */
static uint64_t let_bytes(const struct sl_partition_board *board, uint32_t let, uint32_t pool)
{
        const struct sl_costs *costs = board->problem->costs;
        const struct sl_partition_let *l = &board->lets[let];
        uint32_t class_index = sl_board_class(board, l->device), slot = sl_partition_slot(board->times, class_index, l->units);
        uint64_t bytes = 0;

        for (uint32_t p = 0; p < l->n_places; p++) {
                uint32_t model = l->places[p].model;
                bool there = false;

                bytes += board->times->workspace_bytes[sl_partition_at(board->times, class_index, slot, model, l->places[p].batch)];
                for (uint32_t i = 0; i < let && !there; i++)
                        for (uint32_t k = 0; k < board->lets[i].n_places; k++)
                                there = there || (costs->devices[board->lets[i].device].memory_of == pool &&
                                                         board->lets[i].places[k].model == model);
                bytes += there ? 0 : costs->models[model].weights_bytes;
        }
        return bytes;
}

static bool fits(const struct sl_partition_board *board, uint32_t device)
{
        const struct sl_costs *costs = board->problem->costs;
        uint32_t pool = costs->devices[device].memory_of;
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < board->n_lets; i++)
                if (costs->devices[board->lets[i].device].memory_of == pool)
                        bytes += let_bytes(board, i, pool);
        return bytes <= costs->devices[pool].memory_bytes;
}

bool sl_board_settle(struct sl_partition_board *board, uint32_t let)
{
        uint32_t device = board->lets[let].device;

        for (uint32_t i = 0; i < board->n_lets; i++) {
                if (board->lets[i].device != device || !board->lets[i].n_places ||
                        (i != let && !board->problem->options.interference))
                        continue;
                if (sl_board_holds(board, i, board->lets[i].cycle_ns))
                        continue;
                double busy = sl_board_busy(board, i);
                if (i == let || !sl_board_holds(board, i, busy))
                        return false;
                board->lets[i].cycle_ns = busy;
        }
        return fits(board, device);
}

uint32_t sl_board_saturating(const struct sl_partition_board *board, uint32_t let, uint32_t model)
{
        double objective_ns = (double)board->problem->demands[model].objective_ns;
        uint32_t largest = 0;

        for (uint32_t b = 1; b <= board->times->batch_max; b++) {
                double latency = sl_board_latency(board, let, model, b);

                if (latency > 0 && 2 * latency <= objective_ns)
                        largest = b;
        }
        return largest;
}

/* The batch and cycle of a model that comes at less than what its saturating batch bears. False: no batch holds. */
static bool residue(const struct sl_partition_board *board, uint32_t let, uint32_t model, double rate, uint32_t *ret_batch,
        double *ret_cycle_ns)
{
        double objective_ns = (double)board->problem->demands[model].objective_ns, interval_ns = NS / rate;
        double first = sl_board_latency(board, let, model, 1);

        *ret_batch = 0;
        for (uint32_t b = 1; b <= board->times->batch_max; b++) {
                double latency = sl_board_latency(board, let, model, b);

                if (latency > 0 && latency + b * interval_ns <= objective_ns && latency <= b * interval_ns) {
                        *ret_batch = b;
                        *ret_cycle_ns = b * interval_ns;
                }
        }
        if (*ret_batch)
                return true;
        if (first > 0 && first + interval_ns > objective_ns && 2 * first <= objective_ns && objective_ns - first <= interval_ns) {
                *ret_batch = 1;
                *ret_cycle_ns = objective_ns - first;
                return true;
        }
        for (uint32_t b = 1; b <= board->times->batch_max; b++) {
                double latency = sl_board_latency(board, let, model, b);

                if (latency > 0 && latency <= b * interval_ns && 2 * latency <= objective_ns) {
                        *ret_batch = b;
                        *ret_cycle_ns = latency;
                        return true;
                }
        }
        return false;
}

bool sl_board_fill(struct sl_partition_board *board, uint32_t let, uint32_t model, double rate, double *ret_taken)
{
        struct sl_partition_let *l = &board->lets[let];
        uint32_t batch = sl_board_saturating(board, let, model);

        if (!batch || !(rate > 0))
                return false;
        double latency = sl_board_latency(board, let, model, batch), capacity = batch * NS / latency, taken = rate;
        double cycle_ns = latency;
        if (rate >= capacity)
                taken = capacity;
        else if (!residue(board, let, model, rate, &batch, &cycle_ns))
                return false;
        sl_board_keep(board);
        l->places[0] = (struct sl_partition_place){model, batch, taken};
        l->n_places = 1;
        l->cycle_ns = cycle_ns;
        if (!sl_board_settle(board, let)) {
                sl_board_restore(board);
                return false;
        }
        *ret_taken = taken;
        return true;
}

static uint32_t place_of(const struct sl_partition_let *let, uint32_t model)
{
        uint32_t place = 0;

        while (place < let->n_places && let->places[place].model != model)
                place++;
        return place;
}

bool sl_board_merge(struct sl_partition_board *board, uint32_t let, uint32_t model, double rate)
{
        struct sl_partition_let *l = &board->lets[let];
        uint32_t place = place_of(l, model), batch, places_max = board->problem->options.places_max;
        double cycle_ns;

        sl_board_keep(board);
        if (place == l->n_places) {
                if (place == (places_max < SL_PARTITION_PLACES_MAX ? places_max : SL_PARTITION_PLACES_MAX))
                        return false;
                l->places[l->n_places++] = (struct sl_partition_place){model, 1, 0};
        }
        l->places[place].rate += rate;
        bool good = residue(board, let, model, l->places[place].rate, &batch, &cycle_ns);
        if (good && cycle_ns < l->cycle_ns)
                l->cycle_ns = cycle_ns;
        for (uint32_t i = 0; good && i < l->n_places; i++) {
                double comes = ceil(l->places[i].rate * l->cycle_ns / NS * (1 - CLOSE));

                good = comes <= board->times->batch_max;
                l->places[i].batch = good && comes > 1 ? (uint32_t)comes : 1;
        }
        good = good && sl_board_settle(board, let);
        if (!good)
                sl_board_restore(board);
        return good;
}
