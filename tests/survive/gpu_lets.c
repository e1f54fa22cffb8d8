/* SPDX-License-Identifier: Apache-2.0 */
/* Models on lets of a GPU (device: gpu:0/50%), on the fake driver, which become larger and smaller while they serve. */
#include "digits.h"
#include "gpu_guest.h"
#include "gpu_traffic.h"
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

TestSuite(gpu_lets, .init = set_up, .fini = tear_down, .timeout = 120);

static struct starling_model *a, *b;

static void open_lets(const char *a_yaml, const char *b_yaml)
{
        world_copy_model(&world, "lenet", "a", a_yaml);
        world_copy_model(&world, "lenet", "b", b_yaml);
        world_start(&world);
        gpu_traffic_enter(&traffic, &world, &data);
        a = gpu_traffic_open(&traffic, "a");
        b = gpu_traffic_open(&traffic, "b");
}

static void begin_lets(const char *a_yaml, const char *b_yaml)
{
        open_lets(a_yaml, b_yaml);
        gpu_traffic_serve(&traffic, a, 3);
        gpu_traffic_serve(&traffic, b, 3);
}

/* Both serve there; so many workers have ended that nobody had sent away. */
static void end_lets(const char *a_let, const char *b_let, uint32_t n_ended)
{
        gpu_traffic_serve_until(&traffic, a, a_let, 1, 0);
        gpu_traffic_serve_until(&traffic, b, b_let, 1, 0);
        cr_expect_eq(world_count_log(&world, "event=worker-ended"), n_ended, "%s", world_log(&world));
        starling_model_close(a);
        starling_model_close(b);
        gpu_traffic_leave(&traffic);
}

/* There is no room for both sizes at once. */
Test(gpu_lets, become_larger_and_smaller_while_they_serve)
{
        begin_lets("device: gpu:0/60%\nbatch_max: 4\ninstances: 2\n", "device: gpu:0/30%\nbatch_max: 4\n");
        gpu_traffic_submit(&traffic, a);
        world_add_model_config(&world, "a", "device: gpu:0/70%\nbatch_max: 4\ninstances: 2\n");
        gpu_traffic_expect_reload(&traffic, "a", 0, "");
        cr_expect_eq(gpu_traffic_reap_all(&traffic), 0, "%s", traffic.reason);
        gpu_traffic_serve_until(&traffic, a, "gpu:0/70%", 2, 0);
        cr_expect_eq(gpu_look_at_let(&world, "gpu:0/60%").workers, 0);
        world_add_model_config(&world, "a", "device: gpu:0/50%\nbatch_max: 4\n");
        gpu_traffic_expect_reload(&traffic, "a", 0, "");
        world_add_model_config(&world, "b", "device: gpu:0/50%\nbatch_max: 4\n");
        world_add_model_config(&world, "a", "device: gpu:0/20%\nbatch_max: 4\n");
        gpu_traffic_expect_reload(&traffic, "a", 0, "");
        gpu_traffic_expect_reload(&traffic, "b", 0, "");
        cr_expect_eq(world_count_log(&world, "event=workers-changed"), 4, "%s", world_log(&world));
        end_lets("gpu:0/20%", "gpu:0/50%", 0);
}

/* It serves on, where it was. */
Test(gpu_lets, that_find_no_room_stay)
{
        begin_lets("device: gpu:0/60%\nbatch_max: 4\n", "device: gpu:0/40%\nbatch_max: 4\n");
        world_add_model_config(&world, "a", "device: gpu:0/70%\nbatch_max: 4\n");
        gpu_traffic_expect_reload(&traffic, "a", -EIO, "a worker of batch 4 on gpu:0/70% cannot start: 70% of the device are");
        cr_expect_eq(world_count_log(&world, "event=workers-not-changed"), 1, "%s", world_log(&world));
        end_lets("gpu:0/60%", "gpu:0/40%", 1);
}

/* A model that is loaded again, as its largest batch is another, takes the place of what it was. */
Test(gpu_lets, become_larger_with_a_model_that_is_loaded_again)
{
        begin_lets("device: gpu:0/60%\nbatch_max: 4\n", "device: gpu:0/30%\nbatch_max: 4\n");
        gpu_traffic_submit(&traffic, a);
        world_add_model_config(&world, "a", "device: gpu:0/70%\nbatch_max: 8\n");
        gpu_traffic_expect_reload(&traffic, "a", 0, "");
        cr_expect_eq(gpu_traffic_reap_all(&traffic), 0, "%s", traffic.reason);
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
                gpu_traffic_submit(&traffic, round % 2 ? a : b);
                cr_assert_eq(starling_admin_apply(traffic.admin, other, 2, &error), 0, "%s\n%s", error.text, world_log(&world));
                cr_expect_eq(gpu_traffic_reap_all(&traffic), 0, "%s", traffic.reason);
                gpu_traffic_submit(&traffic, round % 2 ? a : b);
                cr_assert_eq(starling_admin_apply(traffic.admin, one, 2, &error), 0, "%s\n%s", error.text, world_log(&world));
                cr_expect_eq(gpu_traffic_reap_all(&traffic), 0, "%s", traffic.reason);
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
                gpu_traffic_submit(&traffic, a);
                cr_assert_eq(starling_admin_apply(traffic.admin, two, 2, &error), 0, "%s\n%s", error.text, world_log(&world));
                cr_expect_eq(gpu_traffic_reap_all(&traffic), 0, "%s", traffic.reason);
                gpu_traffic_submit(&traffic, a);
                cr_assert_eq(starling_admin_apply(traffic.admin, one, 1, &error), 0, "%s\n%s", error.text, world_log(&world));
                cr_expect_eq(gpu_traffic_reap_all(&traffic), 0, "%s", traffic.reason);
        }
        end_lets("gpu:0/80%", "gpu:0/20%", 0);
}

/* What is replaced has requests yet when its process ends: it comes again beside what takes its place, and takes nobody's room. */
Test(gpu_lets, of_a_model_that_is_being_replaced_take_no_room_of_others_after_a_crash)
{
        pid_t pids[GPU_PROCESSES_MAX];
        uint32_t n_ended;

        setenv("FAKE_CUDA_GRAPH_US", "10000", 1);
        open_lets("device: gpu:0/50%\nbatch_max: 4\n", "device: gpu:0/45%\nbatch_max: 4\n");
        unsetenv("FAKE_CUDA_GRAPH_US");
        gpu_traffic_submit_some(&traffic, a, GPU_TRAFFIC_MAX - 1);
        world_add_model_config(&world, "a", "device: gpu:0/40%\nbatch_max: 8\n");
        gpu_traffic_expect_reload(&traffic, "a", 0, "");
        cr_assert_eq(gpu_find_processes(&world, pids), 1);
        cr_assert_eq(kill(pids[0], SIGKILL), 0);
        world_expect_log(&world, "event=worker-ended model=b");
        gpu_traffic_submit(&traffic, b);
        if (gpu_traffic_reap_all(&traffic))
                cr_expect(strstr(traffic.reason, "was killed by signal 9"), "%s", traffic.reason);
        else
                printf("what was replaced had nothing in flight any more: the machine is slow\n");
        gpu_traffic_serve_until(&traffic, a, "gpu:0/40%", 1, 0);
        gpu_traffic_serve_until(&traffic, b, "gpu:0/45%", 1, 0);
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
        int r = starling_admin_apply(traffic.admin, allotment, 1, &error);

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
                        gpu_traffic_submit(&traffic, a);
                        cr_assert_eq(gpu_traffic_reap(&traffic), 0, "%s", traffic.reason);
                }
                cr_assert_eq(pthread_join(thread, &failure), 0);
                cr_assert_null(failure, "%s", world_log(&world));
                cr_expect_eq(gpu_traffic_reap_all(&traffic), 0, "%s", traffic.reason);
                cr_expect_eq(gpu_look_at_let(&world, left).workers, 0);
                cr_expect_eq(count_running(left), 0, "round %u: %s has jobs", round, left);
        }
        end_lets("gpu:0/50%", "gpu:0/20%", 0);
}
