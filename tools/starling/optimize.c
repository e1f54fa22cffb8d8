/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling optimize`: where the models of an ensemble run best, computed from costs. SIGINT ends the search with the best so far:
 * it is blocked and looked for between benches, so nothing is interrupted half way.
 */
#include "allocation_file.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "bound.h"
#include "command.h"
#include "matrix.h"
#include "optimize_explain.h"
#include "optimize_wish.h"
#include "optimizer.h"
#include "search.h"
#include "simulated_bench.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define LOOK_RUNS 1024 /* benches between two looks at the signal */

SL_DEFINE_CLEANUP(struct sl_matrix *, sl_matrix_free)
SL_DEFINE_CLEANUP(struct sl_bench *, sl_bench_free)
SL_DEFINE_CLEANUP(struct sl_allocation *, sl_allocation_free)

struct view {
        int interrupts; /* a signalfd */
        bool terminal, stopped;
        uint64_t looks;
        double shown;
};

static int view_init(struct view *view, struct sl_error *error)
{
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGINT);
        sigprocmask(SIG_BLOCK, &set, NULL);
        *view = (struct view){signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC), isatty(STDERR_FILENO) == 1, false, 0, -INFINITY};
        return view->interrupts < 0 ? sl_error_set(error, errno, "signalfd: %s", strerrordesc_np(errno)) : 0;
}

static bool view_progress(void *context, const struct sl_search *search, const struct sl_matrix *best, double score)
{
        struct view *view = context;
        struct signalfd_siginfo info;

        (void)best;
        if (view->looks++ % LOOK_RUNS)
                return !view->stopped;
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

/* The smaller one of the two bounds; where there is no CBC the other. */
static void bound_print(const struct sl_problem *problem, const struct sl_optimum *optimum, double throughput)
{
        double bound = optimum->bound, solved;
        bool cbc = sl_bound_throughput(problem, &solved, NULL) == 0;

        bound = cbc ? fmin(bound, solved) : bound;
        printf("bound       %.1f samples a second, %s\n", bound,
                cbc ? "device time and memory, CBC" : "device time; CBC is not installed");
        printf("gap         %.2f %%%s\n", optimum->exhaustive ? 0 : fmax(0, 1 - throughput / bound) * 100,
                optimum->exhaustive ? ", all matrices were tried" : "");
}

static int allocation_print(const struct sl_costs *costs, const struct sl_matrix *matrix, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_allocation_free) struct sl_allocation *allocation = NULL;

        if (sl_allocation_of(costs, matrix, &allocation) < 0)
                return sl_error_set(error, ENOMEM, "out of memory");
        sl_allocation_print(stdout, allocation);
        return 0;
}

static int answer_print(const struct optimize_task *task, struct sl_search *search, const struct sl_matrix *matrix,
        const struct sl_optimum *optimum, struct sl_error *error)
{
        struct sl_bench_result result;
        int r = sl_bench_run(search->bench, matrix, &search->calibration, &result, error);

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
                bound_print(&task->problem, optimum, result.throughput);
        }
        printf("benches     %" PRIu64 "%s\n", optimum->benches, optimum->stopped ? ", interrupted: the best so far" : "");
        return 0;
}

static int answer_write(const char *path, const struct sl_costs *costs, const struct sl_matrix *matrix, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_allocation_free) struct sl_allocation *allocation = NULL;
        int r = sl_allocation_of(costs, matrix, &allocation);
        FILE *file = r == 0 ? fopen(path, "we") : NULL;

        if (r == 0)
                r = file ? sl_allocation_write(file, allocation) : -errno;
        if (file && fclose(file) != 0 && r == 0)
                r = -errno;
        return r < 0 ? sl_error_set(error, -r, "%s: %s", path, strerrordesc_np(-r)) : 0;
}

static int search_run(const struct optimize_wish *wish, const struct optimize_task *task, struct view *view, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_bench_free) struct sl_bench *bench = NULL;
        SL_CLEANUP(sl_cleanup_sl_matrix_free)
        struct sl_matrix *matrix = sl_matrix_new(task->costs->n_devices, task->costs->n_models);
        struct sl_optimum optimum;
        int r = matrix ? sl_simulated_bench_new(&task->problem, &bench, error) : sl_error_set(error, ENOMEM, "out of memory");

        if (r < 0)
                return r;
        struct sl_search search = {&task->problem, bench, {.load = wish->load}, wish->objective, view_progress, view};
        struct sl_optimizer_options options = sl_optimizer_defaults(&search);
        options.seed = wish->seed;
        options.starts = wish->starts ? wish->starts : options.starts;
        options.benches = wish->benches ? wish->benches : options.benches;
        r = sl_optimize(&search, &options, matrix, &optimum, error);
        if (view->terminal)
                fputs("\r\033[K", stderr);
        r = r < 0 ? r : answer_print(task, &search, matrix, &optimum, error);
        if (r == 0 && wish->output)
                r = answer_write(wish->output, task->costs, matrix, error);
        view->terminal = false;
        view->shown = INFINITY;
        if (r == 0 && wish->explain && !optimum.stopped)
                r = optimize_explain(task, &search, &options, matrix, optimum.score, error);
        return r;
}

int command_optimize(int argc, char **argv)
{
        struct optimize_wish wish = {.seed = 1};
        struct optimize_task task;
        struct sl_error error = {""};
        struct view view;

        if (optimize_parse(argc, argv, &wish, &error) < 0)
                return error.text[0] ? complain(STATUS_USAGE, "optimize", "%s", error.text) : complain_usage("optimize");
        if (optimize_task_init(&task, &wish, &error) < 0)
                return complain(STATUS_FAILED, "optimize", "%s", error.text);
        int r = view_init(&view, &error);
        r = r < 0 ? r : search_run(&wish, &task, &view, &error);
        if (view.interrupts >= 0)
                close(view.interrupts);
        optimize_task_deinit(&task);
        return r < 0 ? complain(STATUS_FAILED, "optimize", "%s", error.text) : STATUS_OK;
}
