/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers of several models are where an allocation has them, from the start and while they serve.
 */
#include "digits.h"
#include "honest.h"
#include "stats.h"
#include "world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static struct world world;
static struct starling_client *admin;
static char file[128]; /* of an allocation */

#define PLACES_MAX 128u

static void set_up(void)
{
        world_init(&world);
        snprintf(file, sizeof(file), "%s/allocation.yaml", world.folder);
}

static void tear_down(void)
{
        starling_close(admin);
        world_stop(&world);
        world_free(&world);
}

TestSuite(allocation, .init = set_up, .fini = tear_down, .timeout = 90);

static void write_file(const char *text)
{
        FILE *stream = fopen(file, "we");

        cr_assert_not_null(stream);
        fputs(text, stream);
        fclose(stream);
}

/* Two cores for workers, whatever the machine has. */
static void start(const char *more)
{
        char yaml[512];

        snprintf(yaml, sizeof(yaml), "models: [lenet, mlp, digits, resnet, densenet, mobilenet]\n%s%s",
                strstr(more, "threads:") ? "" : "threads: {inline_us: 0}\n", more);
        world_configure(&world, yaml);
        world_start(&world);
        admin = world_connect(&world, STARLING_ROLE_ADMIN);
}

struct place {
        char text[96];
        uint32_t batch;
};

static int compare_places(const void *a, const void *b)
{
        const struct place *x = a, *y = b;

        return x->batch != y->batch ? (x->batch < y->batch ? 1 : -1) : strcmp(x->text, y->text);
}

static uint32_t places_of(const char *model, struct place *places)
{
        struct sl_stats_view *view;
        uint32_t n = 0;

        cr_assert_eq(sl_stats_open(world.name, NULL, &view, NULL), 0);
        for (uint32_t i = 0; i < sl_stats_count(view, SL_STATS_WORKERS); i++) {
                struct sl_worker_stats worker;
                struct sl_let_stats let;

                if (sl_stats_read_worker(view, i, &worker) < 0 || strcmp(worker.model, model) != 0)
                        continue;
                cr_assert_lt(n, PLACES_MAX);
                cr_assert_eq(sl_stats_read_let(view, worker.let, &let), 0);
                places[n].batch = worker.batch_max;
                snprintf(places[n++].text, sizeof(places->text), "%u@%s", worker.batch_max,
                        strcmp(let.name, "worker cores") == 0 ? "all" : let.cores);
        }
        sl_stats_close(view);
        qsort(places, n, sizeof(*places), compare_places);
        return n;
}

/* "4@0 1@all": batch and cores of each worker of @model, the largest batch first. */
static const char *workers_of(const char *model)
{
        static char text[PLACES_MAX * sizeof(struct place)];
        struct place places[PLACES_MAX];
        uint32_t n = places_of(model, places);
        size_t used = 0;

        text[0] = 0;
        for (uint32_t i = 0; i < n; i++)
                used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i ? " " : "", places[i].text);
        return text;
}

static int apply(const struct starling_allotment *allotments, uint32_t n, struct starling_error *error)
{
        return starling_admin_apply(admin, allotments, n, error);
}

#define APPLY(error, ...)                                                                                                          \
        apply((const struct starling_allotment[]){__VA_ARGS__},                                                                    \
                sizeof((const struct starling_allotment[]){__VA_ARGS__}) / sizeof(struct starling_allotment), error)

static int run_apply(const char *argument)
{
        const char *argv[] = {world.program, "apply", "--name", world.socket_path, argument, NULL};
        int status;

        cr_assert_gt(waitpid(world_spawn(argv), &status, 0), 0);
        return status;
}

Test(allocation, puts_workers_in_their_places_from_the_start)
{
        write_file("models: [lenet, mlp]\nrows:\n  - {device: 'cpu:0', batches: [8, 1+4]}\n  - {device: cpu, batches: [0, 2]}\n");
        world.arguments[0] = "--allocation";
        world.arguments[1] = file;
        start("");
        cr_expect_str_eq(workers_of("lenet"), "8@0");
        cr_expect_str_eq(workers_of("mlp"), "4@0 2@all 1@0");
        cr_expect_null(strchr(workers_of("resnet"), ' '), "as its own configuration says: one, not %s", workers_of("resnet"));
        for (int i = 0; i < 2; i++) {
                struct honest *honest = honest_start(&world, i ? "mlp" : "lenet");

                honest_expect_progress(honest, 20);
                honest_stop(honest);
        }
}

/* The workers that copies of a network share need not all have a lane of each copy. */
Test(allocation, answers_copies_that_share_workers_where_each_of_them_is)
{
        static const char *const names[] = {"a", "b"};

        write_file("models: [a, b]\nrows:\n  - {device: 'cpu:0', batches: [8, 0]}\n  - {device: cpu, batches: [0, 8]}\n");
        world.arguments[0] = "--allocation";
        world.arguments[1] = file;
        for (int i = 0; i < 2; i++)
                world_copy_model(&world, "mlp", names[i], "fuse: auto\n");
        world_configure(&world, "models: [a, b]\nthreads: {inline_us: 0}\n");
        world_start(&world);
        cr_expect_str_eq(workers_of("a"), "8@0");
        cr_expect_str_eq(workers_of("b"), "8@all");
        for (int i = 0; i < 2; i++) {
                struct honest *honest = honest_start_copy(&world, names[i], "mlp");

                honest_expect_progress(honest, 20);
                honest_stop(honest);
        }
}

Test(allocation, changes_while_models_serve_and_no_request_is_lost)
{
        struct starling_error error = {""};
        struct honest *honest[3];

        start("");
        for (int i = 0; i < 3; i++)
                honest[i] = honest_start(&world, (const char *const[]){"lenet", "mlp", "digits"}[i]);
        for (uint32_t round = 0; round < world_rounds("SL_ALLOCATION_ROUNDS", 20); round++) {
                cr_assert_eq(APPLY(&error, {"lenet", "cpu:0", 8}, {"mlp", "cpu", 1}, {"mlp", "cpu:0", 16}), 0, "%s", error.text);
                cr_assert_str_eq(workers_of("lenet"), "8@0");
                cr_assert_str_eq(workers_of("mlp"), "16@0 1@all");
                cr_assert_eq(APPLY(&error, {"lenet", "cpu:0", 8}, {"lenet", "cpu", 2}, {"mlp", "cpu", 1}), 0, "%s", error.text);
                cr_assert_str_eq(workers_of("lenet"), "8@0 2@all", "who is in both stays");
                cr_assert_str_eq(workers_of("mlp"), "1@all");
                honest_expect_progress(honest[round % 3], 1);
        }
        for (int i = 0; i < 3; i++) {
                honest_expect_progress(honest[i], 1);
                honest_stop(honest[i]);
        }
        cr_expect_eq(world_count_log(&world, "event=model-replaced"), 0);
        cr_expect_geq(world_count_log(&world, "event=allocation-applied"), 2);
}

/* As the command puts it, through a hangup signal, until the configuration is asked for. */
Test(allocation, holds_until_the_configuration_is_asked_for)
{
        start("");
        write_file("models: [lenet]\nrows: [{device: 'cpu:0', batches: [4]}]\n");
        cr_expect_eq(run_apply(file), 0);
        cr_expect_str_eq(workers_of("lenet"), "4@0");
        kill(world.pid, SIGHUP);
        world_expect_log(&world, "event=reload");
        cr_expect_eq(starling_admin_reload(admin, "mlp", NULL), 0, "after the hangup");
        cr_expect_str_eq(workers_of("lenet"), "4@0");
        cr_expect_eq(starling_admin_unload(admin, "digits", NULL), 0);
        cr_expect_eq(starling_admin_reload(admin, "lenet", NULL), 0);
        WORLD_AWAIT(!strchr(workers_of("lenet"), ' ')); /* those that were replaced leave */
        cr_expect_str_eq(workers_of("lenet"), "4@0", "loaded again it has them still");
        cr_expect_eq(run_apply("--configured"), 0);
        world_expect_log(&world, "event=workers-changed");
        cr_expect_null(strstr(workers_of("lenet"), "4@"), "%s", workers_of("lenet"));
}

/* Another model's allocation takes nothing from it. */
Test(allocation, of_one_model_holds_when_another_has_one)
{
        struct starling_error error = {""};

        start("");
        cr_assert_eq(APPLY(&error, {"lenet", "cpu:0", 4}), 0, "%s", error.text);
        cr_assert_eq(APPLY(&error, {"mlp", "cpu:0", 2}), 0, "%s", error.text);
        kill(world.pid, SIGHUP);
        world_expect_log(&world, "event=reload");
        cr_expect_eq(starling_admin_reload(admin, "resnet", NULL), 0, "after the hangup");
        cr_expect_str_eq(workers_of("lenet"), "4@0");
        cr_expect_str_eq(workers_of("mlp"), "2@0");
        cr_assert_eq(apply(NULL, 0, &error), 0, "%s", error.text);
        cr_expect_null(
                strstr(workers_of("lenet"), "4@0"), "the configuration's are there when it has answered: %s", workers_of("lenet"));
        cr_expect_null(strstr(workers_of("mlp"), "2@0"), "%s", workers_of("mlp"));
}

/* Those that are there until the new ones come count as well: whoever asks hears that, also of the configuration. */
Test(allocation, of_more_workers_than_there_may_be_is_told_and_left_by_way_of_fewer)
{
        struct starling_allotment many[64];
        struct starling_error error = {""};

        start("");
        for (int i = 0; i < 64; i++)
                many[i] = (struct starling_allotment){"lenet", "cpu:0", 1};
        cr_assert_eq(apply(many, 60, &error), 0, "%s", error.text);
        for (int i = 0; i < 64; i++)
                many[i].batch = 2;
        cr_expect_eq(apply(many, 20, &error), -E2BIG, "%s", error.text);
        cr_expect_not_null(strstr(error.text, "20 workers more, beside 60 that are there until those come: a model has at most 64"),
                "%s", error.text);
        cr_assert_eq(APPLY(&error, {"mlp", "cpu:0", 2}), 0, "%s", error.text);
        for (int i = 0; i < 64; i++)
                many[i].batch = 1;
        cr_assert_eq(apply(many, 64, &error), 0, "%s", error.text);
        cr_expect_eq(apply(NULL, 0, &error), -E2BIG, "%s", error.text);
        cr_expect_not_null(strstr(error.text, "beside 64 that are there"), "%s", error.text);
        cr_assert_eq(APPLY(&error, {"lenet", "cpu:0", 1}), 0, "%s", error.text);
        cr_assert_eq(apply(NULL, 0, &error), 0, "%s", error.text);
        cr_expect_null(strstr(workers_of("lenet"), "1@0"), "%s", workers_of("lenet"));
}

/* Its configuration puts it on another kind of device: that it cannot have it is one line, and nobody else waits for it. */
Test(allocation, of_a_model_whose_device_changes_counts_no_more)
{
        struct starling_error error = {""};

        world_remove_model(&world, "mlp");
        world_copy_model(&world, "lenet", "mlp", "instances: 2\n"); /* a folder of its own */
        start("");
        cr_assert_eq(APPLY(&error, {"mlp", "cpu:0", 4}), 0, "%s", error.text);
        world_add_model_config(&world, "mlp", "device: gpu:15\n");
        cr_expect_neq(starling_admin_reload(admin, "mlp", &error), 0);
        cr_expect_neq(error.text[0], 0);
        cr_expect_eq(starling_admin_reload(admin, "lenet", &error), 0, "%s", error.text);
        world_add_model_config(&world, "mlp", "instances: 1\n");
        cr_expect_eq(starling_admin_reload(admin, "mlp", &error), 0, "%s", error.text);
        WORLD_AWAIT(!strchr(workers_of("mlp"), ' ')); /* those that were replaced leave */
        cr_expect_str_eq(workers_of("mlp"), "4@0");
}

/* What a start refuses a hangup refuses as well. */
Test(allocation, of_a_file_with_a_size_that_there_is_none_changes_nothing_at_a_hangup)
{
        char yaml[256];

        write_file("models: [lenet]\nrows: [{device: 'cpu:0', batches: [4]}]\n");
        snprintf(yaml, sizeof(yaml), "allocation: %s\n", file);
        start(yaml);
        cr_expect_str_eq(workers_of("lenet"), "4@0");
        write_file("models: [lenet]\nrows: [{device: 'cpu:0', batches: [3]}]\n");
        kill(world.pid, SIGHUP);
        world_expect_log(
                &world, "event=workers-not-changed model=lenet version=1 cause=\"a worker of batch 3: its plan has powers of two");
        cr_expect_str_eq(workers_of("lenet"), "4@0");
}

/* One line each, and everything stays. */
Test(allocation, that_cannot_be_is_refused_and_changes_nothing)
{
        static const struct {
                struct starling_allotment allotments[2];
                uint32_t n;
                int result;
                const char *text;
        } cases[] = {
                {{{"lenet", "cpu:0", 2}, {"nobody", "cpu:0", 2}}, 2, -EINVAL, "no model \"nobody\" is loaded"},
                {{{"lenet", "cpu:0", 2}, {"digits", "cpu:0", 2}}, 2, -EINVAL, "\"digits\" is an ensemble"},
                {{{"lenet", "cpu:0", 2}, {"mlp", "cpu:1023", 2}}, 2, -EINVAL, "core 1023 is not among"},
                {{{"lenet", "cpu:0", 2}, {"mlp", "gpu:0", 2}}, 2, -EINVAL, "a worker on gpu:0: its device is cpu"},
                {{{"lenet", "cpu:0", 2}, {"mlp", "cpu:0", 3}}, 2, -EINVAL,
                        "a worker of batch 3: its plan has powers of two up to batch_max, here 32"},
                {{{"lenet", "cpu:0", 2}, {"mlp", "cpu:0", 64}}, 2, -EINVAL, "up to batch_max, here 32"},
                {{{"lenet", "cpu:0", 2}, {"mlp", "cpu:0", 0}}, 2, -EINVAL, "a worker of batch 0"},
                {{{"lenet", "cpu:0", 2}, {"", "cpu:0", 1}}, 2, -EINVAL, "a name has 1 to"},
        };
        struct starling_allotment many[65];
        struct starling_error error = {""};
        struct honest *honest;
        char before[128];

        start("");
        snprintf(before, sizeof(before), "%s", workers_of("lenet"));
        honest = honest_start(&world, "lenet");
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                cr_expect_eq(apply(cases[i].allotments, cases[i].n, &error), cases[i].result, "%zu: %s", i, error.text);
                cr_expect_not_null(strstr(error.text, cases[i].text), "%zu: \"%s\" has no \"%s\"", i, error.text, cases[i].text);
                cr_expect_str_eq(workers_of("lenet"), before);
        }
        for (int i = 0; i < 65; i++)
                many[i] = (struct starling_allotment){"lenet", "cpu:0", 1};
        cr_expect_eq(apply(many, 65, &error), -E2BIG, "%s", error.text);
        cr_expect_str_eq(workers_of("lenet"), before);
        honest_expect_progress(honest, 1);
        cr_expect_eq(APPLY(&error, {"lenet", "cpu:0", 2}), 0, "nothing of a refused one is left: %s", error.text);
        cr_expect_str_eq(workers_of("lenet"), "2@0");
        honest_expect_progress(honest, 1);
        honest_stop(honest);
}

/* What fits of it does not matter: it is all of it or nothing. */
Test(allocation, that_wants_too_much_memory_is_refused_with_the_numbers_and_changes_nothing)
{
        struct starling_allotment many[64];
        struct starling_error error = {""};
        struct honest *honest;
        char before[128];

        world_remove_model(&world, "mlp");
        world_copy_model(&world, "lenet", "mlp", "batch_max: 1024\nsegment_samples: 1024\n");
        start("limits: {memory_max: 384 MiB}\n");
        snprintf(before, sizeof(before), "%s", workers_of("lenet"));
        honest = honest_start(&world, "lenet");
        for (int own = 0; own < 64; own += 63) { /* the other's turn comes first, or last */
                for (int i = 0; i < 64; i++)
                        many[i] = (struct starling_allotment){"mlp", "cpu:0", 1024};
                many[own] = (struct starling_allotment){"lenet", "cpu:0", 2};
                cr_expect_eq(apply(many, 64, &error), -ENOMEM, "%s", error.text);
                cr_expect_not_null(strstr(error.text, "model \"mlp\": 63 workers of batch 1024"), "%s", error.text);
                cr_expect_not_null(strstr(error.text, "of memory_max"), "%s", error.text);
                /* Those that had begun to start are there until they have ended. */
                WORLD_AWAIT(!strcmp(workers_of("lenet"), before));
                cr_expect_str_eq(workers_of("lenet"), before);
                WORLD_AWAIT(!strchr(workers_of("mlp"), ' '));
                cr_expect_null(strchr(workers_of("mlp"), ' '), "one still");
                honest_expect_progress(honest, 20);
        }
        honest_stop(honest);
}

static atomic_bool is_configured;

/* As `starling apply --configured`, again and again. */
static void *configure_main(void *argument)
{
        struct starling_client *other = argument;

        while (!atomic_load(&is_configured))
                (void)starling_admin_apply(other, NULL, 0, NULL);
        return NULL;
}

/* What the configuration says is asked for meanwhile, which is refused, or comes before or after. */
Test(allocation, that_is_under_way_is_not_taken_back_by_the_configuration)
{
        struct starling_client *other;
        struct starling_error error = {""};
        pthread_t thread;
        uint32_t applied = 0;

        start("");
        other = world_connect(&world, STARLING_ROLE_ADMIN);
        cr_assert_eq(pthread_create(&thread, NULL, configure_main, other), 0);
        for (uint32_t i = 0; applied < 20; i++) {
                int r = APPLY(&error, {"lenet", "cpu:0", 1u << i % 4}, {"mlp", "cpu:0", 2});

                cr_assert(r == 0 || r == -EBUSY, "%s", error.text);
                applied += r == 0;
                if (r < 0) /* the configuration's workers are on their way */
                        world_pause_us(1000);
        }
        atomic_store(&is_configured, true);
        pthread_join(thread, NULL);
        starling_close(other);
}

Test(allocation, whose_administrator_dies_on_the_way_goes_on_or_never_begins)
{
        struct honest *honest;

        start("");
        honest = honest_start(&world, "lenet");
        for (uint32_t round = 0; round < world_rounds("SL_ALLOCATION_KILLS", 20); round++) {
                const char *argv[] = {world.program, "apply", "--name", world.socket_path, file, NULL};
                pid_t pid;

                write_file(round % 2 ? "models: [lenet, mlp]\nrows: [{device: 'cpu:0', batches: [4, 1]}]\n"
                                     : "models: [lenet, mlp]\nrows: [{device: cpu, batches: [1+2, 8]}]\n");
                pid = world_spawn(argv);
                world_pause_us(200 * round);
                kill(pid, SIGKILL);
                waitpid(pid, NULL, 0);
        }
        write_file("models: [lenet, mlp]\nrows: [{device: 'cpu:0', batches: [2, 2]}]\n");
        WORLD_AWAIT(run_apply(file) == 0); /* the one before is on its way */
        cr_expect_str_eq(workers_of("lenet"), "2@0");
        cr_expect_str_eq(workers_of("mlp"), "2@0");
        honest_expect_progress(honest, 1);
        honest_stop(honest);
}

/* As whoever manages the host does it: the runtime may use these cores from now on. */
static void allow_cores(const cpu_set_t *cores)
{
        cr_assert_eq(sched_setaffinity(world.pid, sizeof(*cores), cores), 0);
        world_expect_log(&world, "event=cores-changed");
}

static void expect_soon(const char *model, const char *wanted)
{
        WORLD_AWAIT(strcmp(workers_of(model), wanted) == 0);
        cr_expect_str_eq(workers_of(model), wanted, "%s: %s, not %s\n%s", model, workers_of(model), wanted, world_log(&world));
}

static uint64_t promised_bytes(void)
{
        struct sl_stats_header header;
        struct sl_stats_view *view;

        cr_assert_eq(sl_stats_open(world.name, NULL, &view, NULL), 0);
        sl_stats_read_header(view, &header);
        sl_stats_close(view);
        return sl_counter_read(&header.memory_bytes);
}

/* A team's scratch is promised for as many cores as there were. */
Test(allocation, gives_back_what_a_team_was_promised_on_cores_that_are_gone)
{
        cpu_set_t all, first;
        uint64_t before;

        cr_assert_eq(sched_getaffinity(0, sizeof(all), &all), 0);
        if (!CPU_ISSET(0, &all) || !CPU_ISSET(1, &all))
                cr_skip_test("cores 0 and 1 are wanted");
        CPU_ZERO(&first);
        CPU_SET(0, &first);
        start("threads: {inline_us: 0, worker_cores: [0, 1]}\nmodel_defaults: {threads: auto}\n");
        before = promised_bytes();
        for (int round = 0; round < 3; round++) {
                allow_cores(&first);
                WORLD_AWAIT(promised_bytes() < before);
                cr_expect_lt(promised_bytes(), before, "a team of one needs less");
                allow_cores(&all);
                WORLD_AWAIT(promised_bytes() == before);
                cr_expect_eq(promised_bytes(), before, "round %d", round);
        }
}

Test(allocation, loses_a_core_while_models_serve_and_gets_it_back)
{
        struct starling_error error = {""};
        struct honest *honest[2];
        cpu_set_t all, first;

        cr_assert_eq(sched_getaffinity(0, sizeof(all), &all), 0);
        if (!CPU_ISSET(0, &all) || !CPU_ISSET(1, &all))
                cr_skip_test("cores 0 and 1 are wanted");
        CPU_ZERO(&first);
        CPU_SET(0, &first);
        start("threads: {inline_us: 0, worker_cores: [0, 1]}\n");
        cr_assert_eq(APPLY(&error, {"lenet", "cpu:0", 8}, {"lenet", "cpu:1", 4}, {"mlp", "cpu:1", 2}), 0, "%s", error.text);
        for (int i = 0; i < 2; i++)
                honest[i] = honest_start(&world, i ? "mlp" : "lenet");
        for (uint32_t round = 0; round < world_rounds("SL_CORES_ROUNDS", 3); round++) {
                allow_cores(&first);
                expect_soon("lenet", "8@0");
                expect_soon("mlp", "2@all");
                expect_soon("resnet", "32@all");
                honest_expect_progress(honest[round % 2], 20);
                allow_cores(&all);
                expect_soon("lenet", "8@0 4@1");
                expect_soon("mlp", "2@1");
                honest_expect_progress(honest[round % 2], 20);
        }
        for (int i = 0; i < 2; i++) {
                honest_expect_progress(honest[i], 1);
                honest_stop(honest[i]);
        }
}

static uint64_t address_space(void)
{
        char path[64];
        uint64_t pages = 0;

        snprintf(path, sizeof(path), "/proc/%d/statm", world.pid);
        FILE *statm = fopen(path, "re");
        cr_assert(statm && fscanf(statm, "%lu", &pages) == 1);
        fclose(statm);
        return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void limit_space(uint64_t bytes)
{
        struct rlimit limit = {.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};

        cr_assert_eq(prlimit(world.pid, RLIMIT_AS, &limit, NULL), 0);
}

/* Without the model's workers; they leave in their own time. */
static uint64_t space_without(const char *model)
{
        cr_assert_eq(starling_admin_unload(admin, model, NULL), 0);
        for (int i = 0; i < 3000 && *workers_of(model); i++)
                world_pause_us(10000);
        world_pause_us(50000);
        return address_space();
}

/* The paper's {-1}: where the system does not give what was promised to all, those that started serve. */
Test(allocation, whose_workers_cannot_all_start_is_served_by_the_others)
{
        uint32_t some = 0, none = 0;
        char yaml[512] = "batch_max: 1024\nsegment_samples: 1024\nbatch_sizes: [1";

        for (int i = 0; i < 24; i++) /* more threads than the C library keeps stacks for */
                strcat(yaml, ", 1024");
        if (WORLD_SLOW)
                cr_skip_test("a sanitizer's own address space has no limit");
        world_remove_model(&world, "lenet");
        world_copy_model(&world, "lenet", "lenet", strcat(yaml, "]\n"));
        start("cache: {bytes: 1 GiB}\n");
        cr_assert_eq(starling_admin_unload(admin, "digits", NULL), 0);
        for (uint32_t round = 0; round < 20 && !some; round++) {
                struct starling_error error = {""};
                uint64_t with = address_space(), without = space_without("lenet");

                limit_space(without + (with > without ? with - without : 0) / 20 * (19 - round));
                int r = starling_admin_load(admin, "lenet", &error);
                limit_space(RLIM_INFINITY);
                if (r < 0) {
                        none++;
                        cr_assert_eq(starling_admin_load(admin, "lenet", &error), 0, "%s", error.text);
                } else if (world_count_log(&world, "event=worker-left-out")) {
                        struct honest *honest = honest_start(&world, "lenet");

                        some++;
                        honest_expect_progress(honest, 20);
                        honest_stop(honest);
                }
        }
        cr_expect(some, "all or none have started at each of the limits (%u times none)", none);
}
