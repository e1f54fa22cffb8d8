/* SPDX-License-Identifier: Apache-2.0 */
#include "sim.h"

#include "layout.h"

#include <errno.h>
#include <stdlib.h>

#define NEVER         UINT64_MAX
#define COPIERS_MAX   16u
#define DECISIONS_MAX (SL_POLICY_WORKERS_MAX + 1)

/* A request that is not ended. */
struct record {
        struct sl_sim_request request;
        uint64_t number;
        uint32_t left; /* samples without an answer */
        int status;
        uint32_t next; /* free one */
};

struct piece {
        uint32_t record, samples;
        bool late;
};

enum job_state { JOB_NONE, JOB_COPIED, JOB_COMPUTED };

struct job {
        enum job_state state;
        uint32_t n_pieces, samples; /* computed */
        uint64_t begun_ns, copied_ns;
        double alone_ns, end; /* on the device's clock */
        struct piece pieces[SL_POLICY_TASKS_MAX];
};

/* A worker has one job at a time: what it is given ahead live only hides the way to it, which costs nothing here. */
struct sl_sim {
        struct sl_sim_options options;
        struct sl_sim_calls calls;
        struct sl_task_queue queues[SL_PRIORITIES];
        struct sl_service_time service_time;
        struct sl_batching_state batching_state;
        struct sl_policy_view view;
        struct record *records;
        uint32_t free; /* queue_requests: none */
        uint64_t n_requests, now_ns, next_ns[SL_PRIORITIES];
        uint64_t copier_ns[COPIERS_MAX]; /* when each is free */
        double clock;                    /* of the device */
        uint32_t n_computing;
        struct sl_sim_request coming;
        bool comes;
        struct job jobs[SL_POLICY_WORKERS_MAX];
};

static bool options_hold(const struct sl_sim_options *options)
{
        bool hold = options->n_workers && options->n_workers <= SL_POLICY_WORKERS_MAX && options->device.latency_ns[0] &&
                    options->queue_requests && options->queue_requests <= 1u << 24 && options->slice_samples &&
                    options->batching.policy < SL_POLICY_COUNT && options->device.copy_engines <= COPIERS_MAX;

        for (uint32_t i = 0; hold && i < options->n_workers; i++)
                hold = options->batch_max[i] >= 1 && options->batch_max[i] <= 65536;
        return hold;
}

static void show(struct sl_sim *sim)
{
        sim->view = (struct sl_policy_view){.batchable = true,
                .service_time = &sim->service_time,
                .slice_samples = sim->options.slice_samples,
                .batching = &sim->options.batching,
                .batching_state = &sim->batching_state,
                .corun = sim->options.device.corun,
                .at_once = sim->options.device.at_once,
                .n_workers = sim->options.n_workers,
                .n_lets = 1,
                .starts_max = {UINT32_MAX}};
        for (uint32_t i = 0; i < sim->options.n_workers; i++)
                sim->view.workers[i] = (struct sl_policy_worker){.batch_max = sim->options.batch_max[i], .jobs_max = 1};
}

/* The profile is known beforehand. */
static void learn_profile(struct sl_sim *sim)
{
        for (uint32_t i = 0; i < SL_SIM_SIZES; i++)
                sl_service_time_learn(&sim->service_time, 1u << i, sl_sim_latency_ns(&sim->options.device, 1u << i));
}

int sl_sim_new(const struct sl_sim_options *options, const struct sl_sim_calls *calls, struct sl_sim **ret_sim)
{
        struct sl_sim *sim;
        int r = 0;

        if (!options_hold(options))
                return -EINVAL;
        sim = calloc(1, sizeof(*sim));
        if (!sim)
                return -ENOMEM;
        sim->options = *options;
        sim->calls = *calls;
        sim->records = calloc(options->queue_requests, sizeof(*sim->records));
        for (uint32_t i = 0; i < SL_PRIORITIES && r == 0; i++)
                r = sl_task_queue_init(&sim->queues[i], options->queue_requests);
        if (!sim->records || r < 0) {
                sl_sim_free(sim);
                return -ENOMEM;
        }
        for (uint32_t i = 0; i < options->queue_requests; i++)
                sim->records[i].next = i + 1;
        show(sim);
        learn_profile(sim);
        *ret_sim = sim;
        return 0;
}

struct sl_sim *sl_sim_free(struct sl_sim *sim)
{
        if (!sim)
                return NULL;
        for (uint32_t i = 0; i < SL_PRIORITIES; i++)
                sl_task_queue_deinit(&sim->queues[i]);
        free(sim->records);
        free(sim);
        return NULL;
}

static void end_request(struct sl_sim *sim, const struct sl_sim_request *request, uint64_t number, int status)
{
        sim->calls.ended(sim->calls.context,
                &(struct sl_sim_end){.request = *request, .number = number, .end_ns = sim->now_ns, .status = status});
}

static void answer(struct sl_sim *sim, const struct piece *piece)
{
        struct record *record = &sim->records[piece->record];

        if (piece->late)
                record->status = -ETIME;
        record->left -= piece->samples;
        if (record->left)
                return;
        end_request(sim, &record->request, record->number, record->status);
        record->next = sim->free;
        sim->free = piece->record;
}

static void arrive(struct sl_sim *sim)
{
        struct sl_sim_request request = sim->coming;
        uint32_t at = sim->free, priority = request.priority < SL_PRIORITIES ? request.priority : SL_PRIORITIES - 1;
        uint64_t number = sim->n_requests++;

        sim->comes = sim->calls.next(sim->calls.context, &sim->coming);
        if (at == sim->options.queue_requests || !request.samples) {
                end_request(sim, &request, number, -EBUSY);
                return;
        }
        sim->free = sim->records[at].next;
        sim->records[at] = (struct record){.request = request, .number = number, .left = request.samples};
        sl_task_queue_push(&sim->queues[priority], &(struct sl_task){.segment = at,
                                                           .samples = request.samples,
                                                           .client = request.client,
                                                           .arrival_ns = request.arrival_ns,
                                                           .deadline_ns = request.deadline_ns});
}

static void advance(struct sl_sim *sim, uint64_t now_ns)
{
        if (sim->n_computing)
                sim->clock += (double)(now_ns - sim->now_ns) / sl_sim_slow_down(&sim->options.device, sim->n_computing);
        sim->now_ns = now_ns;
}

static void compute(struct sl_sim *sim, struct job *job)
{
        job->state = JOB_COMPUTED;
        job->end = sim->clock + job->alone_ns;
        sim->n_computing++;
}

/* The copy engine that is free first has the batch next. */
static void copy(struct sl_sim *sim, struct job *job, uint64_t ns)
{
        uint32_t first = 0;

        for (uint32_t i = 1; i < sim->options.device.copy_engines; i++)
                if (sim->copier_ns[i] < sim->copier_ns[first])
                        first = i;
        if (sim->copier_ns[first] < sim->now_ns)
                sim->copier_ns[first] = sim->now_ns;
        job->copied_ns = sim->copier_ns[first] += ns;
        job->state = JOB_COPIED;
}

static void begin_job(struct sl_sim *sim, struct job *job, uint32_t padding)
{
        const struct sl_sim_device *device = &sim->options.device;
        uint64_t transfer_ns = device->transfer_ns * job->samples;

        job->begun_ns = sim->now_ns;
        job->alone_ns = job->samples ? (double)sl_sim_latency_ns(device, job->samples + padding) : 0;
        if (device->copy_engines && transfer_ns) {
                copy(sim, job, transfer_ns);
                return;
        }
        job->alone_ns += (double)transfer_ns;
        compute(sim, job);
}

static void take_pieces(struct sl_sim *sim, struct sl_task_queue *queue, struct job *job, uint32_t samples)
{
        job->n_pieces = job->samples = 0;
        while (samples && job->n_pieces < SL_POLICY_TASKS_MAX) {
                const struct sl_task *task = sl_task_queue_at(queue, 0);
                uint32_t taken = task->samples < samples ? task->samples : samples;
                bool late = task->deadline_ns && task->deadline_ns <= sim->now_ns;

                job->pieces[job->n_pieces++] = (struct piece){.record = task->segment, .samples = taken, .late = late};
                job->samples += late ? 0 : taken;
                sim->view.samples_given += taken;
                sl_task_queue_take(queue, taken);
                samples -= taken;
        }
}

static void give(struct sl_sim *sim, uint32_t priority, const struct sl_decision *decision)
{
        struct job *job = &sim->jobs[decision->worker];

        if (sim->calls.decided)
                sim->calls.decided(sim->calls.context, sim->now_ns, priority, decision);
        take_pieces(sim, &sim->queues[priority], job, decision->samples);
        sim->view.workers[decision->worker].jobs = 1;
        begin_job(sim, job, decision->padding);
}

static void decide(struct sl_sim *sim)
{
        struct sl_decision decisions[DECISIONS_MAX];

        sim->view.more_urgent_waits = false;
        for (uint32_t i = 0; i < SL_PRIORITIES; i++) {
                uint32_t n = 0;

                sim->next_ns[i] = NEVER;
                if (!sl_task_queue_length(&sim->queues[i]))
                        continue;
                sim->view.waiting = &sim->queues[i];
                n = sl_policies[sim->options.batching.policy].decide(
                        &sim->view, sim->now_ns, decisions, DECISIONS_MAX, &sim->next_ns[i]);
                for (uint32_t k = 0; k < n; k++)
                        give(sim, i, &decisions[k]);
                sim->view.more_urgent_waits |= sl_task_queue_length(&sim->queues[i]) > 0;
        }
}

static void end_job(struct sl_sim *sim, uint32_t worker)
{
        struct job *job = &sim->jobs[worker];
        uint64_t took_ns = sim->now_ns - job->begun_ns;

        job->state = JOB_NONE;
        sim->n_computing--;
        sim->view.workers[worker].jobs = 0;
        if (job->samples)
                sl_batching_learn(
                        &sim->batching_state, &sim->options.batching, job->samples, sim->options.batch_max[worker], took_ns);
        for (uint32_t i = 0; i < job->n_pieces; i++) {
                sim->view.samples_given -= job->pieces[i].samples;
                answer(sim, &job->pieces[i]);
        }
}

/* When the device's clock comes to @end, rounded up. */
static uint64_t due_ns(const struct sl_sim *sim, double end)
{
        double left = (end - sim->clock) * sl_sim_slow_down(&sim->options.device, sim->n_computing);
        uint64_t whole = left > 0 ? (uint64_t)left : 0;

        return sim->now_ns + whole + ((double)whole < left);
}

/* The earliest event; NEVER: there is none. */
static uint64_t next_event_ns(const struct sl_sim *sim)
{
        uint64_t next = sim->comes ? sim->coming.arrival_ns : NEVER;
        double end = -1;

        for (uint32_t i = 0; i < sim->options.n_workers; i++) {
                const struct job *job = &sim->jobs[i];

                if (job->state == JOB_COMPUTED && (end < 0 || job->end < end))
                        end = job->end;
                if (job->state == JOB_COPIED && job->copied_ns < next)
                        next = job->copied_ns;
        }
        if (end >= 0 && due_ns(sim, end) < next)
                next = due_ns(sim, end);
        for (uint32_t i = 0; i < SL_PRIORITIES; i++)
                if (sim->next_ns[i] < next)
                        next = sim->next_ns[i];
        return next;
}

static void pass(struct sl_sim *sim, uint64_t now_ns)
{
        advance(sim, now_ns > sim->now_ns ? now_ns : sim->now_ns);
        for (uint32_t i = 0; i < sim->options.n_workers; i++)
                if (sim->jobs[i].state == JOB_COMPUTED && sim->jobs[i].end <= sim->clock + 1e-3)
                        end_job(sim, i);
        for (uint32_t i = 0; i < sim->options.n_workers; i++)
                if (sim->jobs[i].state == JOB_COPIED && sim->jobs[i].copied_ns <= sim->now_ns)
                        compute(sim, &sim->jobs[i]);
        while (sim->comes && sim->coming.arrival_ns <= sim->now_ns)
                arrive(sim);
        decide(sim);
}

uint64_t sl_sim_run(struct sl_sim *sim)
{
        uint64_t next;

        for (uint32_t i = 0; i < SL_PRIORITIES; i++)
                sim->next_ns[i] = NEVER;
        sim->comes = sim->calls.next(sim->calls.context, &sim->coming);
        while ((next = next_event_ns(sim)) != NEVER)
                pass(sim, next);
        return sim->now_ns;
}
