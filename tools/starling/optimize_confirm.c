/* SPDX-License-Identifier: Apache-2.0 */
#include "optimize_confirm.h"

#include "allocation_bench.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "bench.h"
#include "best_batch.h"
#include "bounded_greedy.h"
#include "live_bench.h"
#include "matrix.h"
#include "objective.h"
#include "optimize_ensemble.h"
#include "optimize_wish.h"
#include "ranking.h"
#include "search.h"
#include "worst_fit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#define ROUNDS 5u

SL_DEFINE_CLEANUP(struct sl_bench *, sl_bench_free)
SL_DEFINE_CLEANUP(struct sl_matrix *, sl_matrix_free)

/* What is measured, and what was computed of it. */
struct candidate {
        char name[12];
        const struct sl_matrix *matrix;
        double throughput, latency_ns;
};

/* By what is best of it: the larger throughput, or the shorter latency. */
static double apart(const struct sl_search *search, const struct candidate *candidate, const struct sl_bench_result *measured)
{
        if (search->objective == SL_MIN_LATENCY)
                return fabs(candidate->latency_ns / measured->latency_ns - 1);
        return fabs(candidate->throughput / measured->throughput - 1);
}

static void print(
        const struct sl_search *search, const struct candidate *candidate, const struct sl_bench_result *measured, double rsd)
{
        printf("%3s  %12.1f", candidate->name, candidate->throughput);
        if (measured->throughput <= 0)
                printf("  does not fit in the runtime's memory");
        else
                printf("  %12.1f  %6.1f %%  %5.1f %%", measured->throughput,
                        (candidate->throughput / measured->throughput - 1) * 100, rsd * 100);
        if (measured->throughput > 0 && search->calibration.load > 0)
                printf("  %10.3f ms  %10.3f ms", candidate->latency_ns / 1e6, measured->latency_ns / 1e6);
        putchar('\n');
        fflush(stdout);
}

/* What all of it is measured against: workers that run wherever there is room, as the models' own configurations say. */
static int confirm_configured(const struct optimize_task *task, const struct sl_search *search, struct sl_bench *live,
        struct confirmed *confirmed, double *ret_score, struct sl_error *error)
{
        bool latency = search->calibration.load > 0;
        SL_CLEANUP(sl_cleanup_sl_matrix_free) struct sl_matrix *none = sl_matrix_new(task->costs->n_devices, task->costs->n_models);
        struct sl_bench_result measured;
        int r = none ? sl_live_bench_run_configured(live, &search->calibration, &measured, error)
                     : sl_error_set(error, ENOMEM, "out of memory");

        if (r < 0)
                return r;
        printf("     computed/s    measured/s  computed   spread%s\n", latency ? "     latency computed, measured" : "");
        printf("  -    configured  %12.1f            %5.1f %%", measured.throughput, sl_live_bench_rsd(live) * 100);
        if (latency)
                printf("                  %10.3f ms", measured.latency_ns / 1e6);
        putchar('\n');
        fflush(stdout);
        confirmed->configured = measured.throughput;
        /* By memory and devices nothing is worse than all that there is. */
        if (search->objective == SL_MAX_THROUGHPUT || search->objective == SL_MIN_LATENCY)
                *ret_score = sl_objective_score(search->objective, search->calibration.load, &task->problem, none, &measured);
        return 0;
}

static int measure(const struct sl_search *search, const struct candidate *candidate, struct sl_bench *live,
        struct sl_bench_result *ret_measured, struct sl_error *error)
{
        int r = sl_bench_run(live, candidate->matrix, &search->calibration, ret_measured, error);

        if (r == 0)
                print(search, candidate, ret_measured, sl_live_bench_rsd(live));
        return r;
}

/* The algorithms of the paper, beside the answer; what cannot be placed by one is said. */
static int confirm_baseline(const struct sl_search *search, const char *name, int made, const struct sl_matrix *matrix,
        struct sl_bench *live, struct sl_error *error)
{
        struct sl_search once = *search;
        struct sl_bench_result computed, measured;
        struct candidate candidate = {.matrix = matrix};
        int r;

        snprintf(candidate.name, sizeof(candidate.name), "%s", name);
        if (made < 0) {
                printf("%3s  %s\n", name, error->text);
                return 0;
        }
        r = sl_bench_run(once.bench, matrix, &once.calibration, &computed, error);
        candidate.throughput = computed.throughput;
        candidate.latency_ns = computed.latency_ns;
        return r < 0 ? r : measure(search, &candidate, live, &measured, error);
}

/* WFD, then BGO from there; and BBS. */
static int confirm_baselines(
        const struct optimize_task *task, const struct sl_search *search, struct sl_bench *live, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_matrix_free)
        struct sl_matrix *matrix = sl_matrix_new(task->costs->n_devices, task->costs->n_models);
        const struct sl_bounded_greedy_options greedy = {SL_MAX_NEIGHS, SL_MAX_ITER, 1};
        struct sl_search once = *search;
        double score;
        uint32_t benches;
        int made, r;

        if (!matrix)
                return sl_error_set(error, ENOMEM, "out of memory");
        once.progress = NULL;
        made = sl_worst_fit(&task->problem, sl_worst_fit_batch(&task->problem), matrix, error);
        r = confirm_baseline(search, "WFD", made, matrix, live, error);
        made = made < 0 ? made : sl_bounded_greedy(&once, &greedy, matrix, &score, error);
        r = r < 0 ? r : confirm_baseline(search, "BGO", made, matrix, live, error);
        made = sl_best_batch(&task->problem, matrix, &benches, error);
        return r < 0 ? r : confirm_baseline(search, "BBS", made, matrix, live, error);
}

/* One after the other; @best is what scores best. */
static int confirm_all(const struct optimize_task *task, const struct sl_search *search, const struct sl_ranked *ranked, uint32_t n,
        struct sl_bench *live, struct sl_matrix *best, struct confirmed *confirmed, struct sl_error *error)
{
        double best_score = -INFINITY, configured_score = -INFINITY;
        int r = confirm_configured(task, search, live, confirmed, &configured_score, error);

        for (uint32_t i = 0; i < n && r == 0; i++) {
                struct candidate candidate = {
                        .matrix = ranked[i].matrix, .throughput = ranked[i].throughput, .latency_ns = ranked[i].latency_ns};
                struct sl_bench_result measured;

                snprintf(candidate.name, sizeof(candidate.name), "%u", i + 1);
                confirmed->tried++;
                r = measure(search, &candidate, live, &measured, error);
                if (r < 0)
                        break;
                double score = sl_objective_score(
                        search->objective, search->calibration.load, &task->problem, ranked[i].matrix, &measured);
                if (measured.throughput <= 0)
                        continue;
                confirmed->n++;
                confirmed->apart = fmax(confirmed->apart, apart(search, &candidate, &measured));
                if (score <= best_score)
                        continue;
                best_score = score;
                confirmed->throughput = measured.throughput;
                confirmed->latency_ns = measured.latency_ns;
                confirmed->rsd = sl_live_bench_rsd(live);
                confirmed->is_better = score > configured_score;
                sl_matrix_copy(best, ranked[i].matrix);
        }
        return r;
}

int optimize_confirm(const struct optimize_task *task, const struct optimize_ensemble *ensemble, const struct sl_search *search,
        const struct sl_bench *ranking, uint32_t k, double seconds, bool baselines, struct sl_matrix *best,
        struct confirmed *ret_confirmed, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_bench_free) struct sl_bench *live = NULL;
        uint32_t n;
        const struct sl_ranked *ranked = sl_ranking(ranking, &n);
        int r;

        *ret_confirmed = (struct confirmed){.n = 0};
        if (!n || !k)
                return 0;
        const struct sl_live_bench_options options = {
                .repository = ensemble->repository,
                .served = ensemble->name,
                .members = ensemble->members,
                .n_members = ensemble->n_members,
                .expected = ranked[0].throughput,
                .rounds = ROUNDS,
                .seconds = seconds,
        };
        r = sl_live_bench_new(&task->problem, &options, &live, error);
        r = r < 0 ? r : confirm_all(task, search, ranked, n < k ? n : k, live, best, ret_confirmed, error);
        ret_confirmed->interrupted = r < 0 && sl_bench_interrupted();
        if (r == 0 && baselines)
                r = confirm_baselines(task, search, live, error);
        return r < 0 && sl_bench_interrupted() ? 0 : r;
}
