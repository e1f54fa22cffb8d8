/* SPDX-License-Identifier: Apache-2.0 */
/* Plans that workers on a GPU share: once for all, those of a base too, and gone with the last of them. */
#include "gpu_programs.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base_plan.h"
#include "fake_backend.h"
#include "fake_driver.h"
#include "lower.h"
#include "lower_options.h"
#include "network.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHANNELS 32

static struct sl_cuda_driver driver;
static struct sl_cuda_device device;
static struct sl_gpu gpu;
static struct sl_gpu_programs programs;
static int base_fd, small_fd, large_fd;

static int compile(int64_t size, int on_fd)
{
        static const char *const names[] = {"node-0", "node-1", "node-2", "node-3"};
        struct sl_base_plan *base = NULL;
        struct sl_lower_options options;
        struct sl_lowered *lowered;
        struct sl_error error = {""};
        struct network net;
        int fd = memfd_create("plan", MFD_CLOEXEC);
        uint32_t x;

        network_init(&net);
        x = network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, CHANNELS, size, size));
        network_output(&net, network_conv(&net, x, CHANNELS, CHANNELS, 3, 1, 1));
        cr_assert_leq(net.graph->n_nodes, sizeof(names) / sizeof(names[0]));
        for (uint32_t i = 0; i < net.graph->n_nodes; i++)
                net.graph->nodes[i].name = names[i];
        network_finish(&net);
        sl_lower_options_init(&options);
        options.batch_max = 2;
        if (on_fd >= 0)
                cr_assert_eq(sl_base_plan_open(on_fd, &base, &error), 0, "%s", error.text);
        cr_assert_eq(sl_lowered_new_in(net.graph, &options, base, fd, &lowered, &error), 0, "%s", error.text);
        cr_assert_eq(sl_lowered_write(lowered, fd, &error), 0, "%s", error.text);
        sl_lowered_free(lowered);
        sl_base_plan_free(base);
        network_deinit(&net);
        return fd;
}

static void setup(void)
{
        struct fake_cuda_options options = fake_cuda_defaults();
        struct sl_error error = {""};

        options.granularity = SL_PAGE_BYTES;
        fake_cuda_begin(&options, &driver);
        cr_assert_eq(sl_cuda_device_open(&driver, 0, &device, &error), 0, "%s", error.text);
        cr_assert_eq(sl_gpu_init(&gpu, &device, 0, &error), 0, "%s", error.text);
        cr_assert_eq(sl_gpu_programs_init(&programs, &gpu, &error), 0, "%s", error.text);
        fake_backend_use(&device);
        base_fd = compile(6, -1);
        small_fd = compile(4, base_fd);
        large_fd = compile(8, base_fd);
}

static void teardown(void)
{
        cr_expect_eq(sl_gpu_memory_used(&gpu.memory), 0);
        close(base_fd);
        close(small_fd);
        close(large_fd);
        sl_cuda_device_close(&device);
        cr_expect_eq(fake_cuda_held(), 0);
        cr_expect_eq(fake_backend_held(), 0);
}

TestSuite(programs, .init = setup, .fini = teardown);

static uint32_t take(int fd, int on_fd)
{
        struct sl_error error = {""};
        uint32_t row;

        cr_assert_eq(sl_gpu_programs_take(&programs, fd, on_fd, &row, &error), 0, "%s", error.text);
        return row;
}

Test(programs, are_one_for_all_workers_of_a_plan)
{
        uint32_t one = take(base_fd, -1), other = take(base_fd, -1);
        uint64_t weights = gpu.memory.used[SL_GPU_WEIGHTS];

        cr_expect_eq(sl_gpu_programs_program(&programs, one), sl_gpu_programs_program(&programs, other));
        sl_gpu_programs_give_back(&programs, one);
        cr_expect_eq(gpu.memory.used[SL_GPU_WEIGHTS], weights);
        sl_gpu_programs_give_back(&programs, other);
}

/* In whatever order they come and go. */
Test(programs, that_are_derived_have_the_weights_of_their_base)
{
        uint32_t small = take(small_fd, base_fd), large, base;
        uint64_t weights = gpu.memory.used[SL_GPU_WEIGHTS];

        cr_expect_geq(weights, CHANNELS * CHANNELS * 9 * sizeof(float));
        large = take(large_fd, base_fd);
        cr_expect_lt(gpu.memory.used[SL_GPU_WEIGHTS], weights + 4096, "what both have is there once");
        base = take(base_fd, -1);
        cr_expect_not_null(sl_gpu_program_pool(sl_gpu_programs_program(&programs, base)), "its own workers need one");
        sl_gpu_programs_give_back(&programs, base);
        sl_gpu_programs_give_back(&programs, small);
        cr_expect_geq(gpu.memory.used[SL_GPU_WEIGHTS], CHANNELS * CHANNELS * 9 * sizeof(float));
        sl_gpu_programs_give_back(&programs, large);
}

/* Each call, each time: what there was goes on, and nothing stays of what was not made. */
Test(programs, that_do_not_fit_leave_nothing)
{
        static const enum fake_cuda_call calls[] = {FAKE_CUDA_mem_alloc, FAKE_CUDA_mem_create, FAKE_CUDA_event_create,
                FAKE_CUDA_mem_get_info, FAKE_CUDA_stream_create_with_priority};

        for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
                for (uint32_t nth = 1, failed = 1; failed; nth++) {
                        struct sl_error error = {""};
                        uint32_t row;

                        fake_cuda_fail(calls[i], nth, CUDA_ERROR_OUT_OF_MEMORY);
                        failed = sl_gpu_programs_take(&programs, small_fd, base_fd, &row, &error) < 0;
                        fake_cuda_fail(calls[i], 1u << 30, CUDA_SUCCESS); /* what has not been called by now is not to fail */
                        if (!failed)
                                sl_gpu_programs_give_back(&programs, row);
                        cr_assert_eq(sl_gpu_memory_used(&gpu.memory), 0, "call %zu, time %u: %s", i, nth, error.text);
                        cr_assert_eq(fake_cuda_held(), 1, "call %zu, time %u", i, nth);
                }
}
