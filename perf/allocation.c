/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allocation: how the optimizers of the planner do on a table of costs: WFD, BGO, BBS, Starling's own, and every matrix where there
 * are few, each with its throughput as the simulated bench has it, its benches and its time; and what none of them can exceed.
 *
 *     bench-allocation COSTS MODELS GPUS SEED [MAX_ITER [STARTS [BENCHES]]]
 *     bench-allocation COSTS MODELS GPUS matrix ROW/ROW/...       the throughput of that one; a ROW is of batch sizes, CPUs first
 *
 * GPUS copies of the costs' first GPU, and its CPUs; MODELS are names with commas between. One JSON object; perf/papers asks for
 * many and makes tables of them.
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/value.h"
#include "best_batch.h"
#include "bound.h"
#include "bounded_greedy.h"
#include "costs_file.h"
#include "device_time_bound.h"
#include "exhaustive.h"
#include "matrix.h"
#include "optimizer.h"
#include "problem.h"
#include "search.h"
#include "simulated_bench.h"
#include "worst_fit.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MATRICES_MAX 2e6 /* that are all tried */
#define MODELS_MAX   256u
#define DEVICES_MAX  256u

SL_DEFINE_CLEANUP(struct sl_costs *, sl_costs_free)
SL_DEFINE_CLEANUP(struct sl_bench *, sl_bench_free)
SL_DEFINE_CLEANUP(struct sl_matrix *, sl_matrix_free)

struct wish {
        const char *costs, *models, *matrix;
        uint64_t gpus, seed, max_iter, starts, benches;
};

/* What is compared: the costs of these models on that many GPUs, and a matrix that one after the other writes into. */
struct comparison {
        const struct wish *wish;
        struct sl_problem problem;
        struct sl_search search;
        struct sl_matrix *matrix;
        uint64_t begun_ns, begun_runs;
};

static int wish_number(const char *what, const char *text, uint64_t max, uint64_t *ret_value, struct sl_error *error)
{
        char wanted[SL_WISH_BYTES];

        return text && sl_value_number(text, 0, max, ret_value, wanted) < 0
                       ? sl_error_set(error, EINVAL, "%s: \"%s\" is %s", what, text, wanted)
                       : 0;
}

/* argv ends with NULL, as main() has it, so what is not given is not looked at. */
static int wish_read(char **argv, struct wish *wish, struct sl_error *error)
{
        const char *rest[5] = {NULL};
        int r;

        *wish = (struct wish){.max_iter = SL_MAX_ITER};
        if (!argv[1] || !argv[2] || !argv[3] || !argv[4])
                return sl_error_set(error, EINVAL, "usage: bench-allocation COSTS MODELS GPUS SEED [MAX_ITER [STARTS [BENCHES]]]");
        wish->costs = argv[1];
        wish->models = argv[2];
        wish->matrix = strcmp(argv[4], "matrix") == 0 ? argv[5] : NULL;
        for (int i = 0; i < (wish->matrix ? 1 : 5) && argv[3 + i]; i++)
                rest[i] = argv[3 + i];
        r = wish_number("GPUS", rest[0], DEVICES_MAX, &wish->gpus, error);
        r = r < 0 ? r : wish_number("SEED", rest[1], UINT64_MAX, &wish->seed, error);
        r = r < 0 ? r : wish_number("MAX_ITER", rest[2], UINT32_MAX, &wish->max_iter, error);
        r = r < 0 ? r : wish_number("STARTS", rest[3], 1000, &wish->starts, error);
        return r < 0 ? r : wish_number("BENCHES", rest[4], 1000000000, &wish->benches, error);
}

static uint32_t rows_choose(const struct sl_costs *costs, uint64_t gpus, uint32_t *ret_rows)
{
        uint32_t n = 0, gpu = SL_COST_NONE;

        for (uint32_t d = costs->n_devices; d-- > 0;)
                if (costs->classes[costs->devices[d].class_index].kind == SL_DEVICE_GPU)
                        gpu = d;
                else if (n < DEVICES_MAX)
                        ret_rows[n++] = d;
        for (uint64_t i = 0; i < gpus && gpu != SL_COST_NONE && n < 2 * DEVICES_MAX; i++)
                ret_rows[n++] = gpu;
        return n;
}

static int columns_choose(const struct sl_costs *costs, const char *names, uint32_t *ret_columns, struct sl_error *error)
{
        char name[SL_COST_NAME_BYTES];
        uint32_t n = 0;

        for (const char *at = names; *at; at += strcspn(at, ",")) {
                at += *at == ',';
                snprintf(name, sizeof(name), "%.*s", (int)strcspn(at, ","), at);
                if (n == MODELS_MAX)
                        return sl_error_set(error, E2BIG, "more than %u models", MODELS_MAX);
                ret_columns[n] = sl_costs_find_model(costs, name);
                if (ret_columns[n++] == SL_COST_NONE)
                        return sl_error_set(error, ENOENT, "\"%s\" is no model of the costs", name);
        }
        return (int)n;
}

static int costs_choose(const struct wish *wish, struct sl_costs **ret_costs, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_costs_free) struct sl_costs *all = NULL;
        uint32_t rows[2 * DEVICES_MAX], columns[MODELS_MAX];
        int r = sl_costs_file_read(wish->costs, &all, error);

        if (r < 0)
                return r;
        r = columns_choose(all, wish->models, columns, error);
        return r < 0 ? r : sl_costs_select(all, rows, rows_choose(all, wish->gpus, rows), columns, (uint32_t)r, ret_costs, error);
}

static void begin(struct comparison *c)
{
        c->begun_ns = sl_clock_ns();
        c->begun_runs = c->search.bench->runs;
}

static double seconds(const struct comparison *c)
{
        return (double)(sl_clock_ns() - c->begun_ns) / 1e9;
}

/* Workers on CPUs: what did not fit into the GPUs, or what they help with. */
static uint32_t workers_on_cpus(const struct comparison *c)
{
        const struct sl_costs *costs = c->problem.costs;
        uint32_t n = 0;

        for (uint32_t d = 0; d < costs->n_devices; d++)
                for (uint32_t m = 0; m < costs->n_models; m++)
                        n += costs->classes[costs->devices[d].class_index].kind == SL_DEVICE_CPU &&
                             sl_matrix_batch(c->matrix, d, m) > 0;
        return n;
}

/* {"throughput": ...}, or null where there is no answer. */
static void answer_print(const struct comparison *c, const char *name, int r, double throughput, uint64_t benches)
{
        if (r < 0)
                printf(", \"%s\": null", name);
        else
                printf(", \"%s\": {\"throughput\": %.4f, \"benches\": %" PRIu64 ", \"seconds\": %.3f, \"workers\": %u, "
                       "\"on_cpus\": %u}",
                        name, throughput, benches, seconds(c), sl_matrix_workers(c->matrix), workers_on_cpus(c));
}

static int baselines_run(struct comparison *c, double *ret_worst_fit, double *ret_greedy, struct sl_error *error)
{
        const struct sl_bounded_greedy_options options = {SL_MAX_NEIGHS, (uint32_t)c->wish->max_iter, c->wish->seed};
        int r;

        begin(c);
        r = sl_worst_fit(&c->problem, sl_worst_fit_batch(&c->problem), c->matrix, error);
        r = r < 0 ? r : sl_search_score(&c->search, c->matrix, ret_worst_fit, error);
        answer_print(c, "worst_fit", r, *ret_worst_fit, c->search.bench->runs - c->begun_runs);
        begin(c);
        r = r < 0 ? r : sl_bounded_greedy(&c->search, &options, c->matrix, ret_greedy, error);
        answer_print(c, "greedy", r, *ret_greedy, c->search.bench->runs - c->begun_runs);
        return r;
}

static void best_batch_run(struct comparison *c)
{
        uint32_t benches = 0;
        double score = 0;
        int r;

        begin(c);
        r = sl_best_batch(&c->problem, c->matrix, &benches, NULL);
        r = r < 0 ? r : sl_search_score(&c->search, c->matrix, &score, NULL);
        answer_print(c, "best_batch", r, score, benches);
}

static void every_matrix_run(struct comparison *c)
{
        double score = 0;
        int r = -E2BIG;

        begin(c);
        if (sl_exhaustive_matrices(&c->problem) <= MATRICES_MAX)
                r = sl_exhaustive(&c->search, MATRICES_MAX, c->matrix, &score, NULL);
        answer_print(c, "exhaustive", r, score, c->search.bench->runs - c->begun_runs);
}

static void matrix_print(const struct comparison *c)
{
        const struct sl_costs *costs = c->problem.costs;

        fputs(", \"matrix\": {", stdout);
        for (uint32_t d = 0; d < costs->n_devices; d++) {
                printf("%s\"%s\": [", d ? ", " : "", costs->devices[d].name);
                for (uint32_t m = 0; m < costs->n_models; m++)
                        printf("%s%u", m ? ", " : "", sl_matrix_batch(c->matrix, d, m));
                fputs("]", stdout);
        }
        fputs("}", stdout);
}

/* Without trying all: what it finds is held against that. */
static int optimizer_run(struct comparison *c, struct sl_error *error)
{
        struct sl_optimizer_options options = sl_optimizer_defaults(&c->search);
        struct sl_optimum optimum;
        double solved;

        options.seed = c->wish->seed;
        options.exhaustive_max = 0;
        options.starts = c->wish->starts ? (uint32_t)c->wish->starts : options.starts;
        options.benches = c->wish->benches ? (uint32_t)c->wish->benches : options.benches;
        begin(c);
        int r = sl_optimize(&c->search, &options, c->matrix, &optimum, error);
        answer_print(c, "starling", r, r < 0 ? 0 : optimum.score, r < 0 ? 0 : optimum.benches);
        if (r < 0)
                return r;
        matrix_print(c);
        printf(", \"bound\": %.4f",
                sl_bound_throughput(&c->problem, &solved, NULL) == 0 ? fmin(solved, optimum.bound) : optimum.bound);
        return 0;
}

/* "0,0/8,8": by rows. */
static int matrix_take(const char *text, struct sl_matrix *matrix, struct sl_error *error)
{
        char wanted[SL_WISH_BYTES], cell[16];
        uint64_t batch = 0;

        for (uint32_t i = 0; i < matrix->n_devices * matrix->n_models; i++, text += *text != 0) {
                size_t bytes = strcspn(text, ",/");

                snprintf(cell, sizeof(cell), "%.*s", (int)bytes, text);
                if (sl_value_number(cell, 0, SL_COST_BATCH_MAX, &batch, wanted) < 0)
                        return sl_error_set(error, EINVAL, "matrix, entry %u: \"%s\" is %s", i, cell, wanted);
                matrix->entries[i] = (uint32_t)batch;
                text += bytes;
        }
        return *text ? sl_error_set(error, EINVAL, "matrix: more than %u x %u entries", matrix->n_devices, matrix->n_models) : 0;
}

static int matrix_bench(struct comparison *c, struct sl_error *error)
{
        double throughput = 0;
        int r = matrix_take(c->wish->matrix, c->matrix, error);

        r = r < 0 ? r : sl_matrix_check(&c->problem, c->matrix, error);
        r = r < 0 ? r : sl_search_score(&c->search, c->matrix, &throughput, error);
        if (r == 0)
                printf("{\"gpus\": %" PRIu64 ", \"throughput\": %.4f}\n", c->wish->gpus, throughput);
        return r;
}

static void compare(struct comparison *c)
{
        double worst_fit = 0, greedy = 0;
        struct sl_error error = {""};

        printf("{\"gpus\": %" PRIu64 ", \"seed\": %" PRIu64, c->wish->gpus, c->wish->seed);
        if (baselines_run(c, &worst_fit, &greedy, &error) == 0 && optimizer_run(c, &error) == 0)
                every_matrix_run(c);
        best_batch_run(c);
        for (char *at = error.text; (at = strchr(at, '"'));)
                *at = '\'';
        printf(", \"error\": \"%s\"}\n", error.text);
}

int main(int argc, char **argv)
{
        SL_CLEANUP(sl_cleanup_sl_costs_free) struct sl_costs *costs = NULL;
        SL_CLEANUP(sl_cleanup_sl_bench_free) struct sl_bench *bench = NULL;
        SL_CLEANUP(sl_cleanup_sl_matrix_free) struct sl_matrix *matrix = NULL;
        struct sl_error error = {""};
        struct wish wish;

        (void)argc;
        if (wish_read(argv, &wish, &error) < 0 || costs_choose(&wish, &costs, &error) < 0) {
                fprintf(stderr, "bench-allocation: %s\n", error.text);
                return 1;
        }
        struct comparison comparison = {.wish = &wish, .problem = {.costs = costs}};
        matrix = sl_matrix_new(costs->n_devices, costs->n_models);
        if (!matrix || sl_simulated_bench_new(&comparison.problem, &bench, &error) < 0) {
                fprintf(stderr, "bench-allocation: out of memory\n");
                return 1;
        }
        comparison.matrix = matrix;
        comparison.search = (struct sl_search){.problem = &comparison.problem, .bench = bench};
        if (!wish.matrix)
                compare(&comparison);
        else if (matrix_bench(&comparison, &error) < 0) {
                fprintf(stderr, "bench-allocation: %s\n", error.text);
                return 1;
        }
        return 0;
}
