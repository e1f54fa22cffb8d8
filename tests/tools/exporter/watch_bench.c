/* SPDX-License-Identifier: Apache-2.0 */
#include "watch_bench.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct folder folder;
struct watch watch;
struct text text;
struct scrape scrape;

void watch_bench_init(void)
{
        folder_make(&folder);
        setenv("STARLING_SOCKET_DIR", folder.path, 1);
        watch_init(&watch, "test-exporter-page");
}

void watch_bench_deinit(void)
{
        scrape_deinit(&scrape);
        text_deinit(&text);
        watch_deinit(&watch);
        folder_remove(&folder);
}

struct sl_stats *create_page(uint64_t bytes)
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

const char *page_path(void)
{
        static char path[128];

        snprintf(path, sizeof(path), "%s/starling.%s", folder.path, watch.name);
        return path;
}

struct sl_model_counting add_model(struct sl_stats *stats, const char *name)
{
        struct sl_model_counting counting;

        sl_stats_model_add(stats, name, &counting, NULL);
        return counting;
}

void ask_for(enum exposition_format format)
{
        scrape_deinit(&scrape);
        text_deinit(&text);
        text_init(&text, 16 << 20);
        cr_assert_eq(watch_refresh(&watch), 0);
        exposition_write(&text, &watch, 1, format);
        cr_assert_not(text.failed);
        scrape_parse(text.bytes, format == EXPOSITION_OPENMETRICS, &scrape);
}

void ask(void)
{
        ask_for(EXPOSITION_PROMETHEUS);
}

double value(const char *name, const char *labels)
{
        char whole[256];

        snprintf(whole, sizeof(whole), "%s{runtime=\"%s\"%s%s}", name, watch.name, *labels ? "," : "", labels);
        return scrape_value(&scrape, whole);
}

void crash_with(uint32_t requests)
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
