/* SPDX-License-Identifier: Apache-2.0 */
#include "optimizer.h"
#include "annealing.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "bounded_greedy.h"
#include "device_time_bound.h"
#include "exhaustive.h"
#include "matrix.h"
#include "problem.h"
#include "search.h"
#include "worst_fit.h"

#include <math.h>

SL_DEFINE_CLEANUP(struct sl_matrix *, sl_matrix_free)

struct sl_optimizer_options sl_optimizer_defaults(const struct sl_search *search)
{
        return (struct sl_optimizer_options){.default_batch = sl_worst_fit_batch(search->problem),
                .starts = 8,
                .benches = 20000,
                .max_neighs = SL_MAX_NEIGHS,
                .max_iter = SL_MAX_ITER,
                .exhaustive_max = 1e5};
}

/* What the searches below tell is never less than the best of those before. */
struct relay {
        const struct sl_search *asked;
        const struct sl_matrix *best;
        double score;
        bool stopped;
};

static bool relay_progress(void *context, const struct sl_search *search, const struct sl_matrix *best, double score)
{
        struct relay *relay = context;
        bool better = !relay->best || score > relay->score;

        (void)search;
        if (relay->asked->progress)
                relay->stopped = !relay->asked->progress(
                        relay->asked->context, relay->asked, better ? best : relay->best, better ? score : relay->score);
        return !relay->stopped;
}

static int start_run(struct sl_search *search, const struct sl_optimizer_options *options, uint32_t start, struct sl_matrix *matrix,
        double *ret_greedy, double *ret_score, struct sl_error *error)
{
        const struct sl_bounded_greedy_options greedy = {options->max_neighs, options->max_iter, options->seed + start};
        const struct sl_annealing_options annealing = {options->benches, options->seed + start};
        int r = sl_bounded_greedy(search, &greedy, matrix, ret_greedy, error);

        return r < 0 ? r : sl_annealing(search, &annealing, matrix, ret_score, error);
}

static int starts_run(struct sl_search *search, const struct sl_optimizer_options *options, struct sl_matrix *matrix,
        struct sl_optimum *optimum, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_matrix_free) struct sl_matrix *from = sl_matrix_new(matrix->n_devices, matrix->n_models);
        SL_CLEANUP(sl_cleanup_sl_matrix_free) struct sl_matrix *at = sl_matrix_new(matrix->n_devices, matrix->n_models);
        const struct sl_bounded_greedy_options climb = {UINT32_MAX, 10000, options->seed};
        struct relay *relay = search->context;
        double greedy, score;
        int r = 0;

        if (!from || !at)
                return sl_error_set(error, ENOMEM, "allocation: out of memory");
        sl_matrix_copy(from, matrix);
        for (uint32_t i = 0; i < options->starts && !relay->stopped; i++) {
                sl_matrix_copy(at, from);
                r = start_run(search, options, i, at, &greedy, &score, error);
                if (r < 0)
                        return r;
                if (!i)
                        optimum->greedy_score = greedy;
                if (score > optimum->score) {
                        sl_matrix_copy(matrix, at);
                        optimum->score = score;
                }
                *relay = (struct relay){relay->asked, matrix, optimum->score, relay->stopped};
        }
        return relay->stopped ? 0 : sl_bounded_greedy(search, &climb, matrix, &optimum->score, error);
}

static int matrices_try(struct sl_search *search, const struct sl_optimizer_options *options, struct sl_matrix *matrix,
        struct sl_optimum *optimum, struct sl_error *error)
{
        struct relay *relay = search->context;
        int r = starts_run(search, options, matrix, optimum, error);

        if (r < 0 || relay->stopped || sl_exhaustive_matrices(search->problem) > options->exhaustive_max)
                return r;
        SL_CLEANUP(sl_cleanup_sl_matrix_free) struct sl_matrix *best = sl_matrix_new(matrix->n_devices, matrix->n_models);
        double score;

        if (!best)
                return sl_error_set(error, ENOMEM, "allocation: out of memory");
        r = sl_exhaustive(search, options->exhaustive_max, best, &score, error);
        if (r == 0 && score > optimum->score) {
                sl_matrix_copy(matrix, best);
                optimum->score = score;
        }
        optimum->exhaustive = r == 0 && !relay->stopped;
        return r;
}

/*
 * WFD; where it finds no room, or a model without that batch size, smaller ones, and models first that few devices may run. What
 * fails with all is told of the first.
 */
static int start_find(const struct sl_problem *problem, uint32_t default_batch, struct sl_matrix *matrix, struct sl_error *error)
{
        const struct sl_costs *costs = problem->costs;
        int r = sl_worst_fit(problem, default_batch, matrix, error);

        if (r != -ENOSPC)
                return r;
        for (uint32_t b = costs->n_batches; b-- > 0;)
                for (int choosy = 0; choosy < 2 && costs->batches[b] <= default_batch; choosy++)
                        if (sl_worst_fit_within(problem, costs->batches[b], choosy, matrix, NULL) == 0)
                                return 0;
        return r;
}

/* Where the greedy ways find no room there may be some all the same. What fails is told of WFD. */
static int start_search(
        struct sl_search *search, const struct sl_optimizer_options *options, struct sl_matrix *matrix, struct sl_error *error)
{
        int r = start_find(search->problem, options->default_batch, matrix, error);
        double score;

        if (r != -ENOSPC || sl_exhaustive_matrices(search->problem) > options->exhaustive_max)
                return r;
        return sl_exhaustive(search, options->exhaustive_max, matrix, &score, NULL) == 0 ? 0 : r;
}

int sl_optimize(struct sl_search *search, const struct sl_optimizer_options *options, struct sl_matrix *matrix,
        struct sl_optimum *ret_optimum, struct sl_error *error)
{
        struct sl_optimum optimum = {.gap = -1};
        struct relay relay = {.asked = search};
        struct sl_search inner = *search;
        uint64_t runs = search->bench->runs;
        int r = sl_device_time_bound(search->problem, &optimum.bound, error);

        inner.progress = relay_progress;
        inner.context = &relay;
        r = r < 0 ? r : start_search(&inner, options, matrix, error);
        r = r < 0 ? r : sl_search_score(&inner, matrix, &optimum.worst_fit_score, error);
        optimum.score = optimum.greedy_score = optimum.worst_fit_score;
        r = r < 0 ? r : matrices_try(&inner, options, matrix, &optimum, error);
        if (r < 0)
                return r;
        if (search->objective == SL_MAX_THROUGHPUT)
                optimum.gap = optimum.exhaustive ? 0 : fmax(0, 1 - optimum.score / optimum.bound);
        optimum.stopped = relay.stopped;
        optimum.benches = search->bench->runs - runs;
        *ret_optimum = optimum;
        return 0;
}
