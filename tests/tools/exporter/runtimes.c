/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of runtimes: those that live, those that are gone, and those whose page means harm. */
#include "exposition.h"
#include "folder.h"
#include "scrape.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static struct folder folder;
static struct watch watch;
static struct text text;
static struct scrape scrape;

static void set_up(void)
{
        folder_make(&folder);
        setenv("STARLING_SOCKET_DIR", folder.path, 1);
        watch_init(&watch, "test-exporter-page");
}

static void tear_down(void)
{
        scrape_deinit(&scrape);
        text_deinit(&text);
        watch_deinit(&watch);
        folder_remove(&folder);
}

TestSuite(exporter_runtimes, .init = set_up, .fini = tear_down);

/* ---- a runtime, and who asks ---- */

static struct sl_stats *create(uint64_t bytes)
{
        struct sl_stats *stats;
        struct sl_error error = {""};

        cr_assert_eq(sl_stats_create(&(struct sl_stats_options){.name = watch.name,
                                             .directory = folder.path,
                                             .wait_name = "epoll",
                                             .bytes = bytes,
                                             .release = "1.2.3",
                                             .counts = {[SL_STATS_DISPATCHERS] = 1, [SL_STATS_MODELS] = 40}},
                             &stats, &error),
                0, "%s", error.text);
        sl_stats_set_state(stats, SL_RUNTIME_READY);
        return stats;
}

static const char *page_path(void)
{
        static char path[128];

        snprintf(path, sizeof(path), "%s/starling.%s", folder.path, watch.name);
        return path;
}

static struct sl_model_counting add_model(struct sl_stats *stats, const char *name)
{
        struct sl_model_counting counting;

        sl_stats_model_add(stats, name, &counting, NULL);
        return counting;
}

static void ask_for(enum exposition_format format)
{
        scrape_deinit(&scrape);
        text_deinit(&text);
        text_init(&text, 16 << 20);
        cr_assert_eq(watch_refresh(&watch), 0);
        exposition_write(&text, &watch, 1, format);
        cr_assert_not(text.failed);
        scrape_parse(text.bytes, format == EXPOSITION_OPENMETRICS, &scrape);
}

static void ask(void)
{
        ask_for(EXPOSITION_PROMETHEUS);
}

/* Of this runtime; NAME{LABELS}. */
static double value(const char *name, const char *labels)
{
        char whole[256];

        snprintf(whole, sizeof(whole), "%s{runtime=\"%s\"%s%s}", name, watch.name, *labels ? "," : "", labels);
        return scrape_value(&scrape, whole);
}

/* ---- values ---- */

Test(exporter_runtimes, what_models_count_is_what_is_exported)
{
        struct sl_stats *stats = create(0);
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

Test(exporter_runtimes, what_is_said_of_the_runtime_is_exported)
{
        struct sl_stats *stats = create(0);
        struct sl_memory_stats *arenas;

        sl_stats_set_memory(stats, 1 << 20, UINT64_MAX);
        sl_stats_memory_add(stats, "arenas", &arenas);
        sl_counter_set(&arenas->bytes, 4096);
        sl_counter_set(&arenas->most_bytes, 8192);
        sl_counter_add(&sl_stats_dispatcher(stats, 0)->refusals[SL_REFUSAL_QUEUE_FULL], 9);
        sl_counter_set(&sl_stats_dispatcher(stats, 0)->saturated, 1);
        ask();
        cr_expect_eq(value("starling_up", ""), 1);
        cr_expect_eq(value("starling_build_info", "version=\"1.2.3\",wait=\"epoll\",stats_version=\"2\""), 1);
        cr_expect_eq(value("starling_runtime_state", "state=\"ready\""), 1);
        cr_expect_eq(value("starling_runtime_state", "state=\"starting\""), 0);
        cr_expect_gt(value("starling_start_time_seconds", ""), 1.7e9);
        cr_expect_eq(value("starling_memory_promised_bytes", ""), 1 << 20);
        cr_expect(isinf(value("starling_memory_limit_bytes", "")));
        cr_expect_eq(value("starling_memory_bytes", "kind=\"arenas\""), 4096);
        cr_expect_eq(value("starling_memory_most_bytes", "kind=\"arenas\""), 8192);
        cr_expect_eq(value("starling_refusals_total", "dispatcher=\"0\",reason=\"queue_full\""), 9);
        cr_expect_eq(value("starling_dispatcher_saturated", "dispatcher=\"0\""), 1);
        cr_expect_not_null(strstr(text.bytes, "\nstarling_exporter_build_info{version=\""));
        sl_stats_free(stats);
}

static struct sl_worker_stats *add_worker(struct sl_stats *stats, const char *model, int32_t core, uint32_t state)
{
        struct sl_worker_stats shown = {.core = core, .batch_max = 16, .executor = "process", .state = state, .restarts = 2}, *slot;

        snprintf(shown.model, sizeof(shown.model), "%s", model);
        cr_assert_eq(sl_stats_worker_add(stats, &shown, false, &slot), 0);
        return slot;
}

Test(exporter_runtimes, workers_are_exported_each_and_by_model)
{
        struct sl_stats *stats = create(0);
        struct sl_worker_stats *first = add_worker(stats, "lenet", 3, SL_STATS_WORKER_SERVING);
        struct sl_worker_stats *second = add_worker(stats, "lenet", -1, SL_STATS_WORKER_BACKING_OFF);
        struct sl_let_stats shown = {.n_cores = 4, .workers = 2, .name = "worker cores", .cores = "0-3"}, *let;

        sl_counter_add(&first->busy_ns, 250000000);
        sl_counter_set(&first->workspace_bytes, 4096);
        sl_counter_set(&second->workspace_bytes, 4096);
        sl_stats_let_add(stats, &shown, &let);
        sl_counter_add(&let->busy_ns, 1000000000);
        ask();
        cr_expect_eq(
                value("starling_worker_busy_seconds_total", "model=\"lenet\",worker=\"0\",executor=\"process\",core=\"3\""), 0.25);
        cr_expect_eq(value("starling_worker_batch_max", "model=\"lenet\",worker=\"1\",executor=\"process\",core=\"\""), 16);
        cr_expect_eq(value("starling_workers", "model=\"lenet\",state=\"serving\""), 1);
        cr_expect_eq(value("starling_workers", "model=\"lenet\",state=\"backing_off\""), 1);
        cr_expect_eq(value("starling_workers", "model=\"lenet\",state=\"starting\""), 0);
        cr_expect_eq(value("starling_worker_workspace_bytes", "model=\"lenet\""), 8192);
        cr_expect_eq(value("starling_worker_restarts_total", "model=\"lenet\""), 4);
        cr_expect_eq(value("starling_let_busy_seconds_total", "let=\"0\",cores=\"0-3\""), 1);
        cr_expect_eq(value("starling_let_workers", "let=\"0\",cores=\"0-3\""), 2);
        sl_stats_free(stats);
}

Test(exporter_runtimes, models_say_what_they_are_and_what_waits)
{
        struct sl_stats *stats = create(0);
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
        struct sl_stats *stats = create(0);
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
        struct sl_stats *stats = create(0);
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
        struct sl_stats *stats = create(0);
        struct sl_model_counting first = add_model(stats, "\xfe"), second = add_model(stats, "\xff");

        sl_model_count(&first, requests, 1);
        sl_model_count(&second, requests, 2);
        ask();
        cr_expect_eq(value("starling_inference_requests_total", "model=\"\xef\xbf\xbd\""), 3);
        sl_stats_free(stats);
}

Test(exporter_runtimes, models_without_room_are_counted_as_others)
{
        struct sl_stats *stats = create(1 << 20);
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

/* ---- ends and starts ---- */

Test(exporter_runtimes, a_runtime_that_never_was_is_down_and_nothing_else)
{
        ask();
        cr_expect_eq(value("starling_up", ""), 0);
        for (size_t i = 0; i < scrape.n; i++)
                cr_expect(strncmp(scrape.samples[i].name, "starling_up{", 12) == 0 ||
                                  strncmp(scrape.samples[i].name, "starling_exporter_", 18) == 0,
                        "%s", scrape.samples[i].name);
        cr_expect_not_null(strstr(watch.cause.text, watch.name), "%s", watch.cause.text);
}

Test(exporter_runtimes, one_that_ends_keeps_its_last_values)
{
        struct sl_stats *stats = create(0);
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

/* In a process that then is no more: the page lies where it was. */
static void crash_with(uint32_t requests)
{
        pid_t pid = fork();

        if (pid == 0) {
                struct sl_stats *stats;
                struct sl_model_counting counting;

                if (sl_stats_create(
                            &(struct sl_stats_options){
                                    .name = watch.name, .directory = folder.path, .counts = {[SL_STATS_DISPATCHERS] = 1}},
                            &stats, NULL) < 0 ||
                        sl_stats_model_add(stats, "lenet", &counting, NULL) < 0)
                        _exit(1);
                sl_model_count(&counting, requests, requests);
                sl_stats_set_state(stats, SL_RUNTIME_READY);
                _exit(0);
        }

        int status;

        cr_assert(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

Test(exporter_runtimes, one_that_crashed_is_dead_and_the_next_one_takes_its_place)
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
        struct sl_stats *stats = create(0);
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

Test(exporter_runtimes, counters_do_not_go_back_while_models_come_and_go)
{
        struct sl_stats *stats = create(0);
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

/* ---- pages that mean harm ---- */

Test(exporter_runtimes, a_page_that_is_damaged_is_no_runtime)
{
        for (off_t bytes = 0; bytes <= 4096; bytes += 512) {
                crash_with(1);
                cr_assert_eq(truncate(page_path(), bytes), 0);
                ask();
                cr_expect_eq(value("starling_up", ""), 0);
                cr_expect_not_null(strstr(watch.cause.text, watch.name), "%s", watch.cause.text);
                unlink(page_path());
        }
}

#define SOMEBODY 60001u

static void expect_up(double up, const char *why)
{
        ask();
        cr_expect_eq(value("starling_up", ""), up, "%s: %s", why, watch.cause.text);
}

static void skip_unless_root(void)
{
        if (geteuid() == 0)
                return;
        tear_down();
        cr_skip("only root can give a file away");
}

Test(exporter_runtimes, somebody_elses_page_is_believed_of_whom_the_socket_or_its_folder_belongs_to)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
        struct sl_stats *stats;

        skip_unless_root();
        stats = create(0);
        cr_assert_eq(chown(page_path(), SOMEBODY, SOMEBODY), 0);
        expect_up(0, "it is nobody's");
        cr_expect_not_null(strstr(watch.cause.text, "60001"), "%s", watch.cause.text);
        cr_assert_eq(chown(folder.path, SOMEBODY, SOMEBODY), 0);
        cr_assert_eq(chmod(folder.path, 0777), 0);
        expect_up(0, "all may write to the folder");
        cr_assert_eq(chmod(folder.path, 0755), 0);
        snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s.sock", folder.path, watch.name);
        cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
        expect_up(0, "the socket is root's");
        cr_assert_eq(chown(address.sun_path, SOMEBODY, SOMEBODY), 0);
        expect_up(1, "the socket is theirs");
        close(fd);
        sl_stats_free(stats);
}

Test(exporter_runtimes, somebody_elses_page_is_believed_where_the_folder_is_theirs)
{
        struct sl_stats *stats;

        skip_unless_root();
        stats = create(0);
        cr_assert_eq(chown(page_path(), SOMEBODY, SOMEBODY), 0);
        cr_assert_eq(chown(folder.path, SOMEBODY, SOMEBODY), 0);
        expect_up(1, "there is no socket yet");
        sl_stats_free(stats);
}

/* As if control were inside of a change, or had died there. */
static void change_sequence(enum sl_stats_section section, uint32_t index)
{
        int fd = open(page_path(), O_RDWR | O_CLOEXEC);
        struct sl_stats_header header;
        off_t at;
        uint32_t seq;

        cr_assert_eq(pread(fd, &header, sizeof(header), 0), (ssize_t)sizeof(header));
        at = (off_t)(header.sections[section].offset + (uint64_t)index * header.sections[section].stride);
        cr_assert_eq(pread(fd, &seq, sizeof(seq), at), (ssize_t)sizeof(seq));
        seq++;
        cr_assert_eq(pwrite(fd, &seq, sizeof(seq), at), (ssize_t)sizeof(seq));
        close(fd);
}

Test(exporter_runtimes, what_is_just_being_changed_is_as_it_was)
{
        struct sl_stats *stats = create(0);
        struct sl_model_counting lenet = add_model(stats, "lenet");

        sl_model_count(&lenet, requests, 5);
        ask();
        sl_model_count(&lenet, requests, 1);
        change_sequence(SL_STATS_MODELS, 1);
        ask();
        cr_expect_eq(value("starling_inference_requests_total", "model=\"lenet\""), 5);
        change_sequence(SL_STATS_MODELS, 1);
        ask();
        cr_expect_eq(value("starling_inference_requests_total", "model=\"lenet\""), 6);
        sl_stats_free(stats);
}

static int fill_with_noise(const char *path)
{
        FILE *file = fopen(path, "r+");
        struct sl_stats_header header;

        if (!file || fread(&header, sizeof(header), 1, file) != 1)
                return -1;
        srand48(11);
        fseek(file, 4096, SEEK_SET);
        for (int i = 0; i < 1 << 18; i++) {
                uint32_t noise =
                        (uint32_t)mrand48() & (i % 3 ? UINT32_MAX : 0x00000002); /* every third is even: an end of a change */

                fwrite(&noise, sizeof(noise), 1, file);
        }
        return fclose(file);
}

Test(exporter_runtimes, noise_in_the_place_of_slots_is_text_of_the_format)
{
        crash_with(1);
        cr_assert_eq(fill_with_noise(page_path()), 0);
        ask();
        ask();
        cr_expect_eq(value("starling_up", ""), 0);
        ask_for(EXPOSITION_OPENMETRICS);
}
