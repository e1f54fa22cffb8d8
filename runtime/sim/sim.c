/* SPDX-License-Identifier: Apache-2.0 */
#include "sim.h"

#include "cores.h"
#include "server.h"
#include "timers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NEVER UINT64_MAX

enum timer_kind { TIMER_BEGIN, TIMER_COPIED, TIMER_HEARD };

/* The oldest @n_unheard of its jobs are computed; the next one is begun with, or what it does next. */
struct worker {
        const struct sl_sim_time *time;
        uint32_t let, batch_max, n_unheard;
        bool busy, woken; /* woken: it was idle before the job at hand */
};

/* When each of its copy engines is free. */
struct let {
        uint32_t copy_engines;
        uint64_t free_ns[SL_SIM_COPIERS_MAX];
};

struct sl_sim {
        struct sl_sim_calls calls;
        struct sl_sim_own own;
        struct sl_sim_server *server;
        struct sl_sim_cores *cores;
        struct sl_sim_timers *timers;
        struct worker *workers;
        struct let *lets;
        struct sl_sim_time *times;
        uint64_t n_requests, now_ns, next_ns; /* next_ns: when a policy wants to be asked again */
        struct sl_sim_request coming;
        bool comes;
};

static void ended(void *context, const struct sl_sim_request *request, uint64_t number, int status)
{
        struct sl_sim *sim = context;

        sim->calls.ended(sim->calls.context,
                &(struct sl_sim_end){
                        .request = *request, .number = number, .end_ns = sim->now_ns + sim->own.told_ns, .status = status});
}

static void compute(struct sl_sim *sim, uint32_t worker)
{
        const struct sl_sim_job *job = sl_sim_server_job(sim->server, worker, sim->workers[worker].n_unheard);
        const struct worker *w = &sim->workers[worker];
        double alone_ns = 0, launch_ns = (double)w->time->launch_ns;

        if (job->samples)
                alone_ns = (double)(sl_sim_time_ns(w->time, job->samples + job->padding, w->batch_max) + sim->own.job_ns +
                                    (w->woken ? sim->own.wake_ns : 0));
        if (!sim->lets[w->let].copy_engines)
                alone_ns += (double)(w->time->transfer_ns * job->samples);
        sl_sim_cores_begin(
                sim->cores, worker, sim->now_ns, alone_ns, launch_ns > 0 && alone_ns > launch_ns ? 1 - launch_ns / alone_ns : 0);
}

/* The copy engine that is free first has the batch next. */
static void copy(struct sl_sim *sim, uint32_t worker, struct let *let, uint64_t ns)
{
        uint32_t first = 0;

        for (uint32_t i = 1; i < let->copy_engines; i++)
                if (let->free_ns[i] < let->free_ns[first])
                        first = i;
        if (let->free_ns[first] < sim->now_ns)
                let->free_ns[first] = sim->now_ns;
        let->free_ns[first] += ns;
        sl_sim_timers_add(sim->timers, let->free_ns[first], TIMER_COPIED, worker);
}

/* What has passed its deadline is not computed. */
static void look_at_deadlines(struct sl_sim *sim, struct sl_sim_job *job)
{
        job->samples = 0;
        for (uint32_t i = 0; i < job->n_pieces; i++) {
                uint64_t deadline_ns = sl_sim_server_deadline_ns(sim->server, &job->pieces[i]);

                job->pieces[i].status = deadline_ns && deadline_ns <= sim->now_ns ? -ETIME : 0;
                job->samples += job->pieces[i].status ? 0 : job->pieces[i].samples;
        }
}

static void begin(struct sl_sim *sim, uint32_t worker)
{
        struct worker *w = &sim->workers[worker];
        struct sl_sim_job *job = sl_sim_server_job(sim->server, worker, w->n_unheard);
        struct let *let = &sim->lets[w->let];
        uint64_t copied_ns;

        look_at_deadlines(sim, job);
        job->begun_ns = sim->now_ns;
        copied_ns = w->time->transfer_ns * job->samples;
        if (let->copy_engines && copied_ns)
                copy(sim, worker, let, copied_ns);
        else
                compute(sim, worker);
}

/* One that is busy begins by itself when it is done. */
static void gave(void *context, const struct sl_sim_decided *decided)
{
        struct sl_sim *sim = context;
        struct worker *w = &sim->workers[decided->worker];

        if (sim->calls.decided)
                sim->calls.decided(sim->calls.context, decided);
        if (w->busy)
                return;
        w->busy = w->woken = true;
        if (sim->own.hop_ns)
                sl_sim_timers_add(sim->timers, sim->now_ns + sim->own.hop_ns, TIMER_BEGIN, decided->worker);
        else
                begin(sim, decided->worker);
}

static void hear(struct sl_sim *sim, uint32_t worker)
{
        struct sl_sim_job *job = sl_sim_server_job(sim->server, worker, 0);
        uint32_t n = job->n_pieces;

        sim->workers[worker].n_unheard--;
        if (job->samples)
                sl_sim_server_learn(sim->server, worker, job->samples, job->took_ns);
        for (uint32_t i = 0; i < n; i++)
                sl_sim_server_answer(sim->server, worker, i, job->pieces[i].status);
}

static void end_job(struct sl_sim *sim, uint32_t worker)
{
        struct worker *w = &sim->workers[worker];
        struct sl_sim_job *job = sl_sim_server_job(sim->server, worker, w->n_unheard++);

        job->took_ns = sim->now_ns - job->begun_ns;
        if (sim->own.heard_ns)
                sl_sim_timers_add(sim->timers, sim->now_ns + sim->own.heard_ns, TIMER_HEARD, worker);
        else
                hear(sim, worker);
        w->busy = sl_sim_server_jobs(sim->server, worker) > w->n_unheard;
        w->woken = false;
        if (w->busy)
                begin(sim, worker);
}

static void end_jobs(struct sl_sim *sim)
{
        uint32_t worker;

        while (sl_sim_cores_end(sim->cores, sim->now_ns, &worker))
                end_job(sim, worker);
}

static void fire_timers(struct sl_sim *sim)
{
        uint32_t kind, worker;

        while (sl_sim_timers_take(sim->timers, sim->now_ns, &kind, &worker)) {
                if (kind == TIMER_BEGIN)
                        begin(sim, worker);
                else if (kind == TIMER_COPIED)
                        compute(sim, worker);
                else
                        hear(sim, worker);
        }
}

static uint64_t taken_ns(const struct sl_sim *sim)
{
        return sim->comes ? sim->coming.arrival_ns + sim->own.taken_ns : NEVER;
}

static void arrive(struct sl_sim *sim)
{
        struct sl_sim_request request = sim->coming;
        uint64_t number = sim->n_requests++;
        uint32_t record;

        sim->comes = sim->calls.next(sim->calls.context, &sim->coming);
        if (sl_sim_server_arrive(sim->server, &request, sim->now_ns, number, &record) < 0)
                ended(sim, &request, number, -EBUSY);
}

static void pass(struct sl_sim *sim, uint64_t now_ns)
{
        sim->now_ns = now_ns > sim->now_ns ? now_ns : sim->now_ns;
        end_jobs(sim);
        fire_timers(sim);
        while (taken_ns(sim) <= sim->now_ns && sim->comes)
                arrive(sim);
        sim->next_ns = sl_sim_server_pass(sim->server, sim->now_ns);
}

/* The earliest event; NEVER: there is none. */
static uint64_t next_event_ns(const struct sl_sim *sim)
{
        uint64_t next = taken_ns(sim), end_ns = sl_sim_cores_next_ns(sim->cores), timer_ns = sl_sim_timers_next_ns(sim->timers);

        next = end_ns < next ? end_ns : next;
        next = timer_ns < next ? timer_ns : next;
        return sim->next_ns < next ? sim->next_ns : next;
}

uint64_t sl_sim_run(struct sl_sim *sim)
{
        uint64_t next;

        sim->next_ns = NEVER;
        sim->comes = sim->calls.next(sim->calls.context, &sim->coming);
        while ((next = next_event_ns(sim)) != NEVER)
                pass(sim, next);
        return sim->now_ns;
}

static int make_workers(struct sl_sim *sim, const struct sl_sim_world *world)
{
        size_t n_times = (size_t)world->n_classes * world->n_models;

        sim->workers = calloc(world->n_workers, sizeof(*sim->workers));
        sim->lets = calloc(world->n_lets, sizeof(*sim->lets));
        sim->times = calloc(n_times, sizeof(*sim->times));
        if (!sim->workers || !sim->lets || !sim->times)
                return -ENOMEM;
        memcpy(sim->times, world->times, n_times * sizeof(*sim->times));
        for (uint32_t i = 0; i < world->n_lets; i++)
                sim->lets[i].copy_engines = world->lets[i].copy_engines;
        for (uint32_t i = 0; i < world->n_workers; i++) {
                const struct sl_sim_worker *worker = &world->workers[i];

                sim->workers[i] =
                        (struct worker){.time = &sim->times[sl_sim_world_time(world, worker->let, worker->model) - world->times],
                                .let = worker->let,
                                .batch_max = world->models[worker->model].ignores_batch_max ? UINT32_MAX : worker->batch_max};
        }
        return 0;
}

static int make(struct sl_sim *sim, const struct sl_sim_world *world)
{
        const struct sl_sim_server_calls calls = {.context = sim, .gave = gave, .ended = ended};
        int r = make_workers(sim, world);

        if (r == 0)
                r = sl_sim_server_new(world, &calls, &sim->server);
        if (r == 0)
                r = sl_sim_cores_new(world, &sim->cores);
        /* of each worker: one that it waits for, and one for each job that was not heard of */
        return r < 0 ? r : sl_sim_timers_new(world->n_workers * (1 + SL_SIM_JOBS_MAX), &sim->timers);
}

int sl_sim_of_world(const struct sl_sim_world *world, const struct sl_sim_calls *calls, struct sl_sim **ret_sim)
{
        struct sl_sim *sim;
        int r = sl_sim_world_check(world);

        if (r < 0)
                return r;
        sim = calloc(1, sizeof(*sim));
        if (!sim)
                return -ENOMEM;
        sim->calls = *calls;
        sim->own = world->own;
        r = make(sim, world);
        if (r < 0) {
                sl_sim_free(sim);
                return r;
        }
        *ret_sim = sim;
        return 0;
}

struct sl_sim *sl_sim_free(struct sl_sim *sim)
{
        if (!sim)
                return NULL;
        sl_sim_server_free(sim->server);
        sl_sim_cores_free(sim->cores);
        sl_sim_timers_free(sim->timers);
        free(sim->workers);
        free(sim->lets);
        free(sim->times);
        free(sim);
        return NULL;
}
