/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process of a GPU hands over as what it has found out: kept where it is that, else refused with what is wrong, and a plan
 * over which such a process has ended is not timed again.
 */
#include "tunings.h"

#include "base/error.h"
#include "cache_folder.h"
#include "gpu_let.h"
#include "network.h"
#include "plan.h"
#include "plan_cache.h"
#include "process_executor.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct network net;
static struct sl_plan *plan;
static struct sl_plan_cache *cache;
static struct sl_tunings tunings;
static char folder[64];
static const struct sl_gpu_let let = {.name = "gpu:0/50%", .percent = 50};
static struct sl_process_executor_options options;

static void set_up(void)
{
        struct sl_error error = {""};
        int fd;

        network_init(&net);
        network_output(&net, network_apply(&net, SL_OP_RELU, network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 4))));
        network_finish(&net);
        fd = network_plan_fd(&net, "ref", 1);
        cr_assert_eq(sl_plan_open(fd, &plan, &error), 0, "%s", error.text);
        close(fd);
        strcpy(folder, "/tmp/tunings.XXXXXX");
        cr_assert(mkdtemp(folder));
        cr_assert_eq(sl_plan_cache_new(folder, 1 << 20, &cache, &error), 0, "%s", error.text);
        tunings = (struct sl_tunings){.cache = cache};
        options = (struct sl_process_executor_options){.plan = plan, .gpu = &let, .gpu_tuning = {SL_GPU_TUNE_TIMED, 1000}};
}

static void tear_down(void)
{
        uint32_t n;
        uint64_t bytes;
        int fd;

        cr_assert_eq(sl_cache_folder_open(folder, false, &fd, NULL), 0);
        cr_expect_eq(sl_cache_folder_clear(fd, &n, &bytes), 0);
        close(fd);
        sl_plan_cache_free(cache);
        cr_expect_eq(rmdir(folder), 0);
        sl_plan_free(plan);
        network_deinit(&net);
}

TestSuite(tunings, .init = set_up, .fini = tear_down);

static struct sl_gpu_choices_facts facts_of_plan(void)
{
        struct sl_plan_identity identity = sl_plan_identity(plan);

        return (struct sl_gpu_choices_facts){.identity = {.device = "Fake 0"}, .plan = {identity.checksum, identity.bytes}};
}

static int memory_file(const void *data, uint64_t bytes, int seals)
{
        int fd = memfd_create("choices", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        cr_assert_geq(fd, 0);
        cr_assert_eq(write(fd, data, bytes), (ssize_t)bytes);
        cr_assert_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
        return fd;
}

#define SEALS (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)

static int sealed_file(const struct sl_gpu_choices_facts *facts, int seals)
{
        uint64_t bytes;
        void *data;
        int fd;

        cr_assert_eq(sl_gpu_choices_write(facts, NULL, &data, &bytes), 0);
        fd = memory_file(data, bytes, seals);
        free(data);
        return fd;
}

static void expect_refused(int fd, const char *words)
{
        struct sl_gpu_choices_facts facts;
        struct sl_error error = {""};

        cr_expect_eq(sl_tunings_keep(&tunings, &options, fd, &facts, &error), -EBADMSG);
        cr_expect(strstr(error.text, words), "%s", error.text);
        close(fd);
        sl_tunings_begin(&tunings, &options);
        cr_expect_eq(options.choices_fd, -1, "nothing was kept");
}

Test(tunings, come_back_at_the_next_start)
{
        struct sl_gpu_choices_facts facts = facts_of_plan(), back;
        struct sl_error error = {""};
        int fd = sealed_file(&facts, SEALS);

        cr_assert_eq(sl_tunings_keep(&tunings, &options, fd, &back, &error), 0, "%s", error.text);
        close(fd);
        cr_assert_eq(sl_plan_cache_wait(cache, NULL), 0);
        sl_tunings_begin(&tunings, &options);
        cr_assert_geq(options.choices_fd, 0);
        cr_expect_gt(lseek(options.choices_fd, 0, SEEK_END), 0);
        close(options.choices_fd);
        options.gpu_tuning.tune = SL_GPU_TUNE_COMPILED;
        sl_tunings_begin(&tunings, &options);
        cr_expect_eq(options.choices_fd, -1, "who has more to choose from chooses anew");
        options.gpu_tuning.tune = SL_GPU_TUNE_OFF;
        sl_tunings_begin(&tunings, &options);
        cr_expect_eq(options.choices_fd, -1, "who does not choose wants none");
}

static int begin_on(const struct sl_gpu_let *there)
{
        options.gpu = there;
        sl_tunings_begin(&tunings, &options);
        return options.choices_fd;
}

Test(tunings, are_of_one_gpu_and_let)
{
        static const struct sl_gpu_let other = {.name = "gpu:1/50%", .gpu = 1, .percent = 50},
                                       half = {.name = "gpu:0", .percent = 100};
        struct sl_gpu_choices_facts facts = facts_of_plan();
        int fd = sealed_file(&facts, SEALS);

        cr_assert_eq(sl_tunings_keep(&tunings, &options, fd, &facts, NULL), 0);
        close(fd);
        cr_assert_eq(sl_plan_cache_wait(cache, NULL), 0);
        cr_expect_eq(begin_on(&other), -1);
        cr_expect_eq(begin_on(&half), -1);
        cr_expect_geq(begin_on(&let), 0);
        close(options.choices_fd);
}

Test(tunings, of_sizes_that_a_user_asked_for_count_as_that_users)
{
        struct sl_gpu_choices_facts facts = facts_of_plan();
        struct sl_cache_file *files;
        int fd = sealed_file(&facts, SEALS), directory;
        uint32_t n;

        options.asked = true;
        options.uid = 77;
        cr_assert_eq(sl_tunings_keep(&tunings, &options, fd, &facts, NULL), 0);
        close(fd);
        cr_assert_eq(sl_plan_cache_wait(cache, NULL), 0);
        cr_assert_eq(sl_cache_folder_open(folder, false, &directory, NULL), 0);
        cr_assert_eq(sl_cache_folder_list(directory, &files, &n), 0);
        cr_assert_eq(n, 1);
        cr_expect(files[0].kind == SL_CACHE_CHOICES && files[0].asked && files[0].uid == 77 && files[0].bytes > 0);
        free(files);
        close(directory);
}

Test(tunings, that_can_still_be_changed_are_refused)
{
        const struct sl_gpu_choices_facts facts = facts_of_plan();

        expect_refused(sealed_file(&facts, 0), "no sealed memory file");
        expect_refused(sealed_file(&facts, F_SEAL_GROW | F_SEAL_SHRINK), "no sealed memory file");
        expect_refused(sealed_file(&facts, F_SEAL_WRITE | F_SEAL_GROW), "no sealed memory file");
}

Test(tunings, that_are_none_are_refused)
{
        static const char garbage[4096] = "garbage";
        struct sl_gpu_choices_facts other = facts_of_plan();
        int pipes[2], fd;

        expect_refused(memory_file(garbage, sizeof(garbage), SEALS), "no file of a GPU's choices");
        expect_refused(memory_file(garbage, 0, SEALS), "0 bytes");
        fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        cr_assert_eq(ftruncate(fd, 1ll << 40), 0);
        cr_assert_eq(fcntl(fd, F_ADD_SEALS, SEALS), 0);
        expect_refused(fd, "at most");
        cr_assert_eq(pipe(pipes), 0);
        close(pipes[1]);
        expect_refused(pipes[0], "no sealed memory file");
        other.plan[0]++;
        expect_refused(sealed_file(&other, SEALS), "another plan");
}

Test(tunings, over_which_a_process_has_ended_are_not_tried_again)
{
        sl_tunings_begin(&tunings, &options);
        cr_expect_eq(options.gpu_tuning.tune, SL_GPU_TUNE_TIMED);
        sl_tunings_abandon(&tunings, &options);
        sl_tunings_begin(&tunings, &options);
        cr_expect_eq(options.gpu_tuning.tune, SL_GPU_TUNE_OFF);
        for (uint32_t i = 0; i < 3 * SL_TUNINGS_ABANDONED_MAX; i++)
                sl_tunings_abandon(&tunings, &options);
        cr_expect_eq(tunings.n_abandoned, 1);
}
