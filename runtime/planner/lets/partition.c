/* SPDX-License-Identifier: Apache-2.0 */
#include "partition.h"
#include "base/error.h"
#include "costs.h"
#include "schedulers.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct sl_partition_options sl_partition_paper = {
        .worst = SL_PARTITION_OWN_BATCH, .latency_factor = 1, .places_max = SL_PARTITION_PLACES_MAX, .lets_max = 2};
const struct sl_partition_options sl_partition_authors = {.worst = SL_PARTITION_ALL_BATCHES,
        .latency_factor = 1.1,
        .dropped_rate = 15,
        .places_max = 3,
        .lets_max = 2,
        .by_work = true,
        .by_gain = true,
        .merges_last = true,
        .takes_smaller = true};

const struct sl_partition_scheduler sl_partition_schedulers[SL_PARTITION_SCHEDULERS] = {
        [SL_PARTITION_SBP] = {"sbp", "squishy bin packing of whole devices", sl_partition_sbp},
        [SL_PARTITION_SBP_HALVES] = {"sbp_halves", "squishy bin packing of two even lets a device", sl_partition_sbp_halves},
        [SL_PARTITION_SELF_TUNING] = {"self_tuning", "for each model the smallest let, or fair shares; no turns",
                sl_partition_self_tuning},
        [SL_PARTITION_ELASTIC] = {"elastic", "elastic partitioning of gpu-lets", sl_partition_elastic},
        [SL_PARTITION_IDEAL] = {"ideal", "elastic partitioning on each way to part the devices", sl_partition_ideal},
        [SL_PARTITION_STARLING] = {"starling", "any number of lets; local search over their sizes", sl_partition_starling},
};

const struct sl_partition_scheduler *sl_partition_find(const char *name)
{
        for (uint32_t i = 0; i < SL_PARTITION_SCHEDULERS; i++)
                if (strcmp(sl_partition_schedulers[i].name, name) == 0)
                        return &sl_partition_schedulers[i];
        return NULL;
}

static int options_check(const struct sl_partition_options *options, struct sl_error *error)
{
        if (!(options->latency_factor >= 1 && options->latency_factor <= 10))
                return sl_error_set(error, EINVAL, "lets: a latency factor of %g, from 1 to 10", options->latency_factor);
        if (!(options->dropped_rate >= 0 && options->dropped_rate <= SL_PARTITION_RATE_MAX))
                return sl_error_set(error, EINVAL, "lets: %g dropped requests a second, from 0 to %g", options->dropped_rate,
                        SL_PARTITION_RATE_MAX);
        if (!options->places_max || options->places_max > SL_PARTITION_PLACES_MAX)
                return sl_error_set(
                        error, EINVAL, "lets: %u models of a let, from 1 to %u", options->places_max, SL_PARTITION_PLACES_MAX);
        if (!options->lets_max || options->lets_max > SL_PARTITION_OF_DEVICE)
                return sl_error_set(
                        error, EINVAL, "lets: %u lets of a device, from 1 to %u", options->lets_max, SL_PARTITION_OF_DEVICE);
        return 0;
}

int sl_partition_problem_check(const struct sl_partition_problem *problem, struct sl_error *error)
{
        int r = sl_costs_check(problem->costs, error);
        bool wanted = false;

        r = r < 0 ? r : options_check(&problem->options, error);
        for (uint32_t m = 0; m < problem->costs->n_models && r == 0; m++) {
                const struct sl_partition_demand *demand = &problem->demands[m];
                const char *name = problem->costs->models[m].name;

                wanted = wanted || demand->rate > 0;
                if (!(demand->rate >= 0 && demand->rate <= SL_PARTITION_RATE_MAX))
                        r = sl_error_set(error, EINVAL, "lets: model \"%s\": %g requests a second, from 0 to %g", name,
                                demand->rate, SL_PARTITION_RATE_MAX);
                else if (demand->rate > 0 && (!demand->objective_ns || demand->objective_ns > SL_COST_NS_MAX))
                        r = sl_error_set(error, EINVAL, "lets: model \"%s\": an objective of %llu ns, from 1 to %llu", name,
                                (unsigned long long)demand->objective_ns, (unsigned long long)SL_COST_NS_MAX);
        }
        return r < 0 || wanted ? r : sl_error_set(error, EINVAL, "lets: no model has a rate above 0");
}

int sl_partition_make(const struct sl_partition_scheduler *scheduler, const struct sl_partition_problem *problem,
        struct sl_partition_schedule **ret_schedule, struct sl_error *error)
{
        int r = sl_partition_problem_check(problem, error);

        r = r < 0 ? r : scheduler->make(problem, ret_schedule);
        return r == -ENOMEM ? sl_error_set(error, ENOMEM, "lets: out of memory") : r;
}

struct sl_partition_schedule *sl_partition_schedule_free(struct sl_partition_schedule *schedule)
{
        if (!schedule)
                return NULL;
        free(schedule->lets);
        free(schedule->lacking);
        free(schedule);
        return NULL;
}
