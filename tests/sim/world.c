/* SPDX-License-Identifier: Apache-2.0 */
#include "costs.h"
#include "fleet.h"

#include "base/error.h"
#include "rounds.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MS       1000000ull
#define MODELS   3u
#define LETS     3u
#define WORKERS  6u
#define REQUESTS 4000u

/* A world on the stack, and what comes and ends in it. */
struct bed {
        struct sl_sim_world world;
        struct sl_sim_let lets[LETS];
        struct sl_sim_model models[MODELS];
        struct sl_sim_worker workers[WORKERS];
        struct sl_sim_ensemble ensembles[2];
        struct sl_sim_time times[LETS * MODELS];
        double pairs[LETS * MODELS * MODELS];
        struct sl_sim_request requests[REQUESTS];
        uint64_t end_ns[REQUESTS];
        uint32_t n, at, n_ended, n_decided;
        int status[REQUESTS];
        uint64_t log;
};

static const uint32_t all[] = {0, 1, 2}, second[] = {1};

/* Three models with a worker each, on a let of its own; a sample takes 1 ms whatever the batch. */
static void set_up(struct bed *bed)
{
        *bed = (struct bed){.world = {.n_lets = LETS,
                                    .n_classes = LETS,
                                    .n_models = MODELS,
                                    .n_workers = MODELS,
                                    .n_ensembles = 2,
                                    .lets = bed->lets,
                                    .models = bed->models,
                                    .workers = bed->workers,
                                    .ensembles = bed->ensembles,
                                    .times = bed->times,
                                    .pairs = bed->pairs,
                                    .n_clients = 4,
                                    .n_requests = REQUESTS,
                                    .n_segments = 256,
                                    .jobs_max = 2}};
        bed->ensembles[0] = (struct sl_sim_ensemble){all, MODELS, 128, REQUESTS, false};
        bed->ensembles[1] = (struct sl_sim_ensemble){second, 1, 128, REQUESTS, false};
        for (uint32_t i = 0; i < MODELS; i++) {
                bed->lets[i] = (struct sl_sim_let){.class_index = i, .cores_of = i, .at_once = 1};
                bed->models[i] = (struct sl_sim_model){.slice_samples = SL_SLICE_SAMPLES_MAX};
                bed->workers[i] = (struct sl_sim_worker){.let = i, .model = i, .batch_max = 1024};
        }
        for (uint32_t i = 0; i < LETS * MODELS; i++)
                bed->times[i].latency_ns[0] = MS;
}

static void ask(struct bed *bed, struct sl_sim_request request)
{
        bed->requests[bed->n++] = request;
}

static bool next(void *context, struct sl_sim_request *ret_request)
{
        struct bed *bed = context;

        if (bed->at == bed->n)
                return false;
        *ret_request = bed->requests[bed->at++];
        return true;
}

static void ended(void *context, const struct sl_sim_end *end)
{
        struct bed *bed = context;

        cr_assert_lt(end->number, bed->n);
        cr_assert_eq(bed->end_ns[end->number], 0, "request %lu ends twice", end->number);
        bed->end_ns[end->number] = end->end_ns;
        bed->status[end->number] = end->status;
        bed->n_ended++;
}

static void decided(void *context, const struct sl_sim_decided *d)
{
        struct bed *bed = context;
        uint64_t words[] = {d->now_ns, d->model, d->priority, d->worker, d->decision.samples};

        bed->n_decided++;
        for (int i = 0; i < 5; i++)
                bed->log = (bed->log ^ words[i]) * 0x100000001b3u;
}

static void run(struct bed *bed)
{
        struct sl_sim *sim;

        cr_assert_eq(sl_sim_of_world(&bed->world, &(struct sl_sim_calls){bed, next, ended, decided}, &sim), 0);
        sl_sim_run(sim);
        sl_sim_free(sim);
        cr_expect_eq(bed->n_ended, bed->n);
}

Test(world, an_ensemble_is_done_when_its_slowest_member_is)
{
        static struct bed bed;

        set_up(&bed);
        bed.times[2 * MODELS + 2].latency_ns[0] = 3 * MS;
        ask(&bed, (struct sl_sim_request){.samples = 300});
        ask(&bed, (struct sl_sim_request){.samples = 10, .ensemble = 1});
        run(&bed);
        cr_expect_eq(bed.end_ns[0], 900 * MS, "%lu", bed.end_ns[0]);
        cr_expect_lt(bed.end_ns[1], bed.end_ns[0], "the member that both have is done with it before");
}

/* 300 samples with N = 128 are segments of 128, 128 and 44. */
Test(world, a_segment_is_cut_to_what_fits_the_slice)
{
        static struct bed bed;

        set_up(&bed);
        ask(&bed, (struct sl_sim_request){.samples = 300, .ensemble = 1});
        run(&bed);
        cr_expect_eq(bed.n_decided, 1, "gathered in a job: %u", bed.n_decided);
        set_up(&bed);
        bed.models[1].slice_ns = 10 * MS;
        ask(&bed, (struct sl_sim_request){.samples = 300, .ensemble = 1});
        run(&bed);
        cr_expect_geq(bed.n_decided, 30, "%u", bed.n_decided);
        cr_expect_eq(bed.end_ns[0], 300 * MS);
}

Test(world, clients_take_turns)
{
        static struct bed bed;

        set_up(&bed);
        bed.models[1].slice_ns = 10 * MS;
        ask(&bed, (struct sl_sim_request){.samples = 1000, .ensemble = 1});
        ask(&bed, (struct sl_sim_request){.samples = 10, .ensemble = 1, .client = 1});
        run(&bed);
        cr_expect_leq(bed.end_ns[1], 50 * MS, "its turn comes after the window and a slice: %lu", bed.end_ns[1]);
        cr_expect_eq(bed.end_ns[0], 1010 * MS);
}

Test(world, what_is_urgent_goes_before_what_waits_on_the_same_let)
{
        static struct bed bed;

        set_up(&bed);
        bed.models[1].slice_ns = bed.models[0].slice_ns = bed.models[2].slice_ns = 5 * MS;
        for (uint32_t i = 0; i < MODELS; i++)
                bed.workers[i].let = 0;
        ask(&bed, (struct sl_sim_request){.samples = 200, .priority = 3});
        ask(&bed, (struct sl_sim_request){.samples = 5, .ensemble = 1, .client = 1, .arrival_ns = MS});
        run(&bed);
        cr_expect_leq(bed.end_ns[1], 50 * MS, "one slice of each that computes, shared, and its own: %lu", bed.end_ns[1]);
}

Test(world, pairs_slow_each_other_down_as_far_as_each_is_beside_the_other)
{
        static struct bed bed;

        set_up(&bed);
        bed.lets[0].at_once = 0;
        bed.workers[1].let = 0;
        bed.world.n_workers = 2;
        bed.ensembles[0].n_members = 1;
        bed.pairs[0 * MODELS + 1] = 1.5; /* 0 beside 1 */
        bed.pairs[1 * MODELS + 0] = 3;
        ask(&bed, (struct sl_sim_request){.samples = 10});
        ask(&bed, (struct sl_sim_request){.samples = 10, .ensemble = 1});
        run(&bed);
        cr_expect_eq(bed.end_ns[0], 15 * MS, "%lu", bed.end_ns[0]);
        cr_expect_eq(bed.end_ns[1], 20 * MS, "a third of the way in the first 15 ms: %lu", bed.end_ns[1]);
}

Test(world, lets_share_cores_or_do_not)
{
        static struct bed bed;

        for (uint32_t shared = 0; shared < 2; shared++) {
                set_up(&bed);
                bed.lets[1].cores_of = shared ? 0 : 1;
                bed.world.n_workers = 2;
                bed.ensembles[0].n_members = 1;
                ask(&bed, (struct sl_sim_request){.samples = 10});
                ask(&bed, (struct sl_sim_request){.samples = 10, .ensemble = 1});
                run(&bed);
                cr_expect_eq(bed.end_ns[0], (shared ? 20 : 10) * MS, "%lu", bed.end_ns[0]);
        }
}

/* 10 and 3 ms in slices of 2: the short one is done after 2 + 2 + 2 + 1. */
Test(world, who_has_computed_for_a_slice_makes_room_for_who_waits)
{
        static struct bed bed;

        set_up(&bed);
        bed.lets[0].slice_ns = 2 * MS;
        bed.workers[1].let = 0;
        bed.world.n_workers = 2;
        bed.ensembles[0].n_members = 1;
        ask(&bed, (struct sl_sim_request){.samples = 10});
        ask(&bed, (struct sl_sim_request){.samples = 3, .ensemble = 1});
        run(&bed);
        cr_expect_eq(bed.end_ns[1], 7 * MS, "%lu", bed.end_ns[1]);
        cr_expect_eq(bed.end_ns[0], 13 * MS, "%lu", bed.end_ns[0]);
}

Test(world, what_a_request_takes_beside_computing_is_added_where_it_is_taken)
{
        static struct bed bed;

        set_up(&bed);
        bed.world.own = (struct sl_sim_own){
                .taken_ns = 1, .hop_ns = 20, .job_ns = 300, .heard_ns = 4000, .told_ns = 50000, .wake_ns = 600000};
        ask(&bed, (struct sl_sim_request){.samples = 1, .ensemble = 1});
        run(&bed);
        cr_expect_eq(bed.end_ns[0], MS + 654321, "%lu", bed.end_ns[0]);
}

/* Eight jobs of one worker: it hears of the first, and finds the others there. */
Test(world, a_job_that_lies_ready_hides_the_way_to_the_worker)
{
        static struct bed bed;
        uint64_t last[2];

        for (uint32_t jobs = 1; jobs <= 2; jobs++) {
                set_up(&bed);
                bed.world.own.hop_ns = bed.world.own.wake_ns = bed.world.own.heard_ns = MS / 10;
                bed.world.jobs_max = jobs;
                bed.workers[1].batch_max = 1;
                for (uint32_t i = 0; i < 8; i++)
                        ask(&bed, (struct sl_sim_request){.samples = 1, .ensemble = 1});
                run(&bed);
                last[jobs - 1] = bed.end_ns[7];
        }
        cr_expect_eq(last[0], 8 * (MS + 3 * MS / 10));
        cr_expect_eq(last[1], 8 * MS + 3 * MS / 10);
}

Test(world, only_powers_of_two_run_where_it_says_so)
{
        struct sl_sim_time time = {.latency_ns = {100, 150, 200, 250}};

        cr_expect_eq(sl_sim_time_ns(&time, 6, 8), 225);
        cr_expect_eq(sl_sim_time_ns(&time, 12, 8), 450);
        time.in_steps = true;
        cr_expect_eq(sl_sim_time_ns(&time, 6, 8), 350, "4 and 2");
        cr_expect_eq(sl_sim_time_ns(&time, 7, 2), 550, "2, 2, 2 and 1");
}

static uint32_t roll(uint32_t *dice, uint32_t sides)
{
        *dice = *dice * 1664525u + 1013904223u;
        return (uint32_t)(((uint64_t)(*dice >> 8) * sides) >> 24);
}

static void roll_world(struct bed *bed, uint32_t dice)
{
        set_up(bed);
        bed->world.n_workers = WORKERS;
        bed->world.learns = roll(&dice, 2);
        bed->world.jobs_max = 1 + roll(&dice, 2);
        bed->world.own.hop_ns = roll(&dice, 2) * 50000;
        bed->world.own.heard_ns = roll(&dice, 2) * 30000;
        for (uint32_t i = 0; i < WORKERS; i++)
                bed->workers[i] =
                        (struct sl_sim_worker){.let = roll(&dice, LETS), .model = i % MODELS, .batch_max = 1u << roll(&dice, 7)};
        for (uint32_t i = 0; i < MODELS; i++) {
                bed->lets[i].cores_of = roll(&dice, 2) ? 0 : i;
                bed->lets[i].copy_engines = roll(&dice, 2);
                bed->lets[i].slice_ns = roll(&dice, 2) * MS;
                bed->models[i].batching = (struct sl_batching){.policy = roll(&dice, SL_POLICY_COUNT),
                        .latency_ms = 20,
                        .delay_us = 3000,
                        .engine = {{{{0, 0, 1}}, {{0, 0, 0, 1}}, {{0, 0, 2, 1}}, {{0, 0, 0, 2, 1}}}}};
                bed->models[i].slice_ns = roll(&dice, 2) * 10 * MS;
        }
        for (uint32_t i = 0; i < LETS * MODELS * MODELS; i++)
                bed->pairs[i] = 1 + roll(&dice, 100) / 80.0;
        for (uint64_t i = 0, at_ns = 0; i < 300; i++) {
                at_ns += roll(&dice, 8 * (uint32_t)MS);
                ask(bed, (struct sl_sim_request){.arrival_ns = at_ns,
                                 .samples = 1 + roll(&dice, roll(&dice, 8) ? 4 : 300),
                                 .client = roll(&dice, 4),
                                 .priority = roll(&dice, 4),
                                 .ensemble = roll(&dice, 2),
                                 .deadline_ns = roll(&dice, 4) ? 0 : at_ns + 20 * MS});
        }
}

Test(world, whatever_it_is_each_request_ends_once_and_the_same_seed_is_the_same_run)
{
        static struct bed first, again;

        for (uint32_t seed = 1; seed <= SL_ROUNDS(300); seed++) {
                roll_world(&first, seed * 7919);
                run(&first);
                roll_world(&again, seed * 7919);
                run(&again);
                cr_assert_eq(first.log, again.log, "seed %u", seed);
                for (uint32_t i = 0; i < first.n; i++) {
                        cr_assert_eq(first.end_ns[i], again.end_ns[i]);
                        cr_assert_geq(first.end_ns[i], first.requests[i].arrival_ns);
                        cr_assert(first.status[i] == 0 || first.status[i] == (first.requests[i].deadline_ns ? -ETIME : 0));
                }
        }
}

Test(world, a_queue_that_is_full_refuses)
{
        static struct bed bed;

        set_up(&bed);
        bed.ensembles[1].queue_requests = 2;
        for (uint32_t i = 0; i < 3; i++)
                ask(&bed, (struct sl_sim_request){.samples = 1, .ensemble = 1});
        run(&bed);
        cr_expect_eq(bed.status[1], 0);
        cr_expect_eq(bed.status[2], -EBUSY);
}

static struct sl_costs *two_gpus(void)
{
        struct sl_costs *costs;

        cr_assert_eq(sl_costs_new(1, 2, 2, 2, &costs, NULL), 0);
        strcpy(costs->classes[0].name, "V100");
        costs->classes[0].kind = SL_DEVICE_GPU;
        costs->classes[0].pair_default = 1.25;
        costs->batches[0] = 1;
        costs->batches[1] = 8;
        for (uint32_t i = 0; i < 2; i++) {
                snprintf(costs->devices[i].name, SL_COST_NAME_BYTES, "gpu:%u", i);
                costs->devices[i].memory_bytes = 1000;
                snprintf(costs->models[i].name, SL_COST_NAME_BYTES, "net%u", i);
                costs->models[i].weights_bytes = 300;
                for (uint32_t b = 0; b < 2; b++)
                        *sl_costs_cell(costs, 0, i, b) = (struct sl_cost_cell){
                                .latency_ns = (b ? 22 : 8) * MS, .transfer_ns = 0, .workspace_bytes = b ? 200 : 100};
        }
        return costs;
}

static int run_costs(struct bed *bed, const struct sl_costs *costs, struct sl_error *error)
{
        struct sl_sim_world world = bed->world;
        struct sl_sim *sim;
        int r;

        world.lets = NULL;
        world.times = NULL;
        world.pairs = NULL;
        world.n_models = 2;
        r = sl_sim_of_costs(costs, &world, &(struct sl_sim_calls){bed, next, ended, decided}, &sim, error);
        if (r < 0)
                return r;
        sl_sim_run(sim);
        sl_sim_free(sim);
        return 0;
}

Test(world, costs_say_what_batches_take_and_who_is_in_whose_way)
{
        static struct bed bed;
        struct sl_costs *costs = two_gpus();

        set_up(&bed);
        bed.ensembles[0].n_members = 1;
        bed.world.n_workers = 2;
        bed.workers[0] = (struct sl_sim_worker){.let = 0, .model = 0, .batch_max = 8};
        bed.workers[1] = (struct sl_sim_worker){.let = 0, .model = 1, .batch_max = 8};
        ask(&bed, (struct sl_sim_request){.samples = 4});
        ask(&bed, (struct sl_sim_request){.samples = 4, .ensemble = 1});
        cr_assert_eq(run_costs(&bed, costs, NULL), 0);
        cr_expect_eq(bed.end_ns[0], 17500000, "3/7 of the way from 8 to 22 ms, 1.25 times: %lu", bed.end_ns[0]);
        sl_costs_free(costs);
}

Test(world, workers_that_do_not_fit_are_refused_with_cell_and_limit)
{
        static struct bed bed;
        struct sl_costs *costs = two_gpus();
        struct sl_error error;

        set_up(&bed);
        bed.ensembles[0].n_members = 2;
        bed.world.n_workers = 4;
        for (uint32_t i = 0; i < 4; i++)
                bed.workers[i] = (struct sl_sim_worker){.let = 1, .model = i % 2, .batch_max = i ? 1 : 8};
        cr_expect_eq(run_costs(&bed, costs, &error), -ENOSPC);
        cr_expect_str_eq(error.text,
                "sim: \"gpu:1\": its workers need 1100 bytes, 500 of them \"net0\" on \"gpu:1\" in batches of 8; it has 1000");
        bed.workers[3].let = 0;
        cr_expect_eq(run_costs(&bed, costs, &error), 0, "weights lie once on each device: %s", error.text);
        bed.workers[3].batch_max = 4;
        cr_expect_eq(run_costs(&bed, costs, &error), -EINVAL);
        cr_expect_str_eq(error.text, "sim: \"net1\" on \"gpu:0\", batch 4: its cost is not known");
        sl_costs_free(costs);
}
