/* SPDX-License-Identifier: Apache-2.0 */
#include "forecast.h"

#include "choice.h"
#include "dispatcher_state.h"
#include "ensemble.h"
#include "executor.h"
#include "lines.h"
#include "model.h"
#include "task_page.h"

#include <criterion/criterion.h>

#define SAMPLE_NS 1000u
#define SECOND_NS 1000000000ull

/* An ensemble of one model with workers, which takes SAMPLE_NS for each sample. */
struct line_up {
        struct sl_executor worker;
        struct sl_model model;
        struct sl_ensemble ensemble;
};

static void line_up(struct line_up *to, uint32_t n_workers, uint64_t sample_ns)
{
        memset(to, 0, sizeof(*to));
        to->worker.batch_max = 32;
        to->model.workers = (struct sl_workers){.n = n_workers, .list = {&to->worker, &to->worker}};
        if (sample_ns)
                sl_service_time_learn(&to->model.service_time, 32, 32 * sample_ns);
        to->model.jobs = SL_JOBS_KNOWN;
        to->ensemble.members[0] = &to->model;
        to->ensemble.assembly.n_members = 1;
}

Test(forecast, is_what_goes_before_at_the_speed_of_all_workers)
{
        struct line_up line;

        line_up(&line, 1, SAMPLE_NS);
        cr_expect_eq(sl_forecast_ns(&line.ensemble, 100), 100 * SAMPLE_NS);
        line_up(&line, 2, SAMPLE_NS);
        cr_expect_eq(sl_forecast_ns(&line.ensemble, 100), 50 * SAMPLE_NS);
        cr_expect_eq(sl_forecast_ns(&line.ensemble, 0), 0);
}

Test(forecast, counts_each_worker_with_its_own_batch)
{
        struct line_up line;
        struct sl_executor single = {.batch_max = 1};

        line_up(&line, 2, SAMPLE_NS);
        line.model.workers.list[1] = &single;
        sl_service_time_learn(&line.model.service_time, 1, 3 * SAMPLE_NS);
        cr_expect_eq(sl_forecast_ns(&line.ensemble, 400), 300 * SAMPLE_NS, "three samples of the one while the other has one");
}

Test(forecast, of_several_members_is_the_slowest)
{
        struct line_up line, slow;

        line_up(&line, 1, SAMPLE_NS);
        line_up(&slow, 1, 3 * SAMPLE_NS);
        line.ensemble.members[1] = &slow.model;
        line.ensemble.assembly.n_members = 2;
        cr_expect_eq(sl_forecast_ns(&line.ensemble, 10), 30 * SAMPLE_NS);
}

Test(forecast, refuses_who_would_be_late_and_says_how_long_it_would_wait)
{
        struct line_up line;

        line_up(&line, 1, SAMPLE_NS);
        cr_expect_eq(sl_forecast_late(&line.ensemble, 10, 1, 0, 21 * SAMPLE_NS), 0, "twice what goes before, and itself");
        cr_expect_eq(sl_forecast_late(&line.ensemble, 10, 1, 0, 21 * SAMPLE_NS - 1), 10 * SAMPLE_NS);
        cr_expect_eq(sl_forecast_late(&line.ensemble, 10, 100, 0, 120 * SAMPLE_NS), 0, "its own samples count once");
}

/* Else a service time that was learned in a bad moment would refuse everybody for ever. */
Test(forecast, never_refuses_who_finds_nothing_before_it)
{
        struct line_up line;

        line_up(&line, 1, SECOND_NS);
        cr_expect_eq(sl_forecast_late(&line.ensemble, 0, 1, 0, 1), 0);
        cr_expect_gt(sl_forecast_late(&line.ensemble, 1, 1, 0, 1), 0);
}

Test(forecast, refuses_nobody_as_long_as_no_service_time_is_known)
{
        struct line_up line;

        line_up(&line, 1, 0);
        cr_expect_eq(sl_forecast_late(&line.ensemble, 1000, 1, 0, 1), 0);
        line_up(&line, 1, SAMPLE_NS);
        line.model.jobs = SL_JOBS_KNOWN - 1;
        cr_expect_eq(sl_forecast_late(&line.ensemble, 1000, 1, 0, 1), 0, "a first sample is cold");
        line.model.jobs = SL_JOBS_KNOWN;
        cr_expect_gt(sl_forecast_late(&line.ensemble, 1000, 1, 0, 1), 0);
        line.model.workers.n = 0;
        cr_expect_eq(sl_forecast_late(&line.ensemble, 1000, 1, 0, 1), 0, "an open model has none");
}

/* Jobs of a plan of any size take a second and a microsecond for each unit, whatever the mean of all was. */
static void line_up_sizes(struct line_up *to, uint32_t n_workers, uint32_t in_flight, uint64_t units)
{
        line_up(to, n_workers, SAMPLE_NS);
        for (uint64_t size = 1; size <= 100; size++)
                sl_size_line_learn(&to->model.line, size, SECOND_NS + size * SAMPLE_NS);
        to->ensemble.in_flight = in_flight;
        to->ensemble.units = units;
}

static void expect_late_from(struct line_up *line, uint64_t ahead, uint64_t units, uint64_t total_ns)
{
        uint64_t little = total_ns / 1000;

        cr_expect_eq(sl_forecast_late(&line->ensemble, ahead, 1, units, total_ns + little), 0);
        cr_expect_gt(sl_forecast_late(&line->ensemble, ahead, 1, units, total_ns - little), 0);
}

Test(forecast, of_any_size_is_by_the_sizes_of_what_waits_and_its_own)
{
        struct line_up line;

        line_up_sizes(&line, 1, 4, 4000000);
        expect_late_from(&line, 2, 7000000, 2 * 2 * (SECOND_NS + 1000000 * SAMPLE_NS) + SECOND_NS + 7000000ull * SAMPLE_NS);
        line_up_sizes(&line, 2, 4, 4000000);
        expect_late_from(&line, 2, 7000000, 2 * (SECOND_NS + 1000000 * SAMPLE_NS) + SECOND_NS + 7000000ull * SAMPLE_NS);
        line_up_sizes(&line, 1, 4, 40);
        expect_late_from(&line, 4, 10, 9 * SECOND_NS + 9 * 10 * SAMPLE_NS);
}

Test(forecast, of_any_size_is_the_mean_as_long_as_no_line_is_known)
{
        struct line_up line;

        line_up(&line, 1, SAMPLE_NS);
        line.ensemble.in_flight = 10;
        line.ensemble.units = 1000;
        expect_late_from(&line, 10, 5000, 21 * SAMPLE_NS);
        cr_expect_eq(sl_forecast_late(&line.ensemble, 0, 1, 5000, 1), 0, "nothing goes before it");
}

/* ---- what was learned while others had the cores ---- */

#define QUICK_NS 1000000ull
#define SLOW_NS  (40 * QUICK_NS)

static void learn(struct line_up *line, uint32_t jobs, uint64_t ns)
{
        for (uint32_t i = 0; i < jobs; i++)
                sl_model_learn(&line->model, 1, ns);
}

/* Who finds nothing before it is computed, however late it would be; so its jobs are learned, and others are let in again. */
Test(latch, requests_with_deadlines_are_let_in_again_once_jobs_are_quick)
{
        struct line_up line;
        uint32_t jobs = 0;

        line_up(&line, 1, 0);
        learn(&line, 100, SLOW_NS);
        cr_expect_gt(sl_forecast_late(&line.ensemble, 1, 1, 0, 4 * QUICK_NS), 0);
        for (; jobs < 100 && sl_forecast_late(&line.ensemble, 1, 1, 0, 4 * QUICK_NS); jobs++) {
                cr_assert_eq(sl_forecast_late(&line.ensemble, 0, 1, 0, 4 * QUICK_NS), 0);
                learn(&line, 1, QUICK_NS);
        }
        cr_expect_leq(jobs, 20, "%u", jobs);
}

/* A variant of a task on its page, and the time. */
struct watched {
        struct line_up line;
        struct sl_dispatcher *dispatcher;
        struct sl_task_page *page;
        uint64_t now_ns;
};

static void show_at(struct watched *w, uint64_t now_ns)
{
        w->now_ns = now_ns;
        sl_lines_show(w->dispatcher, now_ns);
}

static void watch(struct watched *w)
{
        line_up(&w->line, 1, 0);
        w->dispatcher = calloc(1, sizeof(*w->dispatcher));
        w->page = aligned_alloc(128, sizeof(*w->page));
        cr_assert(w->dispatcher && w->page && sl_fair_new(1, &w->line.ensemble.broadcasts.waiting) == 0);
        memset(w->page, 0, sizeof(*w->page));
        w->dispatcher->served[0] = &w->line.ensemble;
        w->line.ensemble.queue_requests = 16;
        sl_lines_watch(w->dispatcher, 0, &w->page->lines[0]);
}

static void unwatch(struct watched *w)
{
        sl_fair_free(w->line.ensemble.broadcasts.waiting);
        free(w->dispatcher);
        free(w->page);
}

/* Would a client send it a query with this latency? As its page says. */
static bool is_sent(const struct watched *w, uint64_t latency_ns)
{
        const struct sl_variant_line *line = &w->page->lines[0];
        const struct sl_candidate candidate = {.state = SL_CANDIDATE_SERVES,
                .accuracy = 1,
                .service_ns = (uint64_t)atomic_load(&line->jobs[0]) * SL_VARIANT_UNIT_NS,
                .doubt = sl_variant_workers_doubt(atomic_load(&line->workers)),
                .wait_ns = sl_variant_word_wait_ns(atomic_load(&line->word))};
        struct sl_choice choice;

        return sl_choose(SL_CHOICE_starling, &(struct sl_needs){.latency_ns = latency_ns}, &candidate, 1, 0, &choice);
}

/* Nothing comes until a query is sent. Return: how long that took. */
static uint64_t until_sent(struct watched *w, uint64_t latency_ns, uint64_t most_ns)
{
        uint64_t since_ns = w->now_ns;

        while (!is_sent(w, latency_ns) && w->now_ns < since_ns + most_ns)
                show_at(w, w->now_ns + SECOND_NS / 10);
        return w->now_ns - since_ns;
}

static void compute(struct watched *w, uint64_t ns)
{
        sl_ensemble_enter(&w->line.ensemble, 0);
        w->line.ensemble.broadcasts.samples_out = 1;
        show_at(w, w->now_ns);
        cr_expect_not(is_sent(w, 4 * QUICK_NS), "one at a time");
        learn(&w->line, 1, ns);
        w->line.ensemble.broadcasts.samples_out = 0;
        w->now_ns += ns;
        sl_ensemble_leave(&w->line.ensemble, 0, w->now_ns);
        show_at(w, w->now_ns);
}

/* 40 ms are doubted four times before they may be 4 ms. */
Test(latch, queries_are_let_in_again_though_no_job_has_shown_that_they_may)
{
        struct watched w;

        watch(&w);
        learn(&w.line, 100, QUICK_NS);
        learn(&w.line, 100, SLOW_NS);
        w.now_ns = 1000 * SECOND_NS;
        atomic_store(&w.line.ensemble.idle_ns, w.now_ns);
        show_at(&w, w.now_ns);
        cr_assert_not(is_sent(&w, 4 * QUICK_NS));
        show_at(&w, w.now_ns + SL_VARIANT_DOUBT_NS - 1);
        cr_assert_not(is_sent(&w, SLOW_NS - QUICK_NS), "not doubted yet");
        show_at(&w, w.now_ns + 1);
        cr_assert(is_sent(&w, SLOW_NS / 2 + QUICK_NS), "may be half as long");
        cr_assert_not(is_sent(&w, SLOW_NS / 2 - QUICK_NS));
        cr_expect_leq(until_sent(&w, 4 * QUICK_NS, 100 * SECOND_NS), 3 * SL_VARIANT_DOUBT_NS);
        compute(&w, QUICK_NS);
        cr_expect(is_sent(&w, 2 * QUICK_NS), "one quick job is enough");
        cr_expect_eq(sl_variant_workers_doubt(atomic_load(&w.page->lines[0].workers)), 0);
        unwatch(&w);
}

/* Whoever asks for what cannot be has one query in so long, and nothing is learned from it that is not so. */
Test(latch, what_is_slow_is_tried_seldom_and_stays_known_as_slow)
{
        struct watched w;

        watch(&w);
        learn(&w.line, 100, SLOW_NS);
        w.now_ns = 1000 * SECOND_NS;
        atomic_store(&w.line.ensemble.idle_ns, w.now_ns);
        for (uint32_t i = 0; i < 20; i++) {
                show_at(&w, w.now_ns);
                cr_expect_geq(until_sent(&w, 4 * QUICK_NS, 100 * SECOND_NS), 4 * SL_VARIANT_DOUBT_NS);
                compute(&w, SLOW_NS);
                cr_expect_eq(sl_service_time_ns(&w.line.model.service_time, 1), SLOW_NS);
        }
        until_sent(&w, 4 * QUICK_NS, 100 * SECOND_NS);
        compute(&w, 100 * SLOW_NS);
        cr_expect_lt(sl_service_time_ns(&w.line.model.service_time, 1), 2 * SLOW_NS, "a slow one is still an outlier");
        unwatch(&w);
}

/* It is loaded for who needs it, and not to see whether it is quicker now. */
Test(latch, what_rests_or_never_served_is_not_doubted)
{
        struct watched w;

        watch(&w);
        learn(&w.line, 100, SLOW_NS);
        show_at(&w, 1000 * SECOND_NS);
        cr_expect_not(is_sent(&w, SLOW_NS / 2 + QUICK_NS), "no request has ended yet");
        atomic_store(&w.line.ensemble.idle_ns, w.now_ns);
        w.line.ensemble.rests = true;
        show_at(&w, w.now_ns + 100 * SECOND_NS);
        cr_expect_eq(sl_variant_workers_doubt(atomic_load(&w.page->lines[0].workers)), 0);
        unwatch(&w);
}
