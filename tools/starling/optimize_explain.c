/* SPDX-License-Identifier: Apache-2.0 */
#include "optimize_explain.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "matrix.h"
#include "optimize_wish.h"
#include "optimizer.h"
#include "search.h"
#include "simulated_bench.h"

#include <math.h>
#include <stdio.h>

#define BUSY   0.999 /* of the time: what limits the throughput */
#define BETTER 1.001

SL_DEFINE_CLEANUP(struct sl_matrix *, sl_matrix_free)
SL_DEFINE_CLEANUP(struct sl_bench *, sl_bench_free)

static void bottleneck_print(const struct optimize_task *task, const struct sl_matrix *matrix, uint32_t model)
{
        printf("  \"%s\" is busy all the time:", task->costs->models[model].name);
        for (uint32_t d = 0; d < matrix->n_devices; d++)
                if (sl_matrix_batch(matrix, d, model))
                        printf(" %s (%u)", task->costs->devices[d].name, sl_matrix_batch(matrix, d, model));
        putchar('\n');
}

static int bottlenecks_print(
        const struct optimize_task *task, const struct sl_search *search, const struct sl_matrix *matrix, struct sl_error *error)
{
        double score;
        struct sl_search once = *search;
        int r = sl_search_score(&once, matrix, &score, error);

        for (uint32_t m = 0; m < matrix->n_models && r == 0; m++)
                if (sl_simulated_bench_busy(search->bench, m) >= BUSY)
                        bottleneck_print(task, matrix, m);
        return r;
}

struct missed {
        uint32_t device, model, batch;
        double score;
        uint64_t bytes, room;
};

/* @try as @missed, if it is better than that and does not fit. */
static int missed_try(struct sl_search *free_search, const struct optimize_task *task, struct sl_matrix *matrix, uint32_t device,
        uint32_t model, uint32_t batch, struct missed *missed, struct sl_error *error)
{
        uint32_t *entry = sl_matrix_entry(matrix, device, model), before = *entry, row = task->costs->devices[device].memory_of;
        double score = 0;
        int r = 0;

        *entry = batch;
        if (!sl_matrix_fits(&task->problem, matrix))
                r = sl_search_score(free_search, matrix, &score, error);
        if (r == 0 && score > missed->score)
                *missed = (struct missed){device, model, batch, score, sl_matrix_memory(&task->problem, matrix, row),
                        sl_problem_room(&task->problem, row)};
        *entry = before;
        return r;
}

/* The best neighbour among those that memory keeps away. */
static int missed_find(struct sl_search *free_search, const struct optimize_task *task, struct sl_matrix *matrix,
        struct missed *missed, struct sl_error *error)
{
        uint32_t batches[SL_COST_BATCHES_MAX + 1];
        int r = 0;

        for (uint32_t d = 0; d < matrix->n_devices; d++)
                for (uint32_t m = 0; m < matrix->n_models; m++) {
                        uint32_t n = sl_search_values(free_search, matrix, d, m, batches);

                        for (uint32_t i = 0; i < n && r == 0; i++)
                                r = missed_try(free_search, task, matrix, d, m, batches[i], missed, error);
                }
        return r;
}

/* As if every device had memory for everything. */
static int memory_print(const struct optimize_task *task, const struct sl_search *search, struct sl_matrix *matrix, double score,
        struct sl_error *error)
{
        struct optimize_task roomy;
        struct missed missed = {.score = score > 0 ? score * BETTER : score};
        int r = optimize_task_extend(&roomy, task, 0, error);

        if (r < 0)
                return r;
        roomy.costs->n_devices--;
        for (uint32_t d = 0; d < roomy.costs->n_devices; d++)
                roomy.costs->devices[d].memory_bytes = SL_COST_BYTES_MAX;
        SL_CLEANUP(sl_cleanup_sl_bench_free) struct sl_bench *bench = NULL;
        r = sl_simulated_bench_new(&roomy.problem, &bench, error);
        struct sl_search free_search = *search;
        free_search.problem = &roomy.problem;
        free_search.bench = bench;
        r = r < 0 ? r : missed_find(&free_search, task, matrix, &missed, error);
        if (r == 0 && missed.bytes)
                printf("  memory of \"%s\" binds: \"%s\" there with batch %u would bring %+.1f %%, and all there take %.1f of %.1f "
                       "MiB\n",
                        task->costs->devices[missed.device].name, task->costs->models[missed.model].name, missed.batch,
                        (missed.score / score - 1) * 100, (double)missed.bytes / 0x1p20, (double)missed.room / 0x1p20);
        else if (r == 0)
                printf("  device time binds: no single change that memory forbids would help\n");
        optimize_task_deinit(&roomy);
        return r;
}

/* Only the first row of those that are alike. */
static bool device_is_new(const struct sl_costs *costs, uint32_t device)
{
        const struct sl_cost_device *row = &costs->devices[device];

        for (uint32_t d = 0; d < device; d++)
                if (costs->devices[d].class_index == row->class_index && costs->devices[d].memory_bytes == row->memory_bytes)
                        return false;
        return row->memory_of == device;
}

static int one_more_print(const struct optimize_task *task, const struct sl_search *search,
        const struct sl_optimizer_options *options, uint32_t device, double score, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_bench_free) struct sl_bench *bench = NULL;
        SL_CLEANUP(sl_cleanup_sl_matrix_free) struct sl_matrix *matrix = NULL;
        struct optimize_task more;
        struct sl_optimum optimum = {.score = 0};
        struct sl_search wider = *search;
        int r = optimize_task_extend(&more, task, device, error);

        if (r < 0)
                return r;
        matrix = sl_matrix_new(more.costs->n_devices, more.costs->n_models);
        r = matrix ? sl_simulated_bench_new(&more.problem, &bench, error) : sl_error_set(error, ENOMEM, "out of memory");
        wider.problem = &more.problem;
        wider.bench = bench;
        r = r < 0 ? r : sl_optimize(&wider, options, matrix, &optimum, error);
        /* The answer without it is one with it, too. */
        if (r == 0 && !optimum.stopped)
                printf("  one more \"%s\" would bring %+.1f %%\n", task->costs->devices[device].name,
                        score > 0 ? fmax(0, optimum.score / score - 1) * 100 : 0);
        optimize_task_deinit(&more);
        return r;
}

int optimize_explain(const struct optimize_task *task, const struct sl_search *search, const struct sl_optimizer_options *options,
        const struct sl_matrix *matrix, double score, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_matrix_free) struct sl_matrix *copy = sl_matrix_new(matrix->n_devices, matrix->n_models);

        if (!copy)
                return sl_error_set(error, ENOMEM, "out of memory");
        sl_matrix_copy(copy, matrix);
        puts("why not more");
        int r = bottlenecks_print(task, search, matrix, error);
        r = r < 0 ? r : memory_print(task, search, copy, score, error);
        for (uint32_t d = 0; d < task->costs->n_devices && r == 0; d++)
                if (device_is_new(task->costs, d))
                        r = one_more_print(task, search, options, d, score, error);
        return r;
}
