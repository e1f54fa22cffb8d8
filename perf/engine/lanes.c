/* SPDX-License-Identifier: Apache-2.0 */
#include "lanes.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/relax.h"
#include "cores.h"
#include "plan.h"
#include "ports.h"
#include "team.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/*
 * A burst: the caller stores `runs` and posts each lane's semaphore. Run k of a lane begins when `started` has reached k + 1 and
 * ends with an addition to `done`; both count from the lanes' start and never go back.
 */
struct lane {
        struct sl_lanes *lanes;
        struct sl_instance *instance;
        struct sl_team *team; /* NULL: it has one CPU */
        uint32_t first, samples;
        int cpu, result;
        bool has_thread;
        pthread_t thread;
        sem_t burst;
};

struct sl_lanes {
        const struct sl_plan *plan;
        const struct sl_ports *ports;
        uint32_t n;
        uint32_t runs; /* of the burst under way; 0: the threads end */
        alignas(64) _Atomic uint64_t started;
        alignas(64) _Atomic uint64_t done;
        struct lane lanes[SL_LANES_MAX];
};

static int run_part(struct lane *lane, uint32_t first, uint32_t samples)
{
        const struct sl_ports *ports = lane->lanes->ports;
        const void *inputs[SL_PLAN_PORTS_MAX];
        void *outputs[SL_PLAN_PORTS_MAX];

        for (uint32_t i = 0; i < ports->info->n_inputs; i++)
                inputs[i] = (const char *)ports->inputs[i] + first * sl_port_bytes(&ports->info->inputs[i]);
        for (uint32_t i = 0; i < ports->info->n_outputs; i++)
                outputs[i] = (char *)ports->outputs[i] + first * sl_port_bytes(&ports->info->outputs[i]);
        return sl_instance_run_open(lane->instance, samples, inputs, outputs, ports->open[first].outputs, NULL);
}

static int run_lane(struct lane *lane)
{
        int r = 0;

        for (uint32_t at = 0; r == 0 && at < lane->samples;) {
                uint32_t step = sl_instance_step(lane->instance, lane->samples - at);

                r = step > 0 ? run_part(lane, lane->first + at, step) : -EINVAL;
                at += step;
        }
        return r;
}

static int make_instance(struct lane *lane, struct sl_error *error)
{
        const struct sl_plan_info *info = sl_plan_info(lane->lanes->plan);
        uint32_t batch_max = info->batches[0];

        for (uint32_t i = 0; i < info->n_batches; i++) {
                if (info->batches[i] <= lane->samples)
                        batch_max = info->batches[i];
        }
        return sl_instance_new(lane->lanes->plan, batch_max, &lane->instance, error);
}

/* @cpus: those of the lane, which runs on the first of them. */
static int make_team(struct lane *lane, const int *cpus, uint32_t n_cpus, struct sl_error *error)
{
        const struct sl_team_options options = {.size = n_cpus, .cpus = cpus, .spin_ns = SL_TEAM_SPIN_NS};
        int r = n_cpus > 1 ? sl_team_new(&options, &lane->team, error) : 0;

        return r == 0 ? sl_instance_use_team(lane->instance, lane->team, error) : r;
}

static void take_part(struct lane *lane, uint64_t run)
{
        struct sl_lanes *lanes = lane->lanes;

        while (atomic_load(&lanes->started) <= run)
                sl_relax();
        int r = run_lane(lane);
        if (r < 0)
                lane->result = r;
        atomic_fetch_add(&lanes->done, 1);
}

static void *lane_main(void *argument)
{
        struct lane *lane = argument;
        uint64_t run = 0;

        sl_cores_pin(lane->cpu);
        for (;;) {
                while (sem_wait(&lane->burst) < 0)
                        ;
                uint32_t runs = lane->lanes->runs;
                if (runs == 0)
                        return NULL;
                for (uint32_t i = 0; i < runs; i++)
                        take_part(lane, run++);
        }
}

/* An instance belongs to the thread that runs it only while it runs: it may be made here. */
static int start(struct lane *lane, const int *cpus, uint32_t n_cpus, struct sl_error *error)
{
        int r = make_instance(lane, error);

        if (r == 0)
                r = make_team(lane, cpus, n_cpus, error);
        if (r < 0 || lane == lane->lanes->lanes)
                return r;
        r = pthread_create(&lane->thread, NULL, lane_main, lane);
        if (r != 0)
                return sl_error_set(error, r, "no thread for CPU %d: %s", lane->cpu, strerror(r));
        lane->has_thread = true;
        return 0;
}

int sl_lanes_new(const struct sl_plan *plan, const struct sl_ports *ports, const int *cpus, uint32_t n_cpus,
        struct sl_lanes **ret_lanes, struct sl_error *error)
{
        uint32_t n = n_cpus < ports->samples ? n_cpus : ports->samples, each = n_cpus / n;
        struct sl_lanes *lanes = aligned_alloc(alignof(struct sl_lanes), sizeof(*lanes));
        uint32_t first = 0;
        int r = 0;

        if (!lanes)
                return sl_error_set(error, ENOMEM, "no memory");
        memset(lanes, 0, sizeof(*lanes));
        lanes->plan = plan;
        lanes->ports = ports;
        sl_cores_pin(cpus[0]);
        for (uint32_t i = 0; r == 0 && i < n; i++) {
                struct lane *lane = &lanes->lanes[lanes->n++];

                *lane = (struct lane){
                        .lanes = lanes, .cpu = cpus[i * each], .first = first, .samples = (ports->samples - first) / (n - i)};
                first += lane->samples;
                sem_init(&lane->burst, 0, 0);
                r = start(lane, &cpus[i * each], each, error);
        }
        if (r < 0)
                sl_lanes_free(lanes);
        else
                *ret_lanes = lanes;
        return r;
}

struct sl_lanes *sl_lanes_free(struct sl_lanes *lanes)
{
        if (!lanes)
                return NULL;
        lanes->runs = 0;
        for (uint32_t i = 0; i < lanes->n; i++) {
                struct lane *lane = &lanes->lanes[i];

                if (lane->has_thread) {
                        sem_post(&lane->burst);
                        pthread_join(lane->thread, NULL);
                }
                sem_destroy(&lane->burst);
                sl_instance_free(lane->instance);
                sl_team_free(lane->team);
        }
        free(lanes);
        return NULL;
}

uint32_t sl_lanes_count(const struct sl_lanes *lanes)
{
        return lanes->n;
}

static void run_all(struct sl_lanes *lanes)
{
        uint64_t until = atomic_load(&lanes->done) + lanes->n - 1;

        atomic_fetch_add(&lanes->started, 1);
        int r = run_lane(&lanes->lanes[0]);
        if (r < 0)
                lanes->lanes[0].result = r;
        while (atomic_load(&lanes->done) < until)
                sl_relax();
}

int sl_lanes_run(struct sl_lanes *lanes, uint32_t times, uint64_t *ret_ns)
{
        lanes->runs = times;
        for (uint32_t i = 1; i < lanes->n && times > 0; i++)
                sem_post(&lanes->lanes[i].burst);
        for (uint32_t k = 0; k < times; k++) {
                uint64_t start_ns = sl_clock_ns();

                run_all(lanes);
                ret_ns[k] = sl_clock_ns() - start_ns;
        }
        for (uint32_t i = 0; i < lanes->n; i++) {
                if (lanes->lanes[i].result < 0)
                        return lanes->lanes[i].result;
        }
        return 0;
}
