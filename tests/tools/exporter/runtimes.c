/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of a runtime that lives: every number of the page under its name, whatever names models have. */
#include "watch_bench.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

TestSuite(exporter_runtimes, .init = watch_bench_init, .fini = watch_bench_deinit);

Test(exporter_runtimes, what_models_count_is_what_is_exported)
{
        struct sl_stats *stats = create_page(0);
        struct sl_model_counting lenet = add_model(stats, "lenet");

        sl_model_count(&lenet, requests, 7);
        sl_model_count(&lenet, samples, 70);
        sl_model_count(&lenet, failed, 2);
        sl_model_count(&lenet, worker_busy_ns, 1500000000);
        sl_model_record(&lenet, SL_STAGE_TOTAL, 1000);
        sl_model_record(&lenet, SL_STAGE_TOTAL, 5000);
        sl_model_record(&lenet, SL_STAGE_QUEUED, 300000000000);
        sl_model_record(&lenet, SL_STAGE_WAKING, 25000);
        ask();
        cr_expect_eq(value("starling_inference_requests_total", "model=\"lenet\""), 7);
        cr_expect_eq(value("starling_inference_samples_total", "model=\"lenet\""), 70);
        cr_expect_eq(value("starling_inference_completions_total", "model=\"lenet\",outcome=\"failed\""), 2);
        cr_expect_eq(value("starling_inference_busy_seconds_total", "model=\"lenet\""), 1.5);
        cr_expect_eq(value("starling_inference_duration_seconds_bucket", "model=\"lenet\",le=\"0.000001023\""), 1);
        cr_expect_eq(value("starling_inference_duration_seconds_bucket", "model=\"lenet\",le=\"0.000004095\""), 1);
        cr_expect_eq(value("starling_inference_duration_seconds_bucket", "model=\"lenet\",le=\"0.000008191\""), 2);
        cr_expect_eq(value("starling_inference_duration_seconds_sum", "model=\"lenet\""), 0.000006);
        cr_expect_eq(value("starling_inference_duration_seconds_count", "model=\"lenet\""), 2);
        cr_expect_eq(
                value("starling_inference_stage_duration_seconds_bucket", "model=\"lenet\",stage=\"queued\",le=\"68.719476735\""),
                0);
        cr_expect_eq(value("starling_inference_stage_duration_seconds_count", "model=\"lenet\",stage=\"queued\""), 1);
        cr_expect_eq(value("starling_inference_stage_duration_seconds_sum", "model=\"lenet\",stage=\"queued\""), 300);
        cr_expect_eq(value("starling_client_wake_duration_seconds_sum", "model=\"lenet\""), 0.000025);
        cr_expect_null(strstr(text.bytes, "model=\"(others)\""), "nobody is counted there");
        ask_for(EXPOSITION_OPENMETRICS);
        cr_expect_eq(value("starling_inference_requests_total", "model=\"lenet\""), 7);
        cr_expect_eq(value("starling_inference_duration_seconds_count", "model=\"lenet\""), 2);
        sl_stats_free(stats);
}

/* Thousands of names may be loaded on request. */
Test(exporter_runtimes, models_that_nobody_has_asked_for_have_no_series)
{
        struct sl_stats *stats = create_page(0);
        struct sl_model_counting lenet, mlp;

        cr_assert_eq(sl_stats_model_add_shown(stats, "lenet", &lenet, NULL), 0);
        cr_assert_eq(sl_stats_model_add_shown(stats, "mlp", &mlp, NULL), 0);
        sl_stats_model_show(&lenet, &(struct sl_model_stats){.state = SL_STATS_MODEL_AVAILABLE});
        sl_stats_model_show(&mlp, &(struct sl_model_stats){.state = SL_STATS_MODEL_AVAILABLE, .loads = 1});
        ask();
        cr_expect_null(strstr(text.bytes, "model=\"lenet\""));
        cr_expect_eq(value("starling_inference_requests_total", "model=\"mlp\""), 0, "it has been loaded");
        sl_stats_model_show(&lenet, &(struct sl_model_stats){.state = SL_STATS_MODEL_READY});
        ask();
        cr_expect_eq(value("starling_inference_requests_total", "model=\"lenet\""), 0);
        sl_stats_free(stats);
}

Test(exporter_runtimes, what_is_said_of_the_runtime_is_exported)
{
        struct sl_stats *stats = create_page(0);
        struct sl_memory_stats *arenas;
        struct sl_step_stats *step;

        sl_stats_set_memory(stats, 1 << 20, UINT64_MAX);
        sl_stats_memory_add(stats, "arenas", &arenas);
        sl_counter_set(&arenas->bytes, 4096);
        sl_counter_set(&arenas->most_bytes, 8192);
        sl_stats_step_add(stats, "load", &step);
        sl_counter_add(&step->taken, 6);
        sl_counter_add(&sl_stats_dispatcher(stats, 0)->refusals[SL_REFUSAL_QUEUE_FULL], 9);
        sl_counter_set(&sl_stats_dispatcher(stats, 0)->saturated, 1);
        ask();
        cr_expect_eq(value("starling_up", ""), 1);
        cr_expect_eq(value("starling_build_info", "version=\"1.2.3\",wait=\"epoll\",stats_version=\"4\""), 1);
        cr_expect_eq(value("starling_runtime_state", "state=\"ready\""), 1);
        cr_expect_eq(value("starling_runtime_state", "state=\"starting\""), 0);
        cr_expect_gt(value("starling_start_time_seconds", ""), 1.7e9);
        cr_expect_eq(value("starling_memory_promised_bytes", ""), 1 << 20);
        cr_expect(isinf(value("starling_memory_limit_bytes", "")));
        cr_expect_eq(value("starling_memory_bytes", "kind=\"arenas\""), 4096);
        cr_expect_eq(value("starling_memory_most_bytes", "kind=\"arenas\""), 8192);
        cr_expect_eq(value("starling_steps_total", "step=\"load\""), 6);
        cr_expect_eq(value("starling_refusals_total", "dispatcher=\"0\",reason=\"queue_full\""), 9);
        cr_expect_eq(value("starling_dispatcher_saturated", "dispatcher=\"0\""), 1);
        cr_expect_not_null(strstr(text.bytes, "\nstarling_exporter_build_info{version=\""));
        sl_stats_free(stats);
}

static struct sl_worker_stats *add_worker(struct sl_stats *stats, const char *model, int32_t core, uint32_t let, uint32_t state)
{
        struct sl_worker_stats shown = {
                .core = core, .let = let, .batch_max = 16, .executor = "process", .state = state, .restarts = 2};
        struct sl_worker_stats *slot;

        snprintf(shown.model, sizeof(shown.model), "%s", model);
        cr_assert_eq(sl_stats_worker_add(stats, &shown, false, &slot), 0);
        return slot;
}

Test(exporter_runtimes, workers_are_exported_each_and_by_model)
{
        struct sl_stats *stats = create_page(0);
        struct sl_worker_stats *first = add_worker(stats, "lenet", 3, 0, SL_STATS_WORKER_SERVING);
        struct sl_worker_stats *second = add_worker(stats, "lenet", -1, 1, SL_STATS_WORKER_BACKING_OFF);
        struct sl_let_stats shown = {.n_cores = 4, .workers = 2, .name = "worker cores", .cores = "0-3"}, *let;
        struct sl_let_stats on_gpu = {.workers = 1, .name = "gpu:0"}, *gpu;

        sl_counter_add(&first->busy_ns, 250000000);
        sl_counter_set(&first->workspace_bytes, 4096);
        sl_counter_set(&second->workspace_bytes, 4096);
        sl_stats_let_add(stats, &shown, &let);
        sl_stats_let_add(stats, &on_gpu, &gpu);
        sl_counter_add(&let->busy_ns, 1000000000);
        add_worker(stats, "mlp", 1, SL_STATS_NONE, SL_STATS_WORKER_SERVING);
        ask();
        cr_expect_eq(value("starling_worker_busy_seconds_total",
                             "model=\"lenet\",worker=\"0\",executor=\"process\",core=\"3\",let=\"0\""),
                0.25);
        cr_expect_eq(
                value("starling_worker_batch_max", "model=\"lenet\",worker=\"1\",executor=\"process\",core=\"\",let=\"1\""), 16);
        cr_expect_eq(value("starling_worker_batch_max", "model=\"mlp\",worker=\"2\",executor=\"process\",core=\"1\",let=\"\""), 16);
        cr_expect_eq(value("starling_workers", "model=\"lenet\",state=\"serving\""), 1);
        cr_expect_eq(value("starling_workers", "model=\"lenet\",state=\"backing_off\""), 1);
        cr_expect_eq(value("starling_workers", "model=\"lenet\",state=\"starting\""), 0);
        cr_expect_eq(value("starling_worker_workspace_bytes", "model=\"lenet\""), 8192);
        cr_expect_eq(value("starling_worker_restarts_total", "model=\"lenet\""), 4);
        cr_expect_eq(value("starling_let_busy_seconds_total", "let=\"0\",cores=\"0-3\",name=\"worker cores\""), 1);
        cr_expect_eq(value("starling_let_workers", "let=\"0\",cores=\"0-3\",name=\"worker cores\""), 2);
        cr_expect_eq(value("starling_let_workers", "let=\"1\",cores=\"\",name=\"gpu:0\""), 1);
        sl_stats_free(stats);
}

/* Its process has ended, and the next one is on another core: the place on the page is the same. */
Test(exporter_runtimes, a_worker_that_moves_counts_nothing_twice)
{
        struct sl_stats *stats = create_page(0);
        struct sl_worker_stats *worker = add_worker(stats, "lenet", 3, 0, SL_STATS_WORKER_SERVING), shown;

        sl_counter_add(&worker->busy_ns, 250000000);
        ask();
        sl_stats_worker_shown(worker, &shown);
        shown.core = 1;
        shown.let = 1;
        sl_stats_worker_show(worker, &shown);
        sl_counter_add(&worker->busy_ns, 500000000);
        ask();
        cr_expect_eq(value("starling_worker_busy_seconds_total",
                             "model=\"lenet\",worker=\"0\",executor=\"process\",core=\"1\",let=\"1\""),
                0.5);
        sl_stats_free(stats);
}

Test(exporter_runtimes, models_say_what_they_are_and_what_waits)
{
        struct sl_stats *stats = create_page(0);
        struct sl_model_counting lenet = add_model(stats, "lenet");
        struct sl_model_stats shown;
        struct sl_queue_stats *queue;

        sl_stats_model_shown(&lenet, &shown);
        shown.state = SL_STATS_MODEL_DEGRADED;
        shown.version = 3;
        shown.kind = SL_STATS_MODEL_ENSEMBLE;
        shown.loads = 5;
        shown.load_failures = 1;
        shown.load_ns = 2500000000;
        shown.since_ns = 1;
        sl_stats_model_show(&lenet, &shown);
        sl_stats_queue_add(stats, "lenet", SL_STATS_QUEUE_SEGMENTS, &queue);
        sl_counter_set(&queue->depth, 12);
        ask();
        cr_expect_eq(value("starling_queue_oldest_age_seconds", "model=\"lenet\",queue=\"segments\""), 0);
        sl_counter_set(&queue->oldest_ns, 1);
        ask();
        cr_expect_eq(value("starling_model_state", "model=\"lenet\",state=\"degraded\""), 1);
        cr_expect_eq(value("starling_model_state", "model=\"lenet\",state=\"ready\""), 0);
        cr_expect_eq(value("starling_model_info", "model=\"lenet\",kind=\"ensemble\",version=\"3\""), 1);
        cr_expect_eq(value("starling_model_loads_total", "model=\"lenet\",outcome=\"done\""), 5);
        cr_expect_eq(value("starling_model_loads_total", "model=\"lenet\",outcome=\"failed\""), 1);
        cr_expect_eq(value("starling_model_load_duration_seconds", "model=\"lenet\""), 2.5);
        cr_expect_gt(value("starling_model_state_age_seconds", "model=\"lenet\""), 0);
        cr_expect_eq(value("starling_queue_depth", "model=\"lenet\",queue=\"segments\""), 12);
        cr_expect_gt(value("starling_queue_oldest_age_seconds", "model=\"lenet\",queue=\"segments\""), 0);
        sl_stats_free(stats);
}

Test(exporter_runtimes, clients_are_added_up_by_user)
{
        struct sl_stats *stats = create_page(0);
        struct sl_client_stats *clients[3];

        for (uint32_t i = 0; i < 3; i++) {
                struct sl_client_stats shown = {.id = i, .uid = i < 2 ? 1000 : 1001, .label = "camera"};

                cr_assert_eq(sl_stats_client_add(stats, &shown, &clients[i]), 0);
                sl_counter_set(&clients[i]->in_flight, i + 1);
        }
        ask();
        cr_expect_eq(value("starling_clients", "uid=\"1000\""), 2);
        cr_expect_eq(value("starling_client_requests_in_flight", "uid=\"1000\""), 3);
        cr_expect_eq(value("starling_clients", "uid=\"1001\""), 1);
        sl_stats_client_remove(stats, clients[0]);
        sl_stats_client_remove(stats, clients[2]);
        ask();
        cr_expect_eq(value("starling_clients", "uid=\"1000\""), 1);
        cr_expect_eq(value("starling_client_requests_in_flight", "uid=\"1000\""), 2);
        cr_expect_null(strstr(text.bytes, "1001"), "that user has none any more");
        sl_stats_free(stats);
}

Test(exporter_runtimes, no_name_of_a_model_breaks_the_format)
{
        const char *const names[] = {"a\"} 1\nstarling_up{runtime=\"x\"", "back\\", "\xff\xfe\x80", "\n\n\n", "{}", "tab\there",
                "\\\"\n\\", "a name that fills all of the bytes that there are for the name\xe2\x82\xac",
                "gr\xc3\xbc\xc3\x9f"
                "e"};
        struct sl_stats *stats = create_page(0);
        struct sl_worker_stats shown = {.core = -1, .batch_max = 1, .executor = "\"}\n"}, *worker;

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
                add_model(stats, names[i]);
                snprintf(shown.model, sizeof(shown.model), "%s", names[i]);
                sl_stats_worker_add(stats, &shown, false, &worker);
        }
        ask();
        cr_expect_eq(value("starling_up", ""), 1);
        cr_expect_eq(value("starling_inference_requests_total", "model=\"\\n\\n\\n\""), 0);
        cr_expect_eq(value("starling_inference_requests_total", "model=\"a\\\"} 1\\nstarling_up{runtime=\\\"x\\\"\""), 0);
        cr_expect_eq(value("starling_inference_requests_total", "model=\"gr\xc3\xbc\xc3\x9f"
                                                                "e\""),
                0);
        ask_for(EXPOSITION_OPENMETRICS);
        sl_stats_free(stats);
}

Test(exporter_runtimes, names_that_look_alike_as_text_are_one_series)
{
        struct sl_stats *stats = create_page(0);
        struct sl_model_counting first = add_model(stats, "\xfe"), second = add_model(stats, "\xff");

        sl_model_count(&first, requests, 1);
        sl_model_count(&second, requests, 2);
        ask();
        cr_expect_eq(value("starling_inference_requests_total", "model=\"\xef\xbf\xbd\""), 3);
        sl_stats_free(stats);
}

Test(exporter_runtimes, models_without_room_are_counted_as_others)
{
        struct sl_stats *stats = create_page(3 << 20);
        struct sl_model_counting counting = {0};
        char name[32];
        uint32_t n = 0;

        do {
                snprintf(name, sizeof(name), "model-%u", n++);
                counting = add_model(stats, name);
        } while (!counting.shared_histograms);
        sl_model_count(&counting, requests, 5);
        sl_model_record(&counting, SL_STAGE_TOTAL, 1000);
        snprintf(name, sizeof(name), "model=\"model-%u\"", n - 1);
        ask();
        cr_expect_eq(value("starling_inference_requests_total", name), 5, "its counters are its own");
        cr_expect_eq(value("starling_inference_duration_seconds_count", name), 0);
        cr_expect_eq(value("starling_inference_duration_seconds_count", "model=\"(others)\""), 1);
        cr_expect_eq(value("starling_stats_crowded_total", ""), 1);
        sl_stats_free(stats);
}
