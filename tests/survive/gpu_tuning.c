/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a GPU's process times at the first load of a model: once, kept beside the plans, and believed only as far as it was checked.
 */
#include "base/clock.h"
#include "digits.h"
#include "gpu_guest.h"
#include "world.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BACK_NS WORLD_PATIENCE_NS

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

TestSuite(gpu_tuning, .init = set_up, .fini = tear_down, .timeout = 120);
TestSuite(fake_gpu_tuning, .init = set_up, .fini = tear_down, .timeout = 120);

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
        struct gpu_guest guest;
        char text[512];

        gpu_guest_enter(&guest, &world, &data);
        for (uint32_t samples = 1; samples < 5; samples++)
                cr_assert_eq(gpu_guest_ask(&guest, name, samples, text, sizeof(text)), 0, "%s\n%s", text, world_log(&world));
        gpu_guest_leave(&guest);
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
        gpu_use_module();
        use_cache();
        world_copy_model(&world, "lenet", "a", config);
}

#define TUNED "device: gpu:0\nbatch_max: 2\n"

/* LeNet has two convolutions, each of four candidates, and three products, each of three, at two sizes. */
Test(gpu_tuning, times_candidates_at_the_first_load_and_never_again)
{
        set_up_tuning(TUNED);
        start_expecting(1, 0);
        cr_expect(getenv("STARLING_TRY_GPU") ||
                          strstr(world_log(&world), "event=gpu-tuned model=a batch=2 nodes=10 untimed=0 candidates=34 timed_seconds="),
                "%s", world_log(&world));
        world_stop(&world);
        start_expecting(0, 0);
        world_stop(&world);
}

/* Of the plans that are kept, how many hold @words. */
static uint32_t count_plans_with(const char *words)
{
        char command[256], number[16] = "";
        FILE *count;

        snprintf(command, sizeof(command), "grep -la '%s' %s/cache/*.plan | wc -l", words, world.folder);
        count = popen(command, "r");
        cr_assert(count && fgets(number, sizeof(number), count));
        pclose(count);
        return (uint32_t)atoi(number);
}

/* cuDNN takes no plan that was made for another device: what is planned for is asked of the one that is there. */
Test(gpu_tuning, is_of_a_plan_for_the_device_that_is_there)
{
        if (getenv("STARLING_TRY_GPU"))
                cr_skip("which device there is is not known");
        set_up_tuning(TUNED);
        world_start(&world);
        cr_expect_eq(count_plans_with("Fake 0"), 1, "%s", world_log(&world));
        world_stop(&world);
        world_copy_model(&world, "lenet", "a", TUNED "gpu: h200\n");
        world_start(&world);
        cr_expect_eq(count_plans_with("NVIDIA H200"), 1, "what is configured stands: %s", world_log(&world));
        world_stop(&world);
}

/* The plan stays: what it is for is configured. */
Test(gpu_tuning, times_candidates_again_with_another_driver)
{
        if (getenv("STARLING_TRY_GPU"))
                cr_skip("a real driver says what it is");
        set_up_tuning(TUNED "gpu: h200\n");
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

Test(gpu_tuning, times_candidates_again_when_the_file_is_damaged)
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
Test(gpu_tuning, whose_choices_are_listed_and_cleared_with_the_cache)
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

Test(gpu_tuning, times_nothing_where_that_is_not_asked_for)
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

        while (gpu_count_processes(&world, &pid) != 1 || !is_called(pid, "timing")) {
                cr_assert_lt(sl_clock_ns(), end_ns, "%s", world_log(&world));
                world_pause_us(5000);
        }
        return pid;
}

/* The load fails, nobody else's does, nothing is kept of it, and the next one takes the first candidates. */
Test(gpu_tuning, that_is_killed_while_it_times_is_not_timed_again)
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

/* They share one process and its thread, which combines for ensembles as well. */
Test(gpu_tuning, that_times_candidates_of_one_model_serves_the_others_meanwhile)
{
        struct gpu_guest guest;
        char file[128], text[512];

        if (getenv("STARLING_TRY_GPU"))
                cr_skip("a real device does not wait to be asked");
        set_up_tuning(TUNED);
        snprintf(file, sizeof(file), "%s/stand", world.folder);
        setenv("FAKE_CUDA_STANDS", file, 1);
        world_copy_model(&world, "lenet", "c", TUNED);
        world_add_model_config(&world, "both", "ensemble:\n  members: [a, c]\n  rule: maximum\n");
        world_start(&world);
        fclose(fopen(file, "w"));
        world_copy_model(&world, "lenet", "b", "device: gpu:0\nbatch_max: 4\n");
        kill(world.pid, SIGHUP);
        (void)wait_for_timing();
        gpu_guest_enter(&guest, &world, &data);
        for (uint32_t samples = 1; samples < 8; samples++) {
                cr_assert_eq(gpu_guest_ask(&guest, "a", samples, text, sizeof(text)), 0, "%s\n%s", text, world_log(&world));
                cr_assert_eq(gpu_guest_ask(&guest, "both", samples, text, sizeof(text)), 0, "%s\n%s", text, world_log(&world));
        }
        cr_expect_lt(gpu_guest_ask(&guest, "b", 1, text, sizeof(text)), 0, "it is still being timed");
        unlink(file);
        gpu_guest_expect_back(&guest, "b");
        gpu_guest_leave(&guest);
        world_stop(&world);
        unsetenv("FAKE_CUDA_STANDS");
}

static void expect_lie(const char *how, const char *words)
{
        gpu_use_fake(&world);
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

Test(fake_gpu_tuning, that_hands_over_what_it_can_change_is_not_believed)
{
        expect_lie("open", "the GPU's choices are in no sealed memory file");
}

Test(fake_gpu_tuning, that_hands_over_garbage_is_not_believed)
{
        expect_lie("garbage", "it is no file of a GPU's choices of version 1");
}

Test(fake_gpu_tuning, that_hands_over_more_than_one_thing_is_ended)
{
        expect_lie("twice", "was killed by signal 9");
}
