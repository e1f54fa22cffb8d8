/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "base/error.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SAMPLES_MAX 4096u

static struct sl_port port(const char *name, int64_t width)
{
        return (struct sl_port){
                .name = name,
                .dtype = SL_DTYPE_F32,
                .shape = {.rank = 2, .dims = {SL_DIM_BATCH, width}},
        };
}

static void add_channel(struct fixture *f, uint32_t inputs, uint32_t classes)
{
        const struct sl_channel_shape shape = {.n_queues = 2, .depth = 32, .tensors = 4};
        uint64_t bytes = sl_align_up((uint64_t)SAMPLES_MAX * (inputs + classes * SL_MEMBERS_MAX) * sizeof(float), SL_PAGE_BYTES);
        struct sl_mapping mapping;
        int fd;

        cr_assert_eq(sl_channel_new(&shape, &f->channel, &f->request_fd, &f->response_fd, NULL), 0);
        cr_assert_eq(sl_segment_create("test-arena", bytes, SL_SEAL_SHARED, &fd, &mapping, NULL), 0);
        close(fd);
        cr_assert_eq(sl_channel_add_region(f->channel, f->regions, &mapping, -1), 0);
        f->inputs = mapping.base;
        f->outputs = f->inputs + (size_t)SAMPLES_MAX * inputs;
}

struct fixture *fixture_new(uint32_t n_members, enum sl_rule rule, uint32_t inputs, uint32_t classes, uint32_t segment_samples)
{
        struct fixture *f = calloc(1, sizeof(*f));
        struct sl_model *members[SL_MEMBERS_MAX];
        float weights[SL_MEMBERS_MAX];
        struct sl_ensemble_options options = {
                .name = "test",
                .rule = rule,
                .weights = weights,
                .segment_samples = segment_samples,
                .samples_max = SAMPLES_MAX,
                .queue_requests = 16,
                .clients_max = 4,
        };
        struct sl_error error;

        f->info = (struct sl_plan_info){
                .n_inputs = 1,
                .n_outputs = 1,
                .inputs = &f->ports[0],
                .outputs = &f->ports[1],
                .n_batches = 1,
                .batchable = 1,
                .batches = {1},
        };
        f->info.inputs[0] = port("x", inputs);
        f->info.outputs[0] = port("y", classes);
        for (uint32_t m = 0; m < n_members; m++) {
                snprintf(f->models[m].name, sizeof(f->models[m].name), "member%u", m);
                f->models[m].info = &f->info;
                f->models[m].slice_samples = SL_SLICE_SAMPLES_MAX;
                f->models[m].policy = sl_policy_work_conserving;
                f->models[m].workers = (struct sl_workers){.n = 1, .list = {&f->worker}};
                cr_assert_eq(sl_scheduler_init(&f->models[m].scheduler, FIXTURE_SEGMENTS), 0);
                members[m] = &f->models[m];
                weights[m] = (float)(m + 1);
        }
        cr_assert_eq(sl_ensemble_new(&options, members, n_members, &f->ensemble, &error), 0, "%s", error.text);
        cr_assert_eq(sl_regions_new(4, &f->regions), 0);
        cr_assert_eq(sl_accumulator_new(f->regions, FIXTURE_SEGMENTS, 1 << 20, &f->accumulator), 0);
        add_channel(f, inputs, classes);
        return f;
}

void fixture_free(struct fixture *f)
{
        for (uint32_t m = 0; m < f->ensemble->assembly.n_members; m++)
                sl_scheduler_deinit(&f->models[m].scheduler);
        sl_ensemble_free(f->ensemble);
        sl_accumulator_free(f->accumulator);
        sl_channel_free(f->channel);
        sl_regions_free(f->regions);
        close(f->request_fd);
        close(f->response_fd);
        free(f);
}

struct sl_request *fixture_request(struct fixture *f, uint16_t tag, uint32_t samples)
{
        struct sl_queue *queue = &f->channel->queues[0];
        struct sl_request *request = &queue->requests[tag];
        struct sl_place *tensors = f->channel->tensors + (size_t)tag * f->channel->shape.tensors;

        cr_assert_lt(tag, f->channel->shape.depth);
        *request = (struct sl_request){
                .work = {.assembly = &f->ensemble->assembly, .inputs = tensors, .outputs = tensors + 1, .segments = SL_NO_SEGMENT},
                .queue = queue,
                .ensemble = f->ensemble,
                .samples = samples,
                .tag = tag,
        };
        for (uint32_t i = 0; i <= f->ensemble->assembly.n_outputs; i++)
                tensors[i].region = f->channel->regions[0].number;
        for (uint32_t i = 0; i < f->ensemble->assembly.n_outputs; i++)
                request->work.outputs[i].offset = (uint64_t)((char *)f->outputs - (char *)f->inputs);
        return request;
}
