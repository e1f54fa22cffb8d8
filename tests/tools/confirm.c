/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of what `starling optimize` keeps (optimize_confirm.h), with a bench in the place of the live one that says what a test
 * wants: what the paper's algorithms find can win, what is configured too, and chance keeps nothing.
 */
#include "allocation_bench.h"
#include "base/error.h"
#include "bench.h"
#include "costs.h"
#include "live_bench.h"
#include "matrix.h"
#include "optimize_confirm.h"
#include "optimize_ensemble.h"
#include "optimize_wish.h"
#include "ranking.h"
#include "search.h"
#include "simulated_bench.h"
#include "worst_fit.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MODELS  2u
#define DEVICES 2u

/* What the machine does in this test: samples a second of each, and how much chance has part in it. */
static struct {
        const struct sl_matrix *favourite;
        double of_favourite, of_others, of_configured, noise;
        uint32_t runs, until_interrupted; /* 0: never */
        bool is_interrupted;
} machine;

static int machine_run(double rate, struct sl_bench_result *ret_result, struct sl_error *error)
{
        machine.runs++;
        if (machine.until_interrupted && machine.runs == machine.until_interrupted) {
                machine.is_interrupted = true;
                return sl_error_set(error, EINTR, "interrupted");
        }
        *ret_result = (struct sl_bench_result){rate * (1 + machine.noise * (drand48() - 0.5)), 0};
        return 0;
}

static int fake_run(struct sl_bench *bench, const struct sl_matrix *matrix, const struct sl_calibration *calibration,
        struct sl_bench_result *ret_result, struct sl_error *error)
{
        bool favoured = machine.favourite && sl_matrix_equal(matrix, machine.favourite);

        (void)bench, (void)calibration;
        return machine_run(favoured ? machine.of_favourite : machine.of_others, ret_result, error);
}

static void fake_free(struct sl_bench *bench)
{
        free(bench);
}

static const struct sl_bench_ops fake_ops = {"fake", fake_run, fake_free};

int sl_live_bench_new(const struct sl_problem *problem, const struct sl_live_bench_options *options, struct sl_bench **ret_bench,
        struct sl_error *error)
{
        (void)problem, (void)options, (void)error;
        *ret_bench = calloc(1, sizeof(**ret_bench));
        (*ret_bench)->ops = &fake_ops;
        return 0;
}

int sl_live_bench_run_configured(struct sl_bench *bench, const struct sl_calibration *calibration,
        struct sl_bench_result *ret_result, struct sl_error *error)
{
        (void)bench, (void)calibration;
        return machine_run(machine.of_configured, ret_result, error);
}

bool sl_bench_interrupted(void)
{
        return machine.is_interrupted;
}

/* Two cores and two models, where the larger batch is computed to be the faster one. */
static struct sl_costs *two_cores(void)
{
        struct sl_costs *costs;

        cr_assert_eq(sl_costs_new(1, DEVICES, MODELS, 2, &costs, NULL), 0);
        snprintf(costs->classes[0].name, SL_COST_NAME_BYTES, "core");
        for (uint32_t i = 0; i < 2; i++) {
                costs->batches[i] = 8 << i;
                costs->devices[i].memory_bytes = 1 << 20;
                snprintf(costs->devices[i].name, SL_COST_NAME_BYTES, "cpu:%u", i);
                snprintf(costs->models[i].name, SL_COST_NAME_BYTES, "m%u", i);
                for (uint32_t b = 0; b < 2; b++)
                        *sl_costs_cell(costs, 0, i, b) = (struct sl_cost_cell){.latency_ns = 8000 + 1000 * b};
        }
        return costs;
}

/* The search has found one matrix: each model on both cores, with batches of 16. */
static struct confirmed confirm(struct sl_matrix *best)
{
        static const struct optimize_ensemble ensemble = {.name = "pair"};
        struct optimize_task task = {.costs = two_cores()};
        struct sl_bench *bench, *ranking;
        struct sl_bench_result computed;
        struct sl_matrix *found = sl_matrix_new(DEVICES, MODELS);
        struct confirmed confirmed;

        task.problem = (struct sl_problem){.costs = task.costs};
        cr_assert_eq(sl_simulated_bench_new(&task.problem, &bench, NULL), 0);
        cr_assert_eq(sl_ranking_new(bench, &task.problem, SL_MAX_THROUGHPUT, 3, &ranking, NULL), 0);
        for (uint32_t i = 0; i < DEVICES * MODELS; i++)
                found->entries[i] = 16;
        const struct sl_search search = {.problem = &task.problem, .bench = ranking, .objective = SL_MAX_THROUGHPUT};
        cr_assert_eq(sl_bench_run(ranking, found, &search.calibration, &computed, NULL), 0);
        const struct optimize_confirm_options options = {.ranking = ranking, .most = 1, .seed = 1};
        struct sl_error error = {""};
        cr_assert_eq(optimize_confirm(&task, &ensemble, &search, &options, best, &confirmed, &error), 0, "%s", error.text);
        sl_bench_free(ranking);
        sl_bench_free(bench);
        sl_matrix_free(found);
        sl_costs_free(task.costs);
        return confirmed;
}

static struct sl_matrix *worst_fit(void)
{
        struct sl_costs *costs = two_cores();
        const struct sl_problem problem = {.costs = costs};
        struct sl_matrix *matrix = sl_matrix_new(DEVICES, MODELS);

        cr_assert_eq(sl_worst_fit(&problem, 8, matrix, NULL), 0);
        sl_costs_free(costs);
        return matrix;
}

Test(confirm, what_the_papers_algorithm_finds_wins_where_it_is_measured_to_be_better)
{
        struct sl_matrix *favourite = worst_fit(), *best = sl_matrix_new(DEVICES, MODELS);

        machine.favourite = favourite;
        machine.of_favourite = 39500;
        machine.of_others = 34100;
        machine.of_configured = 30000;
        machine.noise = 0.02;
        struct confirmed confirmed = confirm(best);
        cr_expect(sl_matrix_equal(best, favourite));
        cr_expect(confirmed.is_better);
        cr_expect(confirmed.throughput.low <= confirmed.throughput.median &&
                  confirmed.throughput.median <= confirmed.throughput.high);
        cr_expect_float_eq(confirmed.throughput.median, 39500, 400);
        cr_expect_gt(confirmed.over_configured.low, 1.25);
        cr_expect_lt(confirmed.over_configured.high, 1.4);
        cr_expect_eq(confirmed.n, confirmed.tried);
        sl_matrix_free(favourite);
        sl_matrix_free(best);
}

Test(confirm, what_is_configured_wins_where_it_is_better_than_all)
{
        struct sl_matrix *best = sl_matrix_new(DEVICES, MODELS);

        machine.of_others = 34100;
        machine.of_configured = 40000;
        machine.noise = 0.02;
        struct confirmed confirmed = confirm(best);
        cr_expect_not(confirmed.is_better);
        cr_expect_lt(confirmed.over_configured.high, 1);
        cr_expect_gt(confirmed.n, 0);
        sl_matrix_free(best);
}

/* By the median alone one of them would be better in nearly every run. */
Test(confirm, what_is_better_by_chance_is_not_kept)
{
        struct sl_matrix *best = sl_matrix_new(DEVICES, MODELS);
        unsigned kept = 0;

        srand48(1);
        machine.of_others = machine.of_configured = 30000;
        machine.noise = 0.6;
        for (int i = 0; i < 60; i++)
                kept += confirm(best).is_better;
        cr_expect_leq(kept, 9, "%u of 60", kept);
        sl_matrix_free(best);
}

Test(confirm, interrupted_it_keeps_nothing)
{
        struct sl_matrix *best = sl_matrix_new(DEVICES, MODELS);

        machine.of_others = machine.of_configured = 30000;
        machine.until_interrupted = 9;
        cr_expect(confirm(best).interrupted);
        cr_expect_eq(sl_matrix_workers(best), 0);
        sl_matrix_free(best);
}
