/* SPDX-License-Identifier: Apache-2.0 */
/* The last ten minutes of a runtime, a point at a time; jansson reads them. */
#include "history.h"

#include "watch_bench.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

static struct history *history;

static void set_up(void)
{
        watch_bench_init();
        history = history_new(4);
}

static void tear_down(void)
{
        history_free(history);
        watch_bench_deinit();
}

TestSuite(exporter_history, .init = set_up, .fini = tear_down);

/* The caller's. */
static json_t *written(void)
{
        struct text out;
        json_error_t error;
        json_t *object;

        text_init(&out, 64 << 20);
        history_write(history, "a", &out);
        cr_assert_not(out.failed);
        object = json_loads(out.bytes, JSON_REJECT_DUPLICATES, &error);
        cr_assert(object, "%s: %s", error.text, out.bytes);
        text_deinit(&out);
        return object;
}

static const json_t *find(const json_t *object, const char *list, const char *name)
{
        const json_t *entry;
        size_t i;

        json_array_foreach(json_object_get(object, list), i,
                entry) if (strcmp(json_string_value(json_object_get(entry, "name")), name) == 0) return entry;
        return NULL;
}

/* The point @back steps before the latest; NaN: null. */
static double value_of(const json_t *entry, const char *series, size_t back)
{
        const json_t *values = json_object_get(entry, series);
        const json_t *value = json_array_get(values, json_array_size(values) - 1 - back);

        cr_assert_not_null(value, "no %s", series);
        return json_is_null(value) ? NAN : json_number_value(value);
}

static double window_of(const json_t *entry, const char *key)
{
        return json_number_value(json_object_get(json_object_get(entry, "window"), key));
}

static void step(void)
{
        watch_look(&watch);
        usleep(2000); /* some time has passed, whichever */
        history_step(history, watch_is_up(&watch) ? watch.view : NULL);
}

static void answer(struct sl_model_counting *counting, uint32_t requests, uint64_t ns)
{
        for (uint32_t i = 0; i < requests; i++) {
                sl_model_count(counting, requests, 1);
                sl_model_count(counting, completed, 1);
                sl_model_record(counting, SL_STAGE_TOTAL, ns);
        }
}

Test(exporter_history, a_point_is_what_happened_since_the_one_before)
{
        struct sl_stats *stats = create_page(0);
        struct sl_model_counting a = add_model(stats, "a"), b = add_model(stats, "b");
        json_t *object;

        step();
        answer(&a, 300, 1000000);
        answer(&b, 100, 50000000);
        step();
        step();
        object = written();
        const json_t *of_a = find(object, "models", "a"), *of_b = find(object, "models", "b");

        cr_expect_float_eq(value_of(of_a, "completed_per_second", 1) / value_of(of_b, "completed_per_second", 1), 3, 1e-4);
        cr_expect_float_eq(value_of(of_a, "p50_ns", 1), 1e6, 1e6 / 60);
        cr_expect_float_eq(value_of(of_b, "p99_ns", 1), 5e7, 5e7 / 60);
        cr_expect_eq(value_of(of_a, "completed_per_second", 0), 0);
        cr_expect(isnan(value_of(of_a, "p50_ns", 0)), "nothing ended");
        cr_expect_eq(window_of(of_a, "count"), 300);
        cr_expect_eq(window_of(of_b, "count"), 100);
        json_decref(object);
        sl_stats_free(stats);
}

/* What was counted before the exporter looked is no part of the last ten minutes. */
Test(exporter_history, what_was_there_before_it_began_does_not_count)
{
        struct sl_stats *stats = create_page(0);
        struct sl_model_counting a = add_model(stats, "a");
        json_t *object;

        history_free(history);
        answer(&a, 1000, 70000000);
        history = history_new(4);
        step();
        object = written();
        cr_expect(isnan(value_of(find(object, "models", "a"), "completed_per_second", 0)));
        json_decref(object);
        answer(&a, 10, 1000);
        step();
        object = written();
        cr_expect_eq(window_of(find(object, "models", "a"), "count"), 10);
        cr_expect_lt(window_of(find(object, "models", "a"), "p999_ns"), 2000);
        json_decref(object);
        sl_stats_free(stats);
}

Test(exporter_history, ten_minutes_are_kept_and_no_more)
{
        struct sl_stats *stats = create_page(0);
        struct sl_model_counting a = add_model(stats, "a");
        json_t *object;

        answer(&a, 1000, 70000000);
        for (uint32_t i = 0; i <= HISTORY_POINTS; i++) {
                watch_look(&watch);
                history_step(history, watch.view);
        }
        answer(&a, 7, 1000);
        step();
        object = written();
        cr_expect_eq(json_array_size(json_object_get(object, "unix_ms")), HISTORY_POINTS);
        cr_expect_eq(json_array_size(json_object_get(find(object, "models", "a"), "p99_ns")), HISTORY_POINTS);
        cr_expect_eq(window_of(find(object, "models", "a"), "count"), 7);
        json_decref(object);
        sl_stats_free(stats);
}

Test(exporter_history, a_runtime_that_is_gone_leaves_a_gap_and_the_next_one_counts_from_zero)
{
        json_t *object;

        for (int life = 0; life < 2; life++) {
                struct sl_stats *stats = create_page(0);
                struct sl_model_counting a = add_model(stats, "a");

                answer(&a, life ? 3 : 500, 1000);
                step();
                answer(&a, life ? 2 : 0, 1000);
                step();
                sl_stats_free(stats);
                if (!life)
                        step();
        }
        object = written();
        cr_expect_eq(json_array_size(json_object_get(object, "unix_ms")), 5);
        const json_t *a = find(object, "models", "a");

        cr_expect(isnan(value_of(a, "completed_per_second", 2)), "nobody was there");
        cr_expect_gt(value_of(a, "completed_per_second", 1), 0);
        cr_expect_gt(value_of(a, "completed_per_second", 0), 0);
        cr_expect_eq(window_of(a, "count"), 5, "of the second one alone: %g", window_of(a, "count"));
        json_decref(object);
}

Test(exporter_history, models_that_are_too_many_are_left_out_and_counted_and_old_ones_make_room)
{
        struct sl_stats *stats = create_page(0);
        struct sl_model_counting counting[7];
        char name[16];
        json_t *object;

        for (int i = 0; i < 7; i++) {
                snprintf(name, sizeof(name), "m%d", i);
                counting[i] = add_model(stats, name);
        }
        step();
        object = written(); /* the common slot is a model, too */
        cr_expect_eq(json_array_size(json_object_get(object, "models")), 4);
        cr_expect_eq(json_integer_value(json_object_get(object, "left_out")), 4);
        cr_expect_null(find(object, "models", "m6"));
        json_decref(object);
        for (int i = 0; i < 6; i++)
                sl_stats_model_remove(stats, &counting[i]);
        for (uint32_t i = 0; i <= HISTORY_POINTS; i++) {
                watch_look(&watch);
                history_step(history, watch.view);
        }
        step();
        object = written();
        cr_expect_not_null(find(object, "models", "m6"));
        cr_expect_null(find(object, "models", "m0"));
        cr_expect_eq(json_integer_value(json_object_get(object, "left_out")), 0);
        json_decref(object);
        sl_stats_free(stats);
}
