/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One model on several GPUs (device: [gpu:0, gpu:1], "gpu:*"), on the fake driver with two or three of them: each has a process and
 * workers of its own, which share the model's queue, and what fails on one leaves the others serving.
 */
#include "base/clock.h"
#include "digits.h"
#include "gpu_guest.h"
#include "gpu_traffic.h"
#include "world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BACK_NS WORLD_PATIENCE_NS

static struct world world;
static struct digits_data data;
static struct gpu_traffic traffic;

static void set_up(void)
{
        world_init(&world);
        world_keep(&world, "lenet");
        cr_assert(digits_read(&data, "lenet"));
        gpu_use_fake(&world);
        setenv("FAKE_CUDA_DEVICES", "2", 1);
}

static void tear_down(void)
{
        digits_release(&data);
        world_free(&world);
}

TestSuite(gpu_several, .init = set_up, .fini = tear_down, .timeout = 120);

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

Test(gpu_several, have_a_process_each_and_share_the_queue)
{
        struct starling_model *model;
        pid_t pids[GPU_PROCESSES_MAX];

        world_copy_model(&world, "lenet", "a", "device: [gpu:0, gpu:1]\nbatch_max: 4\nbatch_sizes: [4, 1]\n");
        world_start(&world);
        gpu_traffic_enter(&traffic, &world, &data);
        cr_expect_eq(gpu_find_processes(&world, pids), 2);
        model = gpu_traffic_open(&traffic, "a");
        gpu_traffic_serve(&traffic, model, 20);
        gpu_traffic_serve_until(&traffic, model, "gpu:0", 2, 100);
        gpu_traffic_serve_until(&traffic, model, "gpu:1", 2, 100);
        cr_expect(is_shown_on("a", "gpu:0") && is_shown_on("a", "gpu:1") && !is_shown_on("lenet", "gpu:0"));
        starling_model_close(model);
        gpu_traffic_leave(&traffic);
}

/* All that there are, without being counted; what cannot be used is left out by one line. */
Test(gpu_several, that_are_all_leave_out_what_cannot_be_used)
{
        struct starling_model *model;
        pid_t pids[GPU_PROCESSES_MAX];

        setenv("FAKE_CUDA_DEVICES", "3", 1);
        setenv("FAKE_CUDA_ONLY", "1", 1);
        setenv("FAKE_CUDA_MAJOR", "7", 1);
        world_copy_model(&world, "lenet", "a", "device: gpu:*/50%\nbatch_max: 4\n");
        world_start(&world);
        gpu_traffic_enter(&traffic, &world, &data);
        cr_expect_eq(world_count_log(&world, "event=gpu-left-out model=a"), 1, "%s", world_log(&world));
        cr_expect(strstr(world_log(&world), "CUDA device 1 (Fake 1) has compute capability 7.0, and 8.0 is needed"));
        gpu_find_processes(&world, pids);
        cr_expect(pids[0] && !pids[1] && pids[2] && !pids[3]);
        model = gpu_traffic_open(&traffic, "a");
        gpu_traffic_serve_until(&traffic, model, "gpu:0/50%", 1, 0);
        gpu_traffic_serve_until(&traffic, model, "gpu:2/50%", 1, 0);
        world_add_model_config(&world, "a", "device: gpu:*/50%\nbatch_max: 4\ninstances: 2\n");
        gpu_traffic_expect_reload(&traffic, "a", 0, "");
        cr_expect(strstr(world_log(&world), "event=workers-changed model=a version=1 workers=4"), "%s", world_log(&world));
        cr_expect_eq(gpu_look_at_let(&world, "gpu:2/50%").workers, 2);
        starling_model_close(model);
        gpu_traffic_leave(&traffic);
}

/* Nor for its turn to compile. The one that says nothing is given up after ten times its hang_ms, long after this test. */
Test(gpu_several, of_which_one_says_nothing_hold_up_no_load_of_others)
{
        setenv("FAKE_CUDA_ONLY", "1", 1);
        setenv("FAKE_CUDA_MUTE", "1", 1);
        world_configure(&world, "compile: {jobs: 1}\n");
        world_copy_model(&world, "lenet", "a", "device: gpu:1\nbatch_max: 4\nhang_ms: 60000\n");
        world_copy_model(&world, "lenet", "b", "batch_max: 4\n");
        world_launch(&world);
        world_expect_log(&world, "event=model-ready model=b");
        cr_expect_eq(world_count_log(&world, "event=model-failed model=a"), 0, "%s", world_log(&world));
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

/* The other GPU's process has to say something within ten times as long: an instrumented one needs some seconds beside others. */
#if WORLD_SLOW
#define HANG       "hang_ms: 2000\n"
#define HANG_START "20.0"
#else
#define HANG       "hang_ms: 500\n"
#define HANG_START "5.0"
#endif

/* It may hang in its driver; nobody else's load waits for it for longer than a start may take. */
Test(gpu_several, of_which_one_says_nothing_serve_on_the_others)
{
        struct starling_model *model;

        setenv("FAKE_CUDA_ONLY", "1", 1);
        setenv("FAKE_CUDA_MUTE", "1", 1);
        world_copy_model(&world, "lenet", "a", "device: gpu:*\nbatch_max: 4\n" HANG);
        world_copy_model(&world, "lenet", "b", "device: gpu:1\nbatch_max: 4\n" HANG);
        world_launch(&world);
        world_expect_log(&world, "event=ready failed_models=1");
        cr_expect_eq(world_count_log(&world, "event=gpu-left-out model=a"), 1, "%s", world_log(&world));
        cr_expect_eq(world_count_log(&world, "event=model-failed model=b"), 1, "%s", world_log(&world));
        cr_expect_eq(
                world_count_log(&world, "gpu:1: its process has not said for " HANG_START " s whether it can be used (hang_ms)"), 2,
                "%s", world_log(&world));
        gpu_traffic_enter(&traffic, &world, &data);
        model = gpu_traffic_open(&traffic, "a");
        gpu_traffic_serve_until(&traffic, model, "gpu:0", 1, 0);
        starling_model_close(model);
        gpu_traffic_leave(&traffic);
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

#define ENDED "event=worker-ended model=a "

/* The others go on; what it had begun fails with the cause, and it comes back. */
static void try_kill(const char *on_crash, bool may_fail)
{
        struct starling_model *model;
        pid_t pids[GPU_PROCESSES_MAX], next[GPU_PROCESSES_MAX];
        uint32_t n_failed = 0, rounds = world_rounds("STARLING_GPU_ROUNDS", 6);
        char yaml[128];

        snprintf(yaml, sizeof(yaml), "device: [gpu:0, gpu:1]\nbatch_max: 4\ninstances: 2\n%s", on_crash);
        world_copy_model(&world, "lenet", "a", yaml);
        world_start(&world);
        gpu_traffic_enter(&traffic, &world, &data);
        model = gpu_traffic_open(&traffic, "a");
        for (uint32_t round = 0; round < rounds; round++) {
                uint32_t victim = round % 2, had = n_failed, before, n_ended = world_count_log(&world, ENDED);

                gpu_traffic_serve_until(&traffic, model, victim ? "gpu:1" : "gpu:0", 2, 0);
                cr_assert_eq(gpu_find_processes(&world, pids), 2);
                before = gpu_look_at_let(&world, victim ? "gpu:1" : "gpu:0").samples;
                gpu_traffic_submit(&traffic, model);
                world_pause_us(digits_random(&traffic.seed, 2000));
                cr_assert_eq(kill(pids[victim], SIGKILL), 0);
                n_failed += gpu_traffic_reap_all(&traffic);
                if (n_failed > had)
                        cr_expect(strstr(traffic.reason, "was killed by signal 9"), "%s", traffic.reason);
                WORLD_AWAIT(world_count_log(&world, ENDED) >= n_ended + 2); /* both workers': until then they are given requests */
                cr_assert_geq(world_count_log(&world, ENDED), n_ended + 2, "%s", world_log(&world));
                for (uint32_t i = 0; i < 20; i++) { /* whoever is not back yet has nothing of it */
                        gpu_traffic_submit(&traffic, model);
                        had = gpu_traffic_reap_all(&traffic);
                        cr_assert_eq(had, 0, "%s\n%s", traffic.reason, world_log(&world));
                }
                gpu_traffic_serve_until(&traffic, model, victim ? "gpu:1" : "gpu:0", 2, before);
                cr_assert_eq(gpu_find_processes(&world, next), 2);
                cr_expect_eq(next[!victim], pids[!victim], "the other one was left alone");
                cr_expect_neq(next[victim], pids[victim]);
        }
        cr_expect(may_fail || !n_failed, "%u requests failed: %s", n_failed, traffic.reason);
        starling_model_close(model);
        gpu_traffic_leave(&traffic);
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
        gpu_traffic_enter(&traffic, &world, &data);
        model = gpu_traffic_open(&traffic, "a");
        end_ns = sl_clock_ns() + BACK_NS;
        for (; world_count_log(&world, "event=worker-ended model=a") < 4; n += GPU_TRAFFIC_MAX) {
                cr_assert_lt(sl_clock_ns(), end_ns, "%s", world_log(&world));
                gpu_traffic_submit(&traffic, model);
                n_failed += gpu_traffic_reap_all(&traffic);
        }
        cr_expect(strstr(traffic.reason, "gpu:1 (Fake 1) is lost"), "%s", traffic.reason);
        cr_expect_lt(n_failed, n / 2, "%u of %u failed", n_failed, n);
        cr_expect_eq(gpu_look_at_let(&world, "gpu:0").workers, 1);
        cr_expect(!strstr(world_log(&world), "gpu:0 (Fake 0) is lost"));
        starling_model_close(model);
        gpu_traffic_leave(&traffic);
}

/* Its workers are left out by one line; the model is served by those of the other one. */
Test(gpu_several, of_which_one_has_no_room_serve_on_the_others)
{
        struct starling_model *model;

        setenv("FAKE_CUDA_ONLY", "1", 1);
        setenv("FAKE_CUDA_MEMORY", "20000", 1);
        world_copy_model(&world, "lenet", "a", "device: [gpu:0, gpu:1]\nbatch_max: 4\n");
        world_start(&world);
        gpu_traffic_enter(&traffic, &world, &data);
        cr_expect_eq(world_count_log(&world, "event=worker-left-out model=a device=gpu:1 batch=4"), 1, "%s", world_log(&world));
        cr_expect(strstr(world_log(&world), "bytes for its weights are wanted on gpu:1 (Fake 1), 20000 are free"));
        model = gpu_traffic_open(&traffic, "a");
        gpu_traffic_serve(&traffic, model, 10);
        gpu_traffic_serve_until(&traffic, model, "gpu:0", 1, 0);
        cr_expect_eq(gpu_look_at_let(&world, "gpu:1").workers, 0);
        starling_model_close(model);
        gpu_traffic_leave(&traffic);
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
        pid_t pids[GPU_PROCESSES_MAX];

        world_copy_model(&world, "lenet", "a", "device: gpu:0\nbatch_max: 4\n");
        world_start(&world);
        gpu_traffic_enter(&traffic, &world, &data);
        model = gpu_traffic_open(&traffic, "a");
        gpu_traffic_serve(&traffic, model, 3);
        world_add_model_config(&world, "a", "device: [gpu:0, gpu:1]\nbatch_max: 4\n");
        gpu_traffic_expect_reload(&traffic, "a", 0, "");
        cr_expect(strstr(world_log(&world), "event=workers-changed model=a version=1 workers=2"), "%s", world_log(&world));
        gpu_traffic_serve_until(&traffic, model, "gpu:1", 1, 0);
        cr_expect_eq(gpu_look_at_let(&world, "gpu:0").workers, 1);
        world_add_model_config(&world, "a", "device: [gpu:0, gpu:1, gpu:2]\nbatch_max: 4\n");
        gpu_traffic_expect_reload(&traffic, "a", -EIO, "there is no CUDA device 2: there are 2");
        gpu_traffic_serve(&traffic, model, 3);
        cr_expect_eq(gpu_look_at_let(&world, "gpu:0").workers + gpu_look_at_let(&world, "gpu:1").workers, 2);
        world_add_model_config(&world, "a", "device: gpu:1\nbatch_max: 4\n");
        gpu_traffic_expect_reload(&traffic, "a", 0, "");
        gpu_traffic_serve(&traffic, model, 3);
        gpu_find_processes(&world, pids);
        cr_expect(!pids[0] && pids[1], "nobody needs gpu:0 any more");
        cr_expect_eq(world_count_log(&world, "event=model-ready model=a"), 1, "%s", world_log(&world));
        starling_model_close(model);
        gpu_traffic_leave(&traffic);
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
        gpu_traffic_enter(&traffic, &world, &data);
        model = gpu_traffic_open(&traffic, "a");
        cr_assert_eq(starling_admin_apply(traffic.admin, both, 3, &error), 0, "%s", error.text);
        gpu_traffic_serve_until(&traffic, model, "gpu:1", 2, 0);
        cr_expect_eq(gpu_look_at_let(&world, "gpu:0").workers, 1);
        cr_expect_eq(starling_admin_apply(traffic.admin, to_cpu, 1, &error), -EINVAL);
        cr_expect(strstr(error.text, "a worker on cores 0: its device is a GPU"), "%s", error.text);
        cr_expect_eq(starling_admin_apply(traffic.admin, to_gpu, 1, &error), -EINVAL);
        cr_expect(strstr(error.text, "a worker on gpu:0: its device is cpu"), "%s", error.text);
        gpu_traffic_serve(&traffic, model, 3);
        starling_model_close(model);
        gpu_traffic_leave(&traffic);
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
        gpu_traffic_enter(&traffic, &world, &data);
        cr_expect_eq(gpu_look_at_let(&world, "gpu:0").workers, 1);
        cr_expect_eq(gpu_look_at_let(&world, "gpu:1").workers, 2);
        model = gpu_traffic_open(&traffic, "a");
        gpu_traffic_serve_until(&traffic, model, "gpu:1", 2, 0);
        starling_model_close(model);
        gpu_traffic_leave(&traffic);
        write_allocation("a", "cpu:0");
        expect_not_started("model \"a\": a worker on \"cpu:0\", its device is a GPU");
        write_allocation("lenet", "cpu:0");
        expect_not_started("model \"lenet\": a worker on \"gpu:1\", its device is cpu");
}
