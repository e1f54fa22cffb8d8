/* SPDX-License-Identifier: Apache-2.0 */
#include "stand.h"

#include "base/clock.h"
#include "compile.h"
#include "plan.h"
#include "thread_executor.h"
#include "wait.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SEGMENTS 16u

static void compile_plan(struct stand *s)
{
        int fd;

        cr_assert_eq(sl_compile(&(struct sl_compile_options){.program = COMPILE_CHILD,
                                        .model_path = DIGITS "/models/lenet/1/model.onnx"},
                             &fd, &s->error),
                0, "%s", s->error.text);
        cr_assert_eq(sl_plan_open(fd, &s->plan, &s->error), 0, "%s", s->error.text);
        close(fd);
}

void stand_add_arena(struct stand *s)
{
        uint64_t outputs = (uint64_t)STAND_SAMPLES * STAND_PIXELS * sizeof(float);
        int fd, region;

        cr_assert_eq(sl_segment_create("starling-arena", 2 * outputs, SL_SEAL_SHARED, &fd, &s->arena, &s->error), 0);
        region = sl_regions_add(s->regions, s->arena.base, s->arena.bytes, fd);
        cr_assert_geq(region, 0);
        close(fd);
        s->inputs = s->arena.base;
        s->outputs = s->inputs + outputs / sizeof(float);
        for (uint32_t i = 0; i < STAND_SAMPLES * STAND_PIXELS; i++)
                s->inputs[i] = (float)(i * 31 % 251) / 251;
        s->input = (struct sl_place){.region = (uint32_t)region, .stride = STAND_PIXELS * sizeof(float)};
        s->output = (struct sl_place){.region = (uint32_t)region, .offset = outputs, .stride = STAND_CLASSES * sizeof(float)};
}

void stand_remove_arena(struct stand *s)
{
        sl_regions_remove(s->regions, s->input.region);
        sl_mapping_free(&s->arena);
}

struct stand *stand_new(void)
{
        struct stand *s = aligned_alloc(SL_LINE_PAIR_BYTES, sl_align_up(sizeof(*s), SL_LINE_PAIR_BYTES));
        struct sl_served_port input;

        cr_assert(s);
        memset(s, 0, sizeof(*s));
        compile_plan(s);
        cr_assert_eq(sl_regions_new(STAND_REGIONS, &s->regions), 0);
        cr_assert_eq(sl_accumulator_new(s->regions, SEGMENTS, 1 << 20, &s->accumulator), 0);
        cr_assert_eq(sl_wait_new(SL_WAIT_ANY, &s->wait, &s->error), 0);
        s->bell.wait = s->wait;
        s->assembly = (struct sl_assembly){
                .rule = SL_RULE_NONE, .direct = true, .n_members = 1, .member_outputs = 1, .n_outputs = 1, .outputs = &s->made};
        cr_assert_eq(sl_served_port_init(&s->made, &sl_plan_info(s->plan)->outputs[0]), 0);
        cr_assert_eq(s->assembly.outputs[0].sample_bytes, STAND_CLASSES * sizeof(float));
        cr_assert_eq(sl_served_port_init(&input, &sl_plan_info(s->plan)->inputs[0]), 0);
        cr_assert_eq(input.sample_bytes, STAND_PIXELS * sizeof(float));
        stand_add_arena(s);
        s->work = (struct sl_work){.assembly = &s->assembly, .inputs = &s->input, .outputs = &s->output, .segments = SL_NO_SEGMENT};
        return s;
}

void stand_free(struct stand *s)
{
        stand_remove_arena(s);
        sl_accumulator_free(s->accumulator);
        sl_regions_free(s->regions);
        sl_wait_free(s->wait);
        sl_plan_free(s->plan);
        free(s);
}

struct sl_executor *stand_thread(struct stand *s, uint32_t batch_max)
{
        struct sl_executor *executor;
        int r = sl_thread_executor_new(
                &(struct sl_thread_executor_options){
                        .plan = s->plan,
                        .regions = s->regions,
                        .accumulator = s->accumulator,
                        .batch_max = batch_max,
                        .let = &s->let,
                        .start_cores = s->start_cores,
                        .spin_ns = s->spin_ns,
                        .threads = s->threads,
                        .team_spin_ns = s->team_spin_ns,
                        .name = "sl-stand",
                        .starter = &s->bell,
                        .dispatcher = &s->bell,
                        .stats = &s->stats,
                },
                &executor, &s->error);

        cr_assert_eq(r, 0, "%s", s->error.text);
        return executor;
}

struct sl_executor *stand_process(struct stand *s, uint32_t batch_max, const char *program)
{
        struct sl_executor *executor;
        int r = sl_process_executor_new(
                &(struct sl_process_executor_options){
                        .plan = s->plan,
                        .regions = s->regions,
                        .accumulator = s->accumulator,
                        .program = program ? program : COMPILE_CHILD,
                        .batch_max = batch_max,
                        .memory_bytes = 64 << 20,
                        .gpu = s->gpu,
                        .gpu_hosts = &s->gpu_hosts,
                        .choices_fd = -1,
                        .gpu_direct = s->direct,
                        .let = &s->let,
                        .spin_ns = s->spin_ns,
                        .dispatcher = &s->bell,
                        .stats = &s->stats,
                },
                &executor, &s->error);

        cr_assert_eq(r, 0, "%s", s->error.text);
        return executor;
}

bool stand_readable(int fd, int limit_ms)
{
        struct pollfd one = {.fd = fd, .events = POLLIN};

        return poll(&one, 1, limit_ms) == 1;
}

int stand_child(void)
{
        char path[64];
        int pid = 0;
        FILE *file;

        snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
        file = fopen(path, "r");
        cr_assert(file);
        while (fscanf(file, "%d", &pid) == 1)
                ;
        fclose(file);
        cr_assert(pid);
        return pid;
}

int32_t stand_wait(struct stand *s, struct sl_executor *executor)
{
        int32_t before = sl_process_executor_of(executor) ? sl_executor_started(executor) : SL_EXECUTOR_STARTING;
        uint64_t end_ns = sl_clock_ns() + STAND_LIMIT_NS;
        struct sl_error warning;

        while (sl_executor_started(executor) == before && sl_clock_ns() < end_ns) {
                if (!sl_process_executor_of(executor))
                        usleep(1000);
                else if (stand_readable(sl_process_executor_fd(executor), 1000))
                        sl_process_executor_hear(executor, &warning, &s->error);
        }
        return sl_executor_started(executor);
}

void stand_give_pieces(struct stand *s, struct sl_executor *executor, const uint32_t *firsts, const uint32_t *samples, uint32_t n)
{
        struct sl_job *job = sl_executor_job(executor);

        cr_assert(job);
        for (uint32_t i = 0; i < n; i++) {
                int segment = sl_accumulator_open(s->accumulator, &s->work, firsts[i], samples[i]);

                cr_assert_geq(segment, 0);
                sl_accumulator_add_piece(s->accumulator, job, (uint32_t)segment, 0, 0, samples[i]);
        }
        sl_executor_give(executor, NULL);
}

void stand_give(struct stand *s, struct sl_executor *executor, uint32_t first, uint32_t samples)
{
        stand_give_pieces(s, executor, &first, &samples, 1);
}

void stand_finish(struct stand *s, struct sl_executor *executor, const struct sl_prediction *answer)
{
        uint32_t segment = executor->slots[answer->slot].job->pieces[answer->piece].segment;

        sl_executor_answered(executor, answer->slot, answer->piece);
        sl_accumulator_close(s->accumulator, segment);
}

bool stand_poll(struct stand *s, struct sl_executor *executor, struct sl_prediction *ret_answer)
{
        uint64_t end_ns = sl_clock_ns() + STAND_LIMIT_NS;
        struct sl_job *job;

        while (!sl_executor_poll(executor, &job, ret_answer))
                if (sl_clock_ns() > end_ns)
                        return false;
        stand_finish(s, executor, ret_answer);
        return true;
}
