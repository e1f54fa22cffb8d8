/* SPDX-License-Identifier: Apache-2.0 */
#include "stats_bench.h"

#include "base/error.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char stats_folder[64];

void stats_bench_init(void)
{
        strcpy(stats_folder, "/tmp/starling-stats-XXXXXX");
        cr_assert_not_null(mkdtemp(stats_folder));
}

void stats_bench_deinit(void)
{
        char path[128];

        snprintf(path, sizeof(path), "%s/starling.demo", stats_folder);
        unlink(path);
        cr_expect_eq(rmdir(stats_folder), 0, "nothing is left in %s", stats_folder);
}

void stats_skip(const char *what)
{
        stats_bench_deinit();
        cr_skip("%s", what);
}

const char *stats_path(void)
{
        static char path[128];

        snprintf(path, sizeof(path), "%s/starling.demo", stats_folder);
        return path;
}

struct sl_stats_options stats_options(void)
{
        return (struct sl_stats_options){.name = "demo",
                .directory = stats_folder,
                .wait_name = "epoll",
                .bytes = MIB,
                .counts = {[SL_STATS_DISPATCHERS] = 2,
                        [SL_STATS_MODELS] = 41,
                        [SL_STATS_CLIENTS] = 64,
                        [SL_STATS_WORKERS] = 64,
                        [SL_STATS_QUEUES] = 64}};
}

struct sl_stats *stats_create(void)
{
        struct sl_stats_options o = stats_options();
        struct sl_stats *stats = NULL;
        struct sl_error error = {""};

        cr_assert_eq(sl_stats_create(&o, &stats, &error), 0, "%s", error.text);
        return stats;
}

const char *stats_name(int n)
{
        static char name[16];

        snprintf(name, sizeof(name), "model%d", n);
        return name;
}

struct sl_stats_view *stats_view(void)
{
        struct sl_stats_view *v = NULL;
        struct sl_error error = {""};

        cr_assert_eq(sl_stats_open("demo", stats_folder, &v, &error), 0, "%s", error.text);
        return v;
}

struct sl_histogram stats_histogram(const struct sl_stats_view *view, uint32_t set, enum sl_stage stage)
{
        struct sl_histogram histogram;

        cr_assert_eq(sl_stats_read_histogram(view, set, stage, &histogram), 0);
        return histogram;
}
