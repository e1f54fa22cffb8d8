/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models that share workers (`fuse: auto`), as their users see them: each answers for itself, whoever comes, goes, is changed or
 * sends what cannot be computed.
 */
#include "honest.h"
#include "stats.h"
#include "world.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct world world;
static struct starling_client *admin;

#define YAML "fuse: auto\n"

static void set_up(void)
{
        world_init(&world);
        world_keep(&world, "mlp");
        world_configure(&world, "threads: {inline_us: 0}\n");
}

static void tear_down(void)
{
        starling_close(admin);
        world_stop(&world);
        world_free(&world);
}

TestSuite(fuse, .init = set_up, .fini = tear_down, .timeout = 60);

static void start(void)
{
        world_start(&world);
        admin = world_connect(&world, STARLING_ROLE_ADMIN);
}

static void load(const char *name)
{
        struct starling_error error = {""};

        cr_assert_eq(starling_admin_load(admin, name, &error), 0, "%s", error.text);
}

/* What the workers of a model are, as the stats page has it; "": it has none. */
static const char *workers_of(const char *model)
{
        static char text[sizeof(((struct sl_worker_stats *)NULL)->executor)];
        struct sl_stats_view *view;

        text[0] = 0;
        cr_assert_eq(sl_stats_open(world.name, NULL, &view, NULL), 0);
        for (uint32_t i = 0; i < sl_stats_count(view, SL_STATS_WORKERS); i++) {
                struct sl_worker_stats worker;

                if (sl_stats_read_worker(view, i, &worker) == 0 && strcmp(worker.model, model) == 0)
                        snprintf(text, sizeof(text), "%s", worker.executor);
        }
        sl_stats_close(view);
        return text;
}

/* And its workers are gone. */
static void unload(const char *name)
{
        struct starling_error error = {""};

        cr_assert_eq(starling_admin_unload(admin, name, &error), 0, "%s", error.text);
        WORLD_AWAIT(!workers_of(name)[0]);
        cr_assert_str_eq(workers_of(name), "");
}

/* Promised to one use of memory. */
static uint64_t bytes_of(const char *use)
{
        struct sl_memory_stats memory = {.bytes = 0};
        struct sl_stats_view *view;
        uint64_t bytes = 0;

        cr_assert_eq(sl_stats_open(world.name, NULL, &view, NULL), 0);
        for (uint32_t i = 0; i < sl_stats_count(view, SL_STATS_MEMORY); i++)
                if (sl_stats_read_memory(view, i, &memory) == 0 && strcmp(memory.name, use) == 0)
                        bytes = memory.bytes;
        sl_stats_close(view);
        return bytes;
}

static uint64_t bytes_of_workers(void)
{
        return bytes_of("workers");
}

Test(fuse, copies_of_a_network_share_workers_and_each_answers_for_itself)
{
        static const char *const names[] = {"a", "b", "c"};
        struct honest *honest[3];

        for (int i = 0; i < 3; i++)
                world_copy_model(&world, i == 2 ? "lenet" : "resnet", names[i], YAML);
        start();
        for (int i = 0; i < 3; i++) {
                cr_expect_str_eq(workers_of(names[i]), "lane");
                honest[i] = honest_start_copy(&world, names[i], i == 2 ? "lenet" : "resnet");
        }
        cr_expect_str_eq(workers_of("mlp"), "thread", "it did not ask for it");
        for (int i = 0; i < 3; i++)
                honest_expect_progress(honest[i], 50);
        for (int i = 0; i < 3; i++)
                honest_stop(honest[i]);
}

Test(fuse, those_that_name_each_other_share_workers_and_no_others)
{
        static const struct {
                const char *name, *yaml;
        } copies[] = {{"a", "fuse: [b]\n"}, {"b", "fuse: [a]\n"}, {"c", YAML}, {"d", YAML}, {"e", "fuse: [a, b]\n"}};
        struct honest *honest[5];

        world_configure(&world, "log_level: debug\n");
        start();
        for (int i = 0; i < 5; i++) {
                world_copy_model(&world, "resnet", copies[i].name, copies[i].yaml);
                if (i > 0 && i != 1)
                        load(copies[i].name);
                if (i == 1) {
                        load("a");
                        load("b");
                }
        }
        world_expect_log(&world, "event=bundle-joined model=b cause=\"it shares workers with 1 models");
        world_expect_log(&world, "event=bundle-joined model=d cause=\"it shares workers with 1 models");
        cr_expect_eq(world_count_log(&world, "event=bundle-joined"), 2, "%s", world_log(&world));
        for (int i = 0; i < 5; i++) {
                cr_expect_str_eq(workers_of(copies[i].name), "lane");
                honest[i] = honest_start_copy(&world, copies[i].name, "resnet");
        }
        for (int i = 0; i < 5; i++)
                honest_expect_progress(honest[i], 20);
        for (int i = 0; i < 5; i++)
                honest_stop(honest[i]);
}

Test(fuse, who_names_a_model_that_is_not_there_is_refused_by_one_line)
{
        struct starling_error error = {""};

        start();
        world_copy_model(&world, "resnet", "a", "fuse: [nobody]\n");
        cr_expect_lt(starling_admin_load(admin, "a", &error), 0);
        cr_expect_not_null(
                strstr(error.text, "fuse: \"nobody\" is neither never nor auto nor a model that is served"), "%s", error.text);
}

/* What eight copies of a network are promised, loaded one after the other. */
static uint64_t bytes_of_copies(const char *prefix, const char *yaml)
{
        uint64_t before = bytes_of_workers();
        char name[16];

        for (int i = 0; i < 8; i++) {
                snprintf(name, sizeof(name), "%s%d", prefix, i);
                world_copy_model(&world, "mobilenet", name, yaml);
                load(name);
        }
        return bytes_of_workers() - before;
}

Test(fuse, copies_that_share_workers_share_their_memory)
{
        uint64_t fused, separate;

        start();
        fused = bytes_of_copies("fused", YAML);
        separate = bytes_of_copies("separate", "fuse: never\n");
        cr_expect_lt(
                2 * fused, separate, "fused %llu bytes, separate %llu", (unsigned long long)fused, (unsigned long long)separate);
}

/* SL_FUSE_ROUNDS=1000 for the long run. */
Test(fuse, one_comes_and_goes_beside_others_and_nothing_is_lost_or_kept)
{
        uint32_t rounds = world_rounds("SL_FUSE_ROUNDS", 60);
        struct honest *honest[2];
        struct footprint before;
        uint64_t bytes;

        world_copy_model(&world, "lenet", "stays", YAML);
        world_copy_model(&world, "lenet", "stays-too", YAML);
        world_copy_model(&world, "lenet", "goes", YAML);
        world_configure(&world, "limits: {fuse_bytes: 0}\n"); /* what is merged, and when, is not counted */
        start();
        unload("goes");
        honest[0] = honest_start_copy(&world, "stays", "lenet");
        honest[1] = honest_start_copy(&world, "stays-too", "lenet");
        honest_expect_progress(honest[0], 1);
        before = world_footprint(&world);
        bytes = bytes_of_workers();
        for (uint32_t round = 0; round < rounds; round++) {
                load("goes");
                honest_expect_progress(honest[round % 2], 1);
                unload("goes");
        }
        honest_stop(honest[0]);
        honest_stop(honest[1]);
        world_expect_footprint(&world, &before);
        WORLD_AWAIT(bytes_of_workers() == bytes);
        cr_expect_eq(bytes_of_workers(), bytes);
}

Test(fuse, workers_that_are_added_and_taken_by_a_reload_are_lanes_too)
{
        struct starling_error error = {""};
        struct honest *honest;

        world_copy_model(&world, "lenet", "a", YAML);
        world_copy_model(&world, "lenet", "b", YAML);
        start();
        honest = honest_start_copy(&world, "a", "lenet");
        for (uint32_t round = 0; round < 4; round++) {
                char yaml[64];

                snprintf(yaml, sizeof(yaml), YAML "instances: %u\n", 1 + (round + 1) % 3);
                world_add_model_config(&world, "a", yaml);
                cr_assert_eq(starling_admin_reload(admin, "a", &error), 0, "%s", error.text);
                honest_expect_progress(honest, 10);
        }
        honest_stop(honest);
}

Test(fuse, what_is_wrong_with_the_key_is_said)
{
        struct starling_error error = {""};

        world_copy_model(&world, "lenet", "a", "fuse: sometimes\n");
        start();
        cr_expect_lt(starling_admin_reload(admin, "a", &error), 0);
        cr_expect_not_null(strstr(error.text, "fuse: \"sometimes\""), "%s", error.text);
        cr_expect_not_null(strstr(error.text, "auto"), "%s", error.text);
}
