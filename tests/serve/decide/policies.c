/* SPDX-License-Identifier: Apache-2.0 */
/* What each policy decides, step by step, and what holds of all of them on random views. */
#include "policy.h"
#include "starling_policy.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define WORKERS SL_POLICY_WORKERS_MAX
#define MS      1000000ull

struct table {
        struct sl_policy_view view;
        struct sl_task_queue waiting;
        struct sl_service_time times;
        struct sl_batching batching;
        struct sl_batching_state state;
        struct sl_decision decisions[WORKERS + 1];
        uint64_t next_ns;
};

static void table_init(struct table *t, enum sl_policy_id policy)
{
        memset(t, 0, sizeof(*t));
        cr_assert_eq(sl_task_queue_init(&t->waiting, 512), 0);
        t->batching.policy = policy;
        t->batching.latency_ms = 20;
        t->view = (struct sl_policy_view){.waiting = &t->waiting,
                .batchable = true,
                .service_time = &t->times,
                .slice_samples = 65536,
                .batching = &t->batching,
                .batching_state = &t->state,
                .n_lets = 1,
                .starts_max = {UINT32_MAX}};
}

static void table_deinit(struct table *t)
{
        sl_task_queue_deinit(&t->waiting);
}

static void add_worker(struct table *t, uint32_t batch_max)
{
        t->view.workers[t->view.n_workers++] = (struct sl_policy_worker){.batch_max = batch_max, .jobs_max = 2};
}

static void wait_for(struct table *t, uint32_t samples, uint64_t arrival_ns)
{
        sl_task_queue_push(&t->waiting, &(struct sl_task){.samples = samples, .arrival_ns = arrival_ns});
}

static void wait_singles(struct table *t, uint32_t n, uint64_t arrival_ns)
{
        for (uint32_t i = 0; i < n; i++)
                wait_for(t, 1, arrival_ns);
}

static uint32_t decide(struct table *t, uint64_t now_ns)
{
        return sl_policies[t->batching.policy].decide(&t->view, now_ns, t->decisions, WORKERS + 1, &t->next_ns);
}

/* As the scheduler does: what is decided is taken from the queue, and the workers have it. */
static void apply(struct table *t, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++) {
                uint32_t left = t->decisions[i].samples;

                t->view.samples_given += left;
                t->view.workers[t->decisions[i].worker].jobs++;
                while (left) {
                        uint32_t most = sl_task_queue_at(&t->waiting, 0)->samples, taken = left < most ? left : most;

                        sl_task_queue_take(&t->waiting, taken);
                        left -= taken;
                }
        }
}

static void end_job(struct table *t, uint32_t worker, uint32_t samples)
{
        t->view.workers[worker].jobs--;
        t->view.samples_given -= samples;
}

static void expect(const struct table *t, uint32_t n, uint32_t n_wanted, const uint32_t (*wanted)[2])
{
        cr_assert_eq(n, n_wanted, "%u decisions, not %u", n, n_wanted);
        for (uint32_t i = 0; i < n; i++) {
                cr_expect_eq(t->decisions[i].worker, wanted[i][0], "decision %u: worker %u", i, t->decisions[i].worker);
                cr_expect_eq(t->decisions[i].samples, wanted[i][1], "decision %u: %u samples", i, t->decisions[i].samples);
        }
}

/* ---- the paper's ---- */

static void add_workers(struct table *t, uint32_t n, const uint32_t *sizes)
{
        for (uint32_t i = 0; i < n; i++)
                add_worker(t, sizes[i]);
}

static void naive_workers(struct table *t)
{
        add_workers(t, 6, (const uint32_t[]){1, 1, 2, 4, 8, 16});
}

/* Workers [1, 1, 2, 4, 8, 16]: 0 to 5. */
Test(policies, n_ebird_goes_through_figure_ten)
{
        struct table t;

        table_init(&t, SL_POLICY_n_ebird);
        naive_workers(&t);
        wait_singles(&t, 12, 0);
        uint32_t n = decide(&t, 0);
        expect(&t, n, 2, (const uint32_t[][2]){{4, 8}, {3, 4}});
        apply(&t, n);
        cr_expect_eq(sl_task_queue_length(&t.waiting), 0);

        wait_singles(&t, 3, 1);
        n = decide(&t, 1);
        expect(&t, n, 2, (const uint32_t[][2]){{2, 2}, {0, 1}});
        apply(&t, n);
        end_job(&t, 4, 8);
        wait_singles(&t, 40, 2);
        n = decide(&t, 2); /* 7 alive of 32: R is 25 */
        expect(&t, n, 3, (const uint32_t[][2]){{5, 16}, {4, 8}, {1, 1}});
        apply(&t, n);
        cr_expect_eq(decide(&t, 3), 0, "all alive that may be");
        table_deinit(&t);
}

Test(policies, n_ebird_has_no_more_alive_than_it_may)
{
        struct table t;

        table_init(&t, SL_POLICY_n_ebird);
        naive_workers(&t);
        t.view.samples_given = 30; /* of jobs that have no worker here any more */
        wait_singles(&t, 12, 0);
        expect(&t, decide(&t, 0), 1, (const uint32_t[][2]){{2, 2}});
        table_deinit(&t);
}

Test(policies, an_engine_without_a_worker_of_one_does_not_wait_for_ever)
{
        struct table t;

        table_init(&t, SL_POLICY_n_ebird);
        add_workers(&t, 2, (const uint32_t[]){8, 4});
        wait_singles(&t, 3, 0);
        expect(&t, decide(&t, 0), 1, (const uint32_t[][2]){{1, 3}});
        table_deinit(&t);
}

/* On the let of the first of its size something else has begun. */
Test(policies, an_idle_worker_of_n_ebird_takes_what_waits_wherever_it_is)
{
        struct table t;

        table_init(&t, SL_POLICY_n_ebird);
        add_workers(&t, 2, (const uint32_t[]){2, 2});
        t.view.workers[1].let = 1;
        t.view.n_lets = 2;
        t.view.starts_max[0] = 0;
        t.view.starts_max[1] = 1;
        wait_for(&t, 1, 0);
        expect(&t, decide(&t, 0), 1, (const uint32_t[][2]){{1, 1}});
        table_deinit(&t);
}

Test(policies, a_batch_of_n_ebird_is_the_largest_power_of_two_that_fits_a_slice)
{
        struct table t;

        table_init(&t, SL_POLICY_n_ebird);
        naive_workers(&t);
        t.view.slice_samples = 5;
        wait_singles(&t, 14, 0);
        expect(&t, decide(&t, 0), 4, (const uint32_t[][2]){{5, 4}, {4, 4}, {3, 4}, {2, 2}});
        wait_singles(&t, 6, 0);
        expect(&t, decide(&t, 0), 6, (const uint32_t[][2]){{5, 4}, {4, 4}, {3, 4}, {2, 2}, {0, 1}, {1, 1}});
        t.view.samples_given = 14; /* of MaxInf 16 */
        expect(&t, decide(&t, 0), 1, (const uint32_t[][2]){{2, 2}});
        table_deinit(&t);
}

Test(policies, nothing_of_n_ebird_starts_while_something_more_urgent_waits)
{
        struct table t;

        table_init(&t, SL_POLICY_n_ebird);
        add_workers(&t, 2, (const uint32_t[]){8, 4});
        wait_singles(&t, 20, 0);
        t.view.more_urgent_waits = true; /* three samples, while a worker computes: for when both are idle */
        cr_expect_eq(decide(&t, 0), 0);
        t.view.more_urgent_waits = false;
        expect(&t, decide(&t, 0), 2, (const uint32_t[][2]){{0, 8}, {1, 4}});
        table_deinit(&t);
}

static const struct sl_ebird_engine table_four = {{{{0, 0, 1}}, {{0, 0, 0, 1}}, {{0, 0, 2, 1}}, {{0, 0, 0, 2, 1}}}};

Test(policies, equation_six_has_4_10_36_and_202_configurations)
{
        static const uint32_t counts[] = {4, 10, 36, 202};
        struct sl_ebird_configuration all[256];

        for (uint32_t row = 0; row < SL_EBIRD_ROWS; row++) {
                uint32_t n = sl_ebird_configurations(sl_ebird_load(row), all, 256);

                cr_assert_eq(n, counts[row], "%u for %u", n, sl_ebird_load(row));
                for (uint32_t i = 0; i < n; i++) {
                        cr_expect_eq(sl_ebird_total(&all[i]), sl_ebird_load(row));
                        for (uint32_t k = 0; k < i; k++)
                                cr_expect_neq(memcmp(&all[i], &all[k], sizeof(*all)), 0, "%u and %u are the same", i, k);
                }
        }
}

/* The paper's last row of table 4 has one worker of 4; its row for 16 needs two. */
Test(policies, the_engine_has_the_workers_of_all_rows_of_table_four)
{
        const struct sl_ebird_configuration wanted = {{1, 1, 2, 2, 1, 0}};
        struct sl_ebird_configuration workers = sl_ebird_workers(&table_four);

        cr_expect_eq(memcmp(&workers, &wanted, sizeof(workers)), 0);
}

/* Latencies with which table 4's rows are the best: each batch beside others costs as the sum of all, small ones much more. */
static double cost_of(void *context, const struct sl_ebird_configuration *c)
{
        const struct sl_ebird_engine *best = context;

        for (uint32_t row = 0; row < SL_EBIRD_ROWS; row++)
                if (memcmp(c, &best->rows[row], sizeof(*c)) == 0)
                        return 1;
        return 2;
}

Test(policies, the_offline_phase_stores_the_best_row_of_each_load)
{
        struct sl_ebird_engine found = {0}, wanted = table_four;

        sl_ebird_search(cost_of, &wanted, &found);
        cr_expect_eq(memcmp(&found, &wanted, sizeof(found)), 0);
}

/* Workers [1, 2, 4, 4, 8, 8, 16]: 0 to 6. */
static void engine_workers(struct table *t)
{
        struct sl_ebird_configuration workers = sl_ebird_workers(&t->batching.engine);

        for (uint32_t i = 0; i < SL_EBIRD_SIZES; i++)
                for (uint32_t k = 0; k < workers.workers[i]; k++)
                        add_worker(t, 1u << i);
}

Test(policies, e_ebird_takes_the_stored_row_of_the_load)
{
        static const struct {
                uint32_t pending, n, decisions[4][2];
        } rows[] = {
                {1, 1, {{0, 1}}}, {3, 2, {{1, 2}, {0, 1}}}, {4, 1, {{2, 4}}}, {7, 3, {{2, 4}, {1, 2}, {0, 1}}}, {8, 1, {{4, 8}}},
                {12, 2, {{4, 8}, {2, 4}}}, /* figure 10's load */
                {16, 3, {{4, 8}, {2, 4}, {3, 4}}}, {32, 3, {{6, 16}, {4, 8}, {5, 8}}},
                {40, 3, {{6, 16}, {4, 8}, {5, 8}}}, /* MaxInf */
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct table t;

                table_init(&t, SL_POLICY_e_ebird);
                t.batching.engine = table_four;
                engine_workers(&t);
                cr_assert_eq(t.view.n_workers, 7);
                wait_singles(&t, rows[i].pending, 0);
                expect(&t, decide(&t, 0), rows[i].n, rows[i].decisions);
                table_deinit(&t);
        }
}

/* Its row has one worker of 4, and that is busy: the other one is not in the queue. */
Test(policies, e_ebird_counts_busy_workers_as_those_of_the_row)
{
        struct table t;

        table_init(&t, SL_POLICY_e_ebird);
        t.batching.engine = table_four;
        engine_workers(&t);
        wait_singles(&t, 4, 0);
        apply(&t, decide(&t, 0));
        wait_singles(&t, 5, 1);
        cr_expect_eq(decide(&t, 1), 0);
        end_job(&t, 2, 4);
        expect(&t, decide(&t, 2), 2, (const uint32_t[][2]){{2, 4}, {0, 1}});
        table_deinit(&t);
}

/* ---- baselines ---- */

Test(policies, opt_wait_sends_a_batch_that_is_full_or_due)
{
        struct table t;

        table_init(&t, SL_POLICY_opt_wait);
        t.batching.delay_us = 30000;
        add_worker(&t, 32);
        wait_singles(&t, 31, 5 * MS);
        cr_expect_eq(decide(&t, 34 * MS), 0);
        cr_expect_eq(t.next_ns, 35 * MS);
        expect(&t, decide(&t, 35 * MS), 1, (const uint32_t[][2]){{0, 31}});
        wait_singles(&t, 10, 6 * MS);
        expect(&t, decide(&t, 7 * MS), 1, (const uint32_t[][2]){{0, 32}});
        t.batching.policy = SL_POLICY_static;
        sl_task_queue_take(&t.waiting, 1);
        for (int i = 0; i < 20; i++)
                sl_task_queue_take(&t.waiting, 1);
        expect(&t, decide(&t, 40 * MS), 1, (const uint32_t[][2]){{0, 20}});
        cr_expect_eq(t.decisions[0].padding, 12);
        t.batching.policy = SL_POLICY_no_wait;
        expect(&t, decide(&t, 6 * MS), 1, (const uint32_t[][2]){{0, 20}});
        table_deinit(&t);
}

Test(policies, triton_sends_the_largest_preferred_size_and_the_rest_after_its_delay)
{
        struct table t;

        table_init(&t, SL_POLICY_triton);
        t.batching.delay_us = 100;
        t.batching.n_sizes = 2;
        t.batching.sizes[0] = 4;
        t.batching.sizes[1] = 8;
        add_worker(&t, 32);
        add_worker(&t, 32);
        add_worker(&t, 32);
        wait_singles(&t, 15, 0);
        uint32_t n = decide(&t, 0);
        expect(&t, n, 2, (const uint32_t[][2]){{0, 8}, {1, 4}});
        cr_expect_eq(t.next_ns, 100000);
        expect(&t, decide(&t, 100000), 3, (const uint32_t[][2]){{0, 8}, {1, 4}, {2, 3}});
        t.batching.in_order = 1;
        n = decide(&t, 0);
        expect(&t, n, 1, (const uint32_t[][2]){{0, 8}});
        apply(&t, n);
        cr_expect_eq(decide(&t, 200000), 0, "in order, nothing goes out while a batch is computed");
        table_deinit(&t);
}

Test(policies, aimd_grows_by_one_and_shrinks_by_a_tenth)
{
        struct table t;

        table_init(&t, SL_POLICY_aimd);
        add_worker(&t, 32);
        wait_singles(&t, 100, 0);
        for (uint32_t size = 1; size <= 10; size++) {
                expect(&t, decide(&t, 0), 1, (const uint32_t[][2]){{0, size}});
                sl_batching_learn(&t.state, &t.batching, size, 32, 19 * MS);
        }
        sl_batching_learn(&t.state, &t.batching, 3, 32, 1 * MS);
        cr_expect_float_eq(t.state.batch_max, 11, 1e-9, "a batch that was not full says nothing");
        sl_batching_learn(&t.state, &t.batching, 11, 32, 21 * MS);
        cr_expect_float_eq(t.state.batch_max, 9.9, 1e-9);
        for (uint32_t i = 0; i < 100; i++)
                sl_batching_learn(&t.state, &t.batching, 32, 32, 1 * MS);
        cr_expect_leq(t.state.batch_max, 32);
        table_deinit(&t);
}

/* Requests of several samples fill no batch to the last sample, and it grows all the same: each job that is decided keeps the
 * objective. */
Test(policies, aimd_grows_with_requests_of_any_size)
{
        for (uint32_t samples = 2; samples <= 9; samples++) {
                uint32_t most = 0;

                for (uint32_t round = 0; round < 100; round++) {
                        struct table t;
                        static struct sl_batching_state state;

                        table_init(&t, SL_POLICY_aimd);
                        add_worker(&t, 64);
                        for (uint32_t i = 0; i < 64; i++)
                                wait_for(&t, samples, 0);
                        t.state = round ? state : (struct sl_batching_state){.batch_max = 1};
                        cr_assert_eq(decide(&t, 0), 1);
                        most = t.decisions[0].samples;
                        sl_batching_learn(&t.state, &t.batching, most, 64, 1 * MS);
                        state = t.state;
                        table_deinit(&t);
                }
                cr_expect_gt(most + samples, 64, "requests of %u: %u samples", samples, most);
        }
}

Test(policies, nobody_learns_of_a_job_but_aimd)
{
        for (uint32_t policy = 0; policy < SL_POLICY_COUNT; policy++) {
                struct sl_batching batching = {.policy = policy, .latency_ms = 20};
                struct sl_batching_state state = {.batch_max = 3};

                sl_batching_learn(&state, &batching, 3, 32, 1 * MS);
                cr_expect_float_eq(state.batch_max, policy == SL_POLICY_aimd ? 4 : 3, 1e-9, "%s", sl_policies[policy].name);
        }
}

/* ---- Starling's ---- */

static void learn(struct table *t, double sample_ms, double saved_ms)
{
        for (uint32_t size = 1; size <= 64; size *= 2)
                sl_service_time_learn(&t->times, size, (uint64_t)((sample_ms * size + saved_ms) * 1e6));
}

Test(policies, starling_batches_where_it_pays_and_only_there)
{
        static const struct {
                double sample_ms, once_ms;
                uint32_t waiting, workers, size;
        } rows[] = {
                {1, 0, 32, 1, 1},     /* a batch takes what its samples do */
                {0.01, 5, 32, 1, 32}, /* a batch takes what one sample does */
                {1, 1, 32, 1, 4},     /* half and half: T(4) = 5, in 8 rounds */
                {0.01, 5, 2, 2, 1},   /* two workers take one each */
                {0.01, 5, 8, 2, 4},
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct table t;

                table_init(&t, SL_POLICY_starling);
                learn(&t, rows[i].sample_ms, rows[i].once_ms);
                cr_expect_eq(sl_starling_size(&t.view, rows[i].waiting, 32, rows[i].workers, 0), rows[i].size, "row %zu: %u", i,
                        sl_starling_size(&t.view, rows[i].waiting, 32, rows[i].workers, 0));
                table_deinit(&t);
        }
}

Test(policies, starling_takes_fewer_workers_and_larger_batches_where_they_slow_each_other_down)
{
        struct table t;

        table_init(&t, SL_POLICY_starling);
        learn(&t, 0.1, 5);
        add_worker(&t, 32);
        add_worker(&t, 32);
        wait_singles(&t, 2, 0);
        expect(&t, decide(&t, 0), 2, (const uint32_t[][2]){{0, 1}, {1, 1}});
        t.view.at_once = 1;
        expect(&t, decide(&t, 0), 1, (const uint32_t[][2]){{0, 2}});
        table_deinit(&t);
}

Test(policies, starling_tries_each_size_once)
{
        struct table t;

        table_init(&t, SL_POLICY_starling);
        add_worker(&t, 8);
        t.view.workers[0].jobs_max = 1;
        wait_singles(&t, 8, 0);
        for (uint32_t size = 2; size <= 8; size *= 2) {
                expect(&t, decide(&t, 0), 1, (const uint32_t[][2]){{0, size}});
                if (size == 2)
                        sl_service_time_learn(&t.times, 1, 1 * MS);
                sl_service_time_learn(&t.times, size, size * MS);
        }
        expect(&t, decide(&t, 0), 1, (const uint32_t[][2]){{0, 1}});
        table_deinit(&t);
}

Test(policies, starling_gathers_nobody_past_a_deadline)
{
        struct table t;

        table_init(&t, SL_POLICY_starling);
        learn(&t, 0.5, 5);
        add_worker(&t, 8);
        wait_singles(&t, 8, 0);
        expect(&t, decide(&t, 0), 1, (const uint32_t[][2]){{0, 8}});
        sl_task_queue_at(&t.waiting, 0)->deadline_ns = 8 * MS - MS / 2; /* five keep it */
        t.decisions[0].samples = 0;
        cr_assert_eq(decide(&t, 0), 1);
        cr_expect_leq(sl_service_time_ns(&t.times, t.decisions[0].samples), 8 * MS - MS / 2);
        cr_expect_gt(t.decisions[0].samples, 1);
        sl_task_queue_at(&t.waiting, 0)->deadline_ns = 1 * MS; /* lost in any batch */
        expect(&t, decide(&t, 0), 1, (const uint32_t[][2]){{0, 8}});
        table_deinit(&t);
}

/* ---- what holds of all ---- */

static uint32_t roll(uint32_t *dice, uint32_t sides)
{
        *dice = *dice * 1664525u + 1013904223u;
        return (*dice >> 16) % sides;
}

static void random_view(struct table *t, uint32_t *dice)
{
        uint32_t n_workers = 1 + roll(dice, WORKERS), n_tasks = roll(dice, 3) ? roll(dice, 20) : roll(dice, 500);

        t->view.batchable = roll(dice, 8) > 0;
        t->view.more_urgent_waits = roll(dice, 2);
        t->view.slice_samples = roll(dice, 2) ? 65536 : 1 + roll(dice, 40);
        t->view.at_once = roll(dice, 4);
        t->view.n_lets = 1 + roll(dice, 3);
        for (uint32_t i = 0; i < t->view.n_lets; i++)
                t->view.starts_max[i] = roll(dice, 3) ? UINT32_MAX : roll(dice, 4);
        for (uint32_t i = 0; i < n_workers; i++) {
                add_worker(t, 1 + roll(dice, 40));
                t->view.workers[i].jobs = roll(dice, 3) == 0;
                t->view.workers[i].let = roll(dice, t->view.n_lets);
                t->view.samples_given += t->view.workers[i].jobs * roll(dice, 8);
        }
        for (uint32_t i = 0; i < n_tasks; i++) {
                wait_for(t, 1 + roll(dice, roll(dice, 2) ? 1 : 50), i * 1000);
                sl_task_queue_at(&t->waiting, i)->deadline_ns = roll(dice, 2) ? 0 : roll(dice, 100) * MS;
        }
        for (uint32_t size = 1; size <= 64; size *= 2)
                if (roll(dice, 3))
                        sl_service_time_learn(&t->times, size, (1 + roll(dice, 20)) * MS);
}

static void random_batching(struct table *t, uint32_t *dice)
{
        t->batching.delay_us = roll(dice, 50000);
        t->batching.in_order = roll(dice, 2);
        t->batching.engine = table_four;
        t->state.batch_max = roll(dice, 40);
        if (t->batching.policy == SL_POLICY_triton)
                while (t->batching.n_sizes < roll(dice, 4)) {
                        uint32_t before = t->batching.n_sizes ? t->batching.sizes[t->batching.n_sizes - 1] : 0;

                        t->batching.sizes[t->batching.n_sizes++] = before + 1 + roll(dice, 9);
                }
}

/* No job is longer than a slice, but for one that a single task makes. */
static void check_slices(struct table *t, uint32_t n, uint32_t round)
{
        for (uint32_t i = 0; i < n; i++) {
                uint32_t samples = t->decisions[i].samples, oldest = sl_task_queue_at(&t->waiting, 0)->samples;

                cr_assert(samples <= t->view.slice_samples || samples == oldest, "%s, round %u: %u samples, %u fit a slice",
                        sl_policies[t->batching.policy].name, round, samples, t->view.slice_samples);
                for (uint32_t taken; samples; samples -= taken) {
                        oldest = sl_task_queue_at(&t->waiting, 0)->samples;
                        taken = samples < oldest ? samples : oldest;
                        sl_task_queue_take(&t->waiting, taken);
                }
        }
}

/* Nothing twice, nothing that does not wait, no worker that is not free, no let beyond its starts. */
static void check_decisions(const struct table *t, uint32_t n, uint32_t round)
{
        uint32_t starts[WORKERS] = {0}, jobs[WORKERS] = {0};
        uint64_t samples = 0;

        for (uint32_t i = 0; i < n; i++) {
                const struct sl_decision *d = &t->decisions[i];
                const struct sl_policy_worker *worker = &t->view.workers[d->worker];

                cr_assert_lt(d->worker, t->view.n_workers);
                cr_assert_gt(d->samples, 0, "%s, round %u", sl_policies[t->batching.policy].name, round);
                samples += d->samples;
                starts[worker->let]++;
                jobs[d->worker]++;
                cr_assert_leq(starts[worker->let], t->view.starts_max[worker->let]);
                cr_assert(worker->jobs + jobs[d->worker] == 1 || t->view.n_workers == 1, "%s, round %u: worker %u",
                        sl_policies[t->batching.policy].name, round, d->worker);
        }
        cr_assert_leq(samples, t->waiting.samples, "%s, round %u", sl_policies[t->batching.policy].name, round);
}

static bool some_idle(const struct table *t)
{
        for (uint32_t i = 0; i < t->view.n_workers; i++)
                if (t->view.workers[i].jobs == 0 && t->view.starts_max[t->view.workers[i].let])
                        return true;
        return false;
}

static bool some_busy(const struct table *t)
{
        for (uint32_t i = 0; i < t->view.n_workers; i++)
                if (t->view.workers[i].jobs)
                        return true;
        return false;
}

/* Without a decision: somebody is busy whose end brings the next one, or it is asked again in time. */
static void check_bound(const struct table *t, uint64_t now_ns, uint32_t n, uint32_t round)
{
        const char *name = sl_policies[t->batching.policy].name, *waits = sl_policies[t->batching.policy].waits;
        uint64_t due_ns;

        if (n || !sl_task_queue_length(&t->waiting) || !some_idle(t))
                return;
        cr_assert_str_neq(waits, "never", "%s, round %u: something waits and a worker is idle", name, round);
        due_ns = sl_task_queue_at(&t->waiting, 0)->arrival_ns + t->batching.delay_us * 1000ull;
        if (t->next_ns == UINT64_MAX)
                cr_assert(some_busy(t) || t->view.more_urgent_waits, "%s, round %u: nobody will ever ask again", name, round);
        else
                cr_assert(t->next_ns <= due_ns && t->next_ns > now_ns, "%s, round %u", name, round);
}

Test(policies, each_loses_nothing_takes_free_workers_only_and_keeps_its_bounds_on_waiting_and_slices)
{
        uint32_t dice = 1;

        for (uint32_t round = 0; round < 20000; round++) {
                struct table t;
                uint64_t now_ns;

                table_init(&t, round % SL_POLICY_COUNT);
                random_view(&t, &dice);
                random_batching(&t, &dice);
                now_ns = roll(&dice, 60) * MS;
                uint32_t n = decide(&t, now_ns);
                check_decisions(&t, n, round);
                check_bound(&t, now_ns, n, round);
                check_slices(&t, n, round);
                table_deinit(&t);
        }
}
