/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling optimize`: where the models of an ensemble run best. Of a repository's folder what its members cost is measured first,
 * and the best that were computed from that are measured, too; of a file of costs all is computed. SIGINT and SIGTERM end the
 * search with the best so far: they are blocked and looked for between benches, so nothing is interrupted half way. While costs are
 * measured they end that, and there is no answer.
 */
#include "allocation_file.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "bound.h"
#include "command.h"
#include "matrix.h"
#include "optimize_confirm.h"
#include "optimize_ensemble.h"
#include "optimize_explain.h"
#include "optimize_wish.h"
#include "optimizer.h"
#include "ranking.h"
#include "search.h"
#include "simulated_bench.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define LOOK_NS (50 * SL_NS_PER_MS) /* between two looks at the signal */

SL_DEFINE_CLEANUP(struct sl_matrix *, sl_matrix_free)
SL_DEFINE_CLEANUP(struct sl_bench *, sl_bench_free)
SL_DEFINE_CLEANUP(struct sl_allocation *, sl_allocation_free)

struct view {
        int interrupts; /* a signalfd */
        bool terminal, stopped;
        uint64_t looked_ns;
        double shown;
};

static int view_init(struct view *view, struct sl_error *error)
{
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGTERM);
        sigprocmask(SIG_BLOCK, &set, NULL);
        *view = (struct view){signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC), isatty(STDERR_FILENO) == 1, false, 0, -INFINITY};
        return view->interrupts < 0 ? sl_error_set(error, errno, "signalfd: %s", strerrordesc_np(errno)) : 0;
}

static bool view_progress(void *context, const struct sl_search *search, const struct sl_matrix *best, double score)
{
        struct view *view = context;
        struct signalfd_siginfo info;
        uint64_t now_ns = sl_clock_ns();

        (void)best;
        if (view->looked_ns && now_ns - view->looked_ns < LOOK_NS)
                return !view->stopped;
        view->looked_ns = now_ns;
        view->stopped = view->stopped || read(view->interrupts, &info, sizeof(info)) == sizeof(info);
        if (view->terminal || score > view->shown)
                fprintf(stderr, "%s%" PRIu64 " benches, best %.6g%s", view->terminal ? "\r" : "", search->bench->runs, score,
                        view->terminal ? "   " : "\n");
        view->shown = score;
        return !view->stopped;
}

static double memory_of(const struct sl_problem *problem, const struct sl_matrix *matrix)
{
        double bytes = 0;

        for (uint32_t d = 0; d < matrix->n_devices; d++)
                if (problem->costs->devices[d].memory_of == d)
                        bytes += (double)sl_matrix_memory(problem, matrix, d);
        return bytes;
}

/*
 * The smaller one of the two bounds; where there is no CBC, or somebody waits for the end, the other. An answer that was chosen by
 * measuring need not be the best by costs: its gap is to that, where all matrices were tried.
 */
static double bound_print(const struct sl_problem *problem, const struct sl_optimum *optimum, double throughput)
{
        double bound = optimum->bound, solved;
        bool cbc = !optimum->stopped && sl_bound_throughput(problem, &solved, NULL) == 0;

        bound = cbc ? fmin(bound, solved) : bound;
        printf("bound       %.1f samples a second, %s\n", bound,
                cbc                ? "device time and memory, CBC"
                : optimum->stopped ? "device time"
                                   : "device time; CBC is not installed");
        printf("gap         %.2f %%%s\n", fmax(0, 1 - throughput / (optimum->exhaustive ? optimum->score : bound)) * 100,
                optimum->exhaustive ? " by the costs, all matrices were tried" : "");
        return bound;
}

static int allocation_print(const struct sl_costs *costs, const struct sl_matrix *matrix, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_allocation_free) struct sl_allocation *allocation = NULL;

        if (sl_allocation_of(costs, matrix, &allocation) < 0)
                return sl_error_set(error, ENOMEM, "out of memory");
        sl_allocation_print(stdout, allocation);
        return 0;
}

/* A load that is too much for the best of all is no answer. */
static int load_check(const struct sl_search *search, double throughput, struct sl_error *error)
{
        if (search->objective == SL_MAX_THROUGHPUT || search->calibration.load < throughput)
                return 0;
        return sl_error_set(error, ERANGE, "no allocation was found that carries %.6g samples a second: at most %.1f",
                search->calibration.load, throughput);
}

static int answer_print(const struct optimize_task *task, struct sl_search *search, const struct sl_matrix *matrix,
        const struct sl_optimum *optimum, double *ret_bound, struct sl_error *error)
{
        struct sl_bench_result result;
        int r = sl_bench_run(search->bench, matrix, &search->calibration, &result, error);

        r = r < 0 ? r : load_check(search, result.throughput, error);
        r = r < 0 ? r : allocation_print(task->costs, matrix, error);
        if (r < 0)
                return r;
        printf("throughput  %.1f samples a second, computed from the costs\n", result.throughput);
        if (search->calibration.load > 0)
                printf("latency     %.3f ms at %.6g samples a second\n", result.latency_ns / 1e6, search->calibration.load);
        printf("memory      %.1f MiB\n", memory_of(&task->problem, matrix) / 0x1p20);
        printf("devices     %u of %u\n", sl_matrix_devices(matrix), matrix->n_devices);
        if (search->objective == SL_MAX_THROUGHPUT) {
                printf("WFD, BGO    %.1f, %.1f samples a second\n", optimum->worst_fit_score, optimum->greedy_score);
                *ret_bound = bound_print(&task->problem, optimum, result.throughput);
        }
        printf("benches     %" PRIu64 "%s\n", optimum->benches, optimum->stopped ? ", interrupted: the best so far" : "");
        return 0;
}

static int allocation_write(const struct optimize_wish *wish, const struct sl_allocation *allocation, struct sl_error *error)
{
        FILE *file = wish->answer ? wish->answer : fopen(wish->output, "we");
        int r = file ? sl_allocation_write(file, allocation) : -errno;

        if (file && (file == wish->answer ? fflush(file) : fclose(file)) != 0 && r == 0)
                r = -errno;
        return r < 0 ? sl_error_set(error, -r, "%s: %s", wish->answer ? "standard output" : wish->output, strerrordesc_np(-r)) : 0;
}

/* The answer goes to standard output, what is said of it to standard error. Return: 0, or -errno with text. */
static int take_standard_output(struct optimize_wish *wish, struct sl_error *error)
{
        int fd;

        if (!wish->output || strcmp(wish->output, "-") != 0)
                return 0;
        fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        wish->answer = fd >= 0 ? fdopen(fd, "w") : NULL;
        if (!wish->answer || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
                return sl_error_set(error, errno, "standard output: %s", strerrordesc_np(errno));
        return 0;
}

static int answer_write(
        const struct optimize_wish *wish, const struct sl_costs *costs, const struct sl_matrix *matrix, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_allocation_free) struct sl_allocation *allocation = NULL;

        if (sl_allocation_of(costs, matrix, &allocation) < 0)
                return sl_error_set(error, ENOMEM, "out of memory");
        return allocation_write(wish, allocation, error);
}

/* ---- a search ---- */

struct found {
        struct sl_matrix *matrix;
        struct sl_optimum optimum;
        struct confirmed confirmed;
};

/* Those that are worth it are measured where there is an ensemble to measure with. */
static int confirm(const struct optimize_wish *wish, const struct optimize_task *task, const struct optimize_ensemble *ensemble,
        const struct sl_search *search, struct found *found, struct sl_error *error)
{
        if (!ensemble || !wish->confirm || found->optimum.stopped)
                return 0;
        const struct optimize_confirm_options options = {search->bench, wish->confirm, wish->seconds / 5, wish->seed};
        return optimize_confirm(task, ensemble, search, &options, found->matrix, &found->confirmed, error);
}

/* Of what the costs say can be no more than @bound, the machine may do more: then they are wrong. */
static void confirmed_print(const struct confirmed *confirmed, double bound)
{
        const struct sl_interval *rate = &confirmed->throughput, *over = &confirmed->over_configured;

        if (confirmed->interrupted)
                puts("            interrupted before all were measured: nothing is kept");
        else if (confirmed->tried && !confirmed->n)
                printf("            none of %u fits in the runtime's memory: nothing is kept\n", confirmed->tried);
        if (confirmed->interrupted || !confirmed->n)
                return;
        printf("measured    %.1f samples a second, 95 %% interval %.1f to %.1f in %u turns; of %u, computed and measured "
               "are at most %.1f %% apart\n",
                rate->median, rate->low, rate->high, confirmed->turns, confirmed->n, confirmed->apart * 100);
        if (over->median > 0 && isfinite(over->high))
                printf("            %.3f x what is configured, 95 %% interval %.3f to %.3f\n", over->median, over->low, over->high);
        if (confirmed->equals[0])
                printf("            not worse beyond chance: %s\n", confirmed->equals);
        if (rate->low > bound)
                puts("            above the bound: a batch takes less here than the costs say (`starling profile --again`)");
        if (!confirmed->is_better)
                puts("            it is not better than what is configured beyond chance: nothing is kept");
}

static struct sl_optimizer_options options_of(const struct optimize_wish *wish, const struct sl_search *search)
{
        struct sl_optimizer_options options = sl_optimizer_defaults(search);

        options.seed = wish->seed;
        options.starts = wish->starts ? wish->starts : options.starts;
        options.benches = wish->benches ? wish->benches : options.benches;
        return options;
}

static int search_run(const struct optimize_wish *wish, const struct optimize_task *task, const struct optimize_ensemble *ensemble,
        struct view *view, struct found *found, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_bench_free) struct sl_bench *bench = NULL;
        SL_CLEANUP(sl_cleanup_sl_bench_free) struct sl_bench *ranking = NULL;
        int r = sl_simulated_bench_new(&task->problem, &bench, error);

        r = r < 0 ? r : sl_ranking_new(bench, &task->problem, wish->objective, wish->confirm ? wish->confirm : 1, &ranking, error);
        if (r < 0)
                return r;
        struct sl_search search = {&task->problem, ranking, {.load = wish->load}, wish->objective, view_progress, view};
        struct sl_optimizer_options options = options_of(wish, &search);
        r = sl_optimize(&search, &options, found->matrix, &found->optimum, error);
        if (view->terminal)
                fputs("\r\033[K", stderr);
        r = r < 0 ? r : confirm(wish, task, ensemble, &search, found, error);
        double bound = INFINITY;
        search.bench = bench;
        r = r < 0 ? r : answer_print(task, &search, found->matrix, &found->optimum, &bound, error);
        if (r < 0)
                return r;
        confirmed_print(&found->confirmed, bound);
        return 0;
}

/* What other devices, models and batch sizes would change. */
static int explain(const struct optimize_wish *wish, const struct optimize_task *task, struct view *view, const struct found *found,
        struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_bench_free) struct sl_bench *bench = NULL;
        int r = sl_simulated_bench_new(&task->problem, &bench, error);

        if (r < 0)
                return r;
        view->terminal = false;
        view->shown = INFINITY;
        struct sl_search search = {&task->problem, bench, {.load = wish->load}, wish->objective, view_progress, view};
        struct sl_optimizer_options options = options_of(wish, &search);
        return optimize_explain(task, &search, &options, found->matrix, found->optimum.score, error);
}

/* ---- what is kept of it ---- */

/* What an answer depends on, beside what the cache's name for it says. */
static void origin_begin(const struct optimize_wish *wish, const struct optimize_ensemble *ensemble, char *ret_origin)
{
        snprintf(ret_origin, SL_ALLOCATION_ORIGIN_BYTES,
                "%s: %s at %.15g a second, headroom %.15g, on %s, profiles %016" PRIx64 ", seed %" PRIu64
                ", starts %u, benches %" PRIu64 ": ",
                ensemble->name, sl_objective_names[wish->objective], wish->load, wish->headroom, ensemble->rows, ensemble->digest,
                (uint64_t)wish->seed, (uint32_t)wish->starts, (uint64_t)wish->benches);
}

/* What nobody wanted to be confirmed is kept as it was computed; what was to be, only if it was. */
static bool is_confirmed(const struct confirmed *confirmed)
{
        return !confirmed->interrupted && (!confirmed->tried || confirmed->is_better);
}

static int kept_print(struct sl_error *error)
{
        char folder[PATH_MAX];
        int r = sl_cache_folder_default(folder, error);

        if (r == 0)
                printf("kept        for the next start of `starling serve`, in %s\n", folder);
        return r;
}

/* What was kept before is no better than this, which is worse than nothing. */
static int forget(const struct optimize_ensemble *ensemble, struct sl_error *error)
{
        int r = sl_allocation_cache_remove(NULL, ensemble->cache_name, error);

        if (r > 0)
                puts("            what was kept before is removed");
        return r < 0 ? r : 0;
}

/* Of a search that ended by itself; what was pinned or forbidden is nobody else's wish. */
static int keep(const struct optimize_wish *wish, const struct optimize_task *task, const struct optimize_ensemble *ensemble,
        const struct found *found, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_allocation_free) struct sl_allocation *allocation = NULL;
        char origin[SL_ALLOCATION_ORIGIN_BYTES];
        size_t used;

        if (wish->n_pins || wish->forbid || found->optimum.stopped)
                return 0;
        if (!is_confirmed(&found->confirmed))
                return found->confirmed.n && !found->confirmed.interrupted ? forget(ensemble, error) : 0;
        if (sl_allocation_of(task->costs, found->matrix, &allocation) < 0)
                return sl_error_set(error, ENOMEM, "out of memory");
        origin_begin(wish, ensemble, origin);
        used = strlen(origin);
        if (found->confirmed.n)
                snprintf(
                        origin + used, sizeof(origin) - used, "%.1f samples a second measured", found->confirmed.throughput.median);
        else
                snprintf(origin + used, sizeof(origin) - used, "%.1f computed", found->optimum.score);
        int r = sl_allocation_cache_put(NULL, ensemble->cache_name, allocation, origin, error);
        return r < 0 ? r : kept_print(error);
}

/* Whoever wants to have measured what was computed wants another answer. */
static bool is_answer(const struct optimize_wish *wish, const char *kept)
{
        static const char computed[] = " computed";
        size_t length = strlen(kept), n = sizeof(computed) - 1;

        return !wish->confirm || length < n || strcmp(kept + length - n, computed) != 0;
}

/* An answer to the same question, out of the cache. Return: 1; 0 there is none; -errno. */
static int recall(const struct optimize_wish *wish, const struct optimize_ensemble *ensemble, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_allocation_free) struct sl_allocation *allocation = NULL;
        char origin[SL_ALLOCATION_ORIGIN_BYTES], kept[SL_ALLOCATION_ORIGIN_BYTES];
        struct sl_error damage = {""};

        if (wish->again || wish->n_pins || wish->forbid || wish->explain)
                return 0;
        origin_begin(wish, ensemble, origin);
        if (sl_allocation_cache_find(NULL, ensemble->cache_name, &allocation, kept, &damage) < 0 ||
                strncmp(kept, origin, strlen(origin)) != 0 || !is_answer(wish, kept))
                return 0;
        sl_allocation_print(stdout, allocation);
        printf("kept        %s (--again searches again)\n", kept);
        int r = wish->output ? allocation_write(wish, allocation, error) : 0;
        return r < 0 ? r : 1;
}

static int optimize(
        const struct optimize_wish *wish, const struct optimize_ensemble *ensemble, struct view *view, struct sl_error *error)
{
        struct optimize_task task;
        struct found found = {.confirmed.n = 0};
        int r = optimize_task_init(&task, wish, error);

        if (r < 0)
                return r;
        found.matrix = sl_matrix_new(task.costs->n_devices, task.costs->n_models);
        r = found.matrix ? search_run(wish, &task, ensemble, view, &found, error) : sl_error_set(error, ENOMEM, "out of memory");
        if (r == 0 && wish->output)
                r = answer_write(wish, task.costs, found.matrix, error);
        if (r == 0 && ensemble)
                r = keep(wish, &task, ensemble, &found, error);
        if (r == 0 && wish->explain && !found.optimum.stopped)
                r = explain(wish, &task, view, &found, error);
        sl_matrix_free(found.matrix);
        optimize_task_deinit(&task);
        return r;
}

/* Measured here, for what a repository has. A new search does not rest on what was disturbed: that is measured once more. */
static int optimize_folder(struct optimize_wish *wish, struct view *view, struct sl_error *error)
{
        const char *batches = wish->batches ? wish->batches : "1,8,32";
        struct optimize_ensemble ensemble;
        int r = optimize_ensemble_init(&ensemble, wish->subject, wish->devices, error);

        ensemble.data_folders = data_folders_given(&wish->folders);
        r = r < 0 ? r : optimize_ensemble_measure(&ensemble, wish->subject, batches, wish->seconds, false, view->interrupts, error);
        if (r == 0)
                r = recall(wish, &ensemble, error);
        if (r == 0) {
                r = optimize_ensemble_measure(&ensemble, wish->subject, batches, wish->seconds, true, view->interrupts, error);
                wish->costs_path = ensemble.costs;
                wish->devices = ensemble.rows;
                wish->models = ensemble.columns;
                r = r < 0 ? r : optimize(wish, &ensemble, view, error);
        }
        optimize_ensemble_deinit(&ensemble);
        return r;
}

int command_optimize(int argc, char **argv)
{
        struct optimize_wish wish = {.seed = 1, .confirm = 3, .seconds = 5};
        struct sl_error error = {""};
        struct view view;

        if (optimize_parse(argc, argv, &wish, &error) < 0)
                return error.text[0] ? complain(STATUS_USAGE, "optimize", "%s", error.text) : complain_usage("optimize");
        int r = view_init(&view, &error);
        if (r == 0)
                r = take_standard_output(&wish, &error);
        if (r == 0)
                r = wish.is_folder ? optimize_folder(&wish, &view, &error) : optimize(&wish, NULL, &view, &error);
        if (view.interrupts >= 0)
                close(view.interrupts);
        return r < 0 ? complain(STATUS_FAILED, "optimize", "%s", error.text) : STATUS_OK;
}
