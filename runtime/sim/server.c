/* SPDX-License-Identifier: Apache-2.0 */
#include "server.h"

#include "broadcast_round.h"
#include "broadcast_window.h"
#include "look.h"
#include "taking.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define NONE          UINT32_MAX
#define DECISIONS_MAX (SL_POLICY_WORKERS_MAX + 1)

/* A request that is not ended. */
struct record {
        struct sl_sim_request request;
        struct sl_fair_item turn;
        uint64_t number, taken_ns;
        uint32_t broadcast, finished; /* samples */
        int status;
        bool waits;    /* for a turn */
        uint32_t next; /* free one */
};

struct segment {
        uint32_t record, samples;
        uint32_t unanswered; /* samples, of each member */
        uint32_t next;       /* free one */
};

struct worker {
        uint32_t let, model, number, batch_max; /* number: of its model */
        uint32_t oldest, n_jobs;
        struct sl_sim_job jobs[SL_SIM_JOBS_MAX];
};

struct model {
        struct sl_sim_model options;
        struct sl_task_queue queues[SL_CLASSES]; /* the last one is empty: in the background there is nothing */
        struct sl_service_time service_time;
        struct sl_batching_state batching_state;
        struct sl_policy_view view;
        uint32_t slice_samples;
        uint32_t n_workers, workers[SL_POLICY_WORKERS_MAX];
};

struct ensemble {
        struct sl_broadcast_queue broadcasts;
        uint32_t n_members, members[SL_SIM_MEMBERS_MAX];
        uint32_t segment_samples, queue_requests, in_flight;
        bool direct;
};

struct sl_sim_server {
        struct sl_sim_server_calls calls;
        uint32_t n_models, n_ensembles, n_clients, n_requests, n_segments, jobs_max;
        bool learns;
        struct model *models;
        struct ensemble *ensembles;
        struct worker *workers;
        struct sl_turns *turns; /* of each let */
        struct record *records;
        struct segment *segments;
        uint32_t free_record, free_segment; /* NONE: none */
        uint32_t n_waiting;                 /* requests, for a turn */
        uint64_t n_tasks[SL_PRIORITIES];
        uint64_t run;
        struct sl_broadcast_ring ring;
};

static void learn_slice(struct model *model)
{
        if (model->options.slice_ns)
                model->slice_samples = sl_service_time_samples(&model->service_time, model->options.slice_ns, SL_SLICE_SAMPLES_MAX);
}

/* As the first of its workers has it. */
static void learn_profile(struct model *model, const struct sl_sim_world *world)
{
        const struct sl_sim_worker *first = &world->workers[model->workers[0]];
        const struct sl_sim_time *time = sl_sim_world_time(world, first->let, first->model);

        for (uint32_t i = 0; i < SL_SIM_SIZES && model->n_workers; i++)
                sl_service_time_learn(&model->service_time, 1u << i, sl_sim_time_ns(time, 1u << i, UINT32_MAX) + world->own.job_ns);
        learn_slice(model);
}

static int make_model(struct sl_sim_server *server, const struct sl_sim_world *world, uint32_t index)
{
        struct model *model = &server->models[index];
        int r = 0;

        model->options = world->models[index];
        model->slice_samples = model->options.slice_samples;
        for (uint32_t i = 0; i < SL_PRIORITIES && r == 0; i++)
                r = sl_task_queue_init(&model->queues[i], world->n_segments);
        learn_profile(model, world);
        model->view = (struct sl_policy_view){.batchable = !model->options.whole,
                .service_time = &model->service_time,
                .batching = &model->options.batching,
                .batching_state = &model->batching_state};
        return r;
}

static int make_ensemble(struct sl_sim_server *server, const struct sl_sim_world *world, uint32_t index)
{
        const struct sl_sim_ensemble *options = &world->ensembles[index];
        struct ensemble *ensemble = &server->ensembles[index];

        *ensemble = (struct ensemble){.n_members = options->n_members,
                .segment_samples = options->segment_samples,
                .queue_requests = options->queue_requests,
                .direct = options->direct};
        memcpy(ensemble->members, options->members, options->n_members * sizeof(ensemble->members[0]));
        if (sl_fair_new(world->n_clients, &ensemble->broadcasts.waiting) < 0)
                return -ENOMEM;
        sl_broadcast_ring_add(&server->ring, &ensemble->broadcasts);
        return 0;
}

static void make_workers(struct sl_sim_server *server, const struct sl_sim_world *world)
{
        for (uint32_t i = 0; i < world->n_lets; i++) {
                const struct sl_sim_let *let = &world->lets[i];

                server->turns[i] = (struct sl_turns){.at_once = let->at_once ? let->at_once : UINT32_MAX, .for_one = let->for_one};
        }
        for (uint32_t i = 0; i < world->n_workers; i++) {
                const struct sl_sim_worker *worker = &world->workers[i];
                struct model *model = &server->models[worker->model];

                server->workers[i] = (struct worker){
                        .let = worker->let, .model = worker->model, .number = model->n_workers, .batch_max = worker->batch_max};
                model->workers[model->n_workers++] = i;
                server->turns[worker->let].n_workers++;
        }
}

static bool allocate(struct sl_sim_server *server, const struct sl_sim_world *world)
{
        server->models = calloc(world->n_models, sizeof(*server->models));
        server->ensembles = calloc(world->n_ensembles, sizeof(*server->ensembles));
        server->workers = calloc(world->n_workers, sizeof(*server->workers));
        server->turns = calloc(world->n_lets, sizeof(*server->turns));
        server->records = calloc(world->n_requests, sizeof(*server->records));
        server->segments = calloc(world->n_segments, sizeof(*server->segments));
        server->n_models = world->n_models;
        server->n_ensembles = world->n_ensembles;
        server->n_clients = world->n_clients;
        server->jobs_max = world->jobs_max;
        server->learns = world->learns;
        return server->models && server->ensembles && server->workers && server->turns && server->records && server->segments;
}

static void link_free(struct sl_sim_server *server, const struct sl_sim_world *world)
{
        for (uint32_t i = 0; i < world->n_requests; i++)
                server->records[i].next = i + 1 < world->n_requests ? i + 1 : NONE;
        for (uint32_t i = 0; i < world->n_segments; i++)
                server->segments[i].next = i + 1 < world->n_segments ? i + 1 : NONE;
}

int sl_sim_server_new(const struct sl_sim_world *world, const struct sl_sim_server_calls *calls, struct sl_sim_server **ret_server)
{
        struct sl_sim_server *server = calloc(1, sizeof(*server));
        int r = 0;

        if (!server)
                return -ENOMEM;
        server->calls = *calls;
        if (!allocate(server, world)) {
                sl_sim_server_free(server);
                return -ENOMEM;
        }
        link_free(server, world);
        make_workers(server, world);
        for (uint32_t i = 0; i < world->n_models && r == 0; i++)
                r = make_model(server, world, i);
        for (uint32_t i = 0; i < world->n_ensembles && r == 0; i++)
                r = make_ensemble(server, world, i);
        if (r < 0) {
                sl_sim_server_free(server);
                return r;
        }
        *ret_server = server;
        return 0;
}

struct sl_sim_server *sl_sim_server_free(struct sl_sim_server *server)
{
        if (!server)
                return NULL;
        for (uint32_t i = 0; server->models && i < server->n_models; i++)
                for (uint32_t k = 0; k < SL_PRIORITIES; k++)
                        sl_task_queue_deinit(&server->models[i].queues[k]);
        for (uint32_t i = 0; server->ensembles && i < server->n_ensembles; i++)
                sl_fair_free(server->ensembles[i].broadcasts.waiting);
        free(server->models);
        free(server->ensembles);
        free(server->workers);
        free(server->turns);
        free(server->records);
        free(server->segments);
        free(server);
        return NULL;
}

static void end(struct sl_sim_server *server, uint32_t index)
{
        struct record *record = &server->records[index];

        server->ensembles[record->request.ensemble].in_flight--;
        server->calls.ended(server->calls.context, &record->request, record->number, record->status);
        record->next = server->free_record;
        server->free_record = index;
}

/* False: no record is left. */
static bool open_segment(struct sl_sim_server *server, uint32_t index, uint32_t samples)
{
        struct record *record = &server->records[index];
        struct ensemble *ensemble = &server->ensembles[record->request.ensemble];
        struct sl_task task = {.segment = server->free_segment,
                .samples = samples,
                .client = record->request.client,
                .arrival_ns = record->taken_ns,
                .deadline_ns = record->request.deadline_ns};

        if (task.segment == NONE)
                return false;
        server->free_segment = server->segments[task.segment].next;
        server->segments[task.segment] =
                (struct segment){.record = index, .samples = samples, .unanswered = samples * ensemble->n_members};
        record->broadcast += samples;
        for (uint32_t m = 0; m < ensemble->n_members; m++) {
                task.member = m;
                sl_task_queue_push(&server->models[ensemble->members[m]].queues[record->request.priority], &task);
        }
        server->n_tasks[record->request.priority] += ensemble->n_members;
        return true;
}

static void wait_for_turn(struct sl_sim_server *server, struct ensemble *ensemble, struct record *record)
{
        record->waits = true;
        record->turn = (struct sl_fair_item){
                .client = record->request.client, .priority = record->request.priority, .samples = record->request.samples};
        sl_broadcast_queue_push(&ensemble->broadcasts, &record->turn);
        server->n_waiting++;
}

static bool has_room(const struct sl_sim_server *server, const struct sl_sim_request *request)
{
        const struct ensemble *ensemble;

        if (request->ensemble >= server->n_ensembles || request->client >= server->n_clients || !request->samples)
                return false;
        ensemble = &server->ensembles[request->ensemble];
        return server->free_record != NONE && ensemble->in_flight < ensemble->queue_requests &&
               (!ensemble->direct || server->free_segment != NONE);
}

int sl_sim_server_arrive(
        struct sl_sim_server *server, const struct sl_sim_request *request, uint64_t now_ns, uint64_t number, uint32_t *ret_record)
{
        uint32_t index = server->free_record;
        struct record *record;

        if (!has_room(server, request))
                return -EBUSY;
        record = &server->records[index];
        server->free_record = record->next;
        *record = (struct record){.request = *request, .number = number, .taken_ns = now_ns};
        if (record->request.priority >= SL_PRIORITIES)
                record->request.priority = SL_PRIORITIES - 1;
        server->ensembles[request->ensemble].in_flight++;
        if (server->ensembles[request->ensemble].direct)
                open_segment(server, index, request->samples);
        else
                wait_for_turn(server, &server->ensembles[request->ensemble], record);
        *ret_record = index;
        return 0;
}

static struct record *record_of_turn(struct sl_fair_item *turn)
{
        return (struct record *)((char *)turn - offsetof(struct record, turn));
}

static void stop_waiting(struct sl_sim_server *server, struct record *record)
{
        record->waits = false;
        server->n_waiting--;
}

void sl_sim_server_give_up(struct sl_sim_server *server, uint32_t index, int status)
{
        struct record *record = &server->records[index];

        if (record->status)
                return;
        record->status = status;
        if (record->waits) {
                sl_broadcast_queue_remove(&server->ensembles[record->request.ensemble].broadcasts, &record->turn);
                stop_waiting(server, record);
        }
        if (record->finished == record->broadcast)
                end(server, index);
}

/* Service times have changed since the last round. */
static void look_at_windows(struct sl_sim_server *server)
{
        for (uint32_t i = 0; i < server->n_ensembles; i++) {
                struct ensemble *ensemble = &server->ensembles[i];
                struct sl_broadcast_members members = sl_broadcast_members_none();

                if (sl_fair_is_empty(ensemble->broadcasts.waiting))
                        continue;
                for (uint32_t m = 0; m < ensemble->n_members; m++) {
                        const struct model *model = &server->models[ensemble->members[m]];

                        sl_broadcast_members_add(&members, model->slice_samples, model->n_workers);
                }
                ensemble->broadcasts.segment_samples = sl_broadcast_segment_samples(&members, ensemble->segment_samples);
                ensemble->broadcasts.window_samples = sl_broadcast_window_samples(&members, ensemble->segment_samples);
        }
}

static void tell_broadcast(const struct sl_sim_server *server, const struct record *record, uint32_t samples)
{
        if (server->calls.broadcast)
                server->calls.broadcast(server->calls.context, record->request.ensemble, record->number, samples);
}

static void broadcast(struct sl_sim_server *server)
{
        struct sl_broadcast_decision decision;
        struct sl_broadcast_round round;

        look_at_windows(server);
        sl_broadcast_round_begin(&round, &server->ring);
        while (sl_broadcast_round_next(&round, &decision)) {
                struct record *record = record_of_turn(decision.item);

                if (!open_segment(server, (uint32_t)(record - server->records), decision.samples)) {
                        sl_broadcast_round_lacks(&round, -EAGAIN);
                        continue;
                }
                tell_broadcast(server, record, decision.samples);
                if (record->broadcast == record->request.samples)
                        stop_waiting(server, record);
                sl_broadcast_round_took(&round, &decision);
        }
}

static void fill_job(struct sl_sim_server *server, struct model *model, struct worker *worker, uint32_t priority,
        const struct sl_decision *decision)
{
        struct sl_sim_job *job = &worker->jobs[(worker->oldest + worker->n_jobs++) % SL_SIM_JOBS_MAX];
        struct sl_task_queue *queue = &model->queues[priority];
        uint32_t length = sl_task_queue_length(queue);
        struct sl_taking taking;
        struct sl_task task;

        job->priority = priority;
        job->padding = decision->padding;
        job->n_pieces = job->samples = 0;
        sl_taking_begin(&taking, queue, decision->samples, worker->batch_max);
        while (sl_taking_next(&taking, &task))
                job->pieces[job->n_pieces++] = (struct sl_sim_piece){.segment = task.segment, .samples = task.samples};
        job->unanswered = job->n_pieces;
        model->view.samples_given += taking.taken;
        server->n_tasks[priority] -= length - sl_task_queue_length(queue);
        server->turns[worker->let].running[priority]++;
}

static void look(struct sl_sim_server *server, struct model *model, uint32_t priority, struct sl_look *ret_look)
{
        sl_look_begin(ret_look, &model->view, model->queues, priority, server->run);
        model->view.slice_samples = model->slice_samples;
        for (uint32_t i = 0; i < model->n_workers; i++) {
                const struct worker *worker = &server->workers[model->workers[i]];

                sl_look_at(ret_look,
                        &(struct sl_policy_worker){
                                .batch_max = worker->batch_max, .jobs = worker->n_jobs, .jobs_max = server->jobs_max},
                        &server->turns[worker->let]);
        }
}

/* Return: when its policy wants to be asked again. */
static uint64_t run_model(struct sl_sim_server *server, struct model *model, uint32_t priority, uint64_t now_ns)
{
        struct sl_decision decisions[DECISIONS_MAX];
        struct sl_look shown;
        uint64_t next_ns;
        uint32_t n;

        look(server, model, priority, &shown);
        n = sl_policies[model->options.batching.policy].decide(&model->view, now_ns, decisions, DECISIONS_MAX, &next_ns);
        for (uint32_t i = 0; i < n; i++) {
                uint32_t worker = model->workers[decisions[i].worker];

                fill_job(server, model, &server->workers[worker], priority, &decisions[i]);
                server->calls.gave(server->calls.context, &(struct sl_sim_decided){.now_ns = now_ns,
                                                                  .model = (uint32_t)(model - server->models),
                                                                  .priority = priority,
                                                                  .worker = worker,
                                                                  .decision = decisions[i]});
        }
        sl_look_end(&shown);
        return next_ns;
}

uint64_t sl_sim_server_pass(struct sl_sim_server *server, uint64_t now_ns)
{
        uint64_t next_ns = UINT64_MAX;

        server->run++;
        if (server->n_waiting)
                broadcast(server);
        for (uint32_t priority = 0; priority < SL_PRIORITIES; priority++)
                for (uint32_t i = 0; i < server->n_models && server->n_tasks[priority]; i++) {
                        uint64_t ns = UINT64_MAX;

                        if (sl_task_queue_length(&server->models[i].queues[priority]))
                                ns = run_model(server, &server->models[i], priority, now_ns);
                        next_ns = ns < next_ns ? ns : next_ns;
                }
        return next_ns;
}

struct sl_sim_job *sl_sim_server_job(struct sl_sim_server *server, uint32_t worker, uint32_t i)
{
        return &server->workers[worker].jobs[(server->workers[worker].oldest + i) % SL_SIM_JOBS_MAX];
}

uint32_t sl_sim_server_jobs(const struct sl_sim_server *server, uint32_t worker)
{
        return server->workers[worker].n_jobs;
}

uint64_t sl_sim_server_deadline_ns(const struct sl_sim_server *server, const struct sl_sim_piece *piece)
{
        return server->records[server->segments[piece->segment].record].request.deadline_ns;
}

void sl_sim_server_know(struct sl_sim_server *server, uint32_t model, const struct sl_service_time *times)
{
        server->models[model].service_time = *times;
        learn_slice(&server->models[model]);
}

void sl_sim_server_doubt(struct sl_sim_server *server, uint32_t worker)
{
        sl_service_time_doubt(&server->models[server->workers[worker].model].service_time);
}

void sl_sim_server_learn(struct sl_sim_server *server, uint32_t worker, uint32_t samples, uint64_t ns)
{
        struct model *model = &server->models[server->workers[worker].model];

        sl_batching_learn(&model->batching_state, &model->options.batching, samples, server->workers[worker].batch_max, ns);
        if (!server->learns)
                return;
        sl_service_time_learn(&model->service_time, samples, ns);
        learn_slice(model);
}

static void finish_segment(struct sl_sim_server *server, uint32_t index)
{
        struct segment *segment = &server->segments[index];
        struct record *record = &server->records[segment->record];
        struct ensemble *ensemble = &server->ensembles[record->request.ensemble];
        uint32_t of = segment->record;

        if (!ensemble->direct)
                ensemble->broadcasts.samples_out -= segment->samples;
        record->finished += segment->samples;
        segment->next = server->free_segment;
        server->free_segment = index;
        if (record->finished == (record->status ? record->broadcast : record->request.samples))
                end(server, of);
}

static void end_job(struct sl_sim_server *server, struct worker *worker, const struct sl_sim_job *job)
{
        server->turns[worker->let].running[job->priority]--;
        worker->oldest = (worker->oldest + 1) % SL_SIM_JOBS_MAX;
        worker->n_jobs--;
}

void sl_sim_server_answer(struct sl_sim_server *server, uint32_t worker, uint32_t piece, int status)
{
        struct sl_sim_job *job = sl_sim_server_job(server, worker, 0);
        struct sl_sim_piece *answered = &job->pieces[piece];
        struct segment *segment = &server->segments[answered->segment];

        answered->is_answered = true;
        server->models[server->workers[worker].model].view.samples_given -= answered->samples;
        if (status)
                sl_sim_server_give_up(server, segment->record, status);
        segment->unanswered -= answered->samples;
        if (--job->unanswered == 0)
                end_job(server, &server->workers[worker], job);
        if (segment->unanswered == 0)
                finish_segment(server, answered->segment);
}
