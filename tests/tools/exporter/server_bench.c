/* SPDX-License-Identifier: Apache-2.0 */
#include "server_bench.h"

#include "scrape.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct folder folder;
struct exporter_process exporter;
struct sl_stats *stats;
char name[32];

void server_bench_init(void)
{
        folder_make(&folder);
        setenv("STARLING_SOCKET_DIR", folder.path, 1);
        snprintf(name, sizeof(name), "test-exporter-%d", getpid());
}

void server_bench_deinit(void)
{
        if (exporter.pid)
                cr_expect_eq(exporter_end(&exporter, SIGTERM), 0, "%s", exporter_log(&exporter));
        sl_stats_free(stats);
        folder_remove(&folder);
}

void start(void)
{
        exporter = exporter_start(folder.path, (const char *[]){name, NULL});
}

void create_page(uint32_t models)
{
        struct sl_model_counting counting;
        char model[32];

        cr_assert_eq(
                sl_stats_create(
                        &(struct sl_stats_options){
                                .name = name, .directory = folder.path, .counts = {[SL_STATS_DISPATCHERS] = 1}, .bytes = 64 << 20},
                        &stats, NULL),
                0);
        sl_stats_set_state(stats, SL_RUNTIME_READY);
        for (uint32_t i = 0; i < models; i++) {
                snprintf(model, sizeof(model), "model-%u", i);
                sl_stats_model_add(stats, model, &counting, NULL);
                sl_model_count(&counting, requests, i);
        }
}

void expect_answer(const char *request, const char *begin, const char *part)
{
        char *answer = exporter_ask(&exporter, request);

        cr_expect_eq(strncmp(answer, begin, strlen(begin)), 0, "%s: %s", request, answer);
        cr_expect_not_null(strstr(answer, part), "no \"%s\" in the answer to %s: %s", part, request, answer);
        free(answer);
}

void expect_scrape(double up)
{
        char *body = exporter_scrape(&exporter), sample[128];
        struct scrape scrape;

        scrape_parse(body, false, &scrape);
        snprintf(sample, sizeof(sample), "starling_up{runtime=\"%s\"}", name);
        cr_expect_eq(scrape_value(&scrape, sample), up);
        scrape_deinit(&scrape);
        free(body);
}
