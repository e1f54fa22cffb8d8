/* SPDX-License-Identifier: Apache-2.0 */
#include "replay.h"

#include "server.h"

#include <errno.h>
#include <stdlib.h>

#define REQUESTS (1u << 16) /* in flight */
#define SEGMENTS (1u << 16)
#define WORKERS  (SL_LOGGED_MODELS_MAX * SL_LOGGED_WORKERS_MAX)

/* By number: the order of arrival. */
struct arrived {
        const void *request;
        uint32_t record;
        bool ended;
};

struct replay {
        const struct sl_decision_log *log;
        struct sl_sim_server *server;
        struct arrived *arrived;
        uint64_t n_arrived;
        uint32_t at; /* the entry that is due */
        struct sl_replay *result;

        /* the world */
        struct sl_sim_let lets[WORKERS];
        const void *is_let[WORKERS];
        struct sl_sim_worker workers[WORKERS];
        struct sl_sim_model models[SL_LOGGED_MODELS_MAX];
        struct sl_sim_ensemble ensembles[SL_LOGGED_ENSEMBLES_MAX];
        uint32_t members[SL_LOGGED_ENSEMBLES_MAX][SL_SIM_MEMBERS_MAX];
        uint32_t first_worker[SL_LOGGED_MODELS_MAX]; /* of the log's models */
        uint32_t n_lets, n_workers;
};

/* The dispatcher asks the model that came last first. */
static uint32_t order_of(const struct replay *replay, uint32_t logged)
{
        return replay->log->n_models - 1 - logged;
}

static uint32_t let_of(struct replay *replay, const struct sl_logged_worker *worker)
{
        uint32_t i = 0;

        while (i < replay->n_lets && replay->is_let[i] != worker->let)
                i++;
        if (i == replay->n_lets) {
                replay->is_let[i] = worker->let;
                replay->lets[replay->n_lets++] =
                        (struct sl_sim_let){.cores_of = i, .at_once = worker->at_once, .for_one = worker->for_one};
        }
        return i;
}

static void make_model(struct replay *replay, uint32_t logged)
{
        const struct sl_logged_model *model = &replay->log->models[logged];

        replay->models[order_of(replay, logged)] = (struct sl_sim_model){.batching = model->batching,
                .whole = model->whole,
                .slice_ns = model->slice_ns,
                .slice_samples = model->slice_samples};
        replay->first_worker[logged] = replay->n_workers;
        for (uint32_t i = 0; i < model->n_workers; i++)
                replay->workers[replay->n_workers++] = (struct sl_sim_worker){.let = let_of(replay, &model->workers[i]),
                        .model = order_of(replay, logged),
                        .batch_max = model->workers[i].batch_max};
}

/* Return: 0; -EINVAL: a member that nobody wrote down. */
static int make_ensemble(struct replay *replay, uint32_t logged)
{
        const struct sl_logged_ensemble *ensemble = &replay->log->ensembles[logged];

        for (uint32_t i = 0; i < ensemble->n_members; i++) {
                if (ensemble->members[i] >= replay->log->n_models)
                        return -EINVAL;
                replay->members[logged][i] = order_of(replay, ensemble->members[i]);
        }
        replay->ensembles[logged] = (struct sl_sim_ensemble){.members = replay->members[logged],
                .n_members = ensemble->n_members,
                .segment_samples = ensemble->segment_samples,
                .queue_requests = UINT32_MAX};
        return 0;
}

/* What was decided here is what is due in the log. */
static void expect(struct replay *replay, const struct sl_logged *decided)
{
        const struct sl_logged *due = &replay->log->entries[replay->at];
        bool same = replay->at < replay->log->n && due->kind == decided->kind && due->request == decided->request &&
                    due->of == decided->of && due->worker == decided->worker && due->samples == decided->samples &&
                    due->extra == decided->extra && due->priority == decided->priority;

        if (!same && replay->result->differs_at == SL_LOGGED_NONE) {
                replay->result->differs_at = replay->at;
                replay->result->instead = *decided;
        }
        replay->at += same;
}

static void broadcast(void *context, uint32_t ensemble, uint64_t number, uint32_t samples)
{
        struct replay *replay = context;

        (void)ensemble;
        replay->result->broadcasts++;
        expect(replay,
                &(struct sl_logged){.kind = SL_LOGGED_BROADCAST, .request = replay->arrived[number].request, .samples = samples});
}

static void gave(void *context, const struct sl_sim_decided *decided)
{
        struct replay *replay = context;

        replay->result->decisions++;
        expect(replay, &(struct sl_logged){.kind = SL_LOGGED_DECISION,
                               .of = order_of(replay, decided->model),
                               .worker = decided->decision.worker,
                               .samples = decided->decision.samples,
                               .extra = decided->decision.padding,
                               .priority = decided->priority});
}

static void ended(void *context, const struct sl_sim_request *request, uint64_t number, int status)
{
        struct replay *replay = context;

        (void)request;
        (void)status;
        replay->arrived[number].ended = true;
}

static int arrive(struct replay *replay, const struct sl_logged *entry)
{
        struct arrived *arrived = &replay->arrived[replay->n_arrived];

        *arrived = (struct arrived){.request = entry->request};
        return sl_sim_server_arrive(replay->server,
                &(struct sl_sim_request){.arrival_ns = entry->at_ns,
                        .deadline_ns = entry->ns,
                        .samples = entry->samples,
                        .priority = entry->priority,
                        .client = entry->worker,
                        .ensemble = entry->of},
                entry->at_ns, replay->n_arrived++, &arrived->record);
}

/* One that has ended before is another request by now, or none. */
static void give_up(struct replay *replay, const struct sl_logged *entry)
{
        for (uint64_t i = replay->n_arrived; i-- > 0;)
                if (replay->arrived[i].request == entry->request) {
                        if (!replay->arrived[i].ended)
                                sl_sim_server_give_up(replay->server, replay->arrived[i].record, entry->status);
                        return;
                }
}

static int answer(struct replay *replay, const struct sl_logged *entry)
{
        uint32_t worker;

        if (entry->of >= replay->log->n_models || entry->worker >= replay->log->models[entry->of].n_workers)
                return -EINVAL;
        worker = replay->first_worker[entry->of] + entry->worker;
        if (!sl_sim_server_jobs(replay->server, worker) || entry->extra >= sl_sim_server_job(replay->server, worker, 0)->n_pieces)
                return -EINVAL;
        replay->result->answers++;
        if (entry->is_doubted)
                sl_sim_server_doubt(replay->server, worker);
        if (entry->status >= 0 && entry->samples)
                sl_sim_server_learn(replay->server, worker, entry->samples, entry->ns);
        sl_sim_server_answer(replay->server, worker, entry->extra, entry->status < 0 ? entry->status : 0);
        return 0;
}

/* What is written of this pass has to be decided in it, and nothing else. */
static void pass(struct replay *replay, const struct sl_logged *entry)
{
        replay->result->passes++;
        sl_sim_server_pass(replay->server, entry->at_ns);
        if (replay->at < replay->log->n && replay->log->entries[replay->at].kind >= SL_LOGGED_BROADCAST &&
                replay->result->differs_at == SL_LOGGED_NONE) {
                replay->result->differs_at = replay->at;
                replay->result->instead = (struct sl_logged){.kind = SL_LOGGED_PASS};
        }
}

static int go_through(struct replay *replay)
{
        int r = 0;

        while (r == 0 && replay->at < replay->log->n && replay->result->differs_at == SL_LOGGED_NONE) {
                const struct sl_logged *entry = &replay->log->entries[replay->at++];

                if (entry->kind == SL_LOGGED_ARRIVAL)
                        r = arrive(replay, entry);
                else if (entry->kind == SL_LOGGED_GIVEN_UP)
                        give_up(replay, entry);
                else if (entry->kind == SL_LOGGED_ANSWER)
                        r = answer(replay, entry);
                else if (entry->kind == SL_LOGGED_PASS)
                        pass(replay, entry);
                else
                        r = -EINVAL;
        }
        return r;
}

static int make_server(struct replay *replay, const struct sl_sim_time *times, const double *pairs)
{
        const struct sl_decision_log *log = replay->log;
        const struct sl_sim_world world = {.n_lets = replay->n_lets,
                .n_models = log->n_models,
                .n_workers = replay->n_workers,
                .n_ensembles = log->n_ensembles,
                .n_classes = 1,
                .lets = replay->lets,
                .models = replay->models,
                .workers = replay->workers,
                .ensembles = replay->ensembles,
                .times = times,
                .pairs = pairs,
                .n_clients = log->clients_max,
                .n_requests = REQUESTS,
                .n_segments = SEGMENTS,
                .jobs_max = SL_SIM_JOBS_MAX,
                .learns = true};
        int r = sl_sim_world_check(&world);

        if (r == 0)
                r = sl_sim_server_new(&world,
                        &(struct sl_sim_server_calls){.context = replay, .gave = gave, .broadcast = broadcast, .ended = ended},
                        &replay->server);
        for (uint32_t i = 0; i < log->n_models && r == 0; i++)
                sl_sim_server_know(replay->server, order_of(replay, i), &log->models[i].service_time);
        return r;
}

/* Times of which none counts, as ends are given. */
static int make_world(struct replay *replay)
{
        uint32_t n = replay->log->n_models;
        struct sl_sim_time *times = calloc(n + 1, sizeof(*times));
        double *pairs = calloc((size_t)n * n + 1, sizeof(*pairs));
        int r = times && pairs ? 0 : -ENOMEM;

        for (uint32_t i = 0; i < n && r == 0; i++) {
                times[order_of(replay, i)].latency_ns[0] = 1;
                make_model(replay, i);
        }
        for (uint32_t i = 0; i < replay->log->n_ensembles && r == 0; i++)
                r = make_ensemble(replay, i);
        if (r == 0)
                r = make_server(replay, times, pairs);
        free(times);
        free(pairs);
        return r;
}

int sl_replay_run(const struct sl_decision_log *log, struct sl_replay *ret_replay)
{
        struct replay *replay = calloc(1, sizeof(*replay));
        int r = replay ? 0 : -ENOMEM;

        *ret_replay = (struct sl_replay){.differs_at = SL_LOGGED_NONE};
        if (r == 0) {
                replay->log = log;
                replay->result = ret_replay;
                replay->arrived = calloc((size_t)log->n + 1, sizeof(*replay->arrived));
                r = replay->arrived ? make_world(replay) : -ENOMEM;
        }
        if (r == 0)
                r = go_through(replay);
        if (replay) {
                sl_sim_server_free(replay->server);
                free(replay->arrived);
        }
        free(replay);
        return r;
}
