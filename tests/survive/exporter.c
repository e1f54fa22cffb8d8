/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scrapes of a runtime that is killed at any moment, under load, and started again: each is whole, and no counter falls while a
 * runtime lives.
 */
#include "exporter_process.h"
#include "scrape.h"
#include "world.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct world world;
static struct exporter_process exporter;
static struct scrape before;

static void set_up(void)
{
        world_init(&world);
        setenv("STARLING_SOCKET_DIR", world.folder, 1);
}

static void tear_down(void)
{
        scrape_deinit(&before);
        world_free(&world);
}

TestSuite(exporter, .init = set_up, .fini = tear_down, .timeout = 60);

static double value(const struct scrape *scrape, const char *name, const char *labels)
{
        char whole[256];

        snprintf(whole, sizeof(whole), "%s{runtime=\"%s\"%s}", name, world.name, labels);
        return scrape_value(scrape, whole);
}

static void expect_no_fall(const struct scrape *now)
{
        for (size_t i = 0; i < before.n; i++) {
                const struct scrape_sample *was = &before.samples[i], *is = scrape_find(now, was->name);

                cr_assert_not_null(is, "%s is no longer there", was->name);
                if (strcmp(was->type, "gauge") != 0)
                        cr_assert_geq(is->value, was->value, "%s", was->name);
        }
}

/* Return: whether the runtime lives. @fresh: it is another one than before. */
static bool scrape(bool fresh)
{
        char *body = exporter_scrape(&exporter);
        struct scrape now;
        bool up;

        scrape_parse(body, false, &now);
        free(body);
        if (!fresh && before.n)
                expect_no_fall(&now);
        up = value(&now, "starling_up", "") == 1;
        scrape_deinit(&before);
        before = now;
        return up;
}

/* Kills the runtime after some time. */
static pid_t start_killer(uint32_t us)
{
        pid_t pid = fork();

        if (pid == 0) {
                usleep(us);
                _exit(kill(world.pid, SIGKILL) < 0);
        }
        return pid;
}

static pid_t start_client(uint32_t seed)
{
        char text[16];

        snprintf(text, sizeof(text), "%u", seed);
        return world_spawn((const char *const[]){DOOMED_CLIENT, world.socket_path, text, NULL});
}

/* One life of a runtime: it is scraped @least times, then until it has been killed. Return: scrapes of it while it lived. */
static uint32_t live_and_die(uint32_t round, uint32_t least, uint32_t us)
{
        pid_t client, killer;
        uint32_t n = 0;

        world_start(&world);
        client = start_client(round);
        cr_assert(scrape(true), "the runtime that has started is not found: %s", exporter_log(&exporter));
        for (; n < least; n++)
                cr_assert(scrape(false), "%s", exporter_log(&exporter));
        killer = start_killer(us);
        while (scrape(false))
                n++;
        cr_expect_eq(value(&before, "starling_runtime_state", ",state=\"dead\""), 1);
        scrape(false);
        waitpid(killer, NULL, 0);
        cr_expect(WIFSIGNALED(world_wait(&world)));
        kill(client, SIGKILL);
        waitpid(client, NULL, 0);
        return n;
}

Test(exporter, a_runtime_that_is_killed_while_it_is_scraped_leaves_whole_scrapes)
{
        uint32_t rounds = world_rounds("STARLING_KILL_SCRAPED_ROUNDS", 40), round, scrapes = 0;
        uint64_t begun_ns = starling_clock_ns();

        world_configure(&world, "models: [lenet, digits, resnet, densenet, mobilenet, mlp]\n");
        exporter = exporter_start(world.folder, (const char *[]){world.name, NULL});
        cr_expect_not(scrape(true));
        srand48(5);
        for (round = 0; round < rounds && world_has_time("STARLING_KILL_SCRAPED_ROUNDS", round, begun_ns); round++)
                scrapes += live_and_die(round, round ? round % 3 : 1, (uint32_t)(lrand48() % 200000));
        cr_expect_gt(scrapes, 0);
        cr_expect_eq(exporter_end(&exporter, SIGTERM), 0, "%s", exporter_log(&exporter));
        cr_log_info("%u runtimes, %u scrapes of them while they lived", round, scrapes);
}

#ifdef STARLING_FAKE_GPU

/* The let of the one worker of @model; UINT32_MAX: none is told. */
static uint32_t let_of(const char *model)
{
        const char *family = "starling_worker_batch_max{";
        char wanted[64];
        uint32_t let = UINT32_MAX;

        snprintf(wanted, sizeof(wanted), "model=\"%s\"", model);
        for (size_t i = 0; i < before.n; i++) {
                const char *name = before.samples[i].name, *at = strstr(name, ",let=\"");

                if (strncmp(name, family, strlen(family)) == 0 && strstr(name, wanted) && at)
                        sscanf(at, ",let=\"%u\"", &let);
        }
        return let;
}

/* It has no core, and its let says what it is. */
Test(exporter, a_worker_on_a_gpu_leads_to_the_gpu)
{
        char labels[96];

        world_configure(&world, "models: [on-gpu]\n");
        world_copy_model(&world, "lenet", "on-gpu", "device: gpu:0\n");
        snprintf(world.program, sizeof(world.program), "%s", STARLING_FAKE_GPU);
        setenv("LD_LIBRARY_PATH", FAKE_CUDA, 1);
        world_start(&world);
        unsetenv("LD_LIBRARY_PATH");
        exporter = exporter_start(world.folder, (const char *[]){world.name, NULL});
        cr_assert(scrape(true), "%s", exporter_log(&exporter));
        snprintf(labels, sizeof(labels), ",let=\"%u\",cores=\"\",name=\"gpu:0\"", let_of("on-gpu"));
        cr_expect_eq(value(&before, "starling_let_workers", labels), 1);
        cr_expect_eq(exporter_end(&exporter, SIGTERM), 0, "%s", exporter_log(&exporter));
        world_stop(&world);
}

#endif
