/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling lets`: which part of which device should compute which models, from what batches cost and what is wanted. Reads files
 * only.
 */
#include "base/cleanup.h"
#include "base/error.h"
#include "base/value.h"
#include "command.h"
#include "command_options.h"
#include "costs.h"
#include "costs_file.h"
#include "cycles.h"
#include "demands_file.h"
#include "partition.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECONDS_MAX 3600.0
#define NS          1e9
#define MS          1e6

enum { OPTIONS = OPTIONS_BEGIN, LETS_OPTIONS(OPTION_ID) };

SL_DEFINE_CLEANUP(struct sl_costs *, sl_costs_free)
SL_DEFINE_CLEANUP(struct sl_partition_schedule *, sl_partition_schedule_free)

struct wish {
        const char *costs, *rates;
        const struct sl_partition_scheduler *scheduler;
        struct sl_partition_options options;
        double simulated_seconds;
        bool json;
};

/* What is known of a plan. */
struct plan {
        struct sl_partition_problem problem;
        const struct sl_partition_schedule *schedule;
        double bound;
        const struct sl_sim_cycles_count *counts; /* NULL: not simulated */
};

static int parse_real(const char *option, double min, double max, double *ret_value, struct sl_error *error)
{
        char wish[SL_WISH_BYTES];

        return sl_value_real(optarg, min, max, ret_value, wish) < 0
                       ? sl_error_set(error, EINVAL, "--%s: \"%s\" is %s", option, optarg, wish)
                       : 0;
}

static int parse_option(int option, struct wish *wish, struct sl_error *error)
{
        switch (option) {
        case OPTION_SCHEDULER:
                wish->scheduler = sl_partition_find(optarg);
                return wish->scheduler ? 0 : sl_error_set(error, EINVAL, "--scheduler: there is no \"%s\"", optarg);
        case OPTION_INTERFERENCE:
                wish->options.interference = true;
                return 0;
        case OPTION_WORST:
                wish->options.worst = strcmp(optarg, "all") == 0 ? SL_PARTITION_ALL_BATCHES : SL_PARTITION_OWN_BATCH;
                return strcmp(optarg, "all") == 0 || strcmp(optarg, "own") == 0
                               ? 0
                               : sl_error_set(error, EINVAL, "--worst: \"%s\" is not own or all", optarg);
        case OPTION_LATENCY_FACTOR:
                return parse_real("latency-factor", 1, 10, &wish->options.latency_factor, error);
        case OPTION_SIMULATE:
                return parse_real("simulate", 0.001, SECONDS_MAX, &wish->simulated_seconds, error);
        case OPTION_JSON:
                wish->json = true;
                return 0;
        default:
                return -EINVAL;
        }
}

static int parse(int argc, char **argv, struct wish *ret_wish, struct sl_error *error)
{
        static const struct option options[] = {LETS_OPTIONS(OPTION_GETOPT){0}};

        for (int option; (option = next_option(argc, argv, options)) != -1;) {
                int r = parse_option(option, ret_wish, error);

                if (r < 0)
                        return r;
        }
        if (argc - optind != 2)
                return -EINVAL;
        ret_wish->costs = argv[optind];
        ret_wish->rates = argv[optind + 1];
        return 0;
}

static double late_share(const struct sl_sim_cycles_count *count)
{
        return count->requests ? (double)(count->late + count->dropped) / (double)count->requests : 0;
}

static void let_print(const struct plan *plan, const struct sl_partition_let *let)
{
        const struct sl_costs *costs = plan->problem.costs;
        const struct sl_cost_device *device = &costs->devices[let->device];
        uint32_t units = costs->classes[device->class_index].units;

        for (uint32_t p = 0; p < let->n_places; p++) {
                const struct sl_partition_place *place = &let->places[p];
                struct sl_cost_let cost;
                bool known = sl_costs_let(costs, device->class_index, units ? let->units : 0, place->model, place->batch, &cost);

                if (p == 0)
                        printf("%-16s %5u of %-5u %10.3f", device->name, let->units, units ? units : 1, let->cycle_ns / MS);
                else
                        printf("%-16s %14s %10s", "", "", "");
                printf("  %-20s %5u %12.2f %10.3f%s\n", costs->models[place->model].name, place->batch, place->rate,
                        known ? (cost.latency_ns + cost.transfer_ns) / MS : 0, known && cost.interpolated ? " interpolated" : "");
        }
}

static void text_print(const struct plan *plan)
{
        const struct sl_partition_schedule *schedule = plan->schedule;

        printf("%-16s %14s %10s  %-20s %5s %12s %10s\n", "device", "units", "cycle ms", "model", "batch", "requests/s", "batch ms");
        for (uint32_t i = 0; i < schedule->n_lets; i++)
                let_print(plan, &schedule->lets[i]);
        printf("\nno schedule bears more than %.3g times these rates\n", plan->bound);
        for (uint32_t m = 0; m < plan->problem.costs->n_models && plan->counts; m++)
                if (plan->counts[m].requests)
                        printf("simulated: %s: %llu requests, %.3f %% late, the longest %.3f ms of %.3f\n",
                                plan->problem.costs->models[m].name, (unsigned long long)plan->counts[m].requests,
                                100 * late_share(&plan->counts[m]), plan->counts[m].longest_ns / MS,
                                (double)plan->problem.demands[m].objective_ns / MS);
}

static json_t *let_json(const struct plan *plan, const struct sl_partition_let *let)
{
        const struct sl_costs *costs = plan->problem.costs;
        json_t *places = json_array();

        for (uint32_t p = 0; p < let->n_places; p++)
                json_array_append_new(
                        places, json_pack("{s:s, s:i, s:f}", "model", costs->models[let->places[p].model].name, "batch",
                                        (int)let->places[p].batch, "requests_per_second", let->places[p].rate));
        return json_pack("{s:s, s:i, s:f, s:o}", "device", costs->devices[let->device].name, "units", (int)let->units, "cycle_ms",
                let->cycle_ns / MS, "models", places);
}

static json_t *model_json(const struct plan *plan, uint32_t m)
{
        const struct sl_partition_demand *demand = &plan->problem.demands[m];
        json_t *made = json_pack("{s:s, s:f, s:f, s:f}", "model", plan->problem.costs->models[m].name, "requests_per_second",
                demand->rate, "objective_ms", (double)demand->objective_ns / MS, "lacking_per_second", plan->schedule->lacking[m]);

        if (plan->counts)
                json_object_set_new(made, "simulated_late_share", json_real(late_share(&plan->counts[m])));
        return made;
}

static int json_print(const struct plan *plan, struct sl_error *error)
{
        json_t *lets = json_array(), *models = json_array();

        for (uint32_t i = 0; i < plan->schedule->n_lets; i++)
                json_array_append_new(lets, let_json(plan, &plan->schedule->lets[i]));
        for (uint32_t m = 0; m < plan->problem.costs->n_models; m++)
                if (plan->problem.demands[m].rate > 0)
                        json_array_append_new(models, model_json(plan, m));
        json_t *all = json_pack("{s:b, s:f, s:o, s:o}", "schedulable", plan->schedule->schedulable, "bound", plan->bound, "lets",
                lets, "models", models);
        int r = all && json_dumpf(all, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) == 0 && puts("") >= 0 ? 0 : -ENOMEM;
        json_decref(all);
        return r < 0 ? sl_error_set(error, ENOMEM, "out of memory") : 0;
}

/* One line for all of what is lacking. */
static int lacking_error(const struct plan *plan, struct sl_error *error)
{
        char text[512] = "";
        size_t n = 0;

        for (uint32_t m = 0; m < plan->problem.costs->n_models && n < sizeof(text); m++)
                if (plan->schedule->lacking[m] > 0)
                        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s\"%s\" lacks %.6g of %.6g requests a second",
                                n ? ", " : "", plan->problem.costs->models[m].name, plan->schedule->lacking[m],
                                plan->problem.demands[m].rate);
        return sl_error_set(error, ENOSPC, "%s", text);
}

static int plan_make(const struct wish *wish, const struct sl_costs *costs, const struct sl_partition_demand *demands,
        struct sl_sim_cycles_count *counts, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_partition_schedule_free) struct sl_partition_schedule *schedule = NULL;
        struct plan plan = {.problem = {costs, demands, wish->options}};
        const struct sl_sim_cycles_options simulated = {
                .seed = 1, .duration_ns = (uint64_t)(wish->simulated_seconds * NS), .interference = true};
        int r = sl_partition_make(wish->scheduler, &plan.problem, &schedule, error);

        r = r < 0 ? r : sl_partition_check(&plan.problem, schedule, error);
        if (r == 0 && sl_partition_bound(&plan.problem, &plan.bound) < 0)
                r = sl_error_set(error, ENOMEM, "out of memory");
        if (r == 0 && wish->simulated_seconds > 0 && sl_sim_cycles_run(&plan.problem, schedule, &simulated, counts) < 0)
                r = sl_error_set(error, ENOMEM, "out of memory");
        if (r < 0)
                return r;
        plan.schedule = schedule;
        plan.counts = wish->simulated_seconds > 0 ? counts : NULL;
        if (wish->json)
                r = json_print(&plan, error);
        else
                text_print(&plan);
        return r < 0 || schedule->schedulable ? r : lacking_error(&plan, error);
}

static int lets_run(const struct wish *wish, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_costs_free) struct sl_costs *costs = NULL;
        int r = sl_costs_file_read(wish->costs, &costs, error);

        if (r < 0)
                return r;
        SL_CLEANUP(sl_cleanup_free) struct sl_partition_demand *demands = calloc(costs->n_models, sizeof(*demands));
        SL_CLEANUP(sl_cleanup_free) struct sl_sim_cycles_count *counts = calloc(costs->n_models, sizeof(*counts));
        if (!demands || !counts)
                return sl_error_set(error, ENOMEM, "out of memory");
        r = sl_demands_file_read(wish->rates, costs, demands, error);
        return r < 0 ? r : plan_make(wish, costs, demands, counts, error);
}

int command_lets(int argc, char **argv)
{
        struct wish wish = {.scheduler = &sl_partition_schedulers[SL_PARTITION_STARLING], .options = sl_partition_paper};
        struct sl_error error = {""};

        if (parse(argc, argv, &wish, &error) < 0)
                return error.text[0] ? complain(STATUS_USAGE, "lets", "%s", error.text) : complain_usage("lets");
        if (lets_run(&wish, &error) == 0)
                return STATUS_OK;
        fflush(stdout);
        return complain(STATUS_FAILED, "lets", "%s", error.text);
}
