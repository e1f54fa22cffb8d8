/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling bench query`: queries with wishes on a task of a runtime that runs already, under a load that goes up and down in
 * steps, or in a closed loop. The same requests are asked in several ways, in turns: each query chooses its variant, or all go to
 * one. With --choice what a choice takes by itself.
 */
#include "arrivals.h"
#include "base/clock.h"
#include "base/error.h"
#include "bench.h"
#include "bench_options.h"
#include "machine.h"
#include "needs_text.h"
#include "query_load.h"
#include "query_report.h"
#include "random.h"
#include "starling.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAYS_MAX  16u
#define TURNS_MAX 64u
#define CHOICE    UINT32_MAX

SL_BENCH_OPTIONS(QUERY_OPTIONS);

struct way {
        const char *name;
        uint32_t variant; /* CHOICE: each query's own */
};

struct bench {
        int argc;
        char **argv;
        struct sl_query_load_options load;
        const char *wishes[SL_QUERY_WISHES_MAX];
        double rates[SL_QUERY_STEPS_MAX];
        double step_s;
        char ways_text[512];
        struct way ways[WAYS_MAX];
        uint32_t n_ways, turns, seed;
        uint32_t choice; /* variants; 0: a task is asked */
        bool is_closed;
        bool json;
        struct sl_trace trace;
        struct sl_query_result *results; /* [turns][n_ways] */
};

static struct sl_query_result *result_of(const struct bench *bench, uint32_t turn, uint32_t way)
{
        return &bench->results[turn * bench->n_ways + way];
}

/* ---- options ---- */

static int refuse(const char *option, const char *text, const char *wants)
{
        fprintf(stderr, "starling bench query: --%s %s: it wants %s\n", option, text, wants);
        return -EINVAL;
}

static int number(const char *name, double least, double most, double *ret_value)
{
        return sl_bench_number("query", name, optarg, least, most, ret_value);
}

static int count(const char *name, double least, double most, uint32_t *ret_value)
{
        double value = 0;
        int r = number(name, least, most, &value);

        if (r == 0)
                *ret_value = (uint32_t)value;
        return r;
}

static int add_wish(struct bench *bench, const char *text)
{
        struct sl_query_load_options *load = &bench->load;
        struct sl_error error;

        if (load->n_wishes == SL_QUERY_WISHES_MAX)
                return refuse("wish", text, "to be there 8 times at most");
        if (sl_needs_parse(text, &load->wishes[load->n_wishes], &load->samples[load->n_wishes], &error) < 0)
                return refuse("wish", text, error.text);
        bench->wishes[load->n_wishes++] = text;
        return 0;
}

static int take_rates(struct bench *bench)
{
        const char *at = optarg;

        for (bench->load.n_steps = 0; bench->load.n_steps < SL_QUERY_STEPS_MAX;) {
                double *rate = &bench->rates[bench->load.n_steps];
                char *end;

                *rate = strtod(at, &end);
                if (end == at || (*end && *end != ',') || !(*rate >= 0.01 && *rate <= 1e6))
                        break;
                bench->load.n_steps++;
                if (!*end)
                        return 0;
                at = end + 1;
        }
        return refuse("rate", optarg, "0.01 to 1000000, or up to 64 of them with commas");
}

static int take_ways(struct bench *bench, const char *text)
{
        char *rest = NULL;

        if ((size_t)snprintf(bench->ways_text, sizeof(bench->ways_text), "%s", text) >= sizeof(bench->ways_text))
                return refuse("ways", text, "at most 511 bytes");
        bench->n_ways = 0;
        for (char *name = strtok_r(bench->ways_text, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
                if (bench->n_ways == WAYS_MAX)
                        return refuse("ways", text, "16 of them at most");
                bench->ways[bench->n_ways++].name = name;
        }
        return bench->n_ways ? 0 : refuse("ways", text, "one at least");
}

static int take_option(int option, struct bench *bench)
{
        switch (option) {
        case OPTION_NAME:
        case OPTION_RUNTIME:
                bench->load.runtime = optarg;
                return 0;
        case OPTION_WISH:
                return add_wish(bench, optarg);
        case OPTION_RATE:
                return take_rates(bench);
        case OPTION_SECONDS:
                return number("seconds", 0.05, 86400, &bench->step_s);
        case OPTION_WAYS:
                return take_ways(bench, optarg);
        case OPTION_TURNS:
                return count("turns", 1, TURNS_MAX, &bench->turns);
        case OPTION_IN_FLIGHT:
                return count("in-flight", 1, 1024, &bench->load.in_flight);
        case OPTION_CONCURRENCY:
                bench->is_closed = true;
                return count("concurrency", 1, 1024, &bench->load.in_flight);
        case OPTION_CHOICE:
                return count("choice", 1, SL_QUERY_VARIANTS_MAX, &bench->choice);
        case OPTION_DEADLINE:
                bench->load.deadlines = true;
                return 0;
        case OPTION_SEED:
                return count("seed", 1, 4294967295.0, &bench->seed);
        case OPTION_JSON:
                bench->json = true;
                return 0;
        default:
                return -EINVAL;
        }
}

static int parse(int argc, char **argv, struct bench *bench)
{
        int option;

        while ((option = getopt_long(argc, argv, "", bench_options, NULL)) != -1)
                if (take_option(option, bench) < 0)
                        return 2;
        if (optind + (bench->choice ? 0 : 1) != argc) {
                fprintf(stderr, "starling bench query: it wants the name of one task%s\n", bench->choice ? ", or --choice" : "");
                return 2;
        }
        bench->load.task = argv[optind];
        bench->load.step_ns = (uint64_t)(bench->step_s * (double)SL_NS_PER_SECOND);
        if (!bench->load.n_wishes && add_wish(bench, "accuracy=0") < 0)
                return 2;
        return !bench->n_ways && take_ways(bench, "choice,accurate,cheapest") < 0 ? 2 : 0;
}

/* ---- what is due ---- */

static int make_step(struct bench *bench, uint32_t step, struct sl_random *random)
{
        const struct sl_arrivals_options options = {
                .kind = SL_ARRIVALS_POISSON, .rate = bench->rates[step], .seed = bench->seed + 1000003ull * step};
        struct sl_arrivals arrivals;
        int r = 0;

        sl_arrivals_init(&arrivals, &options);
        for (uint64_t at = sl_arrivals_next(&arrivals); at < bench->load.step_ns && r == 0; at = sl_arrivals_next(&arrivals)) {
                uint32_t wish = (uint32_t)(sl_random_next(random) % bench->load.n_wishes);

                r = sl_trace_add(&bench->trace,
                        &(struct sl_load_request){
                                .due_ns = step * bench->load.step_ns + at, .model = wish, .samples = bench->load.samples[wish]});
        }
        return r;
}

/* Each request has a wish at random. */
static int make_trace(struct bench *bench)
{
        struct sl_random random;
        int r = 0;

        sl_random_seed(&random, bench->seed, 0);
        for (uint32_t i = 0; i < bench->load.n_wishes && r == 0; i++) {
                char name[16];
                uint32_t number;

                snprintf(name, sizeof(name), "wish-%u", i);
                r = sl_trace_model(&bench->trace, name, &number);
        }
        for (uint32_t i = 0; i < bench->load.n_steps && r == 0; i++)
                r = make_step(bench, i, &random);
        bench->load.trace = &bench->trace;
        return r == 0 && !bench->trace.n_requests ? -ERANGE : r;
}

/* ---- ways ---- */

static bool is_better(const char *way, const struct sl_query_variant *a, const struct sl_query_variant *b)
{
        return strcmp(way, "accurate") == 0 ? a->accuracy > b->accuracy : a->cost < b->cost;
}

static int find_variant(const struct bench *bench, struct way *way, const struct sl_query_variant *variants, uint32_t n,
        struct starling_error *error)
{
        bool is_rule = strcmp(way->name, "accurate") == 0 || strcmp(way->name, "cheapest") == 0;
        uint32_t found = CHOICE;

        for (uint32_t i = 0; i < n; i++) {
                if (!variants[i].serves)
                        continue;
                if (is_rule ? found == CHOICE || is_better(way->name, &variants[i], &variants[found])
                            : strcmp(way->name, variants[i].name) == 0)
                        found = i;
        }
        way->variant = found;
        if (found == CHOICE)
                snprintf(error->text, sizeof(error->text),
                        "--ways: \"%.128s\" is neither choice, accurate, cheapest nor a variant of task \"%.128s\" that serves",
                        way->name, bench->load.task);
        return found == CHOICE ? -EINVAL : 0;
}

static int find_ways(struct bench *bench, const struct sl_query_load *load, struct starling_error *error)
{
        const struct sl_query_variant *variants;
        uint32_t n;
        int r = 0;

        variants = sl_query_load_variants(load, &n);
        for (uint32_t i = 0; i < bench->n_ways && r == 0; i++) {
                bench->ways[i].variant = CHOICE;
                if (strcmp(bench->ways[i].name, "choice") != 0)
                        r = find_variant(bench, &bench->ways[i], variants, n, error);
        }
        return r;
}

static int run_way(const struct bench *bench, struct sl_query_load *load, uint32_t variant, struct sl_query_result *ret_result,
        struct starling_error *error)
{
        return bench->is_closed ? sl_query_load_close(load, variant, bench->load.step_ns, ret_result, error)
                                : sl_query_load_run(load, variant, ret_result, error);
}

/* Every turn begins with another way. */
static int run_ways(struct bench *bench, struct sl_query_load *load, struct starling_error *error)
{
        int r = 0;

        for (uint32_t turn = 0; turn < bench->turns; turn++)
                for (uint32_t k = 0; k < bench->n_ways && r == 0; k++) {
                        uint32_t way = (turn + k) % bench->n_ways;

                        r = run_way(bench, load, bench->ways[way].variant, result_of(bench, turn, way), error);
                }
        return r;
}

/* ---- what comes out ---- */

static void add_counts(struct sl_query_counts *sum, const struct sl_query_counts *counts)
{
        sum->due += counts->due;
        for (uint32_t i = 0; i < SL_QUERY_ENDS_N; i++)
                sum->ends[i] += counts->ends[i];
        sum->accuracy += counts->accuracy;
        sum->answered += counts->answered;
        sl_histogram_merge(&sum->latencies, &counts->latencies);
}

/* NULL where there is nothing to divide by. */
static json_t *share_json(double part, double whole)
{
        return whole > 0 ? json_real(part / whole) : json_null();
}

json_t *sl_query_quantile_json(const struct sl_histogram *latencies, double q)
{
        return sl_counter_read(&latencies->count) ? json_integer((json_int_t)sl_histogram_quantile(latencies, q)) : json_null();
}

static json_t *counts_json(const struct sl_query_counts *counts)
{
        json_t *root = json_pack("{s:I}", "due", (json_int_t)counts->due);

        for (uint32_t i = 0; i < SL_QUERY_ENDS_N; i++)
                json_object_set_new(root, sl_query_end_name((enum sl_query_end)i), json_integer((json_int_t)counts->ends[i]));
        json_object_set_new(root, "accuracy", share_json(counts->accuracy, (double)counts->answered));
        json_object_set_new(root, "p50_ns", sl_query_quantile_json(&counts->latencies, 0.5));
        json_object_set_new(root, "p99_ns", sl_query_quantile_json(&counts->latencies, 0.99));
        json_object_set_new(root, "max_ns",
                counts->answered ? json_integer((json_int_t)sl_counter_read(&counts->latencies.max_ns)) : json_null());
        return root;
}

static json_t *result_json(const struct bench *bench, const struct sl_query_result *result, const struct sl_query_variant *variants,
        uint32_t n_variants)
{
        json_t *wishes = json_array(), *steps = json_array(), *answered = json_object();

        for (uint32_t i = 0; i < bench->load.n_wishes; i++)
                json_array_append_new(wishes, counts_json(&result->wishes[i]));
        for (uint32_t i = 0; i < bench->load.n_steps; i++)
                json_array_append_new(steps, counts_json(&result->steps[i]));
        for (uint32_t i = 0; i < n_variants; i++)
                if (result->answered_by[i])
                        json_object_set_new(answered, variants[i].name, json_integer((json_int_t)result->answered_by[i]));
        return json_pack("{s:o, s:o, s:o, s:I, s:f, s:f, s:s}", "wishes", wishes, "steps", steps, "answered_by", answered,
                "begun_unix_ns", (json_int_t)result->begun_unix_ns, "seconds", result->seconds, "core_seconds", result->computed_s,
                "first_error", result->first_error);
}

json_t *sl_query_command_json(int argc, char **argv)
{
        json_t *command = json_array();

        for (int i = 0; i < argc; i++)
                json_array_append_new(command, json_string(argv[i]));
        return command;
}

static json_t *bench_json(const struct bench *bench, const struct sl_query_load *load)
{
        json_t *variants = json_array(), *wishes = json_array(), *rates = json_array(), *ways = json_array(),
               *command = sl_query_command_json(bench->argc, bench->argv);
        const struct sl_query_variant *of;
        uint32_t n;

        of = sl_query_load_variants(load, &n);
        for (uint32_t i = 0; i < n; i++)
                json_array_append_new(variants, json_pack("{s:s, s:f, s:f, s:b}", "name", of[i].name, "accuracy", of[i].accuracy,
                                                        "cost", of[i].cost, "serves", of[i].serves));
        for (uint32_t i = 0; i < bench->load.n_wishes; i++)
                json_array_append_new(wishes, json_string(bench->wishes[i]));
        for (uint32_t i = 0; i < bench->load.n_steps && !bench->is_closed; i++)
                json_array_append_new(rates, json_real(bench->rates[i]));
        for (uint32_t w = 0; w < bench->n_ways; w++) {
                json_t *turns = json_array();

                for (uint32_t t = 0; t < bench->turns; t++)
                        json_array_append_new(turns, result_json(bench, result_of(bench, t, w), of, n));
                json_array_append_new(
                        ways, json_pack("{s:s, s:s*, s:o}", "way", bench->ways[w].name, "variant",
                                      bench->ways[w].variant == CHOICE ? NULL : of[bench->ways[w].variant].name, "turns", turns));
        }
        return json_pack("{s:s, s:o, s:o, s:s, s:o, s:o, s:o, s:f, s:b, s:I, s:o}", "benchmark", "query", "command", command,
                "machine", sl_machine_json(), "task", bench->load.task, "variants", variants, "wishes", wishes, "rates", rates,
                "step_seconds", bench->step_s, "deadlines", bench->load.deadlines, "concurrency",
                (json_int_t)(bench->is_closed ? bench->load.in_flight : 0), "ways", ways);
}

static void print_counts(const char *name, const struct sl_query_counts *counts)
{
        double due = counts->due ? (double)counts->due : 1;

        printf("  %-36.36s %9" PRIu64, name, counts->due);
        for (uint32_t i = 0; i < SL_QUERY_ENDS_N; i++)
                printf(" %8.2f%%", 100 * (double)counts->ends[i] / due);
        printf(" %9.4f\n", counts->answered ? counts->accuracy / (double)counts->answered : 0);
}

static void print_way(const struct bench *bench, uint32_t way)
{
        struct sl_query_counts *sums = calloc(SL_QUERY_WISHES_MAX + 1, sizeof(*sums));
        double core_s = 0;

        for (uint32_t t = 0; t < bench->turns && sums; t++) {
                core_s += result_of(bench, t, way)->computed_s;
                for (uint32_t i = 0; i < bench->load.n_wishes; i++) {
                        add_counts(&sums[i], &result_of(bench, t, way)->wishes[i]);
                        add_counts(&sums[SL_QUERY_WISHES_MAX], &result_of(bench, t, way)->wishes[i]);
                }
        }
        printf("%s: %.3f core-seconds\n", bench->ways[way].name, core_s);
        for (uint32_t i = 0; i < bench->load.n_wishes && sums; i++)
                print_counts(bench->wishes[i], &sums[i]);
        if (sums && bench->load.n_wishes > 1)
                print_counts("all", &sums[SL_QUERY_WISHES_MAX]);
        if (result_of(bench, 0, way)->first_error[0])
                printf("  the first that was not answered: %s\n", result_of(bench, 0, way)->first_error);
        free(sums);
}

static void print_table(const struct bench *bench)
{
        char machine[200];

        sl_machine_line(machine, sizeof(machine));
        printf("starling bench query on %s\n\n  %-36s %9s", machine, "wish", "due");
        for (uint32_t i = 0; i < SL_QUERY_ENDS_N; i++)
                printf(" %9s", sl_query_end_name((enum sl_query_end)i));
        printf(" %9s\n", "accuracy");
        for (uint32_t w = 0; w < bench->n_ways; w++)
                print_way(bench, w);
}

int sl_query_print_json(json_t *root)
{
        int r = root && json_dumpf(root, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) == 0 && putchar('\n') != EOF ? 0 : -EIO;
        json_decref(root);
        return r;
}

static int hand_over(const struct bench *bench, const struct sl_query_load *load)
{
        if (bench->json)
                return sl_query_print_json(bench_json(bench, load));
        print_table(bench);
        return 0;
}

static int run(struct bench *bench, struct starling_error *error)
{
        struct sl_query_load *load = NULL;
        int r = bench->is_closed ? 0 : make_trace(bench);

        if (r == -ERANGE)
                snprintf(error->text, sizeof(error->text), "--rate and --seconds: no request is due");
        if (r == 0)
                r = sl_query_load_new(&bench->load, &load, error);
        if (r == 0)
                r = find_ways(bench, load, error);
        bench->results = calloc(bench->turns * bench->n_ways, sizeof(*bench->results));
        if (r == 0)
                r = bench->results ? run_ways(bench, load, error) : -ENOMEM;
        if (r == 0)
                r = hand_over(bench, load);
        sl_query_load_free(load);
        free(bench->results);
        sl_trace_deinit(&bench->trace);
        return r;
}

static int run_choice(const struct bench *bench)
{
        return sl_query_report_choice(&(struct sl_query_choice_bench){.argc = bench->argc,
                .argv = bench->argv,
                .variants = bench->choice,
                .turns = bench->turns,
                .seed = bench->seed,
                .turn_ns = bench->load.step_ns,
                .json = bench->json});
}

int sl_bench_query(int argc, char **argv)
{
        struct bench *bench = calloc(1, sizeof(*bench));
        struct starling_error error = {""};
        int code, r;

        if (!bench)
                return 1;
        *bench = (struct bench){.argc = argc, .argv = argv, .rates = {100}, .step_s = 5, .turns = 3, .seed = 1};
        bench->load.n_steps = 1;
        bench->load.in_flight = 256;
        code = parse(argc, argv, bench);
        if (code == 0 && !bench->choice)
                code = sl_bench_reach("query", bench->load.runtime);
        if (code == 0 && (r = bench->choice ? run_choice(bench) : run(bench, &error)) < 0) {
                if (r != -EINTR)
                        fprintf(stderr, "starling bench query: %s\n", error.text[0] ? error.text : starling_strerror(r));
                code = r == -EINVAL ? 2 : 1;
        }
        free(bench);
        return code;
}
