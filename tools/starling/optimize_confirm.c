/* SPDX-License-Identifier: Apache-2.0 */
#include "optimize_confirm.h"

#include "allocation_bench.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "bench.h"
#include "best_batch.h"
#include "bounded_greedy.h"
#include "halving.h"
#include "live_bench.h"
#include "matrix.h"
#include "objective.h"
#include "optimize_ensemble.h"
#include "optimize_wish.h"
#include "ranking.h"
#include "search.h"
#include "worst_fit.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONFIGURED 0u /* its index: what is there already */
#define BASELINES  3u

SL_DEFINE_CLEANUP(struct sl_bench *, sl_bench_free)

/* What is measured, and what was computed of it. */
struct candidate {
        char name[32];            /* "configured", "1", "2, BGO" */
        struct sl_matrix *matrix; /* NULL: what is configured */
        double throughput, latency_ns;
        bool fits;
        uint32_t n; /* turns */
        double rates[SL_HALVING_TURNS], latencies_ns[SL_HALVING_TURNS];
};

struct contest {
        const struct optimize_task *task;
        const struct sl_search *search;
        struct sl_bench *live;
        uint32_t n;
        struct candidate candidates[1 + SL_RANKING_MAX + BASELINES];
        char refused[BASELINES][160]; /* baselines that there are not, and why */
        uint32_t n_refused;
        struct sl_halving halving;
};

static_assert(1 + SL_RANKING_MAX + BASELINES <= SL_HALVING_MAX, "all can be compared");

static struct contest *contest_free(struct contest *contest)
{
        for (uint32_t i = 0; contest && i < contest->n; i++)
                sl_matrix_free(contest->candidates[i].matrix);
        free(contest);
        return NULL;
}

SL_DEFINE_CLEANUP(struct contest *, contest_free)

/* ---- the candidates ---- */

static struct candidate *find(struct contest *contest, const struct sl_matrix *matrix)
{
        for (uint32_t i = 0; i < contest->n; i++)
                if (contest->candidates[i].matrix && sl_matrix_equal(contest->candidates[i].matrix, matrix))
                        return &contest->candidates[i];
        return NULL;
}

/* One that is there under another name has both. */
static int add(struct contest *contest, const char *name, const struct sl_matrix *matrix, double throughput, double latency_ns,
        struct sl_error *error)
{
        struct candidate *candidate = find(contest, matrix);

        if (candidate) {
                size_t used = strlen(candidate->name);

                snprintf(candidate->name + used, sizeof(candidate->name) - used, ", %s", name);
                return 0;
        }
        candidate = &contest->candidates[contest->n];
        candidate->matrix = sl_matrix_new(matrix->n_devices, matrix->n_models);
        if (!candidate->matrix)
                return sl_error_set(error, ENOMEM, "out of memory");
        contest->n++;
        sl_matrix_copy(candidate->matrix, matrix);
        snprintf(candidate->name, sizeof(candidate->name), "%s", name);
        candidate->throughput = throughput;
        candidate->latency_ns = latency_ns;
        return 0;
}

/* @made: what came of placing the models; what cannot be placed is said in the table. */
static int add_baseline(struct contest *contest, const char *name, int made, const struct sl_matrix *matrix, struct sl_error *error)
{
        struct sl_bench_result computed;

        if (made < 0) {
                char why[141];

                snprintf(contest->refused[contest->n_refused++], sizeof(contest->refused[0]), "%-12s  %s", name,
                        sl_error_fit(error->text, why, sizeof(why)));
                error->text[0] = 0;
                return 0;
        }
        int r = sl_bench_run(contest->search->bench, matrix, &contest->search->calibration, &computed, error);
        return r < 0 ? r : add(contest, name, matrix, computed.throughput, computed.latency_ns, error);
}

SL_DEFINE_CLEANUP(struct sl_matrix *, sl_matrix_free)

/* WFD, then BGO from there; and BBS. */
static int add_baselines(struct contest *contest, uint64_t seed, struct sl_error *error)
{
        const struct optimize_task *task = contest->task;
        SL_CLEANUP(sl_cleanup_sl_matrix_free)
        struct sl_matrix *matrix = sl_matrix_new(task->costs->n_devices, task->costs->n_models);
        const struct sl_bounded_greedy_options greedy = {SL_MAX_NEIGHS, SL_MAX_ITER, seed};
        struct sl_search once = *contest->search;
        double score;
        uint32_t benches;
        int made, r;

        if (!matrix)
                return sl_error_set(error, ENOMEM, "out of memory");
        once.progress = NULL;
        made = sl_worst_fit(&task->problem, sl_worst_fit_batch(&task->problem), matrix, error);
        r = add_baseline(contest, "WFD", made, matrix, error);
        if (made == 0 && r == 0) {
                made = sl_bounded_greedy(&once, &greedy, matrix, &score, error);
                r = add_baseline(contest, "BGO", made, matrix, error);
        }
        made = sl_best_batch(&task->problem, matrix, &benches, error);
        return r < 0 ? r : add_baseline(contest, "BBS", made, matrix, error);
}

static int add_ranked(struct contest *contest, const struct sl_ranked *ranked, uint32_t n, struct sl_error *error)
{
        char name[12];
        int r = 0;

        for (uint32_t i = 0; i < n && r == 0; i++) {
                snprintf(name, sizeof(name), "%u", i + 1);
                r = add(contest, name, ranked[i].matrix, ranked[i].throughput, ranked[i].latency_ns, error);
        }
        return r;
}

/* ---- turns ---- */

/* By memory and devices nothing is worse than all that there is: it is measured once, and compared with nothing. */
static double score_of(const struct contest *contest, const struct candidate *candidate, const struct sl_bench_result *measured)
{
        const struct sl_search *search = contest->search;
        bool by_rate = search->objective == SL_MAX_THROUGHPUT || search->objective == SL_MIN_LATENCY;

        if (measured->throughput <= 0 || (!candidate->matrix && !by_rate))
                return -INFINITY;
        return sl_objective_score(
                search->objective, search->calibration.load, &contest->task->problem, candidate->matrix, measured);
}

static int measure(struct contest *contest, uint32_t index, struct sl_error *error)
{
        struct candidate *candidate = &contest->candidates[index];
        struct sl_bench_result measured;
        int r = candidate->matrix ? sl_bench_run(contest->live, candidate->matrix, &contest->search->calibration, &measured, error)
                                  : sl_live_bench_run_configured(contest->live, &contest->search->calibration, &measured, error);

        if (r < 0)
                return r;
        candidate->fits = measured.throughput > 0;
        if (candidate->fits) {
                candidate->rates[candidate->n] = measured.throughput;
                candidate->latencies_ns[candidate->n++] = measured.latency_ns;
        }
        sl_halving_take(&contest->halving, score_of(contest, candidate, &measured));
        return 0;
}

static int take_turns(struct contest *contest, struct sl_error *error)
{
        uint32_t index, turn = 0;
        int r = 0;

        fprintf(stderr, "measuring %u candidates in turns, at most %u times\n", contest->n, sl_halving_most(contest->n));
        sl_halving_init(&contest->halving, contest->n);
        while (r == 0 && sl_halving_next(&contest->halving, &index)) {
                r = measure(contest, index, error);
                if (r == 0 && contest->halving.turn != turn && sl_halving_best(&contest->halving) < contest->n)
                        fprintf(stderr, "turn %u: best is %s\n", contest->halving.turn,
                                contest->candidates[sl_halving_best(&contest->halving)].name);
                turn = contest->halving.turn;
        }
        return r;
}

/* ---- what came of it ---- */

static struct sl_interval interval_of(const double *values, uint32_t n)
{
        double sorted[SL_HALVING_TURNS];

        memcpy(sorted, values, n * sizeof(*sorted));
        sl_quantile_sort(sorted, n);
        return sl_interval_of_median(sorted, n);
}

static struct sl_interval ratio_of(const struct candidate *a, const struct candidate *b)
{
        uint32_t n = a->n < b->n ? a->n : b->n;
        double ratios[SL_HALVING_TURNS];

        for (uint32_t i = 0; i < n; i++)
                ratios[i] = a->rates[i] / b->rates[i];
        return interval_of(ratios, n);
}

static void interval_print(const struct sl_interval *interval)
{
        if (isinf(interval->high))
                printf("  %23s", "too few turns");
        else
                printf("  %10.1f - %10.1f", interval->low, interval->high);
}

static void candidate_print(const struct contest *contest, const struct candidate *candidate)
{
        bool latency = contest->search->calibration.load > 0;

        printf("%-12s", candidate->name);
        if (candidate->matrix)
                printf("  %12.1f", candidate->throughput);
        else
                printf("  %12s", "-");
        if (!candidate->n) {
                puts("  does not fit in the runtime's memory");
                return;
        }
        const struct sl_interval rate = interval_of(candidate->rates, candidate->n);
        printf("  %12.1f", rate.median);
        interval_print(&rate);
        printf("  %5u", candidate->n);
        if (candidate->matrix)
                printf("  %6.1f %%", (candidate->throughput / rate.median - 1) * 100);
        else if (latency)
                printf("  %8s", "-");
        if (latency && candidate->matrix)
                printf("  %10.3f ms", candidate->latency_ns / 1e6);
        else if (latency)
                printf("  %13s", "-");
        if (latency)
                printf("  %10.3f ms", interval_of(candidate->latencies_ns, candidate->n).median / 1e6);
        putchar('\n');
}

static void table_print(const struct contest *contest)
{
        printf("%-12s  %12s  %12s  %23s  %5s  computed%s\n", "", "computed/s", "measured/s", "95 % interval", "turns",
                contest->search->calibration.load > 0 ? "     latency computed, measured" : "");
        for (uint32_t i = 0; i < contest->n; i++)
                candidate_print(contest, &contest->candidates[i]);
        for (uint32_t i = 0; i < contest->n_refused; i++)
                puts(contest->refused[i]);
}

/* By what is best of it: the larger throughput, or the shorter latency. */
static double apart(const struct contest *contest, const struct candidate *candidate)
{
        if (contest->search->objective == SL_MIN_LATENCY)
                return fabs(candidate->latency_ns / interval_of(candidate->latencies_ns, candidate->n).median - 1);
        return fabs(candidate->throughput / interval_of(candidate->rates, candidate->n).median - 1);
}

/* The best of those that have a matrix; what is configured is none to be kept. The number of candidates: there is none. */
static uint32_t best_matrix(const struct contest *contest)
{
        struct sl_halving others = contest->halving;

        others.is_out[CONFIGURED] = true;
        if (sl_halving_best(&others) < contest->n)
                return sl_halving_best(&others);
        /* What is configured has beaten all: the one that was with it for longest. */
        uint32_t best = contest->n;
        for (uint32_t i = CONFIGURED + 1; i < contest->n; i++)
                if (contest->candidates[i].n && (best == contest->n || contest->candidates[i].n > contest->candidates[best].n))
                        best = i;
        return best;
}

static void name_equals(const struct contest *contest, uint32_t best, char *ret_names, size_t bytes)
{
        size_t used = 0;

        *ret_names = 0;
        for (uint32_t i = CONFIGURED + 1; i < contest->n && used < bytes; i++)
                if (i != best && !contest->halving.is_out[i] && !sl_halving_beats(&contest->halving, best, i))
                        used += (size_t)snprintf(
                                ret_names + used, bytes - used, "%s%s", used ? ", " : "", contest->candidates[i].name);
}

static void conclude(const struct contest *contest, struct sl_matrix *best, struct confirmed *confirmed)
{
        const struct candidate *configured = &contest->candidates[CONFIGURED];
        uint32_t index = best_matrix(contest);

        confirmed->tried = contest->n - 1;
        for (uint32_t i = CONFIGURED + 1; i < contest->n; i++)
                if (contest->candidates[i].n) {
                        confirmed->n++;
                        confirmed->apart = fmax(confirmed->apart, apart(contest, &contest->candidates[i]));
                }
        if (index == contest->n)
                return;
        const struct candidate *candidate = &contest->candidates[index];
        bool is_compared = contest->halving.n_scores[CONFIGURED] > 0;
        confirmed->throughput = interval_of(candidate->rates, candidate->n);
        confirmed->turns = candidate->n;
        if (is_compared)
                confirmed->over_configured = ratio_of(candidate, configured);
        confirmed->is_better = !is_compared || sl_halving_beats(&contest->halving, index, CONFIGURED);
        name_equals(contest, index, confirmed->equals, sizeof(confirmed->equals));
        sl_matrix_copy(best, candidate->matrix);
}

int optimize_confirm(const struct optimize_task *task, const struct optimize_ensemble *ensemble, const struct sl_search *search,
        const struct optimize_confirm_options *options, struct sl_matrix *best, struct confirmed *ret_confirmed,
        struct sl_error *error)
{
        uint32_t n;
        const struct sl_ranked *ranked = sl_ranking(options->ranking, &n);

        *ret_confirmed = (struct confirmed){.n = 0};
        if (!n || !options->most)
                return 0;
        SL_CLEANUP(sl_cleanup_contest_free) struct contest *contest = calloc(1, sizeof(*contest));
        SL_CLEANUP(sl_cleanup_sl_bench_free) struct sl_bench *live = NULL;
        if (!contest)
                return sl_error_set(error, ENOMEM, "out of memory");
        contest->task = task;
        contest->search = search;
        snprintf(contest->candidates[CONFIGURED].name, sizeof(contest->candidates[0].name), "configured");
        contest->n = 1;
        const struct sl_live_bench_options bench = {
                .repository = ensemble->repository,
                .served = ensemble->name,
                .members = ensemble->members,
                .n_members = ensemble->n_members,
                .expected = ranked[0].throughput,
                .seconds = options->seconds,
                .data_folders = ensemble->data_folders.paths,
                .n_data_folders = ensemble->data_folders.n,
        };
        int r = add_ranked(contest, ranked, n < options->most ? n : options->most, error);
        r = r < 0 ? r : add_baselines(contest, options->seed, error);
        r = r < 0 ? r : sl_live_bench_new(&task->problem, &bench, &live, error);
        contest->live = live;
        r = r < 0 ? r : take_turns(contest, error);
        if (r == 0) {
                table_print(contest);
                conclude(contest, best, ret_confirmed);
        }
        ret_confirmed->interrupted = r < 0 && sl_bench_interrupted();
        return ret_confirmed->interrupted ? 0 : r;
}
