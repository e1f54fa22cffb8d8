/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A comparison calls a difference what the repeats of both sides show, and says what speaks against comparing them.
 */
#include "compare.h"

#include "base/error.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <string.h>

static json_t *result_of(const char *label, const char *repeats, const char *better, const char *cpu, const char *valid)
{
        char text[1024];
        json_error_t error;

        snprintf(text, sizeof(text),
                "{\"schema\": \"starling-load/1\", \"valid\": %s, \"machine\": {\"cpu\": \"%s\"}, \"load\": {\"threads\": 1},"
                " \"noise\": {\"quiet\": true, \"floor_before_ns\": 60, \"floor_after_ns\": 60}, \"search\": null, \"points\":"
                " [{\"label\": \"%s\", \"figures\": {\"it\": {\"unit\": \"ns\", \"better\": \"%s\", \"value\": 1, \"repeats\": "
                "[%s]}}}]}",
                valid, cpu, label, better, repeats);
        json_t *root = json_loads(text, 0, &error);

        cr_assert(root, "%s", error.text);
        return root;
}

static json_t *compare(json_t *a, json_t *b)
{
        struct sl_error error = {""};
        json_t *comparison;

        cr_assert_eq(sl_compare(a, b, &comparison, &error), 0, "%s", error.text);
        json_decref(a);
        json_decref(b);
        return comparison;
}

Test(compare, a_result_without_a_floor_says_so)
{
        json_t *a = result_of("x", "1, 2", "less", "c", "true");
        json_t *noise = json_object_get(a, "noise");

        json_object_set_new(noise, "floor_before_ns", json_null());
        json_object_set_new(noise, "floor_after_ns", json_null());
        json_object_set_new(noise, "quiet", json_false());
        json_t *comparison = compare(a, result_of("x", "1, 2", "less", "c", "true"));
        const json_t *warnings = json_object_get(comparison, "warnings");

        cr_assert_eq(json_array_size(warnings), 1);
        cr_expect_str_eq(json_string_value(json_array_get(warnings, 0)),
                "A: no floor was measured: whether the machine stayed the same is not known");
        json_decref(comparison);
}

static void expect_verdict(const char *a, const char *b, const char *better, const char *verdict)
{
        json_t *comparison = compare(result_of("x", a, better, "c", "true"), result_of("x", b, better, "c", "true"));
        const json_t *point = json_array_get(json_object_get(comparison, "points"), 0);
        const json_t *figure = json_object_get(json_object_get(point, "figures"), "it");

        cr_expect_str_eq(json_string_value(json_object_get(figure, "verdict")), verdict, "%s and %s", a, b);
        cr_expect_eq(json_array_size(json_object_get(comparison, "warnings")), 0);
        json_decref(comparison);
}

Test(compare, a_difference_is_one_only_when_the_repeats_show_it)
{
        expect_verdict("100, 104, 97, 101, 99", "99, 103, 98, 101, 100", "less", "noise");
        expect_verdict("100, 104, 97, 101, 99", "80, 83, 78, 81, 79", "less", "better");
        expect_verdict("100, 104, 97, 101, 99", "80, 83, 78, 81, 79", "more", "worse");
        expect_verdict("100, 104, 97, 101, 99", "120, 123, 118", "less", "worse");
        expect_verdict("100, 104, 97, 101, 99", "120, 123, 118", "neither", "different");
        expect_verdict("100, 200, 50, 150, 80", "80, 83, 78, 81, 79", "less", "noise");
        expect_verdict("100", "50", "less", "unknown");
        expect_verdict("100, 0, 100", "50, 50, 50", "less", "unknown");
        expect_verdict("1000, 1000, 1000", "1001, 1001, 1001", "less", "noise"); /* less than a bucket */
}

static void expect_warning(json_t *a, json_t *b, const char *what)
{
        json_t *comparison = compare(a, b), *warnings = json_object_get(comparison, "warnings");

        cr_expect_eq(json_array_size(warnings), 1);
        cr_expect(
                strstr(json_string_value(json_array_get(warnings, 0)), what), "%s", json_string_value(json_array_get(warnings, 0)));
        json_decref(comparison);
}

/* The same seed asks both for the same: what repeats have in common is no noise of the difference. */
Test(compare, repeats_of_the_same_load_are_compared_in_pairs)
{
        json_t *a = result_of("x", "100, 200, 50, 150, 80", "less", "c", "true");
        json_t *b = result_of("x", "90, 181, 45, 134, 72.5", "less", "c", "true");
        const char *keys[] = {"seed", "models", "duration_s", "warm_up_s"};

        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
                json_object_set_new(json_object_get(a, "load"), keys[i], json_integer(1));
                json_object_set_new(json_object_get(b, "load"), keys[i], json_integer(1));
        }
        json_t *comparison = compare(a, b);
        const json_t *point = json_array_get(json_object_get(comparison, "points"), 0);
        const json_t *figure = json_object_get(json_object_get(point, "figures"), "it");

        cr_expect_str_eq(json_string_value(json_object_get(figure, "verdict")), "better");
        json_decref(comparison);
}

Test(compare, what_speaks_against_comparing_is_said)
{
        expect_warning(result_of("x", "1, 2", "less", "one", "true"), result_of("x", "1, 2", "less", "other", "true"),
                "cpu differs: \"one\" and \"other\"");
        expect_warning(
                result_of("x", "1, 2", "less", "c", "true"), result_of("x", "1, 2", "less", "c", "false"), "B is not a valid run");
}

Test(compare, points_without_a_partner_are_named)
{
        json_t *comparison = compare(result_of("x", "1, 2", "less", "c", "true"), result_of("y", "1, 2", "less", "c", "true"));

        cr_expect_eq(json_array_size(json_object_get(comparison, "points")), 0);
        cr_expect_str_eq(json_string_value(json_array_get(json_object_get(comparison, "only_a"), 0)), "x");
        cr_expect_str_eq(json_string_value(json_array_get(json_object_get(comparison, "only_b"), 0)), "y");
        json_decref(comparison);
}

Test(compare, what_is_no_result_is_refused)
{
        json_t *a = result_of("x", "1, 2", "less", "c", "true"), *b = json_pack("{s:s}", "schema", "something"), *comparison;
        struct sl_error error = {""};

        cr_expect_eq(sl_compare(a, b, &comparison, &error), -EINVAL);
        cr_expect_str_eq(error.text, "B: schema \"something\", wants \"starling-load/1\"");
        json_decref(a);
        json_decref(b);
}
