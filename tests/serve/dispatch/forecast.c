/* SPDX-License-Identifier: Apache-2.0 */
#include "forecast.h"

#include "ensemble.h"
#include "executor.h"
#include "model.h"

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
