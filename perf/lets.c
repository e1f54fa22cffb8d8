/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lets: how the schedulers of lets (planner/lets) do on a table of costs. One JSON object; perf/papers asks for many.
 *
 *     bench-lets COSTS count RATES [SCALE] [OPTION=VALUE...]    how many of all scenarios each can schedule, in which every model
 *                                                              comes at one of RATES times SCALE; not at 0 all of them
 *     bench-lets COSTS max RATES [OPTION=VALUE...]              how many times these rates, one for each model, each can schedule,
 *                                                              how many with at most 1 % of Poisson arrivals in violation, and
 *                                                              what they are at the highest that it schedules
 *
 * An objective is twice what a batch of 32 takes on a whole device, or as objectives=MS,MS,... say. authors=1 reads gpu-lets as its
 * authors' code does; single options are those of planner/lets/partition.h. Violations are simulated (sim/cycles.h), medians of
 * three seeds, lets of a device in each other's way whether or not a scheduler knows. devices=N takes as many of the first device,
 * ways=NAME,NAME,... asks only these, simulate=0 simulates none.
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/value.h"
#include "costs.h"
#include "costs_file.h"
#include "cycles.h"
#include "partition.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MODELS_MAX   16u
#define RATES_MAX    16u
#define SEEDS        3u
#define SECONDS_MAX  20.0
#define REQUESTS_MAX 20000.0 /* that are simulated, about */
#define VIOLATED_MAX 0.01
#define CLOSE        0.002 /* of a highest scale */
#define GRID         25u   /* scales that are simulated */

SL_DEFINE_CLEANUP(struct sl_costs *, sl_costs_free)
SL_DEFINE_CLEANUP(struct sl_partition_schedule *, sl_partition_schedule_free)

static const struct {
        const char *name;
        int scheduler;
        bool interference;
} ways[] = {
        {"sbp", SL_PARTITION_SBP, false},
        {"sbp_halves", SL_PARTITION_SBP_HALVES, false},
        {"self_tuning", SL_PARTITION_SELF_TUNING, false},
        {"elastic", SL_PARTITION_ELASTIC, false},
        {"elastic_int", SL_PARTITION_ELASTIC, true},
        {"ideal", SL_PARTITION_IDEAL, false},
        {"ideal_int", SL_PARTITION_IDEAL, true},
        {"starling", SL_PARTITION_STARLING, false},
        {"starling_int", SL_PARTITION_STARLING, true},
};
#define WAYS (sizeof(ways) / sizeof(*ways))

struct wish {
        struct sl_costs *costs;
        struct sl_partition_options options;
        double rates[RATES_MAX], objectives_ms[MODELS_MAX], scale;
        uint32_t n_rates, n_objectives, devices;
        const char *ways; /* names with commas; NULL: all */
        bool count, simulates;
};

static int reals_read(
        const char *what, const char *text, double max, double *ret_values, uint32_t room, uint32_t *ret_n, struct sl_error *error)
{
        char one[64], wanted[SL_WISH_BYTES];

        *ret_n = 0;
        for (const char *at = text; *at; at += strcspn(at, ",")) {
                at += *at == ',';
                snprintf(one, sizeof(one), "%.*s", (int)strcspn(at, ","), at);
                if (*ret_n == room)
                        return sl_error_set(error, E2BIG, "%s: more than %u values", what, room);
                if (sl_value_real(one, 0, max, &ret_values[(*ret_n)++], wanted) < 0)
                        return sl_error_set(error, EINVAL, "%s: \"%s\" is %s", what, one, wanted);
        }
        return 0;
}

static int option_read(struct wish *wish, const char *text, struct sl_error *error)
{
        struct sl_partition_options *options = &wish->options;
        const char *value = strchr(text, '=') ? strchr(text, '=') + 1 : "";
        size_t n = (size_t)(value - text);
        double number = 0;
        uint32_t one;

        if (strncmp(text, "ways=", n) == 0) {
                wish->ways = value;
                return 0;
        }
        if (strncmp(text, "objectives=", n) == 0)
                return reals_read("objectives", value, 3.6e6, wish->objectives_ms, MODELS_MAX, &wish->n_objectives, error);
        int r = reals_read(text, value, 1e6, &number, 1, &one, error);
        if (r < 0)
                return r;
        if (strncmp(text, "authors=", n) == 0)
                *options = number > 0 ? sl_partition_authors : sl_partition_paper;
        else if (strncmp(text, "all_batches=", n) == 0)
                options->worst = number > 0 ? SL_PARTITION_ALL_BATCHES : SL_PARTITION_OWN_BATCH;
        else if (strncmp(text, "factor=", n) == 0)
                options->latency_factor = number;
        else if (strncmp(text, "dropped=", n) == 0)
                options->dropped_rate = number;
        else if (strncmp(text, "places=", n) == 0)
                options->places_max = (uint32_t)number;
        else if (strncmp(text, "by_work=", n) == 0)
                options->by_work = number > 0;
        else if (strncmp(text, "by_gain=", n) == 0)
                options->by_gain = number > 0;
        else if (strncmp(text, "merges_last=", n) == 0)
                options->merges_last = number > 0;
        else if (strncmp(text, "takes_smaller=", n) == 0)
                options->takes_smaller = number > 0;
        else if (strncmp(text, "simulate=", n) == 0)
                wish->simulates = number > 0;
        else if (strncmp(text, "devices=", n) == 0)
                wish->devices = (uint32_t)number;
        else
                return sl_error_set(error, EINVAL, "\"%s\" is no OPTION=VALUE", text);
        return 0;
}

/* As many copies of the first device. */
static int devices_choose(struct wish *wish, struct sl_error *error)
{
        uint32_t rows[256] = {0}, models[MODELS_MAX];
        struct sl_costs *chosen;

        if (!wish->devices)
                return 0;
        if (wish->devices > 256)
                return sl_error_set(error, E2BIG, "devices: %u, at most 256", wish->devices);
        for (uint32_t m = 0; m < wish->costs->n_models; m++)
                models[m] = m;
        int r = sl_costs_select(wish->costs, rows, wish->devices, models, wish->costs->n_models, &chosen, error);
        if (r < 0)
                return r;
        sl_costs_free(wish->costs);
        wish->costs = chosen;
        return 0;
}

static int wish_read(int argc, char **argv, struct wish *wish, struct sl_error *error)
{
        int r, first = 4;
        uint32_t one;

        *wish = (struct wish){.options = sl_partition_paper, .scale = 1, .simulates = true};
        if (argc < 4 || (strcmp(argv[2], "count") != 0 && strcmp(argv[2], "max") != 0))
                return sl_error_set(error, EINVAL, "usage: bench-lets COSTS count|max RATES [SCALE] [OPTION=VALUE...]");
        wish->count = strcmp(argv[2], "count") == 0;
        r = sl_costs_file_read(argv[1], &wish->costs, error);
        if (r == 0 && wish->costs->n_models > MODELS_MAX)
                r = sl_error_set(error, E2BIG, "%s: %u models, at most %u", argv[1], wish->costs->n_models, MODELS_MAX);
        r = r < 0 ? r : reals_read("RATES", argv[3], SL_PARTITION_RATE_MAX, wish->rates, RATES_MAX, &wish->n_rates, error);
        if (r == 0 && wish->count && argc > 4 && !strchr(argv[4], '='))
                r = reals_read("SCALE", argv[first++], 1e6, &wish->scale, 1, &one, error);
        for (int i = first; i < argc && r == 0; i++)
                r = option_read(wish, argv[i], error);
        r = r < 0 ? r : devices_choose(wish, error);
        if (r == 0 && wish->n_objectives && wish->n_objectives != wish->costs->n_models)
                r = sl_error_set(error, EINVAL, "objectives: %u for %u models", wish->n_objectives, wish->costs->n_models);
        if (r == 0 && !wish->count && wish->n_rates != wish->costs->n_models)
                r = sl_error_set(error, EINVAL, "RATES: %u for %u models", wish->n_rates, wish->costs->n_models);
        return r;
}

/* Twice a batch of 32 on all of the first device. */
static int objectives_fill(const struct wish *wish, struct sl_partition_demand *demands, struct sl_error *error)
{
        const struct sl_costs *costs = wish->costs;
        uint32_t class_index = costs->devices[0].class_index;
        struct sl_cost_let whole;

        for (uint32_t m = 0; m < costs->n_models; m++) {
                if (wish->n_objectives)
                        demands[m].objective_ns = (uint64_t)(wish->objectives_ms[m] * 1e6);
                else if (sl_costs_let(costs, class_index, costs->classes[class_index].units, m, 32, &whole))
                        demands[m].objective_ns = (uint64_t)(2 * (whole.latency_ns + whole.transfer_ns));
                else
                        return sl_error_set(
                                error, EINVAL, "\"%s\" has no batch of 32 to derive its objective of", costs->models[m].name);
        }
        return 0;
}

static bool is_asked(const struct wish *wish, size_t way)
{
        size_t n = strlen(ways[way].name);

        if (!wish->ways)
                return true;
        for (const char *at = wish->ways; *at; at += strcspn(at, ",")) {
                at += *at == ',';
                if (strcspn(at, ",") == n && strncmp(at, ways[way].name, n) == 0)
                        return true;
        }
        return false;
}

static int make(const struct wish *wish, size_t way, const struct sl_partition_demand *demands,
        struct sl_partition_schedule **ret_schedule, struct sl_error *error)
{
        struct sl_partition_problem problem = {wish->costs, demands, wish->options};

        problem.options.interference = ways[way].interference;
        int r = sl_partition_make(&sl_partition_schedulers[ways[way].scheduler], &problem, ret_schedule, error);
        return r < 0 ? r : sl_partition_check(&problem, *ret_schedule, error);
}

static int compare_reals(const void *a, const void *b)
{
        return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

/* The median share of requests that are late or dropped. */
static int violations(const struct wish *wish, const struct sl_partition_demand *demands,
        const struct sl_partition_schedule *schedule, double *ret_share)
{
        const struct sl_partition_problem problem = {wish->costs, demands, wish->options};
        double shares[SEEDS], rate = 0;

        for (uint32_t m = 0; m < wish->costs->n_models; m++)
                rate += demands[m].rate;
        double seconds = REQUESTS_MAX / rate < SECONDS_MAX ? REQUESTS_MAX / rate : SECONDS_MAX;

        for (uint32_t seed = 0; seed < SEEDS; seed++) {
                struct sl_sim_cycles_count counts[MODELS_MAX];
                const struct sl_sim_cycles_options options = {
                        .seed = 1 + seed, .duration_ns = (uint64_t)(1e9 * seconds), .interference = true};
                double late = 0, all = 0;
                int r = sl_sim_cycles_run(&problem, schedule, &options, counts);

                if (r < 0)
                        return r;
                for (uint32_t m = 0; m < wish->costs->n_models; m++) {
                        late += (double)(counts[m].late + counts[m].dropped);
                        all += (double)counts[m].requests;
                }
                shares[seed] = all > 0 ? late / all : 0;
        }
        qsort(shares, SEEDS, sizeof(*shares), compare_reals);
        *ret_share = shares[SEEDS / 2];
        return 0;
}

/* Can it be scheduled at @scale times the rates, with few violations where @simulated? */
static int is_good(const struct wish *wish, size_t way, const struct sl_partition_demand *base, double scale, bool simulated,
        bool *ret_good, double *ret_violated, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_partition_schedule_free) struct sl_partition_schedule *schedule = NULL;
        struct sl_partition_demand demands[MODELS_MAX];

        memcpy(demands, base, sizeof(demands));
        for (uint32_t m = 0; m < wish->costs->n_models; m++)
                demands[m].rate *= scale;
        int r = make(wish, way, demands, &schedule, error);
        *ret_good = r == 0 && schedule->schedulable;
        if (r < 0 || !*ret_good || !simulated)
                return r;
        r = violations(wish, demands, schedule, ret_violated);
        *ret_good = *ret_violated <= VIOLATED_MAX;
        return r;
}

/* The highest scale that is scheduled, by halving; @top is what none exceeds. */
static int highest(const struct wish *wish, size_t way, const struct sl_partition_demand *base, double top, double *ret_scale,
        struct sl_error *error)
{
        double low = 0, high = top;
        int r = 0;

        while (r == 0 && high - low > CLOSE * high && high > top * CLOSE) {
                double middle = (low + high) / 2, violated;
                bool good;

                r = is_good(wish, way, base, middle, false, &good, &violated, error);
                *(good ? &low : &high) = middle;
        }
        *ret_scale = low;
        return r;
}

/* The highest scale of a grid below @top with few violations; they may be fewer at a higher scale than at a lower one. */
static int highest_in_time(const struct wish *wish, size_t way, const struct sl_partition_demand *base, double top,
        double *ret_scale, struct sl_error *error)
{
        int r = 0;
        bool good = false;

        for (uint32_t i = GRID; i > 0 && r == 0 && !good; i--) {
                double violated;

                *ret_scale = top * i / GRID;
                r = is_good(wish, way, base, *ret_scale, true, &good, &violated, error);
        }
        *ret_scale = good ? *ret_scale : 0;
        return r;
}

/* More than any scheduler bears, who may drop some of each rate. */
static double top_scale(const struct wish *wish, const struct sl_partition_demand *base, double bound)
{
        double least = INFINITY;

        for (uint32_t m = 0; m < wish->costs->n_models; m++)
                if (base[m].rate > 0 && base[m].rate < least)
                        least = base[m].rate;
        return bound * 1.01 + wish->options.dropped_rate / least;
}

static int max_print(const struct wish *wish, const struct sl_partition_demand *base, struct sl_error *error)
{
        struct sl_partition_problem problem = {wish->costs, base, wish->options};
        double bound;

        problem.options.dropped_rate = 0;
        int r = sl_partition_problem_check(&problem, error);
        r = r < 0 ? r : sl_partition_bound(&problem, &bound);
        if (r < 0)
                return r;
        printf("{\"bound\": %.4f", bound);
        for (size_t way = 0; way < WAYS && r == 0; way++) {
                double scheduled = 0, in_time = 0, violated = 0;
                bool good;

                if (!is_asked(wish, way))
                        continue;
                r = highest(wish, way, base, top_scale(wish, base, bound), &scheduled, error);
                if (r == 0 && scheduled > 0 && wish->simulates) {
                        r = is_good(wish, way, base, scheduled, true, &good, &violated, error);
                        in_time = good ? scheduled : 0;
                        if (r == 0 && !good)
                                r = highest_in_time(wish, way, base, scheduled, &in_time, error);
                }
                uint64_t begun_ns = sl_clock_ns();
                for (int i = 0; i < 5 && r == 0 && scheduled > 0; i++) {
                        double ignored;

                        r = is_good(wish, way, base, scheduled, false, &good, &ignored, error);
                }
                printf(", \"%s\": {\"scheduled\": %.4f, \"violated\": %.5f, \"in_time\": %.4f, \"ms\": %.3f}", ways[way].name,
                        scheduled, violated, in_time, (double)(sl_clock_ns() - begun_ns) / 5e6);
        }
        printf("}\n");
        return r;
}

static int count_print(const struct wish *wish, struct sl_partition_demand *demands, struct sl_error *error)
{
        uint64_t scenarios = 1, counts[WAYS] = {0}, bounded = 0, begun_ns;
        double seconds[WAYS] = {0};
        int r = 0;

        for (uint32_t m = 0; m < wish->costs->n_models; m++)
                scenarios *= wish->n_rates;
        for (uint64_t i = 0; i < scenarios && r == 0; i++) {
                double sum = 0, bound;
                uint64_t rest = i;

                for (uint32_t m = 0; m < wish->costs->n_models; m++, rest /= wish->n_rates)
                        sum += demands[m].rate = wish->scale * wish->rates[rest % wish->n_rates];
                if (!(sum > 0))
                        continue;
                const struct sl_partition_problem problem = {wish->costs, demands, wish->options};
                r = sl_partition_bound(&problem, &bound);
                bounded += r == 0 && bound >= 1;
                for (size_t way = 0; way < WAYS && r == 0; way++) {
                        SL_CLEANUP(sl_cleanup_sl_partition_schedule_free) struct sl_partition_schedule *schedule = NULL;

                        if (!is_asked(wish, way))
                                continue;
                        begun_ns = sl_clock_ns();
                        r = make(wish, way, demands, &schedule, error);
                        seconds[way] += (double)(sl_clock_ns() - begun_ns) / 1e9;
                        counts[way] += r == 0 && schedule->schedulable;
                }
        }
        if (r < 0)
                return r;
        printf("{\"scenarios\": %llu, \"bound\": %llu", (unsigned long long)scenarios - 1, (unsigned long long)bounded);
        for (size_t way = 0; way < WAYS; way++)
                if (is_asked(wish, way))
                        printf(", \"%s\": {\"schedulable\": %llu, \"seconds\": %.3f}", ways[way].name,
                                (unsigned long long)counts[way], seconds[way]);
        printf("}\n");
        return 0;
}

int main(int argc, char **argv)
{
        struct sl_partition_demand demands[MODELS_MAX] = {{0}};
        struct sl_error error = {""};
        struct wish wish;
        int r = wish_read(argc, argv, &wish, &error);

        r = r < 0 ? r : objectives_fill(&wish, demands, &error);
        for (uint32_t m = 0; m < MODELS_MAX && r == 0 && !wish.count && m < wish.n_rates; m++)
                demands[m].rate = wish.rates[m];
        if (r == 0)
                r = wish.count ? count_print(&wish, demands, &error) : max_print(&wish, demands, &error);
        sl_costs_free(wish.costs);
        if (r == 0)
                return 0;
        fprintf(stderr, "bench-lets: %s\n", error.text[0] ? error.text : "out of memory");
        return r == -EINVAL ? 2 : 1;
}
