/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cleanup.h"
#include "base/error.h"
#include "command_profile.h"
#include "freshness.h"
#include "noise.h"
#include "plan.h"
#include "profile_store.h"
#include "progress.h"
#include "subject.h"
#include "task.h"
#include "team.h"
#include "worker_measure.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

SL_DEFINE_CLEANUP(struct sl_freshness *, sl_freshness_free)
SL_DEFINE_CLEANUP(struct sl_profile_store *, sl_profile_store_free)

struct measuring {
        const struct wish *wish;
        struct sl_measure_limits limits;
        struct sl_profile_store *store;
        struct sl_freshness *freshness;
        struct sl_noise noise; /* after the task before this one */
        struct progress progress;
};

/* ---- what is left to do ---- */

static int worker_is_stored(struct measuring *measuring, const struct task *task, uint32_t i, struct sl_error *error)
{
        struct sl_worker_profile wanted, found;
        char why[SL_STALE_TEXT_BYTES];
        int r = task_fill(task, i, measuring->freshness, &wanted, error);

        if (r == 0)
                r = sl_profile_store_find(measuring->store, &wanted, &found, error);
        if (r == -ENOENT && !error->text[0])
                return 0;
        if (r < 0)
                return r;
        return sl_profile_is_measured(&found) && strcmp(found.beside_hashes, wanted.beside_hashes) == 0 &&
               !sl_freshness_is_stale(measuring->freshness, &found, why) && (found.converged || !measuring->wish->disturbed);
}

/* 1: all of its workers; 0; -errno. */
static int task_is_stored(struct measuring *measuring, const struct task *task, struct sl_error *error)
{
        int r = !measuring->wish->again;

        for (uint32_t i = 0; i < task->n && r == 1; i++)
                r = worker_is_stored(measuring, task, i, error);
        return r;
}

static int keep_missing(struct measuring *measuring, struct tasks *tasks, struct sl_error *error)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < tasks->n; i++) {
                int r = task_is_stored(measuring, &tasks->items[i], error);

                if (r < 0)
                        return r;
                if (!r)
                        tasks->items[n++] = tasks->items[i];
        }
        if (n < tasks->n)
                fprintf(stderr, "starling profile: %u of %u are stored already\n", tasks->n - n, tasks->n);
        tasks->n = n;
        return 0;
}

/* ---- one task ---- */

static bool plan_has(const struct sl_plan *plan, uint32_t batch)
{
        const struct sl_plan_info *info = sl_plan_info(plan);

        for (uint32_t i = 0; i < info->n_batches; i++)
                if (info->batches[i] == batch)
                        return true;
        return false;
}

/* 1: every worker can run; 0: a model has no such batch. */
static int load_subjects(const struct task *task, struct sl_error *error)
{
        for (uint32_t i = 0; i < task->n; i++) {
                int r = subject_load(task->subjects[i], task->batches[i], error);

                if (r < 0)
                        return r;
                if (!plan_has(task->subjects[i]->plan, task->batches[i]))
                        return 0;
        }
        return 1;
}

/* Its cores follow those of the worker before it. */
static int seat_worker(const struct task *task, uint32_t i, struct sl_timed_worker *worker, struct sl_error *error)
{
        int cores[SL_TEAM_MEMBERS_MAX];
        int r;

        for (uint32_t k = 0; k < task->threads; k++)
                cores[k] = sl_device_let_core(task->device, i * task->threads + k);
        r = sl_timed_worker_init(worker, task->subjects[i]->plan, task->batches[i], cores[0], error);
        return r == 0 && task->threads > 1 ? sl_timed_worker_use_team(worker, cores, task->threads, error) : r;
}

static int seat_workers(const struct task *task, struct sl_timed_worker *workers, struct sl_error *error)
{
        int r = 0;

        for (uint32_t i = 0; i < task->n && r == 0; i++)
                r = seat_worker(task, i, &workers[i], error);
        return r;
}

static int time_workers(struct measuring *measuring, struct sl_timed_worker *workers, uint32_t n,
        struct sl_worker_profile *profiles, struct sl_error *error)
{
        struct sl_timed_worker *all[SL_ROUND_WORKERS_MAX];

        for (uint32_t i = 0; i < n; i++)
                all[i] = &workers[i];
        return n == 1 ? sl_measure_alone(workers, &measuring->limits, profiles, error)
                      : sl_measure_together(all, n, &measuring->limits, profiles, error);
}

static void fill_costs(const struct task *task, uint32_t i, struct sl_worker_profile *profile)
{
        const struct subject *subject = task->subjects[i];
        const struct sl_plan_info *info = sl_plan_info(subject->plan);

        profile->cold_load_ns = subject->cold_load_ns;
        profile->warm_load_ns = subject->warm_load_ns;
        profile->weights_bytes = (double)(info->weights_bytes + info->shared_bytes);
        profile->workspace_bytes = (double)(sl_instance_bytes(subject->plan, task->batches[i]) +
                                            sl_instance_team_bytes(subject->plan, task->batches[i], task->threads));
}

/* The floor after one task is that before the next. */
static void check_noise(struct measuring *measuring, uint32_t n, struct sl_worker_profile *profiles)
{
        sl_noise_after(&measuring->noise);
        for (uint32_t i = 0; i < n; i++) {
                profiles[i].floor_before_ns = measuring->noise.before_ns;
                profiles[i].floor_after_ns = measuring->noise.after_ns;
        }
        measuring->noise.before_ns = measuring->noise.after_ns;
}

static int fill_and_time(struct measuring *measuring, const struct task *task, struct sl_timed_worker *workers,
        struct sl_worker_profile *profiles, struct sl_error *error)
{
        int r = 0;

        for (uint32_t i = 0; i < task->n && r == 0; i++) {
                r = task_fill(task, i, measuring->freshness, &profiles[i], error);
                fill_costs(task, i, &profiles[i]);
        }
        if (r == 0)
                r = seat_workers(task, workers, error);
        return r < 0 ? r : time_workers(measuring, workers, task->n, profiles, error);
}

/* Of the median; infinite where there are too few rounds for an interval. */
static double width_of(const struct sl_worker_profile *profile)
{
        double width = profile->beside[0] ? (profile->slowdown_high - profile->slowdown_low) / profile->slowdown
                                          : (profile->latency_high_ns - profile->latency_low_ns) / profile->latency_p50_ns;

        return isnan(width) ? INFINITY : width;
}

/* Disturbed again, and more than before: what is stored stands. */
static bool is_no_better(struct measuring *measuring, const struct sl_worker_profile *profile)
{
        struct sl_worker_profile found;
        char why[SL_STALE_TEXT_BYTES];

        return measuring->wish->disturbed && !profile->converged &&
               sl_profile_store_find(measuring->store, profile, &found, NULL) == 0 && sl_profile_is_measured(&found) &&
               strcmp(found.beside_hashes, profile->beside_hashes) == 0 &&
               !sl_freshness_is_stale(measuring->freshness, &found, why) && width_of(&found) <= width_of(profile);
}

/* Of workers that are alike the first one's stands. */
static int store_profiles(
        struct measuring *measuring, const struct task *task, struct sl_worker_profile *profiles, struct sl_error *error)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < task->n; i++)
                if (!task_repeats(task, i) && !is_no_better(measuring, &profiles[i]))
                        profiles[n++] = profiles[i];
        return n ? sl_profile_store_put(measuring->store, profiles, n, error) : 0;
}

static void print_name(const struct task *task, char *ret_text, size_t bytes)
{
        size_t used = (size_t)snprintf(ret_text, bytes, "%s:", task->device->name);

        for (uint32_t i = 0; i < task->n && used < bytes; i++)
                used += (size_t)snprintf(ret_text + used, bytes - used, "%s %s %s %u", i ? " +" : "", task->subjects[i]->name,
                        subject_precision(task->subjects[i]), task->batches[i]);
        if (task->threads > 1 && used < bytes)
                snprintf(ret_text + used, bytes - used, ", %u threads%s", task->threads, task->n > 1 ? " each" : "");
}

static void print_result(const struct task *task, const struct sl_worker_profile *profile, char *text, size_t bytes)
{
        bool alone = task->n == 1;
        double low = alone ? profile->latency_low_ns : profile->slowdown_low;
        double high = alone ? profile->latency_high_ns : profile->slowdown_high;
        double middle = alone ? profile->latency_p50_ns : profile->slowdown;
        size_t used = strlen(text);

        if (alone)
                used += (size_t)snprintf(text + used, bytes - used, ": %.4g us, %.4g/s", middle / 1e3, profile->samples_per_second);
        else
                used += (size_t)snprintf(text + used, bytes - used, ": %.3g times as long", middle);
        if (used < bytes && isnan(low))
                snprintf(text + used, bytes - used, ", too few rounds for an interval");
        else if (used < bytes)
                snprintf(text + used, bytes - used, ", interval %.1f %%", 100 * (high - low) / middle);
}

static void report(struct measuring *measuring, const struct task *task, const struct sl_worker_profile *profile)
{
        char text[1024];

        print_name(task, text, sizeof(text));
        print_result(task, profile, text, sizeof(text));
        if (!profile->converged)
                snprintf(text + strlen(text), sizeof(text) - strlen(text), ", wider than %.3g %% after %.3g s",
                        100 * measuring->wish->width, measuring->wish->seconds);
        if (!isnan(measuring->noise.before_ns) &&
                !sl_noise_is_quiet(&(struct sl_noise){.before_ns = profile->floor_before_ns, .after_ns = profile->floor_after_ns}))
                snprintf(text + strlen(text), sizeof(text) - strlen(text),
                        ", the machine changed meanwhile: floor %.0f, then %.0f ns", profile->floor_before_ns,
                        profile->floor_after_ns);
        progress_done(&measuring->progress, text);
}

static int measure_loaded(struct measuring *measuring, const struct task *task, struct sl_error *error)
{
        struct sl_timed_worker workers[SL_ROUND_WORKERS_MAX] = {0};
        SL_CLEANUP(sl_cleanup_free) struct sl_worker_profile *profiles = calloc(task->n, sizeof(*profiles));
        int r = profiles ? fill_and_time(measuring, task, workers, profiles, error) : -ENOMEM;

        for (uint32_t i = 0; i < task->n; i++)
                sl_timed_worker_deinit(&workers[i]);
        if (r < 0)
                return r;
        check_noise(measuring, task->n, profiles);
        r = store_profiles(measuring, task, profiles, error);
        if (r == 0)
                report(measuring, task, &profiles[0]);
        return r;
}

static int measure_task(struct measuring *measuring, const struct task *task, struct sl_error *error)
{
        char text[1024];
        int r;

        print_name(task, text, sizeof(text));
        progress_task(&measuring->progress, text);
        r = load_subjects(task, error);
        if (r < 0)
                return r;
        if (r > 0)
                return measure_loaded(measuring, task, error);
        snprintf(text + strlen(text), sizeof(text) - strlen(text), ": left out, a model has no such batch");
        progress_done(&measuring->progress, text);
        return 0;
}

/* ---- all ---- */

static int measure_all(struct measuring *measuring, const struct tasks *tasks, struct sl_error *error)
{
        uint32_t n = 0;
        int r = 0;

        progress_begin(&measuring->progress, tasks->n, measuring->wish->seconds);
        if (tasks->n)
                sl_noise_before(&measuring->noise);
        for (; n < tasks->n && r == 0 && !atomic_load(measuring->limits.stops); n++)
                r = measure_task(measuring, &tasks->items[n], error);
        if (!atomic_load(measuring->limits.stops))
                return r;
        return sl_error_set(error, EINTR, "interrupted: %u of %u are stored; the same command goes on from there",
                measuring->progress.n_done, tasks->n);
}

static int measure_with_store(const struct wish *wish, const atomic_bool *stops, const struct subjects *subjects,
        struct tasks *tasks, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_profile_store_free) struct sl_profile_store *store = NULL;
        SL_CLEANUP(sl_cleanup_sl_freshness_free) struct sl_freshness *freshness = NULL;
        struct sl_profile_list none = {.n = 0};
        int r = tasks_plan(wish, subjects, tasks, error);

        if (r == 0)
                r = sl_profile_store_open(wish->store, true, &store, error);
        if (r == 0)
                r = sl_freshness_new(&none, &freshness, error);
        if (r < 0)
                return r;
        struct measuring measuring = {.wish = wish,
                .limits = {.width = wish->width, .seconds = wish->seconds, .stops = stops},
                .store = store,
                .freshness = freshness};

        r = keep_missing(&measuring, tasks, error);
        return r < 0 ? r : measure_all(&measuring, tasks, error);
}

int profile_measure(const struct wish *wish, const atomic_bool *stops, struct sl_error *error)
{
        struct subjects subjects;
        struct tasks tasks = {.n = 0};
        int r = subjects_find(wish, &subjects, error);

        if (r == 0)
                r = measure_with_store(wish, stops, &subjects, &tasks, error);
        tasks_deinit(&tasks);
        subjects_deinit(&subjects);
        return r;
}
