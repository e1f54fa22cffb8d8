/* SPDX-License-Identifier: Apache-2.0 */
/* Runtimes that end, crash and start again, and models that come and go: last states, and counters that do not fall. */
#include "watch_bench.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

TestSuite(exporter_restarts, .init = watch_bench_init, .fini = watch_bench_deinit);

Test(exporter_restarts, a_runtime_that_never_was_is_down_and_nothing_else)
{
        ask();
        cr_expect_eq(value("starling_up", ""), 0);
        for (size_t i = 0; i < scrape.n; i++)
                cr_expect(strncmp(scrape.samples[i].name, "starling_up{", 12) == 0 ||
                                  strncmp(scrape.samples[i].name, "starling_exporter_", 18) == 0,
                        "%s", scrape.samples[i].name);
        cr_expect_not_null(strstr(watch.cause.text, watch.name), "%s", watch.cause.text);
}

Test(exporter_restarts, one_that_ends_keeps_its_last_values)
{
        struct sl_stats *stats = create_page(0);
        struct sl_model_counting lenet = add_model(stats, "lenet");

        sl_model_count(&lenet, requests, 5);
        ask();
        sl_model_count(&lenet, requests, 1);
        sl_stats_free(stats);
        for (int i = 0; i < 2; i++) {
                ask();
                cr_expect_eq(value("starling_up", ""), 0);
                cr_expect_eq(value("starling_runtime_state", "state=\"stopped\""), 1);
                cr_expect_eq(value("starling_runtime_state", "state=\"dead\""), 0);
                cr_expect_str_eq(watch.cause.text, "it has ended");
                cr_expect_eq(
                        value("starling_inference_requests_total", "model=\"lenet\""), 6, "also what came after the scrape before");
        }
}

Test(exporter_restarts, one_that_crashed_is_dead_and_the_next_one_takes_its_place)
{
        crash_with(1000);
        ask();
        cr_expect_eq(value("starling_up", ""), 0);
        cr_expect_eq(value("starling_runtime_state", "state=\"dead\""), 1);
        cr_expect_str_eq(watch.cause.text, "it crashed or was killed");
        cr_expect_eq(value("starling_inference_requests_total", "model=\"lenet\""), 1000, "the page is found after the crash");
        double started = value("starling_start_time_seconds", "");
        crash_with(30);
        ask();
        cr_expect_eq(value("starling_inference_requests_total", "model=\"lenet\""), 30, "a later crash is the one to know of");
        struct sl_stats *stats = create_page(0);
        add_model(stats, "lenet");
        ask();
        cr_expect_eq(value("starling_up", ""), 1);
        cr_expect_eq(value("starling_inference_requests_total", "model=\"lenet\""), 0, "a restart counts from zero");
        cr_expect_gt(value("starling_start_time_seconds", ""), started);
        sl_stats_free(stats);
        crash_with(2);
        ask();
        cr_expect_eq(value("starling_runtime_state", "state=\"dead\""), 1);
        cr_expect_eq(value("starling_inference_requests_total", "model=\"lenet\""), 2);
}

/* Somebody has set the clock of the day back meanwhile; in a container the process has the same number again. */
Test(exporter_restarts, one_that_starts_before_the_one_that_ended_takes_its_place)
{
        struct sl_stats *stats = create_page(0);
        uint64_t later_ns = (uint64_t)(time(NULL) + 3600) * 1000000000;
        int fd = open(page_path(), O_RDWR | O_CLOEXEC);

        cr_assert_eq(pwrite(fd, &later_ns, sizeof(later_ns), offsetof(struct sl_stats_header, started_unix_ns)), sizeof(later_ns));
        close(fd);
        ask();
        sl_stats_free(stats);
        ask();
        cr_expect_eq(value("starling_up", ""), 0);
        stats = create_page(0);
        ask();
        cr_expect_eq(value("starling_up", ""), 1);
        sl_stats_free(stats);
}

Test(exporter_restarts, counters_do_not_go_back_while_models_come_and_go)
{
        struct sl_stats *stats = create_page(0);
        struct sl_model_counting lenet = add_model(stats, "lenet"), other;

        sl_model_count(&lenet, requests, 1000);
        sl_model_record(&lenet, SL_STAGE_TOTAL, 1000);
        ask();
        sl_stats_model_remove(stats, &lenet);
        ask();
        cr_expect_null(strstr(text.bytes, "lenet"), "it is unloaded");
        other = add_model(stats, "other");
        sl_model_count(&other, requests, 1);
        lenet = add_model(stats, "lenet");
        sl_model_count(&lenet, requests, 2);
        ask();
        cr_expect_eq(value("starling_inference_requests_total", "model=\"lenet\""), 1002);
        cr_expect_eq(value("starling_inference_duration_seconds_count", "model=\"lenet\""), 1);
        cr_expect_eq(value("starling_inference_requests_total", "model=\"other\""), 1);
        sl_stats_free(stats);
}

static void show_kind(const struct sl_model_counting *counting, uint32_t kind)
{
        struct sl_model_stats shown;

        sl_stats_model_shown(counting, &shown);
        shown.kind = kind;
        shown.state = SL_STATS_MODEL_READY;
        sl_stats_model_show(counting, &shown);
}

Test(exporter_restarts, sizes_that_make_room_for_others_are_still_counted)
{
        struct sl_stats *stats = create_page(0);
        struct sl_model_counting open = add_model(stats, "bert"), sizes = add_model(stats, "bert[88]");

        show_kind(&open, SL_STATS_MODEL_OPEN);
        ask();
        show_kind(&sizes, SL_STATS_MODEL_SIZES);
        sl_model_count(&sizes, requests, 7);
        sl_model_record(&sizes, SL_STAGE_TOTAL, 1000);
        ask();
        sl_stats_model_remove(stats, &sizes);
        ask();
        cr_expect_eq(value("starling_inference_requests_total", "model=\"bert[88]\""), 7);
        cr_expect_eq(value("starling_inference_duration_seconds_count", "model=\"bert[88]\""), 1);
        for (size_t k = 0; k < scrape.n; k++)
                cr_expect(!strstr(scrape.samples[k].name, "bert[88]") || !strstr(scrape.samples[k].name, "wanted"),
                        "a gauge is of now");
        cr_expect_null(strstr(text.bytes, "kind=\"sizes\""), "and so is what it is");
        sizes = add_model(stats, "bert[88]");
        sl_model_count(&sizes, requests, 1);
        ask();
        cr_expect_eq(value("starling_inference_requests_total", "model=\"bert[88]\""), 8);
        sl_stats_model_remove(stats, &sizes);
        sl_stats_model_remove(stats, &open);
        ask();
        cr_expect_null(strstr(text.bytes, "bert"), "the model is unloaded");
        sl_stats_free(stats);
}
