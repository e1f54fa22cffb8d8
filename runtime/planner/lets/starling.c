/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starling's own: any number of lets a device, any sizes that the costs know.
 *
 *     build    with a size for each model: lets that the model fills with its best batch, then what is left of each model, the
 *              dearest first: on a let that bears it in its cycle, else on the smallest let that does, else on what is free
 *     search   from several starts (the sizes that bear most for their units, whole devices, the smallest, elastic partitioning's
 *              order), one model's size after the other is changed as long as less is lacking
 *     grow     units that are left over go to lets, as long as they settle
 *
 * All of that for twice what comes, then for less, so that a burst finds room. Only for what comes it is searched at length.
 *
 * What the baselines make counts as a start too, so that none of them schedules what this does not. Deterministic: it draws
 * nothing.
 */
#include "cycle.h"
#include "schedulers.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NS     1e9
#define ROUNDS 4u   /* of the search, from each start */
#define CUTS   6u   /* halvings of a rate that a let does not bear as a whole */
#define BUILDS 120u /* tries of one search */
#define HASTE  15u  /* and where more is asked for than comes */

struct search {
        struct sl_partition_board *board;
        struct sl_partition_let *lets; /* the copy that steps of building take back */
        uint32_t *sizes;               /* of each model: a slot of its class, of the first device's */
        uint32_t *order;
        double *bears;   /* [slot][model]: requests a second of a let for itself, first device's class */
        uint32_t builds; /* that may be tried yet */
        double best;     /* what the best schedule lacks */
        struct sl_partition_schedule *schedule;
};

static uint32_t n_models(const struct search *search)
{
        return search->board->problem->costs->n_models;
}

static const struct sl_partition_sizes *sizes_of(const struct search *search)
{
        return &search->board->times->sizes[sl_board_class(search->board, 0)];
}

static double *bears_at(const struct search *search, uint32_t slot, uint32_t model)
{
        return &search->bears[slot * n_models(search) + model];
}

/* The batch that bears most, of those with twice their latency within the objective. */
static void bears_fill(struct search *search)
{
        const struct sl_partition_board *board = search->board;

        for (uint32_t slot = 0; slot < sizes_of(search)->n; slot++)
                for (uint32_t m = 0; m < n_models(search); m++)
                        for (uint32_t b = 1; b <= board->times->batch_max; b++) {
                                double latency = sl_partition_latency(board->times, sl_board_class(board, 0), slot, m, b);

                                if (latency > 0 && 2 * latency <= (double)board->problem->demands[m].objective_ns &&
                                        b * NS / latency > *bears_at(search, slot, m))
                                        *bears_at(search, slot, m) = b * NS / latency;
                        }
}

static void keep(const struct search *search, uint32_t *ret_n)
{
        *ret_n = search->board->n_lets;
        memcpy(search->lets, search->board->lets, *ret_n * sizeof(*search->lets));
}

static void take_back(const struct search *search, uint32_t n)
{
        search->board->n_lets = n;
        memcpy(search->board->lets, search->lets, n * sizeof(*search->lets));
}

/* Cycles of the let and, where lets are in each other's way, of its neighbours; memory. */
static bool settles(const struct search *search, uint32_t let)
{
        struct sl_partition_board *board = search->board;

        if (!sl_cycle_find(board, let))
                return false;
        for (uint32_t i = 0; i < board->n_lets && board->problem->options.interference; i++)
                if (i != let && board->lets[i].device == board->lets[let].device && board->lets[i].n_places &&
                        !sl_cycle_find(board, i))
                        return false;
        return sl_board_settle(board, let);
}

/* @rate of @model on a let, beside what is there. False, and nothing has changed: that does not hold. */
static bool place(const struct search *search, uint32_t let, uint32_t model, double rate)
{
        struct sl_partition_let *l = &search->board->lets[let];
        uint32_t at = 0, n;

        keep(search, &n);
        while (at < l->n_places && l->places[at].model != model)
                at++;
        if (at == l->n_places && at == search->board->problem->options.places_max)
                return false;
        if (at == l->n_places)
                l->places[l->n_places++] = (struct sl_partition_place){model, 1, 0};
        l->places[at].rate += rate;
        if (settles(search, let))
                return true;
        take_back(search, n);
        return false;
}

/* A new let of @units of the slot, where least is left beside it; SL_PARTITION_NONE: nowhere. */
static uint32_t new_let(const struct search *search, uint32_t units)
{
        struct sl_partition_board *board = search->board;
        uint32_t best = SL_PARTITION_NONE, least = UINT32_MAX, n;

        for (uint32_t d = 0; d < board->problem->costs->n_devices; d++) {
                uint32_t unused = sl_board_unused(board, d, &n),
                         slot = sl_partition_slot(board->times, sl_board_class(board, d), units);

                if (unused >= units && unused < least && n < SL_PARTITION_OF_DEVICE && slot != SL_COST_NONE) {
                        best = d;
                        least = unused;
                }
        }
        return best == SL_PARTITION_NONE ? best : sl_board_add(board, best, units);
}

static bool place_new(const struct search *search, uint32_t units, uint32_t model, double rate)
{
        uint32_t let = new_let(search, units);

        if (let == SL_PARTITION_NONE)
                return false;
        if (place(search, let, model, rate))
                return true;
        search->board->n_lets--;
        return false;
}

/* Lets that the model fills, of the size that is its. */
static void fill_lets(const struct search *search, uint32_t model)
{
        double *left = &search->board->left[model], rate = *bears_at(search, search->sizes[model], model);

        while (rate > 0 && *left >= rate * (1 - 1e-9)) {
                double taken = rate < *left ? rate : *left;

                if (!place_new(search, sizes_of(search)->units[search->sizes[model]], model, taken))
                        return;
                *left -= taken;
        }
}

/* On a let that is there, the one that is fullest already. */
static bool join(const struct search *search, uint32_t model, double rate)
{
        struct sl_partition_board *board = search->board;
        bool tried[SL_PARTITION_OF_DEVICE * 64] = {false};
        uint32_t n = board->n_lets < SL_PARTITION_OF_DEVICE * 64 ? board->n_lets : SL_PARTITION_OF_DEVICE * 64;

        for (uint32_t round = 0; round < n; round++) {
                uint32_t best = SL_PARTITION_NONE;
                double most = -1;

                for (uint32_t i = 0; i < n; i++) {
                        double occupancy = tried[i] ? -1 : sl_board_busy(board, i) / board->lets[i].cycle_ns;

                        if (occupancy > most) {
                                most = occupancy;
                                best = i;
                        }
                }
                if (best == SL_PARTITION_NONE)
                        return false;
                tried[best] = true;
                if (place(search, best, model, rate))
                        return true;
        }
        return false;
}

/* The smallest new let that bears it. */
static bool begin(const struct search *search, uint32_t model, double rate)
{
        const struct sl_partition_sizes *sizes = sizes_of(search);

        for (uint32_t slot = 0; slot < sizes->n; slot++)
                if (sizes->is_let[slot] && *bears_at(search, slot, model) >= rate * (1 - 1e-9) &&
                        place_new(search, sizes->units[slot], model, rate))
                        return true;
        return false;
}

/* As much of what is left as any let bears, or what is free. */
static bool place_part(const struct search *search, uint32_t model)
{
        const struct sl_partition_sizes *sizes = sizes_of(search);
        double *left = &search->board->left[model], part = *left;

        for (uint32_t slot = sizes->n; slot-- > 0;) {
                double rate = fmin(*left, *bears_at(search, slot, model));

                if (sizes->is_let[slot] && rate > 0 && place_new(search, sizes->units[slot], model, rate)) {
                        *left -= rate;
                        return true;
                }
        }
        for (uint32_t cut = 0; cut < CUTS; cut++, part /= 2)
                if (join(search, model, part)) {
                        *left -= part;
                        return true;
                }
        return false;
}

static bool is_left(const struct search *search, uint32_t model)
{
        double close = 1e-9 * search->board->problem->demands[model].rate, may = search->board->problem->options.dropped_rate;

        return search->board->left[model] > (may > close ? may : close);
}

static void build(struct search *search)
{
        search->builds -= search->builds > 0;
        sl_board_clear(search->board);
        for (uint32_t i = 0; i < n_models(search); i++)
                if (search->board->problem->demands[search->order[i]].rate > 0)
                        fill_lets(search, search->order[i]);
        for (uint32_t i = 0; i < n_models(search); i++) {
                uint32_t model = search->order[i];

                while (is_left(search, model)) {
                        if (join(search, model, search->board->left[model]) || begin(search, model, search->board->left[model]))
                                search->board->left[model] = 0;
                        else if (!place_part(search, model))
                                break;
                }
        }
}

/* Units that no let has go to those that are busiest, size by size. */
static void grow(const struct search *search)
{
        struct sl_partition_board *board = search->board;
        bool grown = true;

        while (grown) {
                grown = false;
                for (uint32_t i = 0; i < board->n_lets && !grown; i++) {
                        uint32_t n, unused = sl_board_unused(board, board->lets[i].device, &n);
                        const struct sl_partition_sizes *sizes = &board->times->sizes[sl_board_class(board, board->lets[i].device)];
                        uint32_t slot = sl_partition_slot(
                                                board->times, sl_board_class(board, board->lets[i].device), board->lets[i].units) +
                                        1;

                        while (slot < sizes->n && !sizes->is_let[slot])
                                slot++;
                        if (!board->lets[i].n_places || slot >= sizes->n || sizes->units[slot] - board->lets[i].units > unused)
                                continue;
                        keep(search, &n);
                        board->lets[i].units = sizes->units[slot];
                        grown = settles(search, i);
                        if (!grown)
                                take_back(search, n);
                }
        }
}

/* What the board has is the answer if nothing better was found. Return: 0; -ENOMEM. */
static int offer(struct search *search)
{
        double lacking = sl_board_lacking(search->board);
        struct sl_partition_schedule *schedule = NULL;

        if (search->schedule && lacking >= search->best)
                return 0;
        if (lacking <= 0)
                grow(search);
        int r = sl_board_schedule(search->board, &schedule);
        if (r < 0)
                return r;
        sl_partition_schedule_free(search->schedule);
        search->schedule = schedule;
        search->best = lacking;
        return 0;
}

/* Nothing better is to be looked for, or may be. */
static bool is_over(const struct search *search)
{
        return !search->builds || (search->schedule && search->schedule->schedulable);
}

/* One model's size after the other, as long as less is lacking. */
static int climb(struct search *search)
{
        const struct sl_partition_sizes *sizes = sizes_of(search);
        int r = 0;

        build(search);
        double now = sl_board_lacking(search->board);
        r = offer(search);
        for (uint32_t round = 0, changed = 1; round < ROUNDS && changed && r == 0; round++) {
                changed = 0;
                for (uint32_t m = 0; m < n_models(search) && r == 0 && !is_over(search); m++) {
                        if (!(search->board->problem->demands[m].rate > 0))
                                continue;
                        for (uint32_t slot = 0; slot < sizes->n && r == 0 && !is_over(search); slot++) {
                                uint32_t before = search->sizes[m];

                                if (slot == before || !sizes->is_let[slot])
                                        continue;
                                search->sizes[m] = slot;
                                build(search);
                                double lacking = sl_board_lacking(search->board);
                                r = offer(search);
                                if (lacking < now) {
                                        now = lacking;
                                        changed = 1;
                                } else
                                        search->sizes[m] = before;
                        }
                }
        }
        return r;
}

/* Of each model the slot that bears most for its units, the smallest, or the whole. */
static void start_sizes(struct search *search, uint32_t way)
{
        const struct sl_partition_sizes *sizes = sizes_of(search);

        for (uint32_t m = 0; m < n_models(search); m++) {
                double most = 0;

                search->sizes[m] = sizes->n - 1;
                for (uint32_t slot = 0; slot < sizes->n && way != 1; slot++) {
                        double worth = *bears_at(search, slot, m) / (way == 0 ? sizes->units[slot] : 1);

                        if (sizes->is_let[slot] && worth > most * (1 + 1e-9)) {
                                most = worth;
                                search->sizes[m] = slot;
                                if (way == 2)
                                        break;
                        }
                }
        }
}

/* Models that cost most units first, or by objective, or as they are. */
static void start_order(struct search *search, uint32_t way)
{
        const struct sl_partition_demand *demands = search->board->problem->demands;

        for (uint32_t i = 0; i < n_models(search); i++)
                search->order[i] = i;
        for (uint32_t i = 1; i < n_models(search); i++)
                for (uint32_t k = i; k > 0; k--) {
                        uint32_t *a = &search->order[k - 1], *b = &search->order[k], swapped = *a;
                        double of_a = demands[*a].rate / fmax(1e-9, *bears_at(search, sizes_of(search)->n - 1, *a));
                        double of_b = demands[*b].rate / fmax(1e-9, *bears_at(search, sizes_of(search)->n - 1, *b));

                        if (way == 1) {
                                of_a = -(double)demands[*a].objective_ns;
                                of_b = -(double)demands[*b].objective_ns;
                        }
                        if (of_b <= of_a)
                                break;
                        *a = *b;
                        *b = swapped;
                }
}

static int elastic_work(struct sl_partition_board *board)
{
        return sl_partition_elastic_work(board, board->problem->costs->n_devices, true);
}

static int search_baselines(struct search *search)
{
        static sl_partition_work *const works[] = {
                elastic_work, sl_partition_sbp_halves_work, sl_partition_sbp_work, sl_partition_self_tuning_work};
        int r = 0;

        for (uint32_t i = 0; i < sizeof(works) / sizeof(*works) && r == 0 && !search->schedule->schedulable; i++) {
                sl_board_clear(search->board);
                r = works[i](search->board);
                r = r < 0 ? r : offer(search);
        }
        return r;
}

static int search_starts(struct search *search)
{
        int r = 0;

        for (uint32_t order = 0; order < 2 && r == 0 && !is_over(search); order++)
                for (uint32_t sizes = 0; sizes < 3 && r == 0 && !is_over(search); sizes++) {
                        start_order(search, order);
                        start_sizes(search, sizes);
                        r = climb(search);
                }
        return r;
}

/* What was made for @more times the rates, for these. */
static void lower(struct sl_partition_schedule *schedule, uint32_t models, double more)
{
        for (uint32_t m = 0; m < models; m++)
                schedule->lacking[m] /= more;
        for (uint32_t i = 0; i < schedule->n_lets; i++)
                for (uint32_t p = 0; p < schedule->lets[i].n_places; p++)
                        schedule->lets[i].places[p].rate /= more;
}

/* For more than what comes while that is schedulable, so that what comes in bursts finds room. */
static int search_all(
        struct search *search, const struct sl_partition_problem *problem, struct sl_partition_demand *demands, double bound)
{
        static const double mores[] = {2, 1.5, 1.25, 1.1, 1.05, 1};
        int r = 0;

        bears_fill(search);
        for (uint32_t i = 0; i < sizeof(mores) / sizeof(*mores) && r == 0; i++) {
                if (mores[i] > 1 && mores[i] > bound)
                        continue;
                for (uint32_t m = 0; m < n_models(search); m++)
                        demands[m].rate = problem->demands[m].rate * mores[i];
                search->schedule = sl_partition_schedule_free(search->schedule);
                search->builds = mores[i] > 1 ? HASTE : BUILDS;
                r = search_starts(search);
                if (r == 0 && search->schedule->schedulable) {
                        lower(search->schedule, n_models(search), mores[i]);
                        return 0;
                }
        }
        return r < 0 ? r : search_baselines(search);
}

int sl_partition_starling(const struct sl_partition_problem *problem, struct sl_partition_schedule **ret_schedule)
{
        uint32_t n = problem->costs->n_models;
        struct sl_partition_demand *demands = calloc(n, sizeof(*demands));
        const struct sl_partition_problem scaled = {problem->costs, demands, problem->options};
        struct sl_partition_times *times = NULL;
        struct search search = {.lets = calloc(problem->costs->n_devices * SL_PARTITION_OF_DEVICE, sizeof(*search.lets)),
                .sizes = calloc(n, sizeof(*search.sizes)),
                .order = calloc(n, sizeof(*search.order)),
                .bears = calloc((size_t)n * SL_PARTITION_SLOTS, sizeof(*search.bears))};
        double bound = 0;
        int r = demands && search.lets && search.sizes && search.order && search.bears ? 0 : -ENOMEM;

        if (r == 0)
                memcpy(demands, problem->demands, n * sizeof(*demands));
        r = r < 0 ? r : sl_partition_bound(problem, &bound);
        r = r < 0 ? r : sl_partition_times_new(problem, &times);
        r = r < 0 ? r : sl_board_new(&scaled, times, &search.board);
        r = r < 0 ? r : search_all(&search, problem, demands, bound);
        if (r == 0)
                *ret_schedule = search.schedule;
        else
                sl_partition_schedule_free(search.schedule);
        sl_board_free(search.board);
        sl_partition_times_free(times);
        free(search.lets);
        free(search.sizes);
        free(search.order);
        free(search.bears);
        free(demands);
        return r;
}
