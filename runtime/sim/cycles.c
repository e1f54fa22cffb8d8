/* SPDX-License-Identifier: Apache-2.0 */
#include "cycles.h"

#include "base/split_mix.h"
#include "costs.h"
#include "partition.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NS    1e9
#define NEVER INFINITY

/* What is later than its objective by less than this share of it is rounding. */
#define CLOSE 1e-6

/* Arrival times, oldest first: a ring of a power of two. */
struct waiting {
        double *at_ns;
        uint32_t first, n, room;
};

struct place {
        uint32_t model, batch;
        double rate;
        double next_ns;     /* of regular arrivals */
        double *latency_ns; /* of each batch from 1 */
        struct waiting waiting;
};

struct let {
        uint32_t device, class_index, units, first_place, n_places, turn;
        uint32_t n_computing, model; /* samples; 0: idle */
        double left_ns, speed;       /* what the batch takes alone yet; 1 / slow-down */
        double *computing_ns;        /* when its requests came */
};

struct run {
        const struct sl_partition_problem *problem;
        const struct sl_sim_cycles_options *options;
        struct sl_sim_cycles_count *counts;
        uint32_t n_lets, n_places;
        struct let *lets;
        struct place *places;
        double *next_ns; /* of each model's Poisson arrivals */
        double now_ns;
        uint64_t draw;
};

static double draw_share(struct run *run)
{
        return (double)(sl_split_mix_next(&run->draw) >> 11) * 0x1p-53;
}

static double model_rate(const struct run *run, uint32_t model)
{
        double rate = 0;

        for (uint32_t p = 0; p < run->n_places; p++)
                rate += run->places[p].model == model ? run->places[p].rate : 0;
        return rate;
}

static double interval_ns(struct run *run, double rate)
{
        return rate > 0 ? -log(1 - draw_share(run)) * NS / rate : NEVER;
}

/* What every batch takes on the let; one that is not known as the next larger. */
static int latencies_fill(const struct run *run, const struct let *let, struct place *place)
{
        uint32_t units = run->problem->costs->classes[let->class_index].units ? let->units : 0;
        struct sl_cost_let cost;
        double next_ns = 0;

        place->latency_ns = calloc(place->batch, sizeof(*place->latency_ns));
        if (!place->latency_ns)
                return -ENOMEM;
        for (uint32_t b = SL_PARTITION_BATCH_MAX; b > 0; b--) {
                if (sl_costs_let(run->problem->costs, let->class_index, units, place->model, b, &cost))
                        next_ns = cost.latency_ns + cost.transfer_ns;
                if (b <= place->batch)
                        place->latency_ns[b - 1] = next_ns;
        }
        return 0;
}

static int let_init(struct run *run, struct let *let, const struct sl_partition_let *given)
{
        uint32_t batch_max = 1;
        int r = 0;

        *let = (struct let){.device = given->device,
                .class_index = run->problem->costs->devices[given->device].class_index,
                .units = given->units,
                .first_place = run->n_places,
                .n_places = given->n_places};
        for (uint32_t i = 0; i < given->n_places && r == 0; i++) {
                struct place *place = &run->places[run->n_places++];

                *place = (struct place){
                        .model = given->places[i].model, .batch = given->places[i].batch, .rate = given->places[i].rate};
                place->next_ns = draw_share(run) * NS / place->rate;
                batch_max = place->batch > batch_max ? place->batch : batch_max;
                r = latencies_fill(run, let, place);
        }
        let->computing_ns = calloc(batch_max, sizeof(*let->computing_ns));
        return let->computing_ns ? r : -ENOMEM;
}

static int run_init(struct run *run, const struct sl_partition_schedule *schedule)
{
        uint32_t n_models = run->problem->costs->n_models;
        int r = 0;

        run->lets = calloc(schedule->n_lets + 1, sizeof(*run->lets));
        run->places = calloc((size_t)schedule->n_lets * SL_PARTITION_PLACES_MAX + 1, sizeof(*run->places));
        run->next_ns = calloc(n_models, sizeof(*run->next_ns));
        if (!run->lets || !run->places || !run->next_ns)
                return -ENOMEM;
        for (; run->n_lets < schedule->n_lets && r == 0; run->n_lets++)
                r = let_init(run, &run->lets[run->n_lets], &schedule->lets[run->n_lets]);
        for (uint32_t m = 0; m < n_models; m++)
                run->next_ns[m] = interval_ns(run, model_rate(run, m));
        return r;
}

static void run_deinit(struct run *run)
{
        for (uint32_t p = 0; run->places && p < run->n_places; p++) {
                free(run->places[p].latency_ns);
                free(run->places[p].waiting.at_ns);
        }
        for (uint32_t i = 0; run->lets && i < run->n_lets; i++)
                free(run->lets[i].computing_ns);
        free(run->lets);
        free(run->places);
        free(run->next_ns);
}

static int waiting_add(struct waiting *waiting, double at_ns)
{
        if (waiting->n == waiting->room) {
                uint32_t room = waiting->room ? 2 * waiting->room : 16;
                double *grown = calloc(room, sizeof(*grown));

                if (!grown)
                        return -ENOMEM;
                for (uint32_t i = 0; i < waiting->n; i++)
                        grown[i] = waiting->at_ns[(waiting->first + i) & (waiting->room - 1)];
                free(waiting->at_ns);
                *waiting = (struct waiting){grown, 0, waiting->n, room};
        }
        waiting->at_ns[(waiting->first + waiting->n++) & (waiting->room - 1)] = at_ns;
        return 0;
}

static double waiting_take(struct waiting *waiting)
{
        double at_ns = waiting->at_ns[waiting->first];

        waiting->first = (waiting->first + 1) & (waiting->room - 1);
        waiting->n--;
        return at_ns;
}

static double limit_ns(const struct run *run, uint32_t model)
{
        return (double)run->problem->demands[model].objective_ns * (1 + CLOSE);
}

/* The place's turn: as many as its batch of those that can be in time yet. Return: samples. */
static uint32_t gather(struct run *run, struct let *let, struct place *place)
{
        uint32_t n = 0;

        while (place->waiting.n && n < place->batch) {
                double at_ns = waiting_take(&place->waiting);

                if (run->now_ns - at_ns > limit_ns(run, place->model))
                        run->counts[place->model].dropped++;
                else
                        let->computing_ns[n++] = at_ns;
        }
        return n;
}

/* An idle let begins with the next place in turn where something waits. */
static void let_begin(struct run *run, struct let *let)
{
        for (uint32_t i = 0; i < let->n_places && !let->n_computing; i++) {
                struct place *place = &run->places[let->first_place + let->turn];

                let->turn = (let->turn + 1) % let->n_places;
                let->n_computing = gather(run, let, place);
                if (let->n_computing) {
                        let->model = place->model;
                        let->left_ns = place->latency_ns[let->n_computing - 1];
                }
        }
}

static void let_end(struct run *run, struct let *let)
{
        struct sl_sim_cycles_count *count = &run->counts[let->model];

        for (uint32_t i = 0; i < let->n_computing; i++) {
                double took_ns = run->now_ns - let->computing_ns[i];

                count->late += took_ns > limit_ns(run, let->model);
                count->longest_ns = took_ns > count->longest_ns ? took_ns : count->longest_ns;
        }
        let->n_computing = 0;
}

static void speeds_set(struct run *run, uint32_t device)
{
        for (uint32_t i = 0; i < run->n_lets; i++) {
                struct let *let = &run->lets[i];
                const struct sl_cost_running running = {let->model, let->n_computing, let->units};
                double slowdown = 1;

                if (let->device != device || !let->n_computing)
                        continue;
                for (uint32_t k = 0; k < run->n_lets && run->options->interference; k++) {
                        const struct let *other = &run->lets[k];
                        const struct sl_cost_running beside = {other->model, other->n_computing, other->units};

                        if (k != i && other->device == device && other->n_computing)
                                slowdown += sl_costs_let_slowdown(run->problem->costs, let->class_index, &running, &beside) - 1;
                }
                let->speed = 1 / slowdown;
        }
}

static void advance(struct run *run, double to_ns)
{
        for (uint32_t i = 0; i < run->n_lets; i++)
                if (run->lets[i].n_computing)
                        run->lets[i].left_ns -= (to_ns - run->now_ns) * run->lets[i].speed;
        run->now_ns = to_ns;
}

static struct let *let_of(struct run *run, const struct place *place)
{
        uint32_t at = (uint32_t)(place - run->places), i = 0;

        while (at >= run->lets[i].first_place + run->lets[i].n_places)
                i++;
        return &run->lets[i];
}

/* The place of the model where least waits and is computed for its rate; the first of those. */
static struct place *route(struct run *run, uint32_t model)
{
        struct place *best = NULL;
        double least = INFINITY;

        for (uint32_t p = 0; p < run->n_places; p++) {
                struct place *place = &run->places[p];

                if (place->model != model)
                        continue;
                const struct let *let = let_of(run, place);
                double before = place->waiting.n + (let->n_computing && let->model == model ? let->n_computing : 0);
                if ((before + 1) / place->rate < least) {
                        least = (before + 1) / place->rate;
                        best = place;
                }
        }
        return best;
}

static int arrive(struct run *run, struct place *place)
{
        struct let *let = let_of(run, place);
        int r = waiting_add(&place->waiting, run->now_ns);

        run->counts[place->model].requests++;
        if (r == 0 && !let->n_computing) {
                let_begin(run, let);
                speeds_set(run, let->device);
        }
        return r;
}

/* The next arrival: its model or place; NEVER: none comes any more. */
static double next_arrival(const struct run *run, uint32_t *ret_index)
{
        uint32_t n = run->options->regular ? run->n_places : run->problem->costs->n_models;
        double next = NEVER;

        for (uint32_t i = 0; i < n; i++) {
                double at_ns = run->options->regular ? run->places[i].next_ns : run->next_ns[i];

                if (at_ns < next && at_ns < (double)run->options->duration_ns) {
                        next = at_ns;
                        *ret_index = i;
                }
        }
        return next;
}

static double next_end(const struct run *run, uint32_t *ret_let)
{
        double next = NEVER;

        for (uint32_t i = 0; i < run->n_lets; i++) {
                const struct let *let = &run->lets[i];
                double at_ns = let->n_computing ? run->now_ns + fmax(0, let->left_ns) / let->speed : NEVER;

                if (at_ns < next) {
                        next = at_ns;
                        *ret_let = i;
                }
        }
        return next;
}

static int step(struct run *run, bool *ret_done)
{
        uint32_t index = 0, let = 0;
        double arrival_ns = next_arrival(run, &index), end_ns = next_end(run, &let);

        *ret_done = isinf(arrival_ns) && isinf(end_ns);
        if (*ret_done)
                return 0;
        if (end_ns <= arrival_ns) {
                advance(run, end_ns);
                let_end(run, &run->lets[let]);
                let_begin(run, &run->lets[let]);
                speeds_set(run, run->lets[let].device);
                return 0;
        }
        advance(run, arrival_ns);
        if (run->options->regular) {
                run->places[index].next_ns += NS / run->places[index].rate;
                return arrive(run, &run->places[index]);
        }
        run->next_ns[index] += interval_ns(run, model_rate(run, index));
        return arrive(run, route(run, index));
}

int sl_sim_cycles_run(const struct sl_partition_problem *problem, const struct sl_partition_schedule *schedule,
        const struct sl_sim_cycles_options *options, struct sl_sim_cycles_count *ret_counts)
{
        struct run run = {.problem = problem, .options = options, .counts = ret_counts, .draw = options->seed};
        bool done = false;

        memset(ret_counts, 0, problem->costs->n_models * sizeof(*ret_counts));
        int r = run_init(&run, schedule);
        while (r == 0 && !done)
                r = step(&run, &done);
        for (uint32_t p = 0; p < run.n_places; p++)
                ret_counts[run.places[p].model].dropped += run.places[p].waiting.n;
        run_deinit(&run);
        return r;
}
