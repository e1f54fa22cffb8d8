/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_traffic.h"

#include "base/clock.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BACK_NS WORLD_PATIENCE_NS

void gpu_traffic_enter(struct gpu_traffic *traffic, struct world *world, struct digits_data *data)
{
        *traffic = (struct gpu_traffic){.world = world, .data = data, .seed = 11};
        traffic->client = world_connect(world, STARLING_ROLE_CLIENT);
        traffic->admin = world_connect(world, STARLING_ROLE_ADMIN);
        cr_assert_eq(starling_queue_open(traffic->client, &traffic->queue, NULL), 0);
        for (uint32_t i = 0; i < GPU_TRAFFIC_MAX; i++)
                cr_assert_eq(digits_job_alloc(&traffic->jobs[i], data, traffic->client), 0);
}

void gpu_traffic_leave(struct gpu_traffic *traffic)
{
        for (uint32_t i = 0; i < GPU_TRAFFIC_MAX; i++)
                digits_job_free(&traffic->jobs[i], traffic->client);
        starling_close(traffic->client);
        starling_close(traffic->admin);
        world_stop(traffic->world);
}

struct starling_model *gpu_traffic_open(struct gpu_traffic *traffic, const char *name)
{
        struct starling_error error = {""};
        struct starling_model *model;

        cr_assert_eq(
                starling_model_open(traffic->client, name, &model, &error), 0, "%s\n%s", error.text, world_log(traffic->world));
        return model;
}

void gpu_traffic_submit_some(struct gpu_traffic *traffic, struct starling_model *model, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++) {
                struct starling_request request;

                if (traffic->flying[i])
                        continue;
                request = digits_ask(
                        &traffic->jobs[i], model, digits_random(&traffic->seed, 400), 1 + digits_random(&traffic->seed, 20));
                request.user_data = i;
                cr_assert_eq(starling_submit(traffic->queue, &request, NULL), 0);
                traffic->flying[i] = true;
                traffic->n_flying++;
        }
}

void gpu_traffic_submit(struct gpu_traffic *traffic, struct starling_model *model)
{
        gpu_traffic_submit_some(traffic, model, GPU_TRAFFIC_MAX);
}

/* Return: it failed. */
static bool take_completion(struct gpu_traffic *traffic, const struct starling_completion *done)
{
        char text[512];

        cr_assert(traffic->flying[done->user_data], "request %u was completed twice", (uint32_t)done->user_data);
        traffic->flying[done->user_data] = false;
        traffic->n_flying--;
        if (done->status == 0) {
                cr_assert(digits_right(&traffic->jobs[done->user_data], traffic->data, text, sizeof(text)), "%s", text);
                return false;
        }
        cr_assert_eq(done->status, -EIO);
        starling_reason_text(done, traffic->reason, sizeof(traffic->reason));
        return true;
}

uint32_t gpu_traffic_reap(struct gpu_traffic *traffic)
{
        struct starling_completion done[GPU_TRAFFIC_MAX];
        int n = starling_wait(traffic->queue, done, GPU_TRAFFIC_MAX, BACK_NS);
        uint32_t n_failed = 0;

        cr_assert_gt(n, 0, "%u requests have no answer\n%s", traffic->n_flying, world_log(traffic->world));
        for (int i = 0; i < n; i++)
                n_failed += take_completion(traffic, &done[i]);
        return n_failed;
}

uint32_t gpu_traffic_reap_all(struct gpu_traffic *traffic)
{
        uint32_t n_failed = 0;

        while (traffic->n_flying)
                n_failed += gpu_traffic_reap(traffic);
        return n_failed;
}

void gpu_traffic_serve(struct gpu_traffic *traffic, struct starling_model *model, uint32_t rounds)
{
        for (uint32_t i = 0; i < rounds; i++) {
                gpu_traffic_submit(traffic, model);
                cr_assert_eq(gpu_traffic_reap_all(traffic), 0, "%s\n%s", traffic->reason, world_log(traffic->world));
        }
}

void gpu_traffic_serve_until(
        struct gpu_traffic *traffic, struct starling_model *model, const char *let, uint32_t workers, uint32_t before)
{
        uint64_t end_ns = sl_clock_ns() + BACK_NS;
        struct gpu_shown_let shown;

        do {
                cr_assert_lt(sl_clock_ns(), end_ns, "%s", world_log(traffic->world));
                gpu_traffic_serve(traffic, model, 1);
                shown = gpu_look_at_let(traffic->world, let);
        } while (shown.workers != workers || shown.samples <= before);
}

void gpu_traffic_expect_reload(struct gpu_traffic *traffic, const char *name, int result, const char *words)
{
        struct starling_error error = {""};

        cr_expect_eq(starling_admin_reload(traffic->admin, name, &error), result, "%s\n%s", error.text, world_log(traffic->world));
        cr_expect(strstr(error.text, words), "%s", error.text);
}

uint32_t gpu_find_processes(struct world *world, pid_t ret_pids[GPU_PROCESSES_MAX])
{
        struct world_child children[GPU_PROCESSES_MAX];
        uint32_t n = world_find_children(world, "gpu", children, GPU_PROCESSES_MAX);

        cr_assert_leq(n, GPU_PROCESSES_MAX);
        memset(ret_pids, 0, GPU_PROCESSES_MAX * sizeof(*ret_pids));
        for (uint32_t i = 0; i < n; i++) {
                uint32_t gpu = (uint32_t)atoi(children[i].argument);

                cr_assert_lt(gpu, GPU_PROCESSES_MAX);
                cr_assert_eq(ret_pids[gpu], 0, "gpu:%u has two processes", gpu);
                ret_pids[gpu] = children[i].pid;
        }
        return n;
}

struct gpu_shown_let gpu_look_at_let(struct world *world, const char *let)
{
        struct gpu_shown_let shown = {0};
        char line[512], wanted[64];
        FILE *stats;

        snprintf(line, sizeof(line), "%s stats --name %s", world->program, world->name);
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
