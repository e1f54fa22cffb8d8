/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs with and without clocks take turns, so that both see the same machine. Each step's time is the median over the runs.
 */
#include "node_profile.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "device_let.h"
#include "peak.h"
#include "sample_ports.h"
#include "team.h"

#include <stdlib.h>
#include <string.h>

#define RUNS_MAX     1000
#define RUNS_MIN     3
#define WARM_UP      2
#define PEAK_SECONDS 0.3

struct measurement {
        struct sl_team *team; /* NULL: the thread alone */
        struct sl_node_profile *profile;
        struct sl_instance *instance;
        struct sl_sample_ports ports;
        uint64_t *step_ns; /* of run r: from r * n_steps */
        uint64_t *run_ns;
};

static void measurement_deinit(struct measurement *measurement)
{
        sl_sample_ports_deinit(&measurement->ports);
        free(measurement->step_ns);
        free(measurement->run_ns);
        sl_instance_free(measurement->instance);
}

static int run_once(const struct measurement *measurement, uint64_t *ret_ns)
{
        uint64_t before = sl_clock_ns();
        int r = sl_sample_ports_run(&measurement->ports, measurement->instance, measurement->profile->batch);

        *ret_ns = sl_clock_ns() - before;
        return r;
}

static int run_in_turns(struct measurement *measurement, double seconds)
{
        struct sl_node_profile *profile = measurement->profile;
        const struct sl_sample_ports *ports = &measurement->ports;
        uint64_t until, ignored;
        int r = 0;

        for (int i = 0; i < WARM_UP && r == 0; i++)
                r = run_once(measurement, &ignored);
        until = sl_clock_ns() + (uint64_t)(seconds * (double)SL_NS_PER_SECOND);
        while (r == 0 && profile->n_runs < RUNS_MAX && (profile->n_runs < RUNS_MIN || sl_clock_ns() < until)) {
                r = sl_instance_run_timed(measurement->instance, profile->batch, (const void *const *)ports->inputs, ports->outputs,
                        measurement->step_ns + profile->n_runs * profile->n_steps);
                if (r == 0)
                        r = run_once(measurement, &measurement->run_ns[profile->n_runs]);
                profile->n_runs++;
        }
        return r;
}

static int by_size(const void *a, const void *b)
{
        uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

        return (left > right) - (left < right);
}

static double median(uint64_t *numbers, uint64_t n)
{
        qsort(numbers, n, sizeof(*numbers), by_size);
        return n % 2 ? (double)numbers[n / 2] : ((double)numbers[n / 2 - 1] + (double)numbers[n / 2]) / 2;
}

static int take_medians(struct measurement *measurement)
{
        struct sl_node_profile *profile = measurement->profile;
        SL_CLEANUP(sl_cleanup_free) uint64_t *column = calloc(profile->n_runs, sizeof(*column));

        if (!column)
                return -ENOMEM;
        for (uint64_t step = 0; step < profile->n_steps; step++) {
                for (uint64_t run = 0; run < profile->n_runs; run++)
                        column[run] = measurement->step_ns[run * profile->n_steps + step];
                profile->step_ns[step] = median(column, profile->n_runs);
        }
        profile->run_ns = median(measurement->run_ns, profile->n_runs);
        return 0;
}

static int measure(const struct sl_plan *plan, double seconds, struct measurement *measurement, struct sl_error *error)
{
        struct sl_node_profile *profile = measurement->profile;
        int r = sl_instance_new(plan, profile->batch, &measurement->instance, error);

        if (r == 0 && measurement->team)
                r = sl_instance_use_team(measurement->instance, measurement->team, error);
        if (r < 0)
                return r;
        measurement->step_ns = calloc(RUNS_MAX * (profile->n_steps + 1), sizeof(uint64_t));
        measurement->run_ns = calloc(RUNS_MAX, sizeof(uint64_t));
        if (!measurement->step_ns || !measurement->run_ns ||
                sl_sample_ports_init(&measurement->ports, sl_plan_info(plan), profile->batch) < 0)
                return sl_error_set(error, ENOMEM, "no memory to profile %llu steps", (unsigned long long)profile->n_steps);
        r = run_in_turns(measurement, seconds);
        if (r == 0)
                r = take_medians(measurement);
        return r < 0 ? sl_error_set(error, -r, "a run at batch %u: %s", profile->batch, strerror(-r)) : 0;
}

static int describe_steps(const struct sl_plan *plan, struct sl_node_profile *profile)
{
        int r = 0;

        profile->steps = calloc(profile->n_steps + 1, sizeof(*profile->steps));
        profile->step_ns = calloc(profile->n_steps + 1, sizeof(*profile->step_ns));
        if (!profile->steps || !profile->step_ns)
                return -ENOMEM;
        for (uint64_t i = 0; i < profile->n_steps && r == 0; i++)
                r = sl_plan_step_info(plan, profile->batch, i, &profile->steps[i]);
        return r;
}

static int fill(
        const struct sl_plan *plan, double seconds, struct sl_team *team, struct sl_node_profile *profile, struct sl_error *error)
{
        struct measurement measurement = {.profile = profile, .team = team};
        int r = describe_steps(plan, profile);

        if (r < 0)
                return sl_error_set(error, -r, "steps at batch %u: %s", profile->batch, strerror(-r));
        r = measure(plan, seconds, &measurement, error);
        measurement_deinit(&measurement);
        return r < 0 ? r : sl_peak_measure(PEAK_SECONDS, &profile->peak_flops, error);
}

static int profile_with(const struct sl_plan *plan, uint32_t batch, double seconds, struct sl_team *team,
        struct sl_node_profile **ret_profile, struct sl_error *error)
{
        struct sl_node_profile *profile = calloc(1, sizeof(*profile));
        int r;

        if (!profile)
                return sl_error_set(error, ENOMEM, "no memory for a profile");
        profile->batch = batch;
        profile->n_steps = sl_plan_steps(plan, batch);
        r = profile->n_steps ? fill(plan, seconds, team, profile, error)
                             : sl_error_set(error, EINVAL, "batch %u is no size of the plan, or has no steps", batch);
        if (r < 0)
                sl_node_profile_free(profile);
        else
                *ret_profile = profile;
        return r;
}

int sl_node_profile_new(
        const struct sl_plan *plan, uint32_t batch, double seconds, struct sl_node_profile **ret_profile, struct sl_error *error)
{
        return profile_with(plan, batch, seconds, NULL, ret_profile, error);
}

int sl_node_profile_by_team(const struct sl_plan *plan, uint32_t batch, const struct sl_device_let *let, uint32_t threads,
        double seconds, struct sl_node_profile **ret_profile, struct sl_error *error)
{
        int cores[SL_TEAM_MEMBERS_MAX], r;
        cpu_set_t before, own;
        struct sl_team *team;

        for (uint32_t i = 0; i < threads; i++)
                cores[i] = sl_device_let_core(let, i);
        r = sl_team_new(&(struct sl_team_options){.size = threads, .cpus = cores, .spin_ns = SL_TEAM_SPIN_NS}, &team, error);
        if (r < 0)
                return r;
        CPU_ZERO(&own);
        CPU_SET(cores[0], &own);
        (void)sched_getaffinity(0, sizeof(before), &before);
        (void)sched_setaffinity(0, sizeof(own), &own);
        r = profile_with(plan, batch, seconds, team, ret_profile, error);
        (void)sched_setaffinity(0, sizeof(before), &before);
        sl_team_free(team);
        return r;
}

struct sl_node_profile *sl_node_profile_free(struct sl_node_profile *profile)
{
        if (!profile)
                return NULL;
        free(profile->steps);
        free(profile->step_ns);
        free(profile);
        return NULL;
}
