/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One model on several GPUs (device: [gpu:0, gpu:1], "gpu:*"), on the fake driver with two or three of them: each has a process and
 * workers of its own, which share the model's queue, and what fails on one leaves the others serving. And models on lets of one,
 * which become larger and smaller while they serve.
 */
#include "base/clock.h"
#include "digits.h"
#include "world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BACK_NS (60 * SL_NS_PER_SECOND)
#define GPUS    4u
#define FLYING  12u

static struct world world;
static struct digits_data data;
static struct starling_client *client, *admin;
static struct starling_queue *queue;
static struct digits_job jobs[FLYING];
static bool flying[FLYING];
static uint32_t n_flying, seed;
static char reason[512]; /* of the request that failed last */

static void set_up(void)
{
        world_init(&world);
        cr_assert(digits_read(&data, "lenet"));
        strcpy(world.program, STARLING_FAKE_GPU);
        setenv("LD_LIBRARY_PATH", FAKE_CUDA, 1);
        setenv("FAKE_CUDA_DEVICES", "2", 1);
        seed = 11;
}

static void tear_down(void)
{
        digits_release(&data);
        world_free(&world);
}

TestSuite(gpu_several, .init = set_up, .fini = tear_down, .timeout = 120);

static void enter(void)
{
        client = world_connect(&world, STARLING_ROLE_CLIENT);
        admin = world_connect(&world, STARLING_ROLE_ADMIN);
        cr_assert_eq(starling_queue_open(client, &queue, NULL), 0);
        for (uint32_t i = 0; i < FLYING; i++)
                cr_assert_eq(digits_job_alloc(&jobs[i], &data, client), 0);
}

static void leave(void)
{
        for (uint32_t i = 0; i < FLYING; i++)
                digits_job_free(&jobs[i], client);
        starling_close(client);
        starling_close(admin);
        world_stop(&world);
}

static struct starling_model *open_model(const char *name)
{
        struct starling_error error = {""};
        struct starling_model *model;

        cr_assert_eq(starling_model_open(client, name, &model, &error), 0, "%s\n%s", error.text, world_log(&world));
        return model;
}

/* The process of each GPU; 0: it has none. Return: how many there are. */
static uint32_t find_processes(pid_t ret_pids[GPUS])
{
        struct world_child children[GPUS];
        uint32_t n = world_find_children(&world, "gpu", children, GPUS);

        cr_assert_leq(n, GPUS);
        memset(ret_pids, 0, GPUS * sizeof(*ret_pids));
        for (uint32_t i = 0; i < n; i++) {
                uint32_t gpu = (uint32_t)atoi(children[i].argument);

                cr_assert_lt(gpu, GPUS);
                cr_assert_eq(ret_pids[gpu], 0, "gpu:%u has two processes", gpu);
                ret_pids[gpu] = children[i].pid;
        }
        return n;
}

/* A worker of the model is shown to be there. */
static bool is_shown_on(const char *model, const char *gpu)
{
        char line[512], wanted[96], on[64];
        bool found = false;
        FILE *stats;

        snprintf(line, sizeof(line), "%s stats --name %s", world.program, world.name);
        snprintf(wanted, sizeof(wanted), "worker of %s  ", model);
        snprintf(on, sizeof(on), "  on %s  ", gpu);
        stats = popen(line, "r");
        cr_assert(stats);
        while (fgets(line, sizeof(line), stats))
                found |= strncmp(line, wanted, strlen(wanted)) == 0 && strstr(line, on);
        cr_assert_eq(pclose(stats), 0);
        return found;
}

/* What `starling stats` says of the let: workers that share it, and samples that they have computed. */
struct shown {
        uint32_t workers, samples;
};

static struct shown look_at(const char *let)
{
        struct shown shown = {0};
        char line[512], wanted[64];
        FILE *stats;

        snprintf(line, sizeof(line), "%s stats --name %s", world.program, world.name);
        snprintf(wanted, sizeof(wanted), "let %s  ", let);
        stats = popen(line, "r");
        cr_assert(stats);
        while (fgets(line, sizeof(line), stats)) {
                if (strncmp(line, wanted, strlen(wanted)) != 0)
                        continue;
                cr_assert_eq(sscanf(strstr(line, "workers "), "workers %u", &shown.workers), 1);
                cr_assert_eq(sscanf(strstr(line, "samples "), "samples %u", &shown.samples), 1);
        }
        cr_assert_eq(pclose(stats), 0);
        return shown;
}

/* As many more as may fly, of the first @n. */
static void submit_some(struct starling_model *model, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++) {
                struct starling_request request;

                if (flying[i])
                        continue;
                request = digits_ask(&jobs[i], model, digits_random(&seed, 400), 1 + digits_random(&seed, 20));
                request.user_data = i;
                cr_assert_eq(starling_submit(queue, &request, NULL), 0);
                flying[i] = true;
                n_flying++;
        }
}

static void submit_all(struct starling_model *model)
{
        submit_some(model, FLYING);
}

/* Each of those that fly once, and right if it is done. Return: how many failed. */
static uint32_t reap(void)
{
        struct starling_completion done[FLYING];
        int n = starling_wait(queue, done, FLYING, 50 * SL_NS_PER_SECOND);
        uint32_t n_failed = 0;
        char text[512];

        cr_assert_gt(n, 0, "%u requests have no answer\n%s", n_flying, world_log(&world));
        for (int i = 0; i < n; i++) {
                cr_assert(flying[done[i].user_data], "request %u was completed twice", (uint32_t)done[i].user_data);
                flying[done[i].user_data] = false;
                n_flying--;
                if (done[i].status == 0) {
                        cr_assert(digits_right(&jobs[done[i].user_data], &data, text, sizeof(text)), "%s", text);
                        continue;
                }
                n_failed++;
                cr_assert_eq(done[i].status, -EIO);
                starling_reason_text(&done[i], reason, sizeof(reason));
        }
        return n_failed;
}

static uint32_t reap_all(void)
{
        uint32_t n_failed = 0;

        while (n_flying)
                n_failed += reap();
        return n_failed;
}

/* All are answered, and right. */
static void serve_rounds(struct starling_model *model, uint32_t rounds)
{
        for (uint32_t i = 0; i < rounds; i++) {
                submit_all(model);
                cr_assert_eq(reap_all(), 0, "%s\n%s", reason, world_log(&world));
        }
}

/* Requests go on until so many workers there have computed more than @before. */
static void serve_until(struct starling_model *model, const char *let, uint32_t workers, uint32_t before)
{
        uint64_t end_ns = sl_clock_ns() + BACK_NS;
        struct shown shown;

        do {
                cr_assert_lt(sl_clock_ns(), end_ns, "%s", world_log(&world));
                serve_rounds(model, 1);
                shown = look_at(let);
        } while (shown.workers != workers || shown.samples <= before);
}

static void expect_reload(const char *name, int result, const char *words)
{
        struct starling_error error = {""};

        cr_expect_eq(starling_admin_reload(admin, name, &error), result, "%s\n%s", error.text, world_log(&world));
        cr_expect(strstr(error.text, words), "%s", error.text);
}

Test(gpu_several, have_a_process_each_and_share_the_queue)
{
        struct starling_model *model;
        pid_t pids[GPUS];

        world_copy_model(&world, "lenet", "a", "device: [gpu:0, gpu:1]\nbatch_max: 4\nbatch_sizes: [4, 1]\n");
        world_start(&world);
        enter();
        cr_expect_eq(find_processes(pids), 2);
        model = open_model("a");
        serve_rounds(model, 40);
        for (uint32_t gpu = 0; gpu < 2; gpu++) {
                struct shown shown = look_at(gpu ? "gpu:1" : "gpu:0");

                cr_expect_eq(shown.workers, 2, "workers on gpu:%u", gpu);
                cr_expect_gt(shown.samples, 100, "samples on gpu:%u", gpu);
        }
        cr_expect(is_shown_on("a", "gpu:0") && is_shown_on("a", "gpu:1") && !is_shown_on("lenet", "gpu:0"));
        starling_model_close(model);
        leave();
}

/* All that there are, without being counted; what cannot be used is left out by one line. */
Test(gpu_several, that_are_all_leave_out_what_cannot_be_used)
{
        struct starling_model *model;
        pid_t pids[GPUS];

        setenv("FAKE_CUDA_DEVICES", "3", 1);
        setenv("FAKE_CUDA_ONLY", "1", 1);
        setenv("FAKE_CUDA_MAJOR", "7", 1);
        world_copy_model(&world, "lenet", "a", "device: gpu:*/50%\nbatch_max: 4\n");
        world_start(&world);
        enter();
        cr_expect_eq(world_count_log(&world, "event=gpu-left-out model=a"), 1, "%s", world_log(&world));
        cr_expect(strstr(world_log(&world), "CUDA device 1 (Fake 1) has compute capability 7.0, and 8.0 is needed"));
        find_processes(pids);
        cr_expect(pids[0] && !pids[1] && pids[2] && !pids[3]);
        model = open_model("a");
        serve_rounds(model, 20);
        cr_expect_gt(look_at("gpu:0/50%").samples, 0);
        cr_expect_gt(look_at("gpu:2/50%").samples, 0);
        world_add_model_config(&world, "a", "device: gpu:*/50%\nbatch_max: 4\ninstances: 2\n");
        expect_reload("a", 0, "");
        cr_expect(strstr(world_log(&world), "event=workers-changed model=a version=1 workers=4"), "%s", world_log(&world));
        cr_expect_eq(look_at("gpu:2/50%").workers, 2);
        starling_model_close(model);
        leave();
}

/* Nor for its turn to compile. */
Test(gpu_several, of_which_one_says_nothing_hold_up_no_load_of_others)
{
        uint64_t begun_ns = sl_clock_ns();

        setenv("FAKE_CUDA_ONLY", "1", 1);
        setenv("FAKE_CUDA_MUTE", "1", 1);
        world_configure(&world, "compile: {jobs: 1}\n");
        world_copy_model(&world, "lenet", "a", "device: gpu:1\nbatch_max: 4\nhang_ms: 1500\n");
        world_copy_model(&world, "lenet", "b", "batch_max: 4\n");
        world_launch(&world);
        world_expect_log(&world, "event=model-ready model=b");
        cr_expect_lt(sl_clock_ns() - begun_ns, 12 * SL_NS_PER_SECOND, "it waited for a");
        cr_expect_eq(world_count_log(&world, "event=model-failed model=a"), 0, "%s", world_log(&world));
        world_expect_log(&world, "event=ready failed_models=1");
        world_stop(&world);
        unsetenv("FAKE_CUDA_ONLY");
        unsetenv("FAKE_CUDA_MUTE");
}

/* What was named is wanted: one line says which of it is not there. */
Test(gpu_several, that_are_named_are_all_wanted)
{
        world_copy_model(&world, "lenet", "a", "device: [gpu:1, gpu:2]\n");
        world_copy_model(&world, "lenet", "b", "device: [gpu:0, gpu:1]\nbatch_max: 4\n");
        world_launch(&world);
        world_expect_log(&world, "event=ready failed_models=1");
        cr_expect_eq(world_count_log(&world, "event=model-failed model=a"), 1);
        cr_expect(strstr(world_log(&world), "there is no CUDA device 2: there are 2"), "%s", world_log(&world));
        world_stop(&world);
}

/* It may hang in its driver; nobody else's load waits for it for longer than a start may take. */
Test(gpu_several, of_which_one_says_nothing_serve_on_the_others)
{
        struct starling_model *model;

        setenv("FAKE_CUDA_ONLY", "1", 1);
        setenv("FAKE_CUDA_MUTE", "1", 1);
        world_copy_model(&world, "lenet", "a", "device: gpu:*\nbatch_max: 4\nhang_ms: 200\n");
        world_copy_model(&world, "lenet", "b", "device: gpu:1\nbatch_max: 4\nhang_ms: 200\n");
        world_launch(&world);
        world_expect_log(&world, "event=ready failed_models=1");
        cr_expect_eq(world_count_log(&world, "event=gpu-left-out model=a"), 1, "%s", world_log(&world));
        cr_expect_eq(world_count_log(&world, "event=model-failed model=b"), 1, "%s", world_log(&world));
        cr_expect_eq(world_count_log(&world, "gpu:1: its process has not said for 2.0 s whether it can be used (hang_ms)"), 2, "%s",
                world_log(&world));
        enter();
        model = open_model("a");
        serve_until(model, "gpu:0", 1, 0);
        starling_model_close(model);
        leave();
        unsetenv("FAKE_CUDA_ONLY");
        unsetenv("FAKE_CUDA_MUTE");
}

Test(gpu_several, that_none_can_have_are_told_where_they_stand)
{
        static const struct {
                const char *device, *words;
        } rows[] = {{"[gpu:0, gpu:0/50%]", "gpu:0 is listed twice, as \\\"gpu:0\\\" and \\\"gpu:0/50%\\\""},
                {"[gpu:0, cpu]", "\\\"cpu\\\" stands by itself, not beside GPUs"},
                {"[gpu:0, gpu:*]", "device \\\"gpu:*\\\" is all GPUs, and stands by itself"},
                {"[gpu:0, gpu:16]", "its number \\\"16\\\" is not a number from 0 to 15"},
                {"tpu:0", "\\\"tpu:0\\\" is not cpu, gpu:NUMBER, gpu:NUMBER/PERCENT%, or gpu:* for all"},
                {"[gpu:0, gpu:1]\ninstances: 33", "33 workers on each of 2 GPUs, a model has at most 64 in all"}};

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                char yaml[128], name[8];

                snprintf(yaml, sizeof(yaml), "device: %s\n", rows[i].device);
                snprintf(name, sizeof(name), "a%zu", i);
                world_copy_model(&world, "lenet", name, yaml);
        }
        world_launch(&world);
        world_expect_log(&world, "event=ready");
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                cr_expect_eq(world_count_log(&world, rows[i].words), 1, "%s\n%s", rows[i].words, world_log(&world));
        world_stop(&world);
}

/* The others go on; what it had begun fails with the cause, and it comes back. */
static void try_kill(const char *on_crash, bool may_fail)
{
        struct starling_model *model;
        pid_t pids[GPUS], next[GPUS];
        uint32_t n_failed = 0, rounds = world_rounds("STARLING_GPU_ROUNDS", 6);
        char yaml[128];

        snprintf(yaml, sizeof(yaml), "device: [gpu:0, gpu:1]\nbatch_max: 4\ninstances: 2\n%s", on_crash);
        world_copy_model(&world, "lenet", "a", yaml);
        world_start(&world);
        enter();
        model = open_model("a");
        for (uint32_t round = 0; round < rounds; round++) {
                uint32_t victim = round % 2, had = n_failed, before;

                serve_until(model, victim ? "gpu:1" : "gpu:0", 2, 0);
                cr_assert_eq(find_processes(pids), 2);
                before = look_at(victim ? "gpu:1" : "gpu:0").samples;
                submit_all(model);
                world_pause_us(digits_random(&seed, 2000));
                cr_assert_eq(kill(pids[victim], SIGKILL), 0);
                n_failed += reap_all();
                if (n_failed > had)
                        cr_expect(strstr(reason, "was killed by signal 9"), "%s", reason);
                for (uint32_t i = 0; i < 20; i++) { /* whoever is not back yet has nothing of it */
                        submit_all(model);
                        had = reap_all();
                        cr_assert_eq(had, 0, "%s\n%s", reason, world_log(&world));
                }
                serve_until(model, victim ? "gpu:1" : "gpu:0", 2, before);
                cr_assert_eq(find_processes(next), 2);
                cr_expect_eq(next[!victim], pids[!victim], "the other one was left alone");
                cr_expect_neq(next[victim], pids[victim]);
        }
        cr_expect(may_fail || !n_failed, "%u requests failed: %s", n_failed, reason);
        starling_model_close(model);
        leave();
}

Test(gpu_several, of_which_one_is_killed_leave_the_others_serving)
{
        try_kill("", true);
}

Test(gpu_several, of_which_one_is_killed_lose_nothing_that_may_run_again)
{
        try_kill("on_crash: rerun\n", false);
}

/* It stays lost each time after some launches: whoever is on the other one waits for nothing of it. */
Test(gpu_several, of_which_one_is_lost_again_and_again_serve_on_the_others)
{
        struct starling_model *model;
        uint32_t n_failed = 0, n = 0;
        uint64_t end_ns;

        setenv("FAKE_CUDA_ONLY", "1", 1);
        setenv("FAKE_CUDA_LOSE_AT", "40", 1);
        world_copy_model(&world, "lenet", "a", "device: [gpu:0, gpu:1]\nbatch_max: 4\n");
        world_start(&world);
        enter();
        model = open_model("a");
        end_ns = sl_clock_ns() + BACK_NS;
        for (; world_count_log(&world, "event=worker-ended model=a") < 4; n += FLYING) {
                cr_assert_lt(sl_clock_ns(), end_ns, "%s", world_log(&world));
                submit_all(model);
                n_failed += reap_all();
        }
        cr_expect(strstr(reason, "gpu:1 (Fake 1) is lost"), "%s", reason);
        cr_expect_lt(n_failed, n / 2, "%u of %u failed", n_failed, n);
        cr_expect_eq(look_at("gpu:0").workers, 1);
        cr_expect(!strstr(world_log(&world), "gpu:0 (Fake 0) is lost"));
        starling_model_close(model);
        leave();
}

/* Its workers are left out by one line; the model is served by those of the other one. */
Test(gpu_several, of_which_one_has_no_room_serve_on_the_others)
{
        struct starling_model *model;

        setenv("FAKE_CUDA_ONLY", "1", 1);
        setenv("FAKE_CUDA_MEMORY", "20000", 1);
        world_copy_model(&world, "lenet", "a", "device: [gpu:0, gpu:1]\nbatch_max: 4\n");
        world_start(&world);
        enter();
        cr_expect_eq(world_count_log(&world, "event=worker-left-out model=a device=gpu:1 batch=4"), 1, "%s", world_log(&world));
        cr_expect(strstr(world_log(&world), "bytes for its weights are wanted on gpu:1 (Fake 1), 20000 are free"));
        model = open_model("a");
        serve_rounds(model, 10);
        cr_expect_gt(look_at("gpu:0").samples, 0);
        cr_expect_eq(look_at("gpu:1").workers, 0);
        starling_model_close(model);
        leave();
}

Test(gpu_several, of_which_none_has_room_refuse_the_model)
{
        setenv("FAKE_CUDA_MEMORY", "20000", 1);
        world_copy_model(&world, "lenet", "a", "device: [gpu:0, gpu:1]\nbatch_max: 4\n");
        world_launch(&world);
        world_expect_log(&world, "event=ready failed_models=1");
        cr_expect_eq(world_count_log(&world, "event=model-failed model=a"), 1, "%s", world_log(&world));
        cr_expect(strstr(world_log(&world), "20000 are free"), "%s", world_log(&world));
        world_stop(&world);
}

/* Other GPUs are as another number of workers: nothing is loaded again, and what cannot start changes nothing. */
Test(gpu_several, change_while_the_model_serves)
{
        struct starling_model *model;
        pid_t pids[GPUS];

        world_copy_model(&world, "lenet", "a", "device: gpu:0\nbatch_max: 4\n");
        world_start(&world);
        enter();
        model = open_model("a");
        serve_rounds(model, 3);
        world_add_model_config(&world, "a", "device: [gpu:0, gpu:1]\nbatch_max: 4\n");
        expect_reload("a", 0, "");
        cr_expect(strstr(world_log(&world), "event=workers-changed model=a version=1 workers=2"), "%s", world_log(&world));
        serve_until(model, "gpu:1", 1, 0);
        cr_expect_eq(look_at("gpu:0").workers, 1);
        world_add_model_config(&world, "a", "device: [gpu:0, gpu:1, gpu:2]\nbatch_max: 4\n");
        expect_reload("a", -EIO, "there is no CUDA device 2: there are 2");
        serve_rounds(model, 3);
        cr_expect_eq(look_at("gpu:0").workers + look_at("gpu:1").workers, 2);
        world_add_model_config(&world, "a", "device: gpu:1\nbatch_max: 4\n");
        expect_reload("a", 0, "");
        serve_rounds(model, 3);
        find_processes(pids);
        cr_expect(!pids[0] && pids[1], "nobody needs gpu:0 any more");
        cr_expect_eq(world_count_log(&world, "event=model-ready model=a"), 1, "%s", world_log(&world));
        starling_model_close(model);
        leave();
}

static int apply(const struct starling_allotment *allotments, uint32_t n, struct starling_error *error)
{
        return starling_admin_apply(admin, allotments, n, error);
}

/* An allocation names GPUs as it names cores, each of models that have a plan for it. */
Test(gpu_several, are_rows_of_an_allocation)
{
        const struct starling_allotment both[] = {{"a", "gpu:0", 4}, {"a", "gpu:1", 4}, {"a", "gpu:1", 2}};
        const struct starling_allotment to_cpu[] = {{"a", "cpu:0", 4}}, to_gpu[] = {{"lenet", "gpu:0", 4}};
        struct starling_error error = {""};
        struct starling_model *model;

        world_copy_model(&world, "lenet", "a", "device: gpu:0\nbatch_max: 4\n");
        world_start(&world);
        enter();
        model = open_model("a");
        cr_assert_eq(apply(both, 3, &error), 0, "%s", error.text);
        serve_until(model, "gpu:1", 2, 0);
        cr_expect_eq(look_at("gpu:0").workers, 1);
        cr_expect_eq(apply(to_cpu, 1, &error), -EINVAL);
        cr_expect(strstr(error.text, "a worker on cores 0: its device is a GPU"), "%s", error.text);
        cr_expect_eq(apply(to_gpu, 1, &error), -EINVAL);
        cr_expect(strstr(error.text, "a worker on gpu:0: its device is cpu"), "%s", error.text);
        serve_rounds(model, 3);
        starling_model_close(model);
        leave();
}

static void write_allocation(const char *model, const char *device)
{
        static char path[128];
        FILE *file;

        snprintf(path, sizeof(path), "%s/allocation.yaml", world.folder);
        file = fopen(path, "w");
        cr_assert(file);
        fprintf(file, "models: [%s]\nrows:\n  - {device: \"%s\", batches: [2]}\n  - {device: \"gpu:1\", batches: [1+4]}\n", model,
                device);
        cr_assert_eq(fclose(file), 0);
        world.arguments[0] = "--allocation";
        world.arguments[1] = path;
}

static void expect_not_started(const char *words)
{
        world_launch(&world);
        cr_expect_neq(world_wait(&world), 0);
        cr_expect(strstr(world_log(&world), words), "%s", world_log(&world));
}

Test(gpu_several, are_rows_of_a_file_that_a_runtime_starts_with)
{
        struct starling_model *model;

        world_copy_model(&world, "lenet", "a", "device: gpu:0\nbatch_max: 4\n");
        write_allocation("a", "gpu:0");
        world_start(&world);
        enter();
        cr_expect_eq(look_at("gpu:0").workers, 1);
        cr_expect_eq(look_at("gpu:1").workers, 2);
        model = open_model("a");
        serve_until(model, "gpu:1", 2, 0);
        starling_model_close(model);
        leave();
        write_allocation("a", "cpu:0");
        expect_not_started("model \"a\": a worker on \"cpu:0\", its device is a GPU");
        write_allocation("lenet", "cpu:0");
        expect_not_started("model \"lenet\": a worker on \"gpu:1\", its device is cpu");
}

/* ---- lets ---- */

TestSuite(gpu_lets, .init = set_up, .fini = tear_down, .timeout = 120);

static struct starling_model *a, *b;

static void open_lets(const char *a_yaml, const char *b_yaml)
{
        world_copy_model(&world, "lenet", "a", a_yaml);
        world_copy_model(&world, "lenet", "b", b_yaml);
        world_start(&world);
        enter();
        a = open_model("a");
        b = open_model("b");
}

static void begin_lets(const char *a_yaml, const char *b_yaml)
{
        open_lets(a_yaml, b_yaml);
        serve_rounds(a, 3);
        serve_rounds(b, 3);
}

/* Both serve there; so many workers have ended that nobody had sent away. */
static void end_lets(const char *a_let, const char *b_let, uint32_t n_ended)
{
        serve_until(a, a_let, 1, 0);
        serve_until(b, b_let, 1, 0);
        cr_expect_eq(world_count_log(&world, "event=worker-ended"), n_ended, "%s", world_log(&world));
        starling_model_close(a);
        starling_model_close(b);
        leave();
}

/* There is no room for both sizes at once. */
Test(gpu_lets, become_larger_and_smaller_while_they_serve)
{
        begin_lets("device: gpu:0/60%\nbatch_max: 4\ninstances: 2\n", "device: gpu:0/30%\nbatch_max: 4\n");
        submit_all(a);
        world_add_model_config(&world, "a", "device: gpu:0/70%\nbatch_max: 4\ninstances: 2\n");
        expect_reload("a", 0, "");
        cr_expect_eq(reap_all(), 0, "%s", reason);
        serve_until(a, "gpu:0/70%", 2, 0);
        cr_expect_eq(look_at("gpu:0/60%").workers, 0);
        world_add_model_config(&world, "a", "device: gpu:0/50%\nbatch_max: 4\n");
        expect_reload("a", 0, "");
        world_add_model_config(&world, "b", "device: gpu:0/50%\nbatch_max: 4\n");
        world_add_model_config(&world, "a", "device: gpu:0/20%\nbatch_max: 4\n");
        expect_reload("a", 0, "");
        expect_reload("b", 0, "");
        cr_expect_eq(world_count_log(&world, "event=workers-changed"), 4, "%s", world_log(&world));
        end_lets("gpu:0/20%", "gpu:0/50%", 0);
}

/* It serves on, where it was. */
Test(gpu_lets, that_find_no_room_stay)
{
        begin_lets("device: gpu:0/60%\nbatch_max: 4\n", "device: gpu:0/40%\nbatch_max: 4\n");
        world_add_model_config(&world, "a", "device: gpu:0/70%\nbatch_max: 4\n");
        expect_reload("a", -EIO, "a worker of batch 4 on gpu:0/70% cannot start: 70% of the device are");
        cr_expect_eq(world_count_log(&world, "event=workers-not-changed"), 1, "%s", world_log(&world));
        end_lets("gpu:0/60%", "gpu:0/40%", 1);
}

/* A model that is loaded again, as its largest batch is another, takes the place of what it was. */
Test(gpu_lets, become_larger_with_a_model_that_is_loaded_again)
{
        begin_lets("device: gpu:0/60%\nbatch_max: 4\n", "device: gpu:0/30%\nbatch_max: 4\n");
        submit_all(a);
        world_add_model_config(&world, "a", "device: gpu:0/70%\nbatch_max: 8\n");
        expect_reload("a", 0, "");
        cr_expect_eq(reap_all(), 0, "%s", reason);
        end_lets("gpu:0/70%", "gpu:0/30%", 0);
}

/* Whoever comes first has room only when the other one has become smaller. */
Test(gpu_lets, of_several_models_change_together)
{
        const struct starling_allotment one[] = {{"a", "gpu:0/30%", 4}, {"b", "gpu:0/70%", 4}},
                                        other[] = {{"a", "gpu:0/60%", 4}, {"b", "gpu:0/40%", 4}};
        struct starling_error error = {""};

        begin_lets("device: gpu:0/50%\nbatch_max: 4\n", "device: gpu:0/50%\nbatch_max: 4\n");
        for (uint32_t round = 0; round < 3; round++) {
                submit_all(round % 2 ? a : b);
                cr_assert_eq(apply(other, 2, &error), 0, "%s\n%s", error.text, world_log(&world));
                cr_expect_eq(reap_all(), 0, "%s", reason);
                submit_all(round % 2 ? a : b);
                cr_assert_eq(apply(one, 2, &error), 0, "%s\n%s", error.text, world_log(&world));
                cr_expect_eq(reap_all(), 0, "%s", reason);
        }
        end_lets("gpu:0/30%", "gpu:0/70%", 0);
}

/* All of them make room, and one makes room for all. */
Test(gpu_lets, of_several_sizes_become_one_and_come_back)
{
        const struct starling_allotment two[] = {{"a", "gpu:0/30%", 4}, {"a", "gpu:0/40%", 4}}, one[] = {{"a", "gpu:0/80%", 4}};
        struct starling_error error = {""};

        begin_lets("device: gpu:0/50%\nbatch_max: 4\n", "device: gpu:0/20%\nbatch_max: 4\n");
        for (uint32_t round = 0; round < 3; round++) {
                submit_all(a);
                cr_assert_eq(apply(two, 2, &error), 0, "%s\n%s", error.text, world_log(&world));
                cr_expect_eq(reap_all(), 0, "%s", reason);
                submit_all(a);
                cr_assert_eq(apply(one, 1, &error), 0, "%s\n%s", error.text, world_log(&world));
                cr_expect_eq(reap_all(), 0, "%s", reason);
        }
        end_lets("gpu:0/80%", "gpu:0/20%", 0);
}

/* What is replaced has requests yet when its process ends: it comes again beside what takes its place, and takes nobody's room. */
Test(gpu_lets, of_a_model_that_is_being_replaced_take_no_room_of_others_after_a_crash)
{
        pid_t pids[GPUS];
        uint32_t n_ended;

        setenv("FAKE_CUDA_GRAPH_US", "10000", 1);
        open_lets("device: gpu:0/50%\nbatch_max: 4\n", "device: gpu:0/45%\nbatch_max: 4\n");
        unsetenv("FAKE_CUDA_GRAPH_US");
        submit_some(a, FLYING - 1);
        world_add_model_config(&world, "a", "device: gpu:0/40%\nbatch_max: 8\n");
        expect_reload("a", 0, "");
        cr_assert_eq(find_processes(pids), 1);
        cr_assert_eq(kill(pids[0], SIGKILL), 0);
        world_expect_log(&world, "event=worker-ended model=b");
        submit_all(b);
        if (reap_all())
                cr_expect(strstr(reason, "was killed by signal 9"), "%s", reason);
        else
                printf("what was replaced had nothing in flight any more: the machine is slow\n");
        n_ended = world_count_log(&world, "event=worker-ended");
        cr_expect(n_ended == 2 || n_ended == 3, "%s", world_log(&world));
        end_lets("gpu:0/40%", "gpu:0/45%", n_ended);
}

/* Jobs that its workers have just now. */
static uint32_t count_running(const char *let)
{
        json_t *stats, *lets;
        uint32_t n = 0;
        char line[512];
        FILE *text;

        snprintf(line, sizeof(line), "%s stats --json --name %s", world.program, world.name);
        text = popen(line, "r");
        cr_assert(text);
        stats = json_loadf(text, 0, NULL);
        cr_assert_eq(pclose(text), 0);
        lets = json_object_get(stats, "lets");
        cr_assert(json_is_array(lets));
        for (size_t i = 0; i < json_array_size(lets); i++) {
                json_t *entry = json_array_get(lets, i);

                if (strcmp(json_string_value(json_object_get(entry, "name")), let) == 0)
                        n += (uint32_t)json_integer_value(json_object_get(entry, "running"));
        }
        json_decref(stats);
        return n;
}

static _Atomic bool applied;

/* While requests go on, so that the last workers of the let before leave while the dispatcher is busy. */
static void *apply_one(void *allotment)
{
        struct starling_error error = {""};
        int r = apply(allotment, 1, &error);

        atomic_store_explicit(&applied, true, memory_order_release);
        return r == 0 ? NULL : "it is not applied";
}

Test(gpu_lets, that_nobody_is_on_any_more_have_no_job)
{
        static const char *const sizes[] = {"gpu:0/50%", "gpu:0/40%"};

        begin_lets("device: gpu:0/50%\nbatch_max: 4\n", "device: gpu:0/20%\nbatch_max: 4\n");
        for (uint32_t round = 1; round <= 20; round++) {
                struct starling_allotment next = {"a", sizes[round % 2], 4};
                const char *left = sizes[(round + 1) % 2];
                pthread_t thread;
                void *failure;

                atomic_store_explicit(&applied, false, memory_order_relaxed);
                cr_assert_eq(pthread_create(&thread, NULL, apply_one, &next), 0);
                while (!atomic_load_explicit(&applied, memory_order_acquire)) {
                        submit_all(a);
                        cr_assert_eq(reap(), 0, "%s", reason);
                }
                cr_assert_eq(pthread_join(thread, &failure), 0);
                cr_assert_null(failure, "%s", world_log(&world));
                cr_expect_eq(reap_all(), 0, "%s", reason);
                cr_expect_eq(look_at(left).workers, 0);
                cr_expect_eq(count_running(left), 0, "round %u: %s has jobs", round, left);
        }
        end_lets("gpu:0/50%", "gpu:0/20%", 0);
}
