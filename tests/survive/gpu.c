/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models on a GPU (device: gpu:0): without one they are refused by one line and others are served; on the fake driver their answers
 * are right, their workers share one process, and what fails there ends nobody else.
 */
#include "base/clock.h"
#include "builder.h"
#include "digits.h"
#include "freeze.h"
#include "gpu_guest.h"
#include "world.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef STARLING_FAKE_GPU
#define LACKING "there is no NVIDIA driver, 580 or newer is needed"
#else
#define LACKING "libstarling_cuda.so, which drives GPUs, is neither in "
#endif

static struct world world;
static struct digits_data data;

static void set_up(void)
{
        world_init(&world);
        world_keep(&world, "lenet");
        cr_assert(digits_read(&data, "lenet"));
}

static void tear_down(void)
{
        digits_release(&data);
        world_free(&world);
}

TestSuite(gpu, .init = set_up, .fini = tear_down, .timeout = 120);
TestSuite(fake_gpu, .init = set_up, .fini = tear_down, .timeout = 120);
TestSuite(module_gpu, .init = set_up, .fini = tear_down, .timeout = 120);

Test(gpu, that_is_not_there_refuses_its_model_by_one_line_and_others_are_served)
{
        struct gpu_guest guest;
        char text[512];

        if (dlopen("libcuda.so.1", RTLD_NOW))
                cr_skip("there is an NVIDIA driver");
        world_copy_model(&world, "lenet", "on-gpu", "device: gpu:0\n");
        world_launch(&world);
        world_expect_log(&world, "event=ready failed_models=1");
        cr_expect(strstr(world_log(&world), LACKING), "%s", world_log(&world));
        cr_expect_eq(world_count_log(&world, "event=model-failed"), 1);
        gpu_guest_enter(&guest, &world, &data);
        cr_assert_eq(gpu_guest_ask(&guest, "lenet", 5, text, sizeof(text)), 0, "%s", text);
        cr_assert_lt(gpu_guest_ask(&guest, "on-gpu", 5, text, sizeof(text)), 0);
        cr_assert_not_null(strstr(text, LACKING), "%s", text);
        gpu_guest_leave(&guest);
        world_stop(&world);
}

/* The program alone, without its module. */
Test(gpu, without_the_module_refuses_its_model_by_one_line)
{
        struct gpu_guest guest;
        char text[512];

        snprintf(text, sizeof(text), "cp %s %s/starling", STARLING, world.folder);
        cr_assert_eq(system(text), 0);
        snprintf(world.program, sizeof(world.program), "%s/starling", world.folder);
        world_copy_model(&world, "lenet", "on-gpu", "device: gpu:0\n");
        world_launch(&world);
        world_expect_log(&world, "event=ready failed_models=1");
        cr_expect(strstr(world_log(&world), "gpu:0: libstarling_cuda.so, which drives GPUs, is neither in "), "%s",
                world_log(&world));
        gpu_guest_enter(&guest, &world, &data);
        cr_assert_eq(gpu_guest_ask(&guest, "lenet", 5, text, sizeof(text)), 0, "%s", text);
        gpu_guest_leave(&guest);
        world_stop(&world);
}

Test(gpu, of_a_wrong_name_is_told_where_it_stands)
{
        world_copy_model(&world, "lenet", "on-gpu", "device: gpu:0/200%\n");
        world_launch(&world);
        world_expect_log(&world, "not a number from 1 to 100");
        world_expect_log(&world, "event=ready");
        world_stop(&world);
}

#ifdef STARLING_FAKE_GPU

/* With these rights, or any: "". */
static bool is_mapped_with(pid_t pid, const char *name, const char *rights)
{
        char line[512], path[64];
        bool found = false;
        FILE *maps;

        snprintf(path, sizeof(path), "/proc/%d/maps", pid);
        maps = fopen(path, "r");
        cr_assert(maps);
        while (fgets(line, sizeof(line), maps))
                found |= strstr(line, name) && strstr(line, rights);
        fclose(maps);
        return found;
}

static bool is_mapped(pid_t pid, const char *name)
{
        return is_mapped_with(pid, name, "");
}

/* Workers of two models, two lets and several sizes. */
static void add_models(void)
{
        world_copy_model(&world, "lenet", "a", "device: gpu:0\nbatch_max: 8\nbatch_sizes: [1, 2, 8]\n");
        world_copy_model(&world, "lenet", "b", "device: gpu:0/25%\nbatch_max: 4\ngpu_completions: words\ngpu_results: arena\n");
}

static void try_answers(void)
{
        struct gpu_guest guest;
        char text[512];
        pid_t pid;

        add_models();
        world_start(&world);
        cr_assert_eq(gpu_count_processes(&world, &pid), 1);
        cr_expect(is_mapped(pid, "libstarling_cuda.so") && is_mapped(pid, "libcuda.so"));
        cr_expect_not(is_mapped(world.pid, "libstarling_cuda.so"), "the runtime has nothing of CUDA in it");
        cr_expect_not(is_mapped(world.pid, "libcuda.so"));
        gpu_guest_enter(&guest, &world, &data);
        for (uint32_t i = 1; i < 60; i++) {
                cr_assert_eq(gpu_guest_ask(&guest, i % 3 ? "a" : "b", i, text, sizeof(text)), 0, "%s\n%s", text, world_log(&world));
                cr_assert_eq(gpu_guest_ask(&guest, "lenet", 1 + i % 5, text, sizeof(text)), 0, "%s", text);
        }
        gpu_guest_leave(&guest);
        world_stop(&world);
}

/* Where it is told so, and only then: what lies behind an answer is as it was. */
static void try_arenas(void)
{
        struct gpu_guest guest;
        char text[512];
        pid_t pid;

        world_copy_model(&world, "lenet", "a", "device: gpu:0\nbatch_max: 8\n");
        world_copy_model(&world, "lenet", "b", "device: gpu:0\nbatch_max: 4\ngpu_results: arena\n");
        world_start(&world);
        gpu_guest_enter(&guest, &world, &data);
        cr_assert_eq(gpu_guest_ask(&guest, "a", 5, text, sizeof(text)), 0, "%s", text);
        cr_assert_eq(gpu_count_processes(&world, &pid), 1);
        cr_expect(is_mapped_with(pid, "starling-arena", "r--s"));
        cr_expect_not(is_mapped_with(pid, "starling-arena", "rw-s"), "no model may write there");
        for (uint32_t i = 1; i < 30; i++) {
                float *output = guest.job.output.data;

                output[i * DIGITS_OUT] = 77;
                cr_assert_eq(gpu_guest_ask(&guest, "b", i, text, sizeof(text)), 0, "%s\n%s", text, world_log(&world));
                cr_assert_eq(output[i * DIGITS_OUT], 77);
        }
        cr_expect(is_mapped_with(pid, "starling-arena", "rw-s"));
        cr_expect_not(is_mapped_with(pid, "starling-order", "rw-s"));
        gpu_guest_leave(&guest);
        world_stop(&world);
}

static void try_kill(void)
{
        struct gpu_guest guest;
        char text[512];
        pid_t pid, next;

        add_models();
        world_start(&world);
        gpu_guest_enter(&guest, &world, &data);
        gpu_guest_expect_back(&guest, "a");
        cr_assert_eq(gpu_count_processes(&world, &pid), 1);
        cr_assert_eq(kill(pid, SIGKILL), 0);
        for (uint32_t i = 0; i < 20; i++)
                cr_assert_eq(gpu_guest_ask(&guest, "lenet", 1 + i % 5, text, sizeof(text)), 0, "%s", text);
        gpu_guest_expect_back(&guest, "a");
        gpu_guest_expect_back(&guest, "b");
        cr_assert_eq(gpu_count_processes(&world, &next), 1);
        cr_assert_neq(next, pid);
        gpu_guest_leave(&guest);
        world_stop(&world);
}

/* An error that sticks: the requests in flight have its cause, and the process that has it ends. */
Test(fake_gpu, that_is_lost_says_how_and_is_opened_again)
{
        struct gpu_guest guest;
        char text[512] = "";
        int status = 0;

        gpu_use_fake(&world);
        add_models();
        setenv("FAKE_CUDA_LOSE_AT", "30", 1);
        world_start(&world);
        gpu_guest_enter(&guest, &world, &data);
        for (uint32_t i = 0; i < 100 && status == 0; i++)
                status = gpu_guest_ask(&guest, "a", 2, text, sizeof(text));
        cr_assert_eq(status, -EIO, "%s", text);
        cr_assert_not_null(strstr(text, "gpu:0 (Fake 0) is lost"), "%s\n%s", text, world_log(&world));
        gpu_guest_expect_back(&guest, "a");
        gpu_guest_expect_back(&guest, "b");
        cr_expect_null(strstr(world_log(&world), "killed by signal"), "who was not asked has the same cause: %s", world_log(&world));
        gpu_guest_leave(&guest);
        world_stop(&world);
        unsetenv("FAKE_CUDA_LOSE_AT");
}

#define FLYING 12u

/* Several requests of each size on their way, of two models, from one client. */
static void try_many(uint32_t standard)
{
        static const char *const names[] = {"a", "b"};
        struct digits_job jobs[FLYING];
        bool flying[FLYING] = {false};
        struct starling_model *models[2];
        struct gpu_guest guest;
        uint32_t seed = 3, n_flying = 0, n_done = 0, rounds = world_rounds("STARLING_GPU_ROUNDS", standard);
        char text[512];

        add_models();
        world_start(&world);
        gpu_guest_enter(&guest, &world, &data);
        for (uint32_t i = 0; i < 2; i++)
                cr_assert_eq(starling_model_open(guest.client, names[i], &models[i], NULL), 0);
        for (uint32_t i = 0; i < FLYING; i++)
                cr_assert_eq(digits_job_alloc(&jobs[i], &data, guest.client), 0);
        while (n_done < rounds || n_flying) {
                struct starling_completion done[FLYING];
                int n;

                for (uint32_t i = 0; i < FLYING && n_done + n_flying < rounds; i++) {
                        if (flying[i])
                                continue;
                        struct starling_request request =
                                digits_ask(&jobs[i], models[i % 2], digits_random(&seed, 400), 1 + digits_random(&seed, 20));

                        request.user_data = i;
                        cr_assert_eq(starling_submit(guest.queue, &request, NULL), 0);
                        flying[i] = true;
                        n_flying++;
                }
                n = starling_wait(guest.queue, done, FLYING, 60 * SL_NS_PER_SECOND);
                cr_assert_gt(n, 0, "%u requests have no answer\n%s", n_flying, world_log(&world));
                for (int i = 0; i < n; i++) {
                        struct digits_job *job = &jobs[done[i].user_data];

                        cr_assert_eq(done[i].status, 0, "%s", starling_reason_text(&done[i], text, sizeof(text)));
                        cr_assert(digits_right(job, &data, text, sizeof(text)), "%s", text);
                        flying[done[i].user_data] = false;
                        n_flying--;
                        n_done++;
                }
        }
        for (uint32_t i = 0; i < FLYING; i++)
                digits_job_free(&jobs[i], guest.client);
        for (uint32_t i = 0; i < 2; i++)
                starling_model_close(models[i]);
        gpu_guest_leave(&guest);
        world_stop(&world);
}

#define COLUMNS 8u

/* y = 2 x, for any number of rows in a sample. */
static void add_open_model(void)
{
        static float twice[COLUMNS * COLUMNS];
        struct builder *b = builder_new(13);
        uint8_t *file;
        size_t bytes;

        for (uint32_t i = 0; i < COLUMNS; i++)
                twice[i * COLUMNS + i] = 2;
        builder_input(b, "x", STARLING_F32, DIMS(-1, -2, COLUMNS));
        builder_floats(b, "twice", DIMS(COLUMNS, COLUMNS), twice);
        builder_node(b, "MatMul", "x,twice", "y");
        builder_output(b, "y");
        file = builder_pack(b, &bytes);
        world_add_model(&world, "open", file, bytes);
        world_add_model_config(&world, "open", "device: gpu:0\nbatch_max: 4\n");
        builder_free(b);
}

static void expect_twice(const struct gpu_guest *guest, struct starling_model *model, uint32_t samples, uint32_t rows)
{
        const uint32_t dims[] = {samples, rows, COLUMNS};
        struct starling_tensor x, y;
        struct starling_completion done;
        char text[512];

        cr_assert_eq(starling_tensor_alloc(guest->client, STARLING_F32, 3, dims, &x), 0);
        cr_assert_eq(starling_tensor_alloc(guest->client, STARLING_F32, 3, dims, &y), 0);
        for (uint32_t i = 0; i < samples * rows * COLUMNS; i++)
                ((float *)x.data)[i] = (float)(i + rows);
        struct starling_request request = {.model = model, .inputs = &x, .n_inputs = 1, .outputs = &y, .n_outputs = 1};

        cr_assert_eq(starling_infer(guest->queue, &request, &done), 0, "%u rows: %s\n%s", rows,
                starling_reason_text(&done, text, sizeof(text)), world_log(&world));
        for (uint32_t i = 0; i < samples * rows * COLUMNS; i++)
                cr_assert_eq(((float *)y.data)[i], 2 * (float)(i + rows), "%u rows, element %u", rows, i);
        starling_free(guest->client, x.data);
        starling_free(guest->client, y.data);
}

/* Each size is a plan of its own, derived from that of the first. */
static void try_sizes(void)
{
        struct starling_error error = {""};
        struct starling_model *model;
        struct gpu_guest guest;
        pid_t pid;

        add_open_model();
        world_start(&world);
        gpu_guest_enter(&guest, &world, &data);
        cr_assert_eq(starling_model_open(guest.client, "open", &model, &error), 0, "%s", error.text);
        for (uint32_t round = 0; round < 2; round++)
                for (uint32_t rows = 3; rows < 9; rows += 2)
                        expect_twice(&guest, model, 1 + rows % 5, rows);
        cr_expect_eq(gpu_count_processes(&world, &pid), 1);
        starling_model_close(model);
        gpu_guest_leave(&guest);
        world_stop(&world);
}

/* By ref on the fake driver, and by the module itself. */
Test(fake_gpu, has_one_process_whose_answers_are_right)
{
        gpu_use_fake(&world);
        try_answers();
}

Test(fake_gpu, writes_to_a_clients_arena_where_it_is_told_to)
{
        gpu_use_fake(&world);
        try_arenas();
}

Test(fake_gpu, whose_process_is_killed_comes_back_and_nobody_else_notices)
{
        gpu_use_fake(&world);
        try_kill();
}

/* That a process may answer nothing: what is not stopped answers in less, however busy the machine is. */
#if WORLD_SLOW
#define HANG "hang_ms: 5000\n"
#else
#define HANG "hang_ms: 2000\n"
#endif

/* The next worker gets another process, and not the one that is dead. */
Test(fake_gpu, whose_process_hangs_is_killed_and_comes_back)
{
        struct gpu_guest guest;
        char text[512];

        gpu_use_fake(&world);
        world_copy_model(&world, "lenet", "a", "device: gpu:0\nbatch_max: 2\n" HANG);
        world_start(&world);
        gpu_guest_enter(&guest, &world, &data);
        for (int round = 0; round < 3; round++) {
                pid_t pid;

                gpu_guest_expect_back(&guest, "a");
                cr_assert_eq(gpu_count_processes(&world, &pid), 1);
                cr_assert(freeze(pid));
                cr_expect_eq(gpu_guest_ask(&guest, "a", 1, text, sizeof(text)), 0, "it had not begun: %s", text);
        }
        cr_expect_eq(world_count_log(&world, "event=worker-ended model=a cause=\"its process was killed, as it answered nothing for"), 3);
        cr_expect_eq(world_count_log(&world, "takes no worker"), 0, "%s", world_log(&world));
        gpu_guest_leave(&guest);
        world_stop(&world);
}

/* They are told that it was for another one, and for what. */
Test(fake_gpu, whose_process_hangs_ends_the_workers_of_other_models_with_that_cause)
{
        struct gpu_guest guest;
        char text[512];
        pid_t pid;

        gpu_use_fake(&world);
        world_copy_model(&world, "lenet", "a", "device: gpu:0\nbatch_max: 2\n" HANG);
        world_copy_model(&world, "lenet", "b", "device: gpu:0\nbatch_max: 2\n");
        world_start(&world);
        gpu_guest_enter(&guest, &world, &data);
        gpu_guest_expect_back(&guest, "a");
        cr_assert_eq(gpu_count_processes(&world, &pid), 1);
        cr_assert(freeze(pid));
        cr_expect_eq(gpu_guest_ask(&guest, "a", 1, text, sizeof(text)), 0, "it had not begun: %s", text);
        gpu_guest_expect_back(&guest, "b");
        cr_expect_eq(world_count_log(&world,
                             "event=worker-ended model=b cause=\"its process was killed, as a worker of \\\"a\\\" in it answered "
                             "nothing for "),
                1, "%s", world_log(&world));
        cr_expect_eq(world_count_log(&world, "killed by signal"), 0, "%s", world_log(&world));
        gpu_guest_leave(&guest);
        world_stop(&world);
}

/* A busy machine takes a while to end what was killed. */
static void kill_to_the_end(pid_t pid)
{
        struct pollfd end = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};

        cr_assert_geq(end.fd, 0);
        cr_assert_eq(kill(pid, SIGKILL), 0);
        cr_assert_eq(poll(&end, 1, (int)(WORLD_PATIENCE_NS / SL_NS_PER_MS)), 1);
        close(end.fd);
}

/* Whoever comes when it has just died, before anybody has heard of that, gets another one. */
Test(fake_gpu, whose_process_has_just_died_takes_no_model)
{
        struct gpu_guest guest;
        char name[16];

        gpu_use_fake(&world);
        world_copy_model(&world, "lenet", "a", "device: gpu:0\nbatch_max: 2\n");
        world_start(&world);
        gpu_guest_enter(&guest, &world, &data);
        for (int round = 0; round < 5; round++) {
                pid_t pid;

                gpu_guest_expect_back(&guest, "a");
                cr_assert_eq(gpu_count_processes(&world, &pid), 1);
                cr_assert(freeze(world.pid));
                snprintf(name, sizeof(name), "b%d", round);
                world_copy_model(&world, "lenet", name, "device: gpu:0\nbatch_max: 2\n");
                kill_to_the_end(pid);
                cr_assert_eq(kill(world.pid, SIGHUP), 0);
                world_pause_us(20000);
                cr_assert_eq(kill(world.pid, SIGCONT), 0);
                gpu_guest_expect_back(&guest, name);
        }
        cr_expect_eq(world_count_log(&world, "event=model-failed"), 0, "%s", world_log(&world));
        gpu_guest_leave(&guest);
        world_stop(&world);
}

Test(fake_gpu, answers_many_at_once)
{
        gpu_use_fake(&world);
        try_many(1500);
}

/* y = 2 x, a row to a sample. */
static void add_twice_model(const char *config)
{
        static float twice[COLUMNS * COLUMNS];
        struct builder *b = builder_new(13);
        uint8_t *file;
        size_t bytes;

        for (uint32_t i = 0; i < COLUMNS; i++)
                twice[i * COLUMNS + i] = 2;
        builder_input(b, "x", STARLING_F32, DIMS(-1, COLUMNS));
        builder_floats(b, "twice", DIMS(COLUMNS, COLUMNS), twice);
        builder_node(b, "MatMul", "x,twice", "y");
        builder_output(b, "y");
        file = builder_pack(b, &bytes);
        world_add_model(&world, "twice", file, bytes);
        world_add_model_config(&world, "twice", config);
        builder_free(b);
}

#define ROUNDS        60u
#define TWICE_SAMPLES 2000u

/* A request for twice as much of each of its numbers, and what it is to be answered. */
struct twice {
        struct starling_tensor x, y;
};

static void twice_submit(struct twice *twice, const struct gpu_guest *guest, struct starling_model *model, uint32_t number)
{
        struct starling_request request = {
                .model = model, .inputs = &twice->x, .n_inputs = 1, .outputs = &twice->y, .n_outputs = 1, .user_data = number};

        for (uint32_t i = 0; i < TWICE_SAMPLES * COLUMNS; i++)
                ((float *)twice->x.data)[i] = (float)(i + number);
        memset(twice->y.data, 0, twice->y.bytes);
        cr_assert_eq(starling_submit(guest->queue, &request, NULL), 0);
}

static void twice_expect(const struct twice *twice, uint32_t number)
{
        for (uint32_t i = 0; i < TWICE_SAMPLES * COLUMNS; i++)
                cr_assert_eq(((float *)twice->y.data)[i], 2 * (float)(i + number), "request %u, element %u", number, i);
}

/* Pages as large as a device has them: samples are no whole number of them, so that few fit the pool, which those that fly fill. */
Test(fake_gpu, has_more_workers_and_fewer_while_it_is_busy)
{
        struct starling_completion done[FLYING];
        struct starling_error error = {""};
        struct twice requests[FLYING];
        struct starling_model *model;
        struct starling_client *admin;
        struct gpu_guest guest;
        char text[512], config[64];

        gpu_use_fake(&world);
        setenv("FAKE_CUDA_GRANULARITY", "2097152", 1);
        add_twice_model("device: gpu:0\nbatch_max: 32\ninstances: 1\n");
        world_start(&world);
        unsetenv("FAKE_CUDA_GRANULARITY");
        gpu_guest_enter(&guest, &world, &data);
        admin = world_connect(&world, STARLING_ROLE_ADMIN);
        cr_assert_eq(starling_model_open(guest.client, "twice", &model, NULL), 0);
        for (uint32_t i = 0; i < FLYING; i++) {
                const uint32_t dims[] = {TWICE_SAMPLES, COLUMNS};

                cr_assert_eq(starling_tensor_alloc(guest.client, STARLING_F32, 2, dims, &requests[i].x), 0);
                cr_assert_eq(starling_tensor_alloc(guest.client, STARLING_F32, 2, dims, &requests[i].y), 0);
        }
        for (uint32_t round = 0; round < ROUNDS; round++) {
                for (uint32_t i = 0; i < FLYING; i++)
                        twice_submit(&requests[i], &guest, model, i);
                snprintf(config, sizeof(config), "device: gpu:0\nbatch_max: 32\ninstances: %u\n", 1 + (round + 1) % 4);
                world_add_model_config(&world, "twice", config);
                cr_assert_eq(starling_admin_reload(admin, "twice", &error), 0, "%s\n%s", error.text, world_log(&world));
                for (uint32_t n = 0; n < FLYING;) {
                        int r = starling_wait(guest.queue, done, FLYING, 60 * SL_NS_PER_SECOND);

                        cr_assert_gt(r, 0, "%u of %u are answered\n%s", n, FLYING, world_log(&world));
                        for (int i = 0; i < r; i++) {
                                cr_assert_eq(done[i].status, 0, "%s", starling_reason_text(&done[i], text, sizeof(text)));
                                twice_expect(&requests[done[i].user_data], (uint32_t)done[i].user_data);
                        }
                        n += (uint32_t)r;
                }
        }
        cr_expect_eq(world_count_log(&world, "event=workers-changed model=twice"), ROUNDS, "%s", world_log(&world));
        for (uint32_t i = 0; i < FLYING; i++) {
                starling_free(guest.client, requests[i].x.data);
                starling_free(guest.client, requests[i].y.data);
        }
        starling_model_close(model);
        starling_close(admin);
        gpu_guest_leave(&guest);
        world_stop(&world);
}

Test(fake_gpu, serves_sizes_as_they_are_asked_for)
{
        gpu_use_fake(&world);
        try_sizes();
}

Test(module_gpu, has_one_process_whose_answers_are_right)
{
        gpu_use_module();
        try_answers();
}

Test(module_gpu, writes_to_a_clients_arena_where_it_is_told_to)
{
        gpu_use_module();
        try_arenas();
}

Test(module_gpu, whose_process_is_killed_comes_back_and_nobody_else_notices)
{
        gpu_use_module();
        try_kill();
}

Test(module_gpu, answers_many_at_once)
{
        gpu_use_module();
        try_many(100); /* threads of a GPU's blocks take their time on a processor */
}

Test(module_gpu, serves_sizes_as_they_are_asked_for)
{
        gpu_use_module();
        try_sizes();
}

/* y = 2 x, in numbers of 64 bits, which no GPU's kernel has. */
static void add_wide_model(const char *name, const char *config)
{
        static const double two = 2;
        struct builder *b = builder_new(13);
        uint8_t *file;
        size_t bytes;

        builder_input(b, "x", STARLING_F32, DIMS(-1, 1, COLUMNS));
        builder_attr_int(b, builder_node(b, "Cast", "x", "wide"), "to", ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE);
        builder_raw(b, "two", SL_DTYPE_F64, DIMS(1), &two);
        builder_node(b, "Mul", "wide,two", "doubled");
        builder_attr_int(b, builder_node(b, "Cast", "doubled", "y"), "to", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
        builder_declare_output(b, "y", STARLING_F32, DIMS(-1, 1, COLUMNS));
        file = builder_pack(b, &bytes);
        world_add_model(&world, name, file, bytes);
        world_add_model_config(&world, name, config);
        builder_free(b);
}

static void expect_placed(const struct gpu_guest *guest)
{
        struct starling_error error = {""};
        struct starling_model *model;

        cr_assert_eq(starling_model_open(guest->client, "placed", &model, &error), 0, "%s", error.text);
        for (uint32_t i = 1; i < 9; i++)
                expect_twice(guest, model, i, 1);
        starling_model_close(model);
}

/* On cores, where it is, and on no GPU: a hangup changes nothing of that. */
static void expect_allotted(struct gpu_guest *guest)
{
        const struct starling_allotment rows[] = {{"placed", "cpu", 2}, {"placed", "cpu", 4}}, on_gpu = {"placed", "gpu:0", 4};
        struct starling_client *admin = world_connect(&world, STARLING_ROLE_ADMIN);
        struct starling_error error = {""};

        cr_expect_eq(starling_admin_apply(admin, &on_gpu, 1, &error), -EINVAL);
        cr_expect_str_eq(error.text,
                "model \"placed\": a worker on gpu:0: it fell back to the CPU (gpu_fallback), for which its plan was made");
        cr_assert_eq(starling_admin_apply(admin, rows, 2, &error), 0, "%s", error.text);
        kill(world.pid, SIGHUP);
        world_expect_log(&world, "event=reload");
        cr_expect_eq(starling_admin_reload(admin, "lenet", &error), 0, "after the hangup: %s", error.text);
        cr_expect_eq(world_count_log(&world, "event=workers-changed model=placed"), 0, "%s", world_log(&world));
        expect_placed(guest);
        starling_close(admin);
}

Test(module_gpu, refuses_what_it_cannot_run_by_the_node_or_leaves_it_to_the_cpu)
{
        struct starling_error error = {""};
        struct starling_model *model;
        struct gpu_guest guest;

        gpu_use_module();
        add_wide_model("refused", "device: gpu:0\n");
        add_wide_model("placed", "device: gpu:0\nbatch_max: 4\ngpu_fallback: cpu\n");
        world_launch(&world);
        world_expect_log(&world, "event=ready failed_models=1");
        cr_expect_eq(world_count_log(&world, "event=gpu-fallback model=placed"), 1, "%s", world_log(&world));
        cr_expect_eq(world_count_log(&world, "node \\\"doubled\\\" (Mul): backend cuda cannot run it"), 2, "%s", world_log(&world));
        gpu_guest_enter(&guest, &world, &data);
        cr_expect_lt(starling_model_open(guest.client, "refused", &model, &error), 0);
        cr_expect_not_null(strstr(error.text, "\"doubled\" (Mul)"), "%s", error.text);
        expect_placed(&guest);
        expect_allotted(&guest);
        gpu_guest_leave(&guest);
        world_stop(&world);
}

#define SOME 8u

static void predict(struct gpu_guest *guest, const char *name, float ret_numbers[SOME * DIGITS_OUT])
{
        struct starling_error error = {""};
        struct starling_completion done = {0};
        struct starling_request request;
        struct starling_model *model;
        char text[512];

        cr_assert_eq(starling_model_open(guest->client, name, &model, &error), 0, "%s", error.text);
        request = digits_ask(&guest->job, model, 0, SOME);
        cr_assert_eq(
                starling_infer(guest->queue, &request, &done), 0, "%s: %s", name, starling_reason_text(&done, text, sizeof(text)));
        memcpy(ret_numbers, guest->job.out.data, sizeof(float) * SOME * DIGITS_OUT);
        starling_model_close(model);
}

/* Of models "on-gpu" and "on-cpu". */
static void expect_same_predictions(float bound)
{
        float on_gpu[SOME * DIGITS_OUT], on_cpu[SOME * DIGITS_OUT], largest = 0;
        struct gpu_guest guest;

        world_start(&world);
        gpu_guest_enter(&guest, &world, &data);
        predict(&guest, "on-gpu", on_gpu);
        predict(&guest, "on-cpu", on_cpu);
        for (uint32_t i = 0; i < SOME * DIGITS_OUT; i++) {
                largest = on_cpu[i] > largest ? on_cpu[i] : largest;
                cr_expect_float_eq(
                        on_gpu[i], on_cpu[i], bound, "number %u: %f, the CPU has %f", i, (double)on_gpu[i], (double)on_cpu[i]);
        }
        cr_expect_gt(largest, 0.0f, "nothing was predicted");
        gpu_guest_leave(&guest);
        world_stop(&world);
}

/* Sums of bytes are exact on both; what lies between them is float32, in another order. */
Test(module_gpu, computes_an_int8_model_as_the_cpu_does)
{
        gpu_use_module();
        world_copy_int8_model(&world, "resnet", "on-gpu", "device: gpu:0\nbatch_max: 8\n");
        world_copy_int8_model(&world, "resnet", "on-cpu", "");
        expect_same_predictions(1e-3f);
}

/* Narrow from one end to the other. */
Test(module_gpu, computes_a_bfloat16_model_as_the_cpu_does_in_float32)
{
        gpu_use_module();
        world_copy_model(&world, "resnet", "on-gpu", "device: gpu:0\nbatch_max: 8\nprecision: bf16\n");
        world_copy_model(&world, "resnet", "on-cpu", "");
        expect_same_predictions(3e-2f);
}

/* Nothing on the device is lost by that. */
Test(module_gpu, on_which_a_library_takes_no_more_serves_what_it_has)
{
        char text[512];
        struct gpu_guest guest;
        pid_t pid, later;

        if (getenv("STARLING_TRY_GPU"))
                cr_skip("a real device takes more");
        gpu_use_module();
        setenv("FAKE_CUDNN_HANDLES", "1", 1);
        world_copy_model(&world, "lenet", "a", "device: gpu:0\nbatch_max: 2\n");
        world_start(&world);
        cr_assert_eq(gpu_count_processes(&world, &pid), 1);
        gpu_guest_enter(&guest, &world, &data);
        world_copy_model(&world, "lenet", "b", "device: gpu:0\nbatch_max: 2\n");
        kill(world.pid, SIGHUP);
        world_expect_log(&world, "event=model-failed model=b");
        cr_expect(strstr(world_log(&world), "cuDNN does not start on the device"), "%s", world_log(&world));
        cr_expect_eq(gpu_guest_ask(&guest, "a", 2, text, sizeof(text)), 0, "%s\n%s", text, world_log(&world));
        cr_assert_eq(gpu_count_processes(&world, &later), 1);
        cr_expect_eq(later, pid, "%s", world_log(&world));
        gpu_guest_leave(&guest);
        world_stop(&world);
        unsetenv("FAKE_CUDNN_HANDLES");
}

/* However many this machine has. */
Test(module_gpu, that_are_all_share_the_requests)
{
        struct gpu_guest guest;
        char text[512];
        pid_t pid;

        gpu_use_module();
        setenv("FAKE_CUDA_DEVICES", "2", 1);
        world_copy_model(&world, "lenet", "a", "device: gpu:*\nbatch_max: 8\ninstances: 2\n");
        world_start(&world);
        if (getenv("STARLING_TRY_GPU"))
                cr_expect_geq(gpu_count_processes(&world, &pid), 1);
        else
                cr_expect_eq(gpu_count_processes(&world, &pid), 2);
        gpu_guest_enter(&guest, &world, &data);
        for (uint32_t i = 1; i < 60; i++)
                cr_assert_eq(gpu_guest_ask(&guest, "a", i, text, sizeof(text)), 0, "%s\n%s", text, world_log(&world));
        gpu_guest_leave(&guest);
        world_stop(&world);
        unsetenv("FAKE_CUDA_DEVICES");
}

/* As if it had no device: as many workers as there would have been on one GPU, whatever was said of several. */
Test(module_gpu, that_are_several_leave_it_to_as_many_workers_on_the_cpu_as_each_had)
{
        struct starling_client *admin;
        struct starling_error error = {""};
        struct gpu_guest guest;
        pid_t pid;

        if (getenv("STARLING_TRY_GPU"))
                cr_skip("there may be one GPU");
        gpu_use_module();
        setenv("FAKE_CUDA_DEVICES", "2", 1);
        add_wide_model("placed", "device: [gpu:0, gpu:1]\nbatch_max: 4\ninstances: 2\ngpu_fallback: cpu\n");
        world_start(&world);
        cr_expect_eq(world_count_log(&world, "event=gpu-fallback model=placed"), 1, "%s", world_log(&world));
        cr_expect_eq(gpu_count_processes(&world, &pid), 0);
        world_add_model_config(&world, "placed", "device: [gpu:0, gpu:1]\nbatch_max: 4\ninstances: 3\ngpu_fallback: cpu\n");
        admin = world_connect(&world, STARLING_ROLE_ADMIN);
        cr_expect_eq(starling_admin_reload(admin, "placed", &error), 0, "%s", error.text);
        starling_close(admin);
        cr_expect(strstr(world_log(&world), "event=workers-changed model=placed version=1 workers=3"), "%s", world_log(&world));
        gpu_guest_enter(&guest, &world, &data);
        expect_placed(&guest);
        gpu_guest_leave(&guest);
        world_stop(&world);
        unsetenv("FAKE_CUDA_DEVICES");
}

/* One process for each. The model of one that is not there is refused, whatever others do. */
Test(fake_gpu, has_one_process_for_each_that_is_there)
{
        struct gpu_guest guest;
        char text[512];
        pid_t pid;

        gpu_use_fake(&world);
        setenv("FAKE_CUDA_DEVICES", "2", 1);
        world_copy_model(&world, "lenet", "a", "device: gpu:0\nbatch_max: 4\n");
        world_copy_model(&world, "lenet", "b", "device: gpu:1\nbatch_max: 4\n");
        world_copy_model(&world, "lenet", "c", "device: gpu:2\nbatch_max: 4\n");
        world_launch(&world);
        world_expect_log(&world, "event=ready failed_models=1");
        cr_expect(strstr(world_log(&world), "there is no CUDA device 2: there are 2"), "%s", world_log(&world));
        gpu_guest_enter(&guest, &world, &data);
        cr_assert_eq(gpu_guest_ask(&guest, "a", 5, text, sizeof(text)), 0, "%s", text);
        cr_assert_eq(gpu_guest_ask(&guest, "b", 5, text, sizeof(text)), 0, "%s", text);
        cr_expect_eq(gpu_count_processes(&world, &pid), 2);
        gpu_guest_leave(&guest);
        world_stop(&world);
        unsetenv("FAKE_CUDA_DEVICES");
}

static void expect_refused(const char *variable, const char *value, const char *words)
{
        struct gpu_guest guest;
        char text[512];

        gpu_use_fake(&world);
        setenv(variable, value, 1);
        world_copy_model(&world, "lenet", "a", "device: gpu:0\nbatch_max: 8\n");
        world_launch(&world);
        world_expect_log(&world, "event=ready failed_models=1");
        cr_expect(strstr(world_log(&world), words), "%s", world_log(&world));
        gpu_guest_enter(&guest, &world, &data);
        cr_assert_eq(gpu_guest_ask(&guest, "lenet", 5, text, sizeof(text)), 0, "%s", text);
        gpu_guest_leave(&guest);
        world_stop(&world);
        unsetenv(variable);
}

Test(fake_gpu, that_is_none_is_told)
{
        expect_refused("FAKE_CUDA_DEVICES", "0", "there is no CUDA device");
}

Test(fake_gpu, that_is_too_old_is_told)
{
        expect_refused("FAKE_CUDA_MAJOR", "7", "CUDA device 0 (Fake 0) has compute capability 7.0, and 8.0 is needed");
}

Test(fake_gpu, whose_memory_is_too_small_is_told_what_was_wanted)
{
        expect_refused("FAKE_CUDA_MEMORY", "20000", "bytes for its weights are wanted on gpu:0 (Fake 0), 20000 are free");
}

#endif
