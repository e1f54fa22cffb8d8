/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model's workers change while it serves, in number or in the batches that they take: what a reload does where nothing else of
 * its configuration has changed.
 */
#include "digits.h"
#include "honest.h"
#include "stats.h"
#include "world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MODEL     "lenet"
#define SLOTS_MAX 64u

static struct world world;
static struct starling_client *admin;
static const char *options = ""; /* of the model, beside the number of workers */

static void set_workers(const char *workers)
{
        char yaml[768];

        snprintf(yaml, sizeof(yaml), "%s\n%s", workers, options);
        world_add_model_config(&world, MODEL, yaml);
}

static void set_instances(uint32_t instances)
{
        char workers[32];

        snprintf(workers, sizeof(workers), "instances: %u", instances);
        set_workers(workers);
}

/* A copy of the network, as its folder gets a configuration. */
static void set_up(void)
{
        world_init(&world);
        world_remove_model(&world, MODEL);
        world_copy_model(&world, MODEL, MODEL, "instances: 1\n");
}

static void tear_down(void)
{
        starling_close(admin);
        world_stop(&world);
        world_free(&world);
}

TestSuite(resize, .init = set_up, .fini = tear_down, .timeout = 90);

/* Without the executor of the dispatcher itself, so that all is the workers'. */
static void start(const char *limits)
{
        char yaml[256];

        snprintf(yaml, sizeof(yaml), "models: [" MODEL "]\nthreads: {inline_us: 0}\n%s", limits);
        world_configure(&world, yaml);
        world_start(&world);
        admin = world_connect(&world, STARLING_ROLE_ADMIN);
}

struct page {
        uint64_t memory_bytes;
        uint32_t n;
        uint64_t batches[SLOTS_MAX], worker_bytes; /* of each worker of MODEL; of one */
        uint32_t batch_max[SLOTS_MAX];
};

static struct page read_page(void)
{
        struct page page = {0};
        struct sl_stats_header header;
        struct sl_stats_view *view;

        cr_assert_eq(sl_stats_open(world.name, NULL, &view, NULL), 0);
        sl_stats_read_header(view, &header);
        page.memory_bytes = sl_counter_read(&header.memory_bytes);
        for (uint32_t i = 0; i < sl_stats_count(view, SL_STATS_WORKERS); i++) {
                struct sl_worker_stats worker;

                if (sl_stats_read_worker(view, i, &worker) < 0 || strcmp(worker.model, MODEL) != 0)
                        continue;
                cr_assert_lt(page.n, SLOTS_MAX);
                page.worker_bytes = sl_counter_read(&worker.workspace_bytes) + sl_counter_read(&worker.pool_bytes);
                page.batch_max[page.n] = worker.batch_max;
                page.batches[page.n++] = sl_counter_read(&worker.batches);
        }
        sl_stats_close(view);
        return page;
}

static void reload_workers(const char *workers)
{
        struct starling_error error = {""};

        set_workers(workers);
        cr_assert_eq(starling_admin_reload(admin, MODEL, &error), 0, "%s: %s\n%s", workers, error.text, world_log(&world));
}

static void reload(uint32_t instances)
{
        char workers[32];

        snprintf(workers, sizeof(workers), "instances: %u", instances);
        reload_workers(workers);
}

static bool all_compute(const struct page *page)
{
        for (uint32_t i = 0; i < page->n; i++)
                if (!page->batches[i])
                        return false;
        return true;
}

/* Each of the @n workers of MODEL gets work. */
static void expect_workers(uint32_t n)
{
        struct page page = read_page();

        cr_assert_eq(page.n, n, "%s", world_log(&world));
        WORLD_AWAIT((page = read_page(), all_compute(&page)));
        cr_expect(all_compute(&page), "a worker has got nothing to compute");
}

static void expect_not_loaded_again(void)
{
        cr_expect_eq(world_count_log(&world, "event=model-replaced"), 0, "%s", world_log(&world));
        cr_expect_eq(world_count_log(&world, "event=model-ready"), 1, "%s", world_log(&world));
}

Test(resize, workers_join_and_leave_while_the_model_serves_and_no_request_is_lost)
{
        struct honest *honest[2];
        struct page before, more, after;

        start("");
        before = read_page();
        for (int i = 0; i < 2; i++)
                honest[i] = honest_start(&world, MODEL);
        expect_workers(1);
        reload(3);
        more = read_page();
        expect_workers(3);
        reload(2);
        expect_workers(2);
        reload(1);
        expect_workers(1);
        for (int i = 0; i < 2; i++) {
                honest_expect_progress(honest[i], 100);
                honest_stop(honest[i]);
        }
        after = read_page();
        cr_expect_geq(more.memory_bytes, before.memory_bytes + 2 * before.worker_bytes, "what they may take is promised");
        cr_expect_lt(after.memory_bytes, more.memory_bytes - 2 * before.worker_bytes + 1, "and given back");
        expect_not_loaded_again();
}

Test(resize, a_hangup_changes_the_number_of_workers_too)
{
        struct honest *honest;

        start("");
        honest = honest_start(&world, MODEL);
        set_instances(2);
        kill(world.pid, SIGHUP);
        world_expect_log(&world, "event=workers-changed");
        expect_workers(2);
        honest_expect_progress(honest, 1);
        honest_stop(honest);
        expect_not_loaded_again();
}

/* As often as it goes, while requests are in flight. */
Test(resize, at_any_moment_loses_nothing)
{
        struct honest *honest[2];
        uint32_t seed = 11, rounds = world_rounds("SL_RESIZE_ROUNDS", 60);

        start("");
        for (int i = 0; i < 2; i++)
                honest[i] = honest_start(&world, MODEL);
        for (uint32_t i = 0; i < rounds; i++) {
                reload(1 + (read_page().n + digits_random(&seed, 3)) % 4);
                honest_expect_progress(honest[i % 2], 1);
        }
        for (int i = 0; i < 2; i++)
                honest_stop(honest[i]);
        expect_not_loaded_again();
}

static void expect_sizes(const uint32_t *sizes, uint32_t n)
{
        struct page page = read_page();
        bool found[SLOTS_MAX] = {false};

        cr_assert_eq(page.n, n, "%u workers, not %u", page.n, n);
        for (uint32_t i = 0; i < n; i++) {
                uint32_t k = 0;

                while (k < n && (found[k] || page.batch_max[k] != sizes[i]))
                        k++;
                cr_assert_lt(k, n, "no worker of batch %u", sizes[i]);
                found[k] = true;
        }
}

#define EXPECT_SIZES(...) expect_sizes((const uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

/* Those that both sets have stay, the new ones are ready before the others leave. */
Test(resize, batch_sizes_change_while_the_model_serves_and_no_request_is_lost)
{
        struct honest *honest[2];

        set_workers("batch_sizes: [1, 2, 4]");
        start("");
        for (int i = 0; i < 2; i++)
                honest[i] = honest_start(&world, MODEL);
        EXPECT_SIZES(4, 2, 1);
        reload_workers("batch_sizes: [16, 1]");
        EXPECT_SIZES(16, 1);
        reload_workers("batch_sizes: [8]");
        EXPECT_SIZES(8);
        reload_workers("batch_sizes: [1, 1, 2, 4, 8, 16]");
        EXPECT_SIZES(16, 8, 4, 2, 1, 1);
        reload_workers("instances: 2");
        EXPECT_SIZES(32, 32);
        for (int i = 0; i < 2; i++) {
                honest_expect_progress(honest[i], 100);
                honest_stop(honest[i]);
        }
        expect_not_loaded_again();
}

/* The old ones stay, as if nobody had asked. */
Test(resize, batch_sizes_that_want_too_much_are_refused_and_the_old_ones_stay)
{
        struct starling_error error = {""};
        struct honest *honest;
        char many[512];
        size_t used = 0;
        uint64_t before;

        options = "batch_max: 1024\nsegment_samples: 1024\n";
        set_workers("batch_sizes: [2, 1]");
        start("limits: {memory_max: 384 MiB}\n");
        honest = honest_start(&world, MODEL);
        before = read_page().memory_bytes;
        for (size_t i = 0; i < 62; i++)
                used += (size_t)snprintf(many + used, sizeof(many) - used, "%s1024", i ? "," : "batch_sizes: [");
        snprintf(many + used, sizeof(many) - used, "]");
        set_workers(many);
        cr_expect_eq(starling_admin_reload(admin, MODEL, &error), -ENOMEM, "%s", error.text);
        cr_expect_not_null(strstr(error.text, "62 workers of batch 1024 and less, "), "%s", error.text);
        EXPECT_SIZES(2, 1);
        cr_expect_eq(read_page().memory_bytes, before);
        honest_expect_progress(honest, 50);
        honest_stop(honest);
        expect_not_loaded_again();
}

Test(resize, is_refused_with_the_numbers_where_memory_is_short_and_changes_nothing_then)
{
        struct starling_error error = {""};
        struct honest *honest;
        struct page before;

        options = "batch_max: 1024\nsegment_samples: 1024\n";
        set_instances(1);
        start("limits: {memory_max: 384 MiB}\n");
        honest = honest_start(&world, MODEL);
        before = read_page();
        cr_assert_gt(before.memory_bytes + 63 * before.worker_bytes, 384u << 20, "%llu and %llu",
                (unsigned long long)before.memory_bytes, (unsigned long long)before.worker_bytes);
        set_instances(64);
        cr_expect_eq(starling_admin_reload(admin, MODEL, &error), -ENOMEM, "%s", error.text);
        cr_expect_not_null(strstr(error.text, "63 workers of batch "), "%s", error.text);
        cr_expect_not_null(strstr(error.text, "of memory_max"), "%s", error.text);
        cr_expect_eq(read_page().memory_bytes, before.memory_bytes);
        expect_workers(1);
        honest_expect_progress(honest, 50);
        reload(2);
        expect_workers(2);
        honest_expect_progress(honest, 1);
        honest_stop(honest);
        expect_not_loaded_again();
}
