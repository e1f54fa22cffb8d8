/* SPDX-License-Identifier: Apache-2.0 */
#include "history.h"

#include "base/clock.h"
#include "interval.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BASELINES       11u /* a minute apart: the oldest is ten to eleven minutes old */
#define BASELINE_POINTS (60u / HISTORY_STEP_SECONDS)

/* ---- series ---- */

#define MODEL_SERIES(X)                                                                                                            \
        X(requests_per_second, model->per_second.requests)                                                                         \
        X(samples_per_second, model->per_second.samples)                                                                           \
        X(completed_per_second, model->per_second.completed)                                                                       \
        X(failed_per_second, model->per_second.failed)                                                                             \
        X(expired_per_second, model->per_second.expired)                                                                           \
        X(cancelled_per_second, model->per_second.cancelled)                                                                       \
        X(refused_per_second, model->per_second.refused)                                                                           \
        X(batch_samples, model->batch_samples)                                                                                     \
        X(busy_workers, model->busy)                                                                                               \
        X(in_flight, model->in_flight)                                                                                             \
        X(waiting_requests, model->waiting.requests)                                                                               \
        X(waiting_segments, model->waiting.segments)                                                                               \
        X(p50_ns, times->count ? (double)times->p50_ns : NAN)                                                                      \
        X(p99_ns, times->count ? (double)times->p99_ns : NAN)

enum {
#define X(name, value) MODEL_##name,
        MODEL_SERIES(X)
#undef X
                MODEL_SERIES_N
};

static const char *const model_series_names[] = {
#define X(name, value) #name,
        MODEL_SERIES(X)
#undef X
};

/* What a point of a series is at number n lies at n % HISTORY_POINTS. NaN: no value. */
struct series {
        float values[HISTORY_POINTS];
};

/* Whom a series is of: a name, and for workers and lets their slot. Slots change hands. */
struct who {
        uint32_t index;
        char name[SL_STATS_MODEL_BYTES + 16];
        uint64_t last_number; /* of a point with a value */
};

struct window {
        double seconds;
        struct stage_times times;
};

struct history_model {
        alignas(64) struct who who;
        struct series series[MODEL_SERIES_N];
        struct window window;
        uint32_t n_baselines; /* ever; number n lies at n % BASELINES */
        uint64_t baseline_ns[BASELINES];
        struct sl_histogram baselines[BASELINES];
};

struct history_busy {
        struct who who;
        struct series busy;
};

struct history_point {
        uint64_t unix_ms;
        double memory_bytes;
        float refusals[SL_REFUSAL_LIMIT]; /* per second */
};

struct history {
        uint64_t begun_ns;
        uint64_t number; /* of the next point */
        struct snapshot *last;
        struct history_point points[HISTORY_POINTS];
        uint32_t models_max, n_models, n_workers, n_lets;
        uint32_t left_out; /* of the last point: models, workers and lets */
        struct history_model **models;
        struct history_busy workers[HISTORY_WORKERS_MAX], lets[HISTORY_LETS_MAX];
};

struct history *history_new(uint32_t models_max)
{
        struct history *history = calloc(1, sizeof(*history));

        if (!history)
                return NULL;
        history->models = calloc(models_max, sizeof(struct history_model *));
        history->models_max = models_max;
        history->begun_ns = sl_clock_ns();
        return history->models ? history : history_free(history);
}

struct history *history_free(struct history *history)
{
        if (!history)
                return NULL;
        for (uint32_t i = 0; i < history->n_models; i++)
                free(history->models[i]);
        free(history->models);
        snapshot_free(history->last);
        free(history);
        return NULL;
}

static uint32_t place_now(const struct history *history)
{
        return (uint32_t)(history->number % HISTORY_POINTS);
}

static void clear_series(struct series *series)
{
        for (uint32_t i = 0; i < HISTORY_POINTS; i++)
                series->values[i] = NAN;
}

static bool is_over(const struct history *history, const struct who *who)
{
        return history->number - who->last_number >= HISTORY_POINTS;
}

static bool is_same(const struct who *who, uint32_t index, const char *name)
{
        return who->index == index && strcmp(who->name, name) == 0;
}

static void init_who(struct who *who, uint32_t index, const char *name)
{
        *who = (struct who){.index = index};
        snprintf(who->name, sizeof(who->name), "%s", name);
}

/* ---- models ---- */

/* NULL: it is left out. */
static struct history_model *find_model(struct history *history, const char *name)
{
        struct history_model *model;

        for (uint32_t i = 0; i < history->n_models; i++)
                if (is_same(&history->models[i]->who, 0, name))
                        return history->models[i];
        model = history->n_models < history->models_max ? aligned_alloc(alignof(struct history_model), sizeof(*model)) : NULL;
        if (!model)
                return NULL;
        memset(model, 0, sizeof(*model));
        init_who(&model->who, 0, name);
        for (int i = 0; i < MODEL_SERIES_N; i++)
                clear_series(&model->series[i]);
        history->models[history->n_models++] = model;
        return model;
}

/* @from NULL: nothing was counted yet. */
static void add_baseline(struct history_model *model, const struct sl_histogram *from, uint64_t at_ns)
{
        uint32_t place = model->n_baselines++ % BASELINES;

        model->baseline_ns[place] = at_ns;
        memset(&model->baselines[place], 0, sizeof(model->baselines[place]));
        if (from)
                sl_histogram_merge(&model->baselines[place], from);
}

static void find_window(struct history_model *model, const struct sl_histogram *now, uint64_t now_ns, struct sl_histogram *scratch)
{
        uint32_t oldest = model->n_baselines > BASELINES ? model->n_baselines % BASELINES : 0;

        histogram_since(scratch, &model->baselines[oldest], now);
        stage_times_of(scratch, &model->window.times);
        model->window.seconds = (double)(now_ns - model->baseline_ns[oldest]) / 1e9;
}

static void put_model(struct history *history, struct history_model *to, const struct model_interval *model)
{
        const struct stage_times *times = &model->stages[SL_STAGE_TOTAL];

        to->who.last_number = history->number;
#define X(name, value) to->series[MODEL_##name].values[place_now(history)] = (float)(value);
        MODEL_SERIES(X)
#undef X
}

static void step_model(struct history *history, const struct interval *interval, uint32_t i, struct sl_histogram *scratch)
{
        const struct model_interval *model = &interval->models[i];
        const struct sl_histogram *total = &model->now->histograms->stages[SL_STAGE_TOTAL];
        uint64_t now_ns = interval->now->taken_ns, begun_ns = now_ns - (uint64_t)(interval->seconds * 1e9);
        struct history_model *to = find_model(history, model->now->slot.name);

        if (!to) {
                history->left_out++;
                return;
        }
        if (interval->from_start)
                to->n_baselines = 0; /* what it had counted was another runtime's */
        if (to->n_baselines == 0)
                add_baseline(to, NULL, begun_ns);
        find_window(to, total, now_ns, scratch);
        if (history->number % BASELINE_POINTS == 0)
                add_baseline(to, total, now_ns);
        put_model(history, to, model);
}

/* What the exporter finds at its own start has counted for longer than it has been looked at. */
static void begin_with(struct history *history, const struct snapshot *now)
{
        for (uint32_t i = 0; i < now->n_models; i++) {
                struct history_model *model = find_model(history, now->models[i].slot.name);

                if (!model)
                        continue;
                model->who.last_number = history->number;
                add_baseline(model, &now->models[i].histograms->stages[SL_STAGE_TOTAL], now->taken_ns);
        }
}

/* ---- workers and lets ---- */

static void put_busy(
        struct history *history, struct history_busy *list, uint32_t *n, uint32_t max, const struct who *who, double busy)
{
        struct history_busy *to = list;

        while (to < list + *n && !is_same(&to->who, who->index, who->name))
                to++;
        if (to == list + max) {
                history->left_out++;
                return;
        }
        if (to == list + *n) {
                init_who(&to->who, who->index, who->name);
                clear_series(&to->busy);
                ++*n;
        }
        to->who.last_number = history->number;
        to->busy.values[place_now(history)] = (float)busy;
}

static void step_workers(struct history *history, const struct interval *interval)
{
        for (uint32_t i = 0; i < interval->now->n_workers; i++) {
                const struct sl_worker_stats *slot = &interval->workers[i].now->slot;
                struct who who;

                init_who(&who, interval->workers[i].now->index, slot->model);
                put_busy(history, history->workers, &history->n_workers, HISTORY_WORKERS_MAX, &who, interval->workers[i].busy);
        }
        for (uint32_t i = 0; i < interval->now->n_lets; i++) {
                struct who who;

                init_who(&who, interval->lets[i].now->index, interval->lets[i].now->slot.name);
                put_busy(history, history->lets, &history->n_lets, HISTORY_LETS_MAX, &who, interval->lets[i].busy);
        }
}

/* ---- a point ---- */

static void forget_old_busy(const struct history *history, struct history_busy *list, uint32_t *n)
{
        uint32_t kept = 0;

        for (uint32_t i = 0; i < *n; i++)
                if (!is_over(history, &list[i].who))
                        memmove(&list[kept++], &list[i], sizeof(*list));
        *n = kept;
}

static void forget_old(struct history *history)
{
        uint32_t kept = 0;

        for (uint32_t i = 0; i < history->n_models; i++)
                if (is_over(history, &history->models[i]->who))
                        free(history->models[i]);
                else
                        history->models[kept++] = history->models[i];
        history->n_models = kept;
        forget_old_busy(history, history->workers, &history->n_workers);
        forget_old_busy(history, history->lets, &history->n_lets);
}

static uint64_t unix_ms(void)
{
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

/* Nothing in it yet; what stood in its place was ten minutes ago. */
static void begin_point(struct history *history)
{
        uint32_t place = place_now(history);

        history->points[place] = (struct history_point){.unix_ms = unix_ms(), .memory_bytes = NAN};
        history->left_out = 0;
        for (uint32_t i = 0; i < SL_REFUSAL_LIMIT; i++)
                history->points[place].refusals[i] = NAN;
        for (uint32_t i = 0; i < history->n_models; i++)
                for (int series = 0; series < MODEL_SERIES_N; series++)
                        history->models[i]->series[series].values[place] = NAN;
        for (uint32_t i = 0; i < history->n_workers; i++)
                history->workers[i].busy.values[place] = NAN;
        for (uint32_t i = 0; i < history->n_lets; i++)
                history->lets[i].busy.values[place] = NAN;
}

static uint64_t refusals_of(const struct snapshot *snapshot, uint32_t cause)
{
        uint64_t sum = 0;

        for (uint32_t i = 0; snapshot && i < snapshot->n_dispatchers; i++)
                sum += sl_counter_read(&snapshot->dispatchers[i].slot.refusals[cause]);
        return sum;
}

static void step_runtime(struct history *history, const struct interval *interval, const struct snapshot *before)
{
        struct history_point *point = &history->points[place_now(history)];

        point->memory_bytes = (double)sl_counter_read(&interval->now->header.memory_bytes);
        for (uint32_t i = 0; i < SL_REFUSAL_LIMIT; i++) {
                uint64_t now = refusals_of(interval->now, i), earlier = interval->from_start ? 0 : refusals_of(before, i);

                point->refusals[i] = (float)((double)(now >= earlier ? now - earlier : now) / interval->seconds);
        }
}

static int step_interval(struct history *history, const struct snapshot *now)
{
        struct sl_histogram *scratch = aligned_alloc(alignof(struct sl_histogram), sizeof(*scratch));
        struct interval interval;
        int r = scratch ? interval_init(&interval, history->last, now) : -ENOMEM;

        if (r == 0) {
                step_runtime(history, &interval, history->last);
                for (uint32_t i = 0; i < now->n_models; i++)
                        step_model(history, &interval, i, scratch);
                step_workers(history, &interval);
                interval_deinit(&interval);
        }
        free(scratch);
        return r;
}

static void step_live(struct history *history, const struct sl_stats_view *view)
{
        struct snapshot *now;

        if (snapshot_take(view, &now, NULL) < 0)
                return;
        if (!history->last && now->header.started_ns < history->begun_ns)
                begin_with(history, now);
        else if (step_interval(history, now) < 0) {
                snapshot_free(now);
                return;
        }
        snapshot_free(history->last);
        history->last = now;
}

void history_step(struct history *history, const struct sl_stats_view *view)
{
        begin_point(history);
        if (view)
                step_live(history, view);
        history->number++;
        forget_old(history);
}

/* ---- JSON ---- */

static uint64_t first_number(const struct history *history)
{
        return history->number > HISTORY_POINTS ? history->number - HISTORY_POINTS : 0;
}

static void write_real(struct text *out, double value)
{
        if (isfinite(value))
                text_add_format(out, "%.6g", value);
        else
                text_add(out, "null");
}

static void write_series(const struct history *history, const struct series *series, struct text *out)
{
        for (uint64_t n = first_number(history); n < history->number; n++) {
                text_add(out, n > first_number(history) ? "," : "[");
                write_real(out, (double)series->values[n % HISTORY_POINTS]);
        }
        text_add(out, first_number(history) < history->number ? "]" : "[]");
}

static void write_window(const struct window *window, struct text *out)
{
        text_add(out, ",\"window\":{\"seconds\":");
        write_real(out, window->seconds);
        text_add(out, ",\"count\":");
        text_add_number(out, window->times.count);
        text_add(out, ",\"p50_ns\":");
        text_add_number(out, window->times.p50_ns);
        text_add(out, ",\"p99_ns\":");
        text_add_number(out, window->times.p99_ns);
        text_add(out, ",\"p999_ns\":");
        text_add_number(out, window->times.p999_ns);
        text_add(out, ",\"max_ns\":");
        text_add_number(out, window->times.max_ns);
        text_add(out, "}");
}

static void write_model(const struct history *history, const struct history_model *model, struct text *out)
{
        text_add(out, "{\"name\":");
        text_add_json_string(out, model->who.name);
        for (int i = 0; i < MODEL_SERIES_N; i++) {
                text_add_format(out, ",\"%s\":", model_series_names[i]);
                write_series(history, &model->series[i], out);
        }
        write_window(&model->window, out);
        text_add(out, "}");
}

static void write_busy(
        const struct history *history, const char *key, const struct history_busy *list, uint32_t n, struct text *out)
{
        text_add_format(out, ",\"%s\":[", key);
        for (uint32_t i = 0; i < n; i++) {
                text_add_format(out, "%s{\"index\":%u,\"name\":", i ? "," : "", list[i].who.index);
                text_add_json_string(out, list[i].who.name);
                text_add(out, ",\"busy\":");
                write_series(history, &list[i].busy, out);
                text_add(out, "}");
        }
        text_add(out, "]");
}

static void write_refusals(const struct history *history, struct text *out)
{
        text_add(out, ",\"refusals_per_second\":{");
        for (uint32_t cause = 0; cause < SL_REFUSAL_LIMIT; cause++) {
                struct series series;

                for (uint32_t i = 0; i < HISTORY_POINTS; i++)
                        series.values[i] = history->points[i].refusals[cause];
                text_add(out, cause ? "," : "");
                text_add_json_string(out, sl_refusal_text(cause));
                text_add(out, ":");
                write_series(history, &series, out);
        }
        text_add(out, "}");
}

static void write_points(const struct history *history, struct text *out)
{
        text_add(out, ",\"unix_ms\":[");
        for (uint64_t n = first_number(history); n < history->number; n++) {
                text_add(out, n > first_number(history) ? "," : "");
                text_add_number(out, history->points[n % HISTORY_POINTS].unix_ms);
        }
        text_add(out, "],\"memory_bytes\":[");
        for (uint64_t n = first_number(history); n < history->number; n++) {
                text_add(out, n > first_number(history) ? "," : "");
                write_real(out, history->points[n % HISTORY_POINTS].memory_bytes);
        }
        text_add(out, "]");
}

void history_write(const struct history *history, const char *name, struct text *out)
{
        text_add(out, "{\"name\":");
        text_add_json_string(out, name);
        text_add_format(out, ",\"step_seconds\":%u,\"left_out\":%u", HISTORY_STEP_SECONDS, history->left_out);
        write_points(history, out);
        write_refusals(history, out);
        text_add(out, ",\"models\":[");
        for (uint32_t i = 0; i < history->n_models; i++) {
                text_add(out, i ? "," : "");
                write_model(history, history->models[i], out);
        }
        text_add(out, "]");
        write_busy(history, "workers", history->workers, history->n_workers, out);
        write_busy(history, "lets", history->lets, history->n_lets, out);
        text_add(out, "}");
}
