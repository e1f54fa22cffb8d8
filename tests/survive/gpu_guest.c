/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_guest.h"

#include "base/clock.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BACK_NS WORLD_PATIENCE_NS

#ifdef STARLING_FAKE_GPU

void gpu_use_fake(struct world *world)
{
        strcpy(world->program, STARLING_FAKE_GPU);
        setenv("LD_LIBRARY_PATH", FAKE_CUDA, 1);
}

void gpu_use_module(void)
{
        if (getenv("STARLING_TRY_GPU"))
                return;
#ifdef FAKE_NVIDIA
        setenv("LD_LIBRARY_PATH", FAKE_NVIDIA, 1);
#else
        cr_skip("the own kernels are not built for the host");
#endif
}

#endif

uint32_t gpu_count_processes(struct world *world, pid_t *ret_pid)
{
        struct world_child child = {0};
        uint32_t n = world_find_children(world, "gpu", &child, 1);

        *ret_pid = child.pid;
        return n;
}

void gpu_guest_enter(struct gpu_guest *guest, struct world *world, struct digits_data *data)
{
        guest->world = world;
        guest->data = data;
        guest->client = world_connect(world, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_queue_open(guest->client, &guest->queue, NULL), 0);
        cr_assert_eq(digits_job_alloc(&guest->job, data, guest->client), 0);
}

void gpu_guest_leave(struct gpu_guest *guest)
{
        digits_job_free(&guest->job, guest->client);
        starling_close(guest->client);
}

int gpu_guest_ask(struct gpu_guest *guest, const char *name, uint32_t samples, char *ret_text, size_t bytes)
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
                cr_assert(digits_right(&guest->job, guest->data, ret_text, bytes), "%s", ret_text);
        return status;
}

void gpu_guest_expect_back(struct gpu_guest *guest, const char *name)
{
        uint64_t end_ns = sl_clock_ns() + BACK_NS;
        char text[512];

        while (gpu_guest_ask(guest, name, 3, text, sizeof(text)) < 0) {
                cr_assert_lt(sl_clock_ns(), end_ns, "%s\n%s", text, world_log(guest->world));
                world_pause_us(20000);
        }
}
