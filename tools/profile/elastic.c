/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling profile --elastic`: the offline phase of E-Ebird for one model on one device. What comes of it goes into the model's
 * config.yaml.
 *
 *     each size alone -> candidates of each load (elastic_choice.h) -> bursts in turns (halving.h) -> batching_rows, batch_sizes
 *
 * Sources: as ebird_engine.h, section 7.3.2.
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "command_profile.h"
#include "elastic_choice.h"
#include "halving.h"
#include "plan.h"
#include "progress.h"
#include "quantile.h"
#include "subject.h"
#include "worker_measure.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALONE_SECONDS 0.5 /* for each size, at most: it ranks candidates, and no more */

/* What was found for one load. */
struct row {
        struct sl_ebird_configuration best;
        double best_ns, single_ns; /* median over the turns of the mean latency: of the best, and of one worker for all */
        uint32_t n_candidates, n_all, turns;
};

struct elastic {
        const struct wish *wish;
        const struct subject *subject;
        const struct sl_device_let *device;
        const atomic_bool *stops;
        struct sl_timed_worker *workers[SL_EBIRD_SIZES][ELASTIC_WORKERS_MAX]; /* made when they are first wanted */
        struct sl_halving *halving;
        struct row rows[SL_EBIRD_ROWS];
        struct progress progress;
};

static void elastic_deinit(struct elastic *elastic)
{
        for (uint32_t size = 0; size < SL_EBIRD_SIZES; size++)
                for (uint32_t i = 0; i < ELASTIC_WORKERS_MAX; i++)
                        if (elastic->workers[size][i]) {
                                sl_timed_worker_deinit(elastic->workers[size][i]);
                                free(elastic->workers[size][i]);
                        }
        free(elastic->halving);
}

static int find_worker(
        struct elastic *elastic, uint32_t size, uint32_t index, struct sl_timed_worker **ret_worker, struct sl_error *error)
{
        struct sl_timed_worker **worker = &elastic->workers[size][index];

        if (!*worker) {
                *worker = calloc(1, sizeof(**worker));
                if (!*worker)
                        return sl_error_set(error, ENOMEM, "no memory for a worker");
                int r = sl_timed_worker_init(
                        *worker, elastic->subject->plan, 1u << size, sl_device_let_core(elastic->device, 0), error);
                if (r < 0)
                        return r;
        }
        *ret_worker = *worker;
        return 0;
}

/* One batch of each worker, all at once. */
static int measure_burst(
        struct elastic *elastic, const struct sl_ebird_configuration *configuration, double *ret_ns, struct sl_error *error)
{
        uint32_t sizes[ELASTIC_WORKERS_MAX], n = elastic_workers(configuration, sizes), of_size[SL_EBIRD_SIZES] = {0};
        struct sl_timed_worker *workers[ELASTIC_WORKERS_MAX];
        double sum_ns = 0;
        int r = 0;

        for (uint32_t i = 0; i < n && r == 0; i++) {
                r = find_worker(elastic, sizes[i], of_size[sizes[i]]++, &workers[i], error);
                if (r == 0)
                        workers[i]->core = sl_device_let_core(elastic->device, i % elastic->device->n_cores);
        }
        if (r == 0)
                r = sl_worker_burst(workers, n, elastic->stops, error);
        for (uint32_t i = 0; i < n && r == 0; i++)
                sum_ns += (double)workers[i]->span_ns;
        *ret_ns = sum_ns / n;
        return r;
}

static int measure_alone(struct elastic *elastic, double ret_alone_ns[SL_EBIRD_SIZES], struct sl_error *error)
{
        double seconds = elastic->wish->seconds < ALONE_SECONDS ? elastic->wish->seconds : ALONE_SECONDS;
        const struct sl_measure_limits limits = {.width = elastic->wish->width, .seconds = seconds, .stops = elastic->stops};
        struct sl_worker_profile profile;
        struct sl_timed_worker *worker;
        int r = 0;

        for (uint32_t size = 0; size < SL_EBIRD_SIZES && r == 0; size++) {
                sl_worker_profile_init(&profile);
                r = find_worker(elastic, size, 0, &worker, error);
                if (r == 0)
                        r = sl_measure_alone(worker, &limits, &profile, error);
                ret_alone_ns[size] = profile.latency_p50_ns;
        }
        return r;
}

static double median_ns(const struct sl_halving *halving, uint32_t candidate)
{
        double sorted[SL_HALVING_TURNS];
        uint32_t n = halving->n_scores[candidate];

        for (uint32_t i = 0; i < n; i++)
                sorted[i] = -halving->scores[candidate][i];
        sl_quantile_sort(sorted, n);
        return sl_quantile(sorted, n, 0.5);
}

/* The first look at all candidates is made whatever it takes. */
static int measure_row(struct elastic *elastic, const struct sl_ebird_configuration *candidates, uint32_t n, struct row *row,
        struct sl_error *error)
{
        struct sl_halving *halving = elastic->halving;
        uint64_t until = sl_clock_ns() + (uint64_t)(elastic->wish->seconds * (double)SL_NS_PER_SECOND);
        uint32_t index;
        double ns;

        sl_halving_init(halving, n);
        while (sl_halving_next(halving, &index) && (halving->turn < SL_HALVING_FIRST || sl_clock_ns() < until)) {
                int r = measure_burst(elastic, &candidates[index], &ns, error);

                if (r < 0)
                        return r;
                sl_halving_take(halving, -ns);
        }
        index = sl_halving_best(halving);
        row->best = candidates[index];
        row->best_ns = median_ns(halving, index);
        row->single_ns = median_ns(halving, 0);
        row->turns = halving->turn;
        return 0;
}

static void print_row(const struct sl_ebird_configuration *row, char *ret_text, size_t bytes)
{
        uint32_t n = SL_EBIRD_SIZES;
        size_t used = 0;

        while (n > 1 && !row->workers[n - 1])
                n--;
        ret_text[0] = 0;
        for (uint32_t i = 0; i < n && used < bytes; i++)
                used += (size_t)snprintf(ret_text + used, bytes - used, "%s%u", i ? "," : "", row->workers[i]);
}

static void report_row(struct elastic *elastic, uint32_t load, const struct row *row)
{
        char text[1024], numbers[64];

        print_row(&row->best, numbers, sizeof(numbers));
        snprintf(text, sizeof(text),
                "%.63s, load %u: workers %s take %.4g us, one worker of %u takes %.4g; %u of %u measured, %u turns",
                elastic->subject->name, load, numbers, row->best_ns / 1e3, load, row->single_ns / 1e3, row->n_candidates,
                row->n_all, row->turns);
        progress_done(&elastic->progress, text);
}

static int measure_rows(struct elastic *elastic, struct sl_error *error)
{
        struct sl_ebird_configuration candidates[SL_HALVING_MAX];
        double alone_ns[SL_EBIRD_SIZES];
        int r = measure_alone(elastic, alone_ns, error);

        progress_begin(&elastic->progress, SL_EBIRD_ROWS, elastic->wish->seconds);
        for (uint32_t i = 0; i < SL_EBIRD_ROWS && r == 0; i++) {
                struct row *row = &elastic->rows[i];
                char text[64];

                snprintf(text, sizeof(text), "load %u", sl_ebird_load(i));
                progress_task(&elastic->progress, text);
                row->n_candidates = elastic_candidates(
                        alone_ns, elastic->device->n_cores, sl_ebird_load(i), candidates, SL_HALVING_MAX, &row->n_all);
                r = measure_row(elastic, candidates, row->n_candidates, row, error);
                if (r == 0)
                        report_row(elastic, sl_ebird_load(i), row);
        }
        return r;
}

/* ---- what is written ---- */

static struct sl_ebird_configuration workers_of_rows(const struct elastic *elastic)
{
        struct sl_ebird_engine engine;

        for (uint32_t i = 0; i < SL_EBIRD_ROWS; i++)
                engine.rows[i] = elastic->rows[i].best;
        return sl_ebird_workers(&engine);
}

/* Keys of a model's config.yaml. */
static void write_keys(const struct elastic *elastic, FILE *stream)
{
        const struct sl_ebird_configuration workers = workers_of_rows(elastic);
        const char *separator = "";
        char numbers[64];

        fprintf(stream, "# %s on %s; mean latency of workers that begin at once:\n", elastic->subject->name, elastic->device->name);
        for (uint32_t i = 0; i < SL_EBIRD_ROWS; i++)
                fprintf(stream, "# load %u: %.4g us, of one worker %.4g us\n", sl_ebird_load(i), elastic->rows[i].best_ns / 1e3,
                        elastic->rows[i].single_ns / 1e3);
        fprintf(stream, "batching: e_ebird\nbatch_max: 32\nbatch_sizes: [");
        for (uint32_t size = 0; size < SL_EBIRD_SIZES; size++)
                for (uint32_t i = 0; i < workers.workers[size]; i++, separator = ", ")
                        fprintf(stream, "%s%u", separator, 1u << size);
        fprintf(stream, "]\nbatching_rows: [");
        for (uint32_t i = 0; i < SL_EBIRD_ROWS; i++) {
                print_row(&elastic->rows[i].best, numbers, sizeof(numbers));
                fprintf(stream, "%s\"%s\"", i ? ", " : "", numbers);
        }
        fprintf(stream, "]\n");
}

static int write_output(const struct elastic *elastic, struct sl_error *error)
{
        FILE *stream = elastic->wish->output ? fopen(elastic->wish->output, "we") : stdout;
        bool failed;

        if (!stream)
                return sl_error_set(error, errno, "\"%s\": %s", elastic->wish->output, strerror(errno));
        write_keys(elastic, stream);
        failed = fflush(stream) != 0 || ferror(stream);
        if (elastic->wish->output && fclose(stream) != 0)
                failed = true;
        return failed ? sl_error_set(
                                error, EIO, "\"%s\": %s", elastic->wish->output ? elastic->wish->output : "stdout", strerror(errno))
                      : 0;
}

static int check_batches(const struct subject *subject, struct sl_error *error)
{
        const struct sl_plan_info *info = sl_plan_info(subject->plan);
        uint32_t largest = info->n_batches ? info->batches[info->n_batches - 1] : 0;

        if (largest >= 1u << (SL_EBIRD_SIZES - 1))
                return 0;
        return sl_error_set(error, EINVAL, "--elastic: \"%s\" has batches of up to %u samples, e_ebird has workers of up to %u",
                subject->name, largest, 1u << (SL_EBIRD_SIZES - 1));
}

static int search(struct elastic *elastic, struct subject *subject, struct sl_error *error)
{
        int r = subject_load(subject, 1u << (SL_EBIRD_SIZES - 1), error);

        if (r == 0)
                r = check_batches(subject, error);
        if (r == 0 && !(elastic->halving = malloc(sizeof(*elastic->halving))))
                r = sl_error_set(error, ENOMEM, "no memory for %zu bytes", sizeof(*elastic->halving));
        if (r == 0)
                r = measure_rows(elastic, error);
        return r < 0 ? r : write_output(elastic, error);
}

int profile_elastic(const struct wish *wish, const atomic_bool *stops, struct sl_error *error)
{
        struct elastic elastic = {.wish = wish, .device = &wish->devices[0], .stops = stops};
        struct subjects subjects;
        int r = subjects_find(wish, &subjects, error);

        if (r == 0 && subjects.n != 1)
                r = sl_error_set(error, EINVAL, "--elastic: %u models, it takes one at a time", subjects.n);
        if (r == 0) {
                elastic.subject = &subjects.items[0];
                r = search(&elastic, &subjects.items[0], error);
        }
        if (r == -EINTR && atomic_load(stops))
                sl_error_set(error, EINTR, "interrupted: nothing is written");
        elastic_deinit(&elastic);
        subjects_deinit(&subjects);
        return r;
}
