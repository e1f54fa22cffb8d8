/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models on a GPU (device: gpu:0): without one they are refused by one line and others are served; on the fake driver their answers
 * are right, their workers share one process, and what fails there ends nobody else.
 */
#include "base/clock.h"
#include "builder.h"
#include "digits.h"
#include "world.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BACK_NS (20 * SL_NS_PER_SECOND)

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

struct guest {
        struct starling_client *client;
        struct starling_queue *queue;
        struct digits_job job;
};

static void guest_enter(struct guest *guest)
{
        guest->client = world_connect(&world, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_queue_open(guest->client, &guest->queue, NULL), 0);
        cr_assert_eq(digits_job_alloc(&guest->job, &data, guest->client), 0);
}

static void guest_leave(struct guest *guest)
{
        digits_job_free(&guest->job, guest->client);
        starling_close(guest->client);
}

/* Return: the status of a request, whose answer is right if that is 0. */
static int ask(struct guest *guest, const char *name, uint32_t samples, char *ret_text, size_t bytes)
{
        struct starling_completion completion = {0};
        struct starling_error error = {""};
        struct starling_model *model;
        struct starling_request request;
        int status = starling_model_open(guest->client, name, &model, &error);

        snprintf(ret_text, bytes, "%s", error.text);
        if (status < 0)
                return status;
        request = digits_ask(&guest->job, model, samples % 7, samples);
        status = starling_infer(guest->queue, &request, &completion);
        starling_reason_text(&completion, ret_text, bytes);
        starling_model_close(model);
        if (status == 0)
                cr_assert(digits_right(&guest->job, &data, ret_text, bytes), "%s", ret_text);
        return status;
}

Test(gpu, that_is_not_there_refuses_its_model_by_one_line_and_others_are_served)
{
        struct guest guest;
        char text[512];

        if (dlopen("libcuda.so.1", RTLD_NOW))
                cr_skip("there is an NVIDIA driver");
        world_copy_model(&world, "lenet", "on-gpu", "device: gpu:0\n");
        world_launch(&world);
        world_expect_log(&world, "event=ready failed_models=1");
        cr_expect(strstr(world_log(&world), LACKING), "%s", world_log(&world));
        cr_expect_eq(world_count_log(&world, "event=model-failed"), 1);
        guest_enter(&guest);
        cr_assert_eq(ask(&guest, "lenet", 5, text, sizeof(text)), 0, "%s", text);
        cr_assert_lt(ask(&guest, "on-gpu", 5, text, sizeof(text)), 0);
        cr_assert_not_null(strstr(text, LACKING), "%s", text);
        guest_leave(&guest);
        world_stop(&world);
}

/* The program alone, without its module. */
Test(gpu, without_the_module_refuses_its_model_by_one_line)
{
        struct guest guest;
        char text[512];

        snprintf(text, sizeof(text), "cp %s %s/starling", STARLING, world.folder);
        cr_assert_eq(system(text), 0);
        snprintf(world.program, sizeof(world.program), "%s/starling", world.folder);
        world_copy_model(&world, "lenet", "on-gpu", "device: gpu:0\n");
        world_launch(&world);
        world_expect_log(&world, "event=ready failed_models=1");
        cr_expect(strstr(world_log(&world), "gpu:0: libstarling_cuda.so, which drives GPUs, is neither in "), "%s",
                world_log(&world));
        guest_enter(&guest);
        cr_assert_eq(ask(&guest, "lenet", 5, text, sizeof(text)), 0, "%s", text);
        guest_leave(&guest);
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

/* A module that computes by ref, on the fake driver. */
static void use_fake(void)
{
        strcpy(world.program, STARLING_FAKE_GPU);
        setenv("LD_LIBRARY_PATH", FAKE_CUDA, 1);
}

/* The module itself, on a library in the place of NVIDIA's; on the machine's own GPU where STARLING_TRY_GPU says so. */
static void use_module(void)
{
        if (getenv("STARLING_TRY_GPU"))
                return;
#ifdef FAKE_NVIDIA
        setenv("LD_LIBRARY_PATH", FAKE_NVIDIA, 1);
#else
        cr_skip("the own kernels are not built for the host");
#endif
}

static uint32_t count_processes(const char *command, pid_t *ret_pid)
{
        struct world_child child = {0};
        uint32_t n = world_find_children(&world, command, &child, 1);

        *ret_pid = child.pid;
        return n;
}

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
        struct guest guest;
        char text[512];
        pid_t pid;

        add_models();
        world_start(&world);
        cr_assert_eq(count_processes("gpu", &pid), 1);
        cr_expect(is_mapped(pid, "libstarling_cuda.so") && is_mapped(pid, "libcuda.so"));
        cr_expect_not(is_mapped(world.pid, "libstarling_cuda.so"), "the runtime has nothing of CUDA in it");
        cr_expect_not(is_mapped(world.pid, "libcuda.so"));
        guest_enter(&guest);
        for (uint32_t i = 1; i < 60; i++) {
                cr_assert_eq(ask(&guest, i % 3 ? "a" : "b", i, text, sizeof(text)), 0, "%s\n%s", text, world_log(&world));
                cr_assert_eq(ask(&guest, "lenet", 1 + i % 5, text, sizeof(text)), 0, "%s", text);
        }
        guest_leave(&guest);
        world_stop(&world);
}

/* Where it is told so, and only then: what lies behind an answer is as it was. */
static void try_arenas(void)
{
        struct guest guest;
        char text[512];
        pid_t pid;

        world_copy_model(&world, "lenet", "a", "device: gpu:0\nbatch_max: 8\n");
        world_copy_model(&world, "lenet", "b", "device: gpu:0\nbatch_max: 4\ngpu_results: arena\n");
        world_start(&world);
        guest_enter(&guest);
        cr_assert_eq(ask(&guest, "a", 5, text, sizeof(text)), 0, "%s", text);
        cr_assert_eq(count_processes("gpu", &pid), 1);
        cr_expect(is_mapped_with(pid, "starling-arena", "r--s"));
        cr_expect_not(is_mapped_with(pid, "starling-arena", "rw-s"), "no model may write there");
        for (uint32_t i = 1; i < 30; i++) {
                float *output = guest.job.output.data;

                output[i * DIGITS_OUT] = 77;
                cr_assert_eq(ask(&guest, "b", i, text, sizeof(text)), 0, "%s\n%s", text, world_log(&world));
                cr_assert_eq(output[i * DIGITS_OUT], 77);
        }
        cr_expect(is_mapped_with(pid, "starling-arena", "rw-s"));
        cr_expect_not(is_mapped_with(pid, "starling-order", "rw-s"));
        guest_leave(&guest);
        world_stop(&world);
}

/* Asks until the model is back. */
static void expect_back(struct guest *guest, const char *name)
{
        uint64_t end_ns = sl_clock_ns() + BACK_NS;
        char text[512];

        while (ask(guest, name, 3, text, sizeof(text)) < 0) {
                cr_assert_lt(sl_clock_ns(), end_ns, "%s\n%s", text, world_log(&world));
                world_pause_us(20000);
        }
}

static void try_kill(void)
{
        struct guest guest;
        char text[512];
        pid_t pid, next;

        add_models();
        world_start(&world);
        guest_enter(&guest);
        expect_back(&guest, "a");
        cr_assert_eq(count_processes("gpu", &pid), 1);
        cr_assert_eq(kill(pid, SIGKILL), 0);
        for (uint32_t i = 0; i < 20; i++)
                cr_assert_eq(ask(&guest, "lenet", 1 + i % 5, text, sizeof(text)), 0, "%s", text);
        expect_back(&guest, "a");
        expect_back(&guest, "b");
        cr_assert_eq(count_processes("gpu", &next), 1);
        cr_assert_neq(next, pid);
        guest_leave(&guest);
        world_stop(&world);
}

/* An error that sticks: the requests in flight have its cause, and the process that has it ends. */
Test(fake_gpu, that_is_lost_says_how_and_is_opened_again)
{
        struct guest guest;
        char text[512] = "";
        int status = 0;

        use_fake();
        add_models();
        setenv("FAKE_CUDA_LOSE_AT", "30", 1);
        world_start(&world);
        guest_enter(&guest);
        for (uint32_t i = 0; i < 100 && status == 0; i++)
                status = ask(&guest, "a", 2, text, sizeof(text));
        cr_assert_eq(status, -EIO, "%s", text);
        cr_assert_not_null(strstr(text, "gpu:0 (Fake 0) is lost"), "%s\n%s", text, world_log(&world));
        expect_back(&guest, "a");
        expect_back(&guest, "b");
        cr_expect_null(strstr(world_log(&world), "killed by signal"), "who was not asked has the same cause: %s", world_log(&world));
        guest_leave(&guest);
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
        struct guest guest;
        uint32_t seed = 3, n_flying = 0, n_done = 0, rounds = world_rounds("STARLING_GPU_ROUNDS", standard);
        char text[512];

        add_models();
        world_start(&world);
        guest_enter(&guest);
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
                n = starling_wait(guest.queue, done, FLYING, 20 * SL_NS_PER_SECOND);
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
        guest_leave(&guest);
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

static void expect_twice(const struct guest *guest, struct starling_model *model, uint32_t samples, uint32_t rows)
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
        struct guest guest;
        pid_t pid;

        add_open_model();
        world_start(&world);
        guest_enter(&guest);
        cr_assert_eq(starling_model_open(guest.client, "open", &model, &error), 0, "%s", error.text);
        for (uint32_t round = 0; round < 2; round++)
                for (uint32_t rows = 3; rows < 9; rows += 2)
                        expect_twice(&guest, model, 1 + rows % 5, rows);
        cr_expect_eq(count_processes("gpu", &pid), 1);
        starling_model_close(model);
        guest_leave(&guest);
        world_stop(&world);
}

/* By ref on the fake driver, and by the module itself. */
Test(fake_gpu, has_one_process_whose_answers_are_right)
{
        use_fake();
        try_answers();
}

Test(fake_gpu, writes_to_a_clients_arena_where_it_is_told_to)
{
        use_fake();
        try_arenas();
}

Test(fake_gpu, whose_process_is_killed_comes_back_and_nobody_else_notices)
{
        use_fake();
        try_kill();
}

Test(fake_gpu, answers_many_at_once)
{
        use_fake();
        try_many(1500);
}

Test(fake_gpu, serves_sizes_as_they_are_asked_for)
{
        use_fake();
        try_sizes();
}

Test(module_gpu, has_one_process_whose_answers_are_right)
{
        use_module();
        try_answers();
}

Test(module_gpu, writes_to_a_clients_arena_where_it_is_told_to)
{
        use_module();
        try_arenas();
}

Test(module_gpu, whose_process_is_killed_comes_back_and_nobody_else_notices)
{
        use_module();
        try_kill();
}

Test(module_gpu, answers_many_at_once)
{
        use_module();
        try_many(100); /* threads of a GPU's blocks take their time on a processor */
}

Test(module_gpu, serves_sizes_as_they_are_asked_for)
{
        use_module();
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

static void expect_placed(const struct guest *guest)
{
        struct starling_error error = {""};
        struct starling_model *model;

        cr_assert_eq(starling_model_open(guest->client, "placed", &model, &error), 0, "%s", error.text);
        for (uint32_t i = 1; i < 9; i++)
                expect_twice(guest, model, i, 1);
        starling_model_close(model);
}

Test(module_gpu, refuses_what_it_cannot_run_by_the_node_or_leaves_it_to_the_cpu)
{
        struct starling_error error = {""};
        struct starling_model *model;
        struct guest guest;

        use_module();
        add_wide_model("refused", "device: gpu:0\n");
        add_wide_model("placed", "device: gpu:0\nbatch_max: 4\ngpu_fallback: cpu\n");
        world_launch(&world);
        world_expect_log(&world, "event=ready failed_models=1");
        cr_expect_eq(world_count_log(&world, "event=gpu-fallback model=placed"), 1, "%s", world_log(&world));
        cr_expect_eq(world_count_log(&world, "node \\\"doubled\\\" (Mul): backend cuda cannot run it"), 2, "%s", world_log(&world));
        guest_enter(&guest);
        cr_expect_lt(starling_model_open(guest.client, "refused", &model, &error), 0);
        cr_expect_not_null(strstr(error.text, "\"doubled\" (Mul)"), "%s", error.text);
        expect_placed(&guest);
        guest_leave(&guest);
        world_stop(&world);
}

/* However many this machine has. */
Test(module_gpu, that_are_all_share_the_requests)
{
        struct guest guest;
        char text[512];
        pid_t pid;

        use_module();
        setenv("FAKE_CUDA_DEVICES", "2", 1);
        world_copy_model(&world, "lenet", "a", "device: gpu:*\nbatch_max: 8\ninstances: 2\n");
        world_start(&world);
        if (getenv("STARLING_TRY_GPU"))
                cr_expect_geq(count_processes("gpu", &pid), 1);
        else
                cr_expect_eq(count_processes("gpu", &pid), 2);
        guest_enter(&guest);
        for (uint32_t i = 1; i < 60; i++)
                cr_assert_eq(ask(&guest, "a", i, text, sizeof(text)), 0, "%s\n%s", text, world_log(&world));
        guest_leave(&guest);
        world_stop(&world);
        unsetenv("FAKE_CUDA_DEVICES");
}

/* As if it had no device: as many workers as there would have been on one GPU, whatever was said of several. */
Test(module_gpu, that_are_several_leave_it_to_as_many_workers_on_the_cpu_as_each_had)
{
        struct starling_client *admin;
        struct starling_error error = {""};
        struct guest guest;
        pid_t pid;

        if (getenv("STARLING_TRY_GPU"))
                cr_skip("there may be one GPU");
        use_module();
        setenv("FAKE_CUDA_DEVICES", "2", 1);
        add_wide_model("placed", "device: [gpu:0, gpu:1]\nbatch_max: 4\ninstances: 2\ngpu_fallback: cpu\n");
        world_start(&world);
        cr_expect_eq(world_count_log(&world, "event=gpu-fallback model=placed"), 1, "%s", world_log(&world));
        cr_expect_eq(count_processes("gpu", &pid), 0);
        world_add_model_config(&world, "placed", "device: [gpu:0, gpu:1]\nbatch_max: 4\ninstances: 3\ngpu_fallback: cpu\n");
        admin = world_connect(&world, STARLING_ROLE_ADMIN);
        cr_expect_eq(starling_admin_reload(admin, "placed", &error), 0, "%s", error.text);
        starling_close(admin);
        cr_expect(strstr(world_log(&world), "event=workers-changed model=placed version=1 workers=3"), "%s", world_log(&world));
        guest_enter(&guest);
        expect_placed(&guest);
        guest_leave(&guest);
        world_stop(&world);
        unsetenv("FAKE_CUDA_DEVICES");
}

/* One process for each. The model of one that is not there is refused, whatever others do. */
Test(fake_gpu, has_one_process_for_each_that_is_there)
{
        struct guest guest;
        char text[512];
        pid_t pid;

        use_fake();
        setenv("FAKE_CUDA_DEVICES", "2", 1);
        world_copy_model(&world, "lenet", "a", "device: gpu:0\nbatch_max: 4\n");
        world_copy_model(&world, "lenet", "b", "device: gpu:1\nbatch_max: 4\n");
        world_copy_model(&world, "lenet", "c", "device: gpu:2\nbatch_max: 4\n");
        world_launch(&world);
        world_expect_log(&world, "event=ready failed_models=1");
        cr_expect(strstr(world_log(&world), "there is no CUDA device 2: there are 2"), "%s", world_log(&world));
        guest_enter(&guest);
        cr_assert_eq(ask(&guest, "a", 5, text, sizeof(text)), 0, "%s", text);
        cr_assert_eq(ask(&guest, "b", 5, text, sizeof(text)), 0, "%s", text);
        cr_expect_eq(count_processes("gpu", &pid), 2);
        guest_leave(&guest);
        world_stop(&world);
        unsetenv("FAKE_CUDA_DEVICES");
}

static void expect_refused(const char *variable, const char *value, const char *words)
{
        struct guest guest;
        char text[512];

        use_fake();
        setenv(variable, value, 1);
        world_copy_model(&world, "lenet", "a", "device: gpu:0\nbatch_max: 8\n");
        world_launch(&world);
        world_expect_log(&world, "event=ready failed_models=1");
        cr_expect(strstr(world_log(&world), words), "%s", world_log(&world));
        guest_enter(&guest);
        cr_assert_eq(ask(&guest, "lenet", 5, text, sizeof(text)), 0, "%s", text);
        guest_leave(&guest);
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

/* ---- what is timed at the first load ---- */

static void use_cache(void)
{
        char yaml[160];

        snprintf(yaml, sizeof(yaml), "cache: {directory: %s/cache}\n", world.folder);
        world_configure(&world, yaml);
}

/* The only file of a GPU's choices; "" none is there. */
static const char *find_choices(void)
{
        static char path[256];
        char command[256];
        FILE *list;

        snprintf(command, sizeof(command), "ls -d %s/cache/*.choices 2>/dev/null", world.folder);
        list = popen(command, "r");
        cr_assert(list);
        if (!fgets(path, sizeof(path), list))
                path[0] = 0;
        path[strcspn(path, "\n")] = 0;
        pclose(list);
        return path;
}

static ino_t inode_of(const char *path)
{
        struct stat status;

        return *path && stat(path, &status) == 0 ? status.st_ino : 0;
}

/* It is copied behind the start. */
static void expect_kept_after(ino_t before)
{
        uint64_t end_ns = sl_clock_ns() + BACK_NS;

        while (inode_of(find_choices()) == before || !inode_of(find_choices())) {
                cr_assert_lt(sl_clock_ns(), end_ns, "%s", world_log(&world));
                world_pause_us(10000);
        }
}

static void expect_served(const char *name)
{
        struct guest guest;
        char text[512];

        guest_enter(&guest);
        for (uint32_t samples = 1; samples < 5; samples++)
                cr_assert_eq(ask(&guest, name, samples, text, sizeof(text)), 0, "%s\n%s", text, world_log(&world));
        guest_leave(&guest);
}

/* One start, in which so much is timed and so much is not believed; the file is another one after it if something was. */
static void start_expecting(uint32_t n_tuned, uint32_t n_ignored)
{
        ino_t before = inode_of(find_choices());

        world_start(&world);
        cr_expect_eq(world_count_log(&world, "event=gpu-tuned"), n_tuned, "%s", world_log(&world));
        cr_expect_eq(world_count_log(&world, "event=gpu-choices-ignored"), n_ignored, "%s", world_log(&world));
        expect_served("a");
        if (n_tuned)
                expect_kept_after(before);
        else
                cr_expect_eq(inode_of(find_choices()), before);
}

static void set_up_tuning(const char *config)
{
        use_module();
        use_cache();
        world_copy_model(&world, "lenet", "a", config);
}

#define TUNED "device: gpu:0\nbatch_max: 2\n"

/* LeNet has two convolutions, each of four candidates, and three products, each of three, at two sizes. */
Test(module_gpu, times_candidates_at_the_first_load_and_never_again)
{
        set_up_tuning(TUNED);
        start_expecting(1, 0);
        cr_expect(getenv("STARLING_TRY_GPU") ||
                          strstr(world_log(&world), "event=gpu-tuned model=a batch=2 nodes=10 untimed=0 candidates=34 seconds="),
                "%s", world_log(&world));
        world_stop(&world);
        start_expecting(0, 0);
        world_stop(&world);
}

Test(module_gpu, times_candidates_again_with_another_driver)
{
        if (getenv("STARLING_TRY_GPU"))
                cr_skip("a real driver says what it is");
        set_up_tuning(TUNED);
        start_expecting(1, 0);
        world_stop(&world);
        setenv("FAKE_CUDA_VERSION", "13010", 1);
        start_expecting(1, 1);
        cr_expect(strstr(world_log(&world), "are of CUDA version 13000, and this is 13010"), "%s", world_log(&world));
        world_stop(&world);
        start_expecting(0, 0);
        world_stop(&world);
        unsetenv("FAKE_CUDA_VERSION");
}

static void change_file(const char *path, long at)
{
        FILE *file = fopen(path, "r+");
        int byte;

        cr_assert(file);
        cr_assert_eq(fseek(file, at, SEEK_SET), 0);
        byte = fgetc(file);
        cr_assert_eq(fseek(file, at, SEEK_SET), 0);
        cr_assert_neq(fputc(byte ^ 0x20, file), EOF);
        fclose(file);
}

Test(module_gpu, times_candidates_again_when_the_file_is_damaged)
{
        set_up_tuning(TUNED);
        start_expecting(1, 0);
        world_stop(&world);
        change_file(find_choices(), 1000);
        start_expecting(1, 1);
        cr_expect(strstr(world_log(&world), "its checksum is another"), "%s", world_log(&world));
        world_stop(&world);
        cr_assert_eq(truncate(find_choices(), 0), 0);
        start_expecting(1, 1);
        world_stop(&world);
        start_expecting(0, 0);
        world_stop(&world);
}

/* All that is in the cache is shown, counted and cleared. */
Test(module_gpu, whose_choices_are_listed_and_cleared_with_the_cache)
{
        char command[512], line[512];
        uint32_t n = 0;
        FILE *list;

        set_up_tuning(TUNED);
        start_expecting(1, 0);
        snprintf(command, sizeof(command), "%s cache list --json --config %s", world.program, world.config_path);
        list = popen(command, "r");
        cr_assert(list);
        while (fgets(line, sizeof(line), list))
                n += strstr(line, "\"kind\": \"choices\"") != NULL;
        cr_expect_eq(pclose(list), 0);
        cr_expect_eq(n, 1);
        snprintf(command, sizeof(command), "%s cache clear --config %s", world.program, world.config_path);
        cr_expect_eq(system(command), 0);
        cr_expect_str_eq(find_choices(), "");
        world_stop(&world);
}

Test(module_gpu, times_nothing_where_that_is_not_asked_for)
{
        set_up_tuning(TUNED "gpu_tune: off\n");
        start_expecting(0, 0);
        cr_expect_str_eq(find_choices(), "");
        world_stop(&world);
}

static bool is_called(pid_t pid, const char *name)
{
        char path[64], comm[32] = "";
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%d/comm", pid);
        file = fopen(path, "r");
        if (!file)
                return false;
        if (!fgets(comm, sizeof(comm), file))
                comm[0] = 0;
        fclose(file);
        return strncmp(comm, name, strlen(name)) == 0;
}

/* The process of the GPU, in the midst of it. */
static pid_t wait_for_timing(void)
{
        uint64_t end_ns = sl_clock_ns() + BACK_NS;
        pid_t pid = 0;

        while (count_processes("gpu", &pid) != 1 || !is_called(pid, "timing")) {
                cr_assert_lt(sl_clock_ns(), end_ns, "%s", world_log(&world));
                world_pause_us(5000);
        }
        return pid;
}

/* The load fails, nobody else's does, nothing is kept of it, and the next one takes the first candidates. */
Test(module_gpu, that_is_killed_while_it_times_is_not_timed_again)
{
        struct starling_client *admin;
        struct starling_error error = {""};
        char file[128];

        if (getenv("STARLING_TRY_GPU"))
                cr_skip("a real device does not wait to be killed");
        set_up_tuning(TUNED);
        snprintf(file, sizeof(file), "%s/stand", world.folder);
        fclose(fopen(file, "w"));
        setenv("FAKE_CUDA_STANDS", file, 1);
        world_launch(&world);
        cr_assert_eq(kill(wait_for_timing(), SIGKILL), 0);
        world_expect_log(&world, "event=gpu-tuning-abandoned model=a");
        world_expect_log(&world, "event=ready failed_models=1");
        expect_served("lenet");
        cr_expect_str_eq(find_choices(), "");
        unlink(file);
        admin = world_connect(&world, STARLING_ROLE_ADMIN);
        cr_expect_eq(starling_admin_reload(admin, "a", &error), 0, "%s", error.text);
        starling_close(admin);
        expect_served("a");
        cr_expect_eq(world_count_log(&world, "event=gpu-tuned"), 0, "%s", world_log(&world));
        world_stop(&world);
        unsetenv("FAKE_CUDA_STANDS");
        start_expecting(1, 0); /* another runtime tries it once more */
        world_stop(&world);
}

/* They share one process and its thread. */
Test(module_gpu, that_times_candidates_of_one_model_serves_the_others_meanwhile)
{
        struct guest guest;
        char file[128], text[512];

        if (getenv("STARLING_TRY_GPU"))
                cr_skip("a real device does not wait to be asked");
        set_up_tuning(TUNED);
        snprintf(file, sizeof(file), "%s/stand", world.folder);
        setenv("FAKE_CUDA_STANDS", file, 1);
        world_start(&world);
        fclose(fopen(file, "w"));
        world_copy_model(&world, "lenet", "b", "device: gpu:0\nbatch_max: 4\n");
        kill(world.pid, SIGHUP);
        (void)wait_for_timing();
        guest_enter(&guest);
        for (uint32_t samples = 1; samples < 8; samples++)
                cr_assert_eq(ask(&guest, "a", samples, text, sizeof(text)), 0, "%s\n%s", text, world_log(&world));
        cr_expect_lt(ask(&guest, "b", 1, text, sizeof(text)), 0, "it is still being timed");
        unlink(file);
        expect_back(&guest, "b");
        guest_leave(&guest);
        world_stop(&world);
        unsetenv("FAKE_CUDA_STANDS");
}

static void expect_lie(const char *how, const char *words)
{
        use_fake();
        use_cache();
        setenv("FAKE_GPU_LIES", how, 1);
        world_copy_model(&world, "lenet", "a", TUNED);
        world_launch(&world);
        world_expect_log(&world, "event=ready failed_models=1");
        cr_expect(strstr(world_log(&world), words), "%s", world_log(&world));
        cr_expect_eq(world_count_log(&world, "event=gpu-tuned"), 0);
        expect_served("lenet");
        cr_expect_str_eq(find_choices(), "");
        world_stop(&world);
        unsetenv("FAKE_GPU_LIES");
}

Test(fake_gpu, that_hands_over_what_it_can_change_is_not_believed)
{
        expect_lie("open", "what a GPU has found out is in no sealed memory file");
}

Test(fake_gpu, that_hands_over_garbage_is_not_believed)
{
        expect_lie("garbage", "it is no file of a GPU's choices of version 1");
}

Test(fake_gpu, that_hands_over_more_than_one_thing_is_ended)
{
        expect_lie("twice", "was killed by signal 9");
}

#endif
