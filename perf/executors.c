/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process of its own costs a model: the time from giving one sample to an executor until its answer has been polled, with a
 * thread and with a worker process behind execute/executor.h, in turns, both sides spinning on cores of their own. No client, no
 * dispatcher: this thread is both.
 *
 *     bench-executors PLAN STARLING [CPU,CPU]     a plan file of `starling compile`, and the program that is a worker's process
 *
 * One thread. Not part of `starling bench`: it looks at executors, not at the runtime.
 */
#include "accumulator.h"
#include "assembly.h"
#include "base/clock.h"
#include "base/error.h"
#include "bell.h"
#include "cores.h"
#include "let.h"
#include "machine.h"
#include "process_executor.h"
#include "segment.h"
#include "stats.h"
#include "thread_executor.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TURNS     9
#define SAMPLES   20000u
#define FOREVER   (3600 * SL_NS_PER_SECOND)
#define SEGMENTS  16u
#define ARENA_MIN 4096u

struct bench {
        struct sl_plan *plan;
        struct sl_regions *regions;
        struct sl_accumulator *accumulator;
        struct sl_mapping arena;
        struct sl_assembly assembly;
        struct sl_work work;
        struct sl_place inputs[SL_PLAN_PORTS_MAX], outputs[SL_PLAN_PORTS_MAX];
        struct sl_bell bell; /* nobody sleeps */
        struct sl_worker_stats stats;
        struct sl_error error;
};

static int fail(const struct bench *b, const char *what)
{
        fprintf(stderr, "bench-executors: %s: %s\n", what, b->error.text);
        exit(1);
}

static uint64_t place_ports(const struct sl_port *ports, uint32_t n, uint64_t offset, struct sl_place *places)
{
        for (uint32_t i = 0; i < n; i++) {
                struct sl_served_port port;

                if (sl_served_port_init(&port, &ports[i]) < 0)
                        exit(1);
                places[i] = (struct sl_place){.offset = offset, .stride = sl_served_port_stride(&port)};
                offset += sl_align_up(port.sample_bytes, SL_LINE_BYTES);
        }
        return offset;
}

static void make_arena(struct bench *b)
{
        const struct sl_plan_info *info = sl_plan_info(b->plan);
        uint64_t bytes = place_ports(info->inputs, info->n_inputs, 0, b->inputs);
        int fd, region;

        bytes = place_ports(info->outputs, info->n_outputs, bytes, b->outputs);
        if (sl_segment_create("starling-arena", bytes > ARENA_MIN ? bytes : ARENA_MIN, SL_SEAL_SHARED, &fd, &b->arena, &b->error) <
                0)
                fail(b, "arena");
        region = sl_regions_add(b->regions, b->arena.base, b->arena.bytes, fd);
        for (uint32_t i = 0; i < SL_PLAN_PORTS_MAX; i++)
                b->inputs[i].region = b->outputs[i].region = (uint32_t)region;
        close(fd);
        b->assembly = (struct sl_assembly){.rule = SL_RULE_NONE,
                .direct = true,
                .n_members = 1,
                .member_outputs = info->n_outputs,
                .n_outputs = info->n_outputs};
        b->assembly.outputs = calloc(info->n_outputs, sizeof(*b->assembly.outputs));
        for (uint32_t i = 0; i < info->n_outputs; i++)
                sl_served_port_init(&b->assembly.outputs[i], &info->outputs[i]);
        b->work = (struct sl_work){.assembly = &b->assembly, .inputs = b->inputs, .outputs = b->outputs, .segments = SL_NO_SEGMENT};
}

static void bench_init(struct bench *b, const char *plan)
{
        int fd = open(plan, O_RDONLY | O_CLOEXEC);

        memset(b, 0, sizeof(*b));
        if (fd < 0 || sl_plan_open(fd, &b->plan, &b->error) < 0)
                fail(b, plan);
        close(fd);
        if (sl_regions_new(2, &b->regions) < 0 || sl_accumulator_new(b->regions, SEGMENTS, 1 << 20, &b->accumulator) < 0)
                fail(b, "accumulator");
        make_arena(b);
}

static struct sl_executor *start_thread(struct bench *b, struct sl_let *let)
{
        struct sl_executor *executor;

        if (sl_thread_executor_new(&(struct sl_thread_executor_options){.plan = b->plan,
                                           .regions = b->regions,
                                           .accumulator = b->accumulator,
                                           .batch_max = 1,
                                           .let = let,
                                           .spin_ns = FOREVER,
                                           .name = "sl-bench",
                                           .starter = &b->bell,
                                           .dispatcher = &b->bell,
                                           .stats = &b->stats},
                    &executor, &b->error) < 0)
                fail(b, "thread");
        while (sl_executor_started(executor) == SL_EXECUTOR_STARTING)
                usleep(1000);
        return executor;
}

static struct sl_executor *start_process(struct bench *b, struct sl_let *let, const char *program)
{
        struct sl_executor *executor;
        struct sl_error warning;

        if (sl_process_executor_new(&(struct sl_process_executor_options){.plan = b->plan,
                                            .regions = b->regions,
                                            .accumulator = b->accumulator,
                                            .program = program,
                                            .batch_max = 1,
                                            .memory_bytes = sl_instance_bytes(b->plan, 1),
                                            .let = let,
                                            .spin_ns = FOREVER,
                                            .dispatcher = &b->bell,
                                            .stats = &b->stats},
                    &executor, &b->error) < 0)
                fail(b, "process");
        while (sl_executor_started(executor) == SL_EXECUTOR_STARTING) {
                struct pollfd socket = {.fd = sl_process_executor_fd(executor), .events = POLLIN};

                poll(&socket, 1, -1);
                if (sl_process_executor_hear(executor, &warning, &b->error) < 0)
                        fail(b, "process");
        }
        return executor;
}

static uint64_t round_trip_ns(struct bench *b, struct sl_executor *executor)
{
        int segment = sl_accumulator_open(b->accumulator, &b->work, 0, 1);
        struct sl_prediction answer;
        struct sl_job *job = sl_executor_job(executor);
        uint64_t begun_ns;

        sl_accumulator_add_piece(b->accumulator, job, (uint32_t)segment, 0, 0, 1);
        begun_ns = sl_clock_ns();
        sl_executor_give(executor, NULL);
        while (!sl_executor_poll(executor, &job, &answer))
                ;
        begun_ns = sl_clock_ns() - begun_ns;
        sl_executor_answered(executor, answer.slot, answer.piece);
        sl_accumulator_close(b->accumulator, (uint32_t)segment);
        return begun_ns;
}

static int compare(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return x < y ? -1 : x > y;
}

/* Ascending. */
static void measure(struct bench *b, struct sl_executor *executor, uint64_t *ret_ns)
{
        for (uint32_t i = 0; i < SAMPLES; i++)
                ret_ns[i] = round_trip_ns(b, executor);
        qsort(ret_ns, SAMPLES, sizeof(*ret_ns), compare);
}

int main(int argc, char **argv)
{
        static uint64_t thread_ns[SAMPLES], process_ns[SAMPLES];
        static struct bench b;
        uint64_t differences[TURNS];
        char machine[256];
        int cpus[2];
        struct sl_let let = {.turns = {.for_one = true, .at_once = 1}};

        if (argc < 3 || (argc > 3 ? sscanf(argv[3], "%d,%d", &cpus[0], &cpus[1]) != 2 : sl_cores_pick(cpus) < 0)) {
                fprintf(stderr, "usage: bench-executors PLAN STARLING [CPU,CPU]\n");
                return 2;
        }
        CPU_SET(cpus[1], &let.cpus);
        sl_machine_line(machine, sizeof(machine));
        bench_init(&b, argv[1]);
        sl_cores_pin(cpus[0]);
        printf("%s, CPUs %d and %d, %s\n  thread p50   p99   process p50   p99   difference of p50, ns\n", machine, cpus[0],
                cpus[1], sl_plan_info(b.plan)->name);
        for (int turn = 0; turn < TURNS; turn++) {
                struct sl_executor *executor = start_thread(&b, &let);

                measure(&b, executor, thread_ns);
                sl_executor_free(executor);
                executor = start_process(&b, &let, argv[2]);
                measure(&b, executor, process_ns);
                sl_executor_free(executor);
                differences[turn] = process_ns[SAMPLES / 2] - thread_ns[SAMPLES / 2];
                printf("%12llu %5llu %13llu %5llu %12lld\n", (unsigned long long)thread_ns[SAMPLES / 2],
                        (unsigned long long)thread_ns[SAMPLES / 100 * 99], (unsigned long long)process_ns[SAMPLES / 2],
                        (unsigned long long)process_ns[SAMPLES / 100 * 99], (long long)differences[turn]);
        }
        qsort(differences, TURNS, sizeof(*differences), compare);
        printf("median of the differences: %lld ns\n", (long long)differences[TURNS / 2]);
        return 0;
}
