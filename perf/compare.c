/* SPDX-License-Identifier: Apache-2.0 */
#include "compare.h"

#include "base/error.h"
#include "bench.h"
#include "bench_options.h"
#include "estimate.h"
#include "load_result.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Below this a difference is one of the histogram's buckets. */
#define RESOLUTION (1.0 / 256)

static double number_of(const json_t *object, const char *key)
{
        const json_t *value = json_object_get(object, key);

        return json_is_number(value) ? json_number_value(value) : NAN;
}

static const char *text_of(const json_t *object, const char *key)
{
        const char *text = json_string_value(json_object_get(object, key));

        return text ? text : "";
}

static json_t *number(double value)
{
        return isfinite(value) ? json_real(value) : json_null();
}

/* ---- figures ---- */

/* Return: how many; what is null is left out. */
static uint32_t repeats_of(const json_t *figure, double ret_values[SL_LOAD_REPEATS_MAX])
{
        const json_t *repeats = json_object_get(figure, "repeats");
        uint32_t n = 0;

        for (size_t i = 0; i < json_array_size(repeats) && n < SL_LOAD_REPEATS_MAX; i++)
                if (json_is_number(json_array_get(repeats, i)))
                        ret_values[n++] = json_number_value(json_array_get(repeats, i));
        return n;
}

static const char *verdict_of(const struct sl_estimate *ratio, const char *better)
{
        if (!isfinite(ratio->low))
                return "unknown";
        if ((ratio->low <= 1 && ratio->high >= 1) || fabs(ratio->value - 1) < RESOLUTION)
                return "noise";
        if (strcmp(better, "neither") == 0)
                return "different";
        return (ratio->value < 1) == (strcmp(better, "less") == 0) ? "better" : "worse";
}

static json_t *compare_figure(const json_t *a, const json_t *b, bool paired)
{
        double of_a[SL_LOAD_REPEATS_MAX], of_b[SL_LOAD_REPEATS_MAX];
        uint32_t n_a = repeats_of(a, of_a), n_b = repeats_of(b, of_b);
        struct sl_estimate ratio =
                paired && n_a == n_b ? sl_estimate_paired_ratio(of_a, of_b, n_a) : sl_estimate_ratio(of_a, n_a, of_b, n_b);

        return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:s}", "unit", text_of(a, "unit"), "a", number(number_of(a, "value")), "b",
                number(number_of(b, "value")), "ratio", number(ratio.value), "low", number(ratio.low), "high", number(ratio.high),
                "verdict", verdict_of(&ratio, text_of(a, "better")));
}

static json_t *compare_point(const json_t *a, const json_t *b, bool paired)
{
        json_t *figures = json_object(), *of_a = json_object_get(a, "figures"), *figure;
        const char *key;

        json_object_foreach(of_a, key, figure)
        {
                const json_t *other = json_object_get(json_object_get(b, "figures"), key);

                if (other && json_is_number(json_object_get(figure, "value")) && json_is_number(json_object_get(other, "value")))
                        json_object_set_new(figures, key, compare_figure(figure, other, paired));
        }
        return json_pack("{s:s, s:o}", "label", text_of(a, "label"), "figures", figures);
}

/* ---- points ---- */

static const json_t *point_named(const json_t *result, const char *label)
{
        const json_t *points = json_object_get(result, "points");

        for (size_t i = 0; i < json_array_size(points); i++)
                if (strcmp(text_of(json_array_get(points, i), "label"), label) == 0)
                        return json_array_get(points, i);
        return NULL;
}

static json_t *labels_only_in(const json_t *result, const json_t *other)
{
        const json_t *points = json_object_get(result, "points");
        json_t *labels = json_array();

        for (size_t i = 0; i < json_array_size(points); i++) {
                const char *label = text_of(json_array_get(points, i), "label");

                if (!point_named(other, label))
                        json_array_append_new(labels, json_string(label));
        }
        return labels;
}

/* Repeat k of both asked for the same at the same times. */
static bool are_paired(const json_t *a, const json_t *b)
{
        const json_t *load_a = json_object_get(a, "load"), *load_b = json_object_get(b, "load");
        const char *const same[] = {"seed", "models", "duration_s", "warm_up_s"};

        for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
                if (!json_equal(json_object_get(load_a, same[i]), json_object_get(load_b, same[i])))
                        return false;
        return true;
}

/* Searches end at rates of their own: what they found is compared as it is. */
static json_t *compare_points(const json_t *a, const json_t *b)
{
        const json_t *of_a = json_object_get(a, "points"), *of_b = json_object_get(b, "points");
        bool paired = are_paired(a, b),
             searched = json_is_object(json_object_get(a, "search")) && json_is_object(json_object_get(b, "search"));
        json_t *points = json_array();

        for (size_t i = 0; i < json_array_size(of_a); i++) {
                const json_t *point = json_array_get(of_a, i), *other = point_named(b, text_of(point, "label"));

                if (other)
                        json_array_append_new(points, compare_point(point, other, paired));
                else if (searched)
                        json_array_append_new(points, compare_point(point, json_array_get(of_b, i), false));
        }
        return points;
}

/* ---- warnings ---- */

static void warn_of_run(json_t *warnings, const json_t *result, const char *which)
{
        const json_t *noise = json_object_get(result, "noise");
        double before = number_of(noise, "floor_before_ns"), after = number_of(noise, "floor_after_ns");

        if (!json_is_true(json_object_get(result, "valid")))
                json_array_append_new(warnings, json_sprintf("%s is not a valid run", which));
        if (isnan(before) || isnan(after)) /* one CPU has none */
                json_array_append_new(warnings,
                        json_sprintf("%s: no floor was measured: whether the machine stayed the same is not known", which));
        else if (!json_is_true(json_object_get(noise, "quiet")))
                json_array_append_new(
                        warnings, json_sprintf("%s: the floor was %.0f ns before and %.0f ns after: the machine was not the same",
                                          which, before, after));
}

static void warn_of_difference(json_t *warnings, const json_t *a, const json_t *b, const char *part, const char *key)
{
        json_t *of_a = json_object_get(json_object_get(a, part), key), *of_b = json_object_get(json_object_get(b, part), key);
        char *text_a, *text_b;

        if (of_a == of_b || json_equal(of_a, of_b))
                return;
        text_a = json_dumps(of_a, JSON_ENCODE_ANY | JSON_COMPACT);
        text_b = json_dumps(of_b, JSON_ENCODE_ANY | JSON_COMPACT);
        json_array_append_new(warnings, json_sprintf("%s differs: %s and %s", key, text_a ? text_a : "", text_b ? text_b : ""));
        free(text_a);
        free(text_b);
}

static json_t *warnings_of(const json_t *a, const json_t *b)
{
        static const char *const of_machine[] = {"cpu", "cpus", "kernel", "governor", "isolated_cpus", "allowed_cpus"};
        static const char *const of_load[] = {"models", "threads", "waiting", "cpus", "objective_ns", "deadline_ns", "duration_s"};
        json_t *warnings = json_array();
        double floors = number_of(json_object_get(b, "noise"), "floor_before_ns") /
                        number_of(json_object_get(a, "noise"), "floor_before_ns");

        warn_of_run(warnings, a, "A");
        warn_of_run(warnings, b, "B");
        for (size_t i = 0; i < sizeof(of_machine) / sizeof(of_machine[0]); i++)
                warn_of_difference(warnings, a, b, "machine", of_machine[i]);
        for (size_t i = 0; i < sizeof(of_load) / sizeof(of_load[0]); i++)
                warn_of_difference(warnings, a, b, "load", of_load[i]);
        if (floors > SL_NOISE_RATIO || floors < 1 / SL_NOISE_RATIO)
                json_array_append_new(warnings,
                        json_sprintf("B's floor is %.2f x A's: microseconds may be the machine's, not the runtime's", floors));
        return warnings;
}

static int check_result(const json_t *result, const char *which, struct sl_error *error)
{
        const char *schema = text_of(result, "schema");

        if (strcmp(schema, SL_LOAD_RESULT_SCHEMA) != 0)
                return sl_error_set(error, EINVAL, "%s: schema \"%s\", wants \"%s\"", which, schema, SL_LOAD_RESULT_SCHEMA);
        if (!json_is_array(json_object_get(result, "points")))
                return sl_error_set(error, EINVAL, "%s: has no points", which);
        return 0;
}

int sl_compare(const struct json_t *a, const struct json_t *b, struct json_t **ret_comparison, struct sl_error *error)
{
        int r = check_result(a, "A", error);

        if (r == 0)
                r = check_result(b, "B", error);
        if (r < 0)
                return r;
        *ret_comparison = json_pack("{s:s, s:o, s:o, s:o, s:o}", "schema", SL_COMPARISON_SCHEMA, "warnings", warnings_of(a, b),
                "points", compare_points(a, b), "only_a", labels_only_in(a, b), "only_b", labels_only_in(b, a));
        return *ret_comparison ? 0 : -ENOMEM;
}

/* ---- the command ---- */

static enum sl_unit unit_named(const char *name)
{
        static const struct {
                const char *name;
                enum sl_unit unit;
        } units[] = {{"ns", SL_UNIT_NS}, {"1/s", SL_UNIT_PER_SECOND}, {"share", SL_UNIT_SHARE}, {"bytes", SL_UNIT_BYTES}};

        for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
                if (strcmp(name, units[i].name) == 0)
                        return units[i].unit;
        return SL_UNIT_TIMES;
}

static void print_figure(const char *key, const json_t *figure)
{
        enum sl_unit unit = unit_named(text_of(figure, "unit"));
        char a[32], b[32], ratio[64] = "";

        sl_report_format(a, sizeof(a), unit, number_of(figure, "a"));
        sl_report_format(b, sizeof(b), unit, number_of(figure, "b"));
        if (isfinite(number_of(figure, "low")))
                snprintf(ratio, sizeof(ratio), "%.3f (%.3f to %.3f)", number_of(figure, "ratio"), number_of(figure, "low"),
                        number_of(figure, "high"));
        else if (isfinite(number_of(figure, "ratio")))
                snprintf(ratio, sizeof(ratio), "%.3f (no interval)", number_of(figure, "ratio"));
        printf("  %-30s %14s %14s  %-26s %s\n", key, a, b, ratio, text_of(figure, "verdict"));
}

static uint32_t print_points(const json_t *points)
{
        uint32_t n = 0;

        for (size_t i = 0; i < json_array_size(points); i++) {
                const json_t *point = json_array_get(points, i);
                json_t *figure;
                const char *key;

                printf("\n%s\n  %-30s %14s %14s  %-26s\n", text_of(point, "label"), "", "A", "B", "B / A (95 %)");
                json_object_foreach(json_object_get(point, "figures"), key, figure)
                {
                        print_figure(key, figure);
                        n += isfinite(number_of(figure, "low"));
                }
        }
        return n;
}

static void print_comparison(const json_t *comparison)
{
        const json_t *warnings = json_object_get(comparison, "warnings");

        for (size_t i = 0; i < json_array_size(warnings); i++)
                printf("warning: %s\n", json_string_value(json_array_get(warnings, i)));
        for (int side = 0; side < 2; side++) {
                const json_t *only = json_object_get(comparison, side ? "only_b" : "only_a");

                for (size_t i = 0; i < json_array_size(only); i++)
                        printf("only in %c: %s\n", side ? 'B' : 'A', json_string_value(json_array_get(only, i)));
        }
        uint32_t n = print_points(json_object_get(comparison, "points"));

        printf("\nof %u intervals about %.0f miss 1 by chance\n", n, ceil(0.05 * n));
}

static json_t *load_result(const char *path)
{
        json_error_t error;
        json_t *root = json_load_file(path, 0, &error);

        if (!root)
                fprintf(stderr, "starling bench compare: %s: line %d: %s\n", path, error.line, error.text);
        return root;
}

static int compare_files(char **paths, bool json)
{
        struct sl_error error = {""};
        json_t *a = load_result(paths[0]), *b = a ? load_result(paths[1]) : NULL, *comparison = NULL;
        int r = a && b ? sl_compare(a, b, &comparison, &error) : -EINVAL;

        if (r == 0 && json)
                json_dumpf(comparison, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6)), putchar('\n');
        else if (r == 0)
                print_comparison(comparison);
        else if (error.text[0])
                fprintf(stderr, "starling bench compare: %s\n", error.text);
        json_decref(a);
        json_decref(b);
        json_decref(comparison);
        return r < 0;
}

SL_BENCH_OPTIONS(COMPARE_OPTIONS);

int sl_bench_compare(int argc, char **argv)
{
        bool json = false;
        int option;

        while ((option = getopt_long(argc, argv, "", bench_options, NULL)) != -1) {
                if (option != OPTION_JSON)
                        return 2;
                json = true;
        }
        if (optind + 2 != argc) {
                fprintf(stderr, "starling bench compare: it wants two results, A.json and B.json\n");
                return 2;
        }
        return compare_files(argv + optind, json);
}
