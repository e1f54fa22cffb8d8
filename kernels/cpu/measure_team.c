/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/measure_team.h"

#include "base/clock.h"
#include "base/relax.h"
#include "cpu/gemm/gemm.h"
#include "part.h"
#include "target.h"
#include "team.h"

#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#define RUNS        11
#define CALLS       200 /* of a run: less than a millisecond */
#define MEET_NS_MAX 100000u

struct exercise {
        const struct sl_team_bench *bench;
        struct sl_gemm_reading reading;
        struct sl_team *team;
        uint32_t members;
        uint64_t calls;           /* of meet(); the owner's */
        _Atomic uint64_t arrived; /* of them those in which part 1 was begun; who has it writes */
};

/* Part 0 lasts until part 1 has begun, since the owner would take it over: a call is then both ways, and nothing else. */
static void meet(void *context, uint32_t part, uint32_t member)
{
        struct exercise *exercise = context;
        uint64_t until;

        (void)member;
        if (part) {
                atomic_fetch_add_explicit(&exercise->arrived, 1, memory_order_release);
                return;
        }
        exercise->calls++;
        until = sl_clock_ns() + MEET_NS_MAX;
        while (atomic_load_explicit(&exercise->arrived, memory_order_acquire) < exercise->calls && sl_clock_ns() < until)
                sl_relax();
}

static void call_often(struct exercise *exercise)
{
        for (int i = 0; i < CALLS; i++)
                sl_team_run(exercise->team, 2, meet, exercise);
}

static void read_part(void *context, uint32_t index, uint32_t member)
{
        const struct exercise *exercise = context;
        const struct sl_team_bench *bench = exercise->bench;
        const struct sl_part part = sl_part_of(SL_AXIS_COLUMNS, bench->columns / SL_GEMM_PANEL, index, exercise->members);

        (void)member;
        sl_gemm_run(&(struct sl_gemm){.a = bench->row,
                .b = bench->matrix + part.first * SL_GEMM_PANEL * bench->depth,
                .c = bench->result + part.first * SL_GEMM_PANEL,
                .rows = 1,
                .depth = bench->depth,
                .columns = (part.end - part.first) * SL_GEMM_PANEL,
                .a_stride = bench->depth,
                .c_stride = bench->columns,
                .streams = true,
                .reading = exercise->reading});
}

static void read_all(struct exercise *exercise)
{
        sl_team_run(exercise->team, exercise->members, read_part, exercise);
}

/* Seconds of the shortest run; the first one, which wakes everybody, is not counted. */
static double shortest(struct exercise *exercise, void (*run)(struct exercise *exercise))
{
        double least = INFINITY;

        run(exercise);
        for (int i = 0; i < RUNS; i++) {
                uint64_t start = sl_clock_ns();

                run(exercise);
                least = fmin(least, (double)(sl_clock_ns() - start) * 1e-9);
        }
        return least;
}

/* Together they bring at least what one of them does alone: less is somebody else's doing. */
static void measure_with(struct exercise *exercise, struct sl_core_figures *figures)
{
        double bytes = sizeof(float) * (double)exercise->bench->depth * (double)exercise->bench->columns, shared;

        figures->barrier = shortest(exercise, call_often) / CALLS;
        shared = bytes / shortest(exercise, read_all);
        figures->shared = shared > figures->stream ? shared : figures->stream;
}

static uint32_t list_cpus(const cpu_set_t *set, int cpus[SL_TEAM_MEMBERS_MAX])
{
        uint32_t n = 0;

        for (int cpu = 0; cpu < CPU_SETSIZE && n < SL_TEAM_MEMBERS_MAX; cpu++)
                if (CPU_ISSET(cpu, set))
                        cpus[n++] = cpu;
        return n;
}

void sl_cpu_measure_team(const struct sl_team_bench *bench, struct sl_core_figures *figures)
{
        struct exercise exercise = {.bench = bench, .reading = sl_gemm_reading(figures)};
        int cpus[SL_TEAM_MEMBERS_MAX];
        cpu_set_t before, first;

        if (sched_getaffinity(0, sizeof(before), &before) < 0 || (exercise.members = list_cpus(&before, cpus)) < 2)
                return;
        CPU_ZERO(&first);
        CPU_SET(cpus[0], &first);
        if (sched_setaffinity(0, sizeof(first), &first) < 0)
                return;
        const struct sl_team_options options = {.size = exercise.members, .cpus = cpus, .spin_ns = SL_TEAM_SPIN_NS};

        if (sl_team_new(&options, &exercise.team, NULL) == 0)
                measure_with(&exercise, figures);
        sl_team_free(exercise.team);
        (void)sched_setaffinity(0, sizeof(before), &before);
}
