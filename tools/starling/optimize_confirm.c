/* SPDX-License-Identifier: Apache-2.0 */
#include "optimize_confirm.h"

#include "allocation_bench.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "bench.h"
#include "live_bench.h"
#include "matrix.h"
#include "objective.h"
#include "optimize_ensemble.h"
#include "optimize_wish.h"
#include "ranking.h"
#include "search.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#define ROUNDS 5u

SL_DEFINE_CLEANUP(struct sl_bench *, sl_bench_free)
SL_DEFINE_CLEANUP(struct sl_matrix *, sl_matrix_free)

/* By what is best of it: the larger throughput, or the shorter latency. */
static double apart(const struct sl_search *search, const struct sl_ranked *ranked, const struct sl_bench_result *measured)
{
        if (search->objective == SL_MIN_LATENCY)
                return fabs(ranked->latency_ns / measured->latency_ns - 1);
        return fabs(ranked->throughput / measured->throughput - 1);
}

static void print(const struct sl_search *search, uint32_t place, const struct sl_ranked *ranked,
        const struct sl_bench_result *measured, double rsd)
{
        if (measured->throughput <= 0)
                printf("%3u  %12.1f  does not fit in the runtime's memory\n", place, ranked->throughput);
        else if (search->calibration.load > 0)
                printf("%3u  %12.1f  %12.1f  %6.1f %%  %5.1f %%  %10.3f ms  %10.3f ms\n", place, ranked->throughput,
                        measured->throughput, (ranked->throughput / measured->throughput - 1) * 100, rsd * 100,
                        ranked->latency_ns / 1e6, measured->latency_ns / 1e6);
        else
                printf("%3u  %12.1f  %12.1f  %6.1f %%  %5.1f %%\n", place, ranked->throughput, measured->throughput,
                        (ranked->throughput / measured->throughput - 1) * 100, rsd * 100);
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

/* One after the other; @best is what scores best. */
static int confirm_all(const struct optimize_task *task, const struct sl_search *search, const struct sl_ranked *ranked, uint32_t n,
        struct sl_bench *live, struct sl_matrix *best, struct confirmed *confirmed, struct sl_error *error)
{
        double best_score = -INFINITY, configured_score = -INFINITY;
        int r = confirm_configured(task, search, live, confirmed, &configured_score, error);

        for (uint32_t i = 0; i < n && r == 0; i++) {
                struct sl_bench_result measured;

                r = sl_bench_run(live, ranked[i].matrix, &search->calibration, &measured, error);
                if (r < 0)
                        break;
                print(search, i + 1, &ranked[i], &measured, sl_live_bench_rsd(live));
                double score = sl_objective_score(
                        search->objective, search->calibration.load, &task->problem, ranked[i].matrix, &measured);
                if (measured.throughput <= 0)
                        continue;
                confirmed->n++;
                confirmed->apart = fmax(confirmed->apart, apart(search, &ranked[i], &measured));
                if (score <= best_score)
                        continue;
                best_score = score;
                confirmed->throughput = measured.throughput;
                confirmed->latency_ns = measured.latency_ns;
                confirmed->rsd = sl_live_bench_rsd(live);
                confirmed->is_better = score > configured_score;
                sl_matrix_copy(best, ranked[i].matrix);
        }
        return r < 0 && sl_bench_interrupted() ? 0 : r;
}

int optimize_confirm(const struct optimize_task *task, const struct optimize_ensemble *ensemble, const struct sl_search *search,
        const struct sl_bench *ranking, uint32_t k, double seconds, struct sl_matrix *best, struct confirmed *ret_confirmed,
        struct sl_error *error)
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
        return r < 0 ? r : confirm_all(task, search, ranked, n < k ? n : k, live, best, ret_confirmed, error);
}
