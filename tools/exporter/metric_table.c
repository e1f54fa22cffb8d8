/* SPDX-License-Identifier: Apache-2.0 */
#include "metric.h"
#include "runtime_facts.h"

#define FIELD(slot, member) .field = #member, .offset = offsetof(slot, member), .bytes = sizeof(((slot *)NULL)->member)
#define USED                .field = "used", .offset = offsetof(struct sl_stats_slot, used), .bytes = sizeof(uint64_t)
#define HEADER(member)      .field = #member, .offset = offsetof(struct runtime_facts, header.member), .bytes = sizeof(uint64_t)
#define FACT(member, words) .field = (words), .offset = offsetof(struct runtime_facts, member), .bytes = sizeof(uint64_t)
#define STAGE(id, name)     .field = "histograms, stage " name, .offset = SL_STAGE_##id, .bytes = sizeof(struct sl_histogram)
#define LABEL(name, value)  .label = (name), .label_value = (value)
#define IS(value)           .compares = true, .equals = (value)
#define SAME                NULL

/* { ROW(scope, type, unit, name, help), field, label } */
#define ROW(scope_id, type_id, unit_id, row_name, row_help)                                                                        \
        .scope = SCOPE_##scope_id, .type = METRIC_##type_id, .unit = METRIC_##unit_id, .name = "starling_" row_name,               \
        .help = (row_help)

#define REFUSAL(id, text)                                                                                                          \
        {ROW(DISPATCHER, COUNTER, ONE, "refusals", SL_REFUSAL_##id ? SAME : "Requests refused, by the reason."),                   \
                .field = "refusals", .offset = offsetof(struct sl_dispatcher_stats, refusals[SL_REFUSAL_##id]),                    \
                .bytes = sizeof(uint64_t), LABEL("reason", #id)},

#define STATE(id, value)                                                                                                           \
        {ROW(RUNTIME, GAUGE, ONE, "runtime_state", (value) ? SAME : "1 for the state that the runtime is in, 0 for the others."),  \
                FACT(state, "state"), LABEL("state", #id), IS(value)},

#define MODEL_STATE(id, state_name, text)                                                                                          \
        {ROW(MODEL, GAUGE, ONE, "model_state",                                                                                     \
                 SL_STATS_MODEL_##id ? SAME : "1 for the state that the model is in, 0 for the others."),                          \
                FIELD(struct sl_model_stats, state), LABEL("state", #id), IS(SL_STATS_MODEL_##id)},

#define WORKER_STATE(id, state_name, text)                                                                                         \
        {ROW(CREW, GAUGE, ONE, "workers",                                                                                          \
                 SL_STATS_WORKER_##id                                                                                              \
                         ? SAME                                                                                                    \
                         : "Workers of the model, the dispatcher's own (inline) included, by the state that they are in."),        \
                FIELD(struct sl_worker_stats, state), LABEL("state", #id), IS(SL_STATS_WORKER_##id)},

static_assert(SL_STAGES == 6, "each stage has a row");

/* clang-format off */
const struct metric metric_table[] = {
        {ROW(EXPORTER, INFO, ONE, "exporter_build", "The exporter's version.")},

        {ROW(UP, GAUGE, ONE, "up", "1 while the runtime lives. 0: it is gone, or its page may not be read; what else is said of it is its last state."),
                FACT(up, "the lock of its writer")},

        {ROW(RUNTIME, GAUGE, SECONDS, "start_time_seconds", "When the runtime started, in seconds since 1970."),
                HEADER(started_unix_ns)},
        RUNTIME_STATES(STATE)
        {ROW(RUNTIME, GAUGE, BYTES, "memory_promised_bytes", "Memory that the runtime has promised to models and clients."),
                HEADER(memory_bytes)},
        {ROW(RUNTIME, GAUGE, BYTES, "memory_limit_bytes", "The most that it may promise (memory_max); +Inf: no limit."),
                HEADER(memory_max)},
        {ROW(RUNTIME, COUNTER, ONE, "stats_crowded", "Models, or their histograms, that found no room on the stats page and are counted as \"(others)\"."),
                HEADER(crowded)},

        {ROW(BUILD, INFO, ONE, "build", "The runtime's version, what it waits with, and the version of its stats page.")},

        {ROW(MEMORY, GAUGE, BYTES, "memory_bytes", "What memory is promised for: parts of starling_memory_promised_bytes."),
                FIELD(struct sl_memory_stats, bytes)},
        {ROW(MEMORY, GAUGE, BYTES, "memory_most_bytes", "The most that was ever promised for it."),
                FIELD(struct sl_memory_stats, most_bytes)},

        {ROW(STEP, COUNTER, ONE, "steps", "Steps from what was wanted of models to what is served, by their kind."),
                FIELD(struct sl_step_stats, taken)},

        {ROW(DISPATCHER, COUNTER, ONE, "dispatcher_requests", "Requests taken from clients, refused ones included."),
                FIELD(struct sl_dispatcher_stats, requests)},
        {ROW(DISPATCHER, COUNTER, ONE, "dispatcher_completions", "Completions published to clients."),
                FIELD(struct sl_dispatcher_stats, completions)},
        SL_REFUSALS(REFUSAL)
        {ROW(DISPATCHER, GAUGE, ONE, "dispatcher_requests_in_flight", "Requests of all clients in flight."),
                FIELD(struct sl_dispatcher_stats, in_flight)},
        {ROW(DISPATCHER, GAUGE, ONE, "dispatcher_waiting_clients", "Queue pairs whose clients wait."),
                FIELD(struct sl_dispatcher_stats, waiting_clients)},
        {ROW(DISPATCHER, GAUGE, ONE, "dispatcher_crowded", "1 while more threads want to run than there are cores."),
                FIELD(struct sl_dispatcher_stats, crowded)},
        {ROW(DISPATCHER, GAUGE, ONE, "dispatcher_saturated", "1 while workers have all that they can take."),
                FIELD(struct sl_dispatcher_stats, saturated)},
        {ROW(DISPATCHER, GAUGE, SECONDS, "dispatcher_late_seconds", "How long the dispatcher waited for a core of late, when it had work."),
                FIELD(struct sl_dispatcher_stats, late_ns)},
        {ROW(DISPATCHER, COUNTER, ONE, "dispatcher_passes", "Rounds over the queues of all clients."),
                FIELD(struct sl_dispatcher_stats, passes)},
        {ROW(DISPATCHER, COUNTER, ONE, "dispatcher_sleeps", "Times that the dispatcher went to sleep."),
                FIELD(struct sl_dispatcher_stats, sleeps)},
        {ROW(DISPATCHER, COUNTER, ONE, "dispatcher_doorbells", "Times that a client's doorbell woke the dispatcher."),
                FIELD(struct sl_dispatcher_stats, doorbells)},
        {ROW(DISPATCHER, COUNTER, ONE, "dispatcher_client_wakes", "Sleeping clients that the dispatcher woke."),
                FIELD(struct sl_dispatcher_stats, wakes)},

        {ROW(MODEL, COUNTER, ONE, "inference_requests", "Requests accepted."),
                FIELD(struct sl_model_stats, requests)},
        {ROW(MODEL, COUNTER, ONE, "inference_samples", "Samples of the requests accepted."),
                FIELD(struct sl_model_stats, samples)},
        {ROW(MODEL, COUNTER, ONE, "inference_completions", "Accepted requests that ended, by how."),
                FIELD(struct sl_model_stats, completed), LABEL("outcome", "done")},
        {ROW(MODEL, COUNTER, ONE, "inference_completions", SAME),
                FIELD(struct sl_model_stats, failed), LABEL("outcome", "failed")},
        {ROW(MODEL, COUNTER, ONE, "inference_completions", SAME),
                FIELD(struct sl_model_stats, expired), LABEL("outcome", "expired")},
        {ROW(MODEL, COUNTER, ONE, "inference_completions", SAME),
                FIELD(struct sl_model_stats, cancelled), LABEL("outcome", "cancelled")},
        {ROW(MODEL, COUNTER, ONE, "inference_refusals", "Requests refused, or ended, since the queue was full, a share used up, or the deadline out of reach."),
                FIELD(struct sl_model_stats, refused)},
        {ROW(MODEL, COUNTER, ONE, "inference_lost", "Pieces of requests that a worker process had when it ended."),
                FIELD(struct sl_model_stats, lost)},
        {ROW(MODEL, COUNTER, ONE, "inference_members_skipped", "Predictions that members of an ensemble were not asked for."),
                FIELD(struct sl_model_stats, skipped)},
        {ROW(MODEL, COUNTER, ONE, "inference_members_missed", "Predictions of members that were late or failed, where a quorum did."),
                FIELD(struct sl_model_stats, missed)},
        {ROW(MODEL, GAUGE, ONE, "inference_requests_in_flight", "Requests accepted and not completed."),
                FIELD(struct sl_model_stats, in_flight)},
        {ROW(MODEL, GAUGE, ONE, "inference_requests_in_flight_limit", "The most of them."),
                FIELD(struct sl_model_stats, queue_requests)},
        {ROW(MODEL, COUNTER, ONE, "inference_batches", "Batches given to workers; an ensemble's are those of its members."),
                FIELD(struct sl_model_stats, batches)},
        {ROW(MODEL, COUNTER, ONE, "inference_batch_samples", "Samples in these batches."),
                FIELD(struct sl_model_stats, batch_samples)},
        {ROW(MODEL, COUNTER, SECONDS, "inference_busy_seconds", "Time of workers from batch to prediction."),
                FIELD(struct sl_model_stats, worker_busy_ns)},
        {ROW(MODEL, COUNTER, SECONDS, "inference_compute_seconds", "Of that, time inside the network."),
                FIELD(struct sl_model_stats, compute_ns)},
        {ROW(MODEL, COUNTER, SECONDS, "inference_overhead_seconds", "Time of the runtime beside the networks, combining included."),
                FIELD(struct sl_model_stats, overhead_ns)},
        {ROW(MODEL, HISTOGRAM, SECONDS, "inference_duration_seconds", "From taking a request to its completion, of those done."),
                STAGE(TOTAL, "total")},
        {ROW(MODEL, HISTOGRAM, SECONDS, "inference_stage_duration_seconds", "Parts of the duration: queued until a worker is given it; batched until it begins; computing; combining the predictions."),
                STAGE(QUEUED, "queued"), LABEL("stage", "queued")},
        {ROW(MODEL, HISTOGRAM, SECONDS, "inference_stage_duration_seconds", SAME),
                STAGE(BATCHED, "batched"), LABEL("stage", "batched")},
        {ROW(MODEL, HISTOGRAM, SECONDS, "inference_stage_duration_seconds", SAME),
                STAGE(COMPUTING, "computing"), LABEL("stage", "computing")},
        {ROW(MODEL, HISTOGRAM, SECONDS, "inference_stage_duration_seconds", SAME),
                STAGE(COMBINING, "combining"), LABEL("stage", "combining")},

        {ROW(MODEL, HISTOGRAM, SECONDS, "client_wake_duration_seconds", "From publishing a completion until its client, which was woken for it, ran again; one for each wake-up."),
                STAGE(WAKING, "waking")},
        SL_STATS_MODEL_STATES(MODEL_STATE)
        {ROW(MODEL, GAUGE, ONE, "model_workers_wanted", "Workers that the model is to have; an ensemble has none of its own."),
                FIELD(struct sl_model_stats, workers_wanted)},
        {ROW(MODEL, GAUGE, ONE, "model_workers_serving", "Workers that take its requests."),
                FIELD(struct sl_model_stats, workers_serving)},
        {ROW(MODEL, COUNTER, ONE, "model_loads", "Loads, by how they ended."),
                FIELD(struct sl_model_stats, loads), LABEL("outcome", "done")},
        {ROW(MODEL, COUNTER, ONE, "model_loads", SAME),
                FIELD(struct sl_model_stats, load_failures), LABEL("outcome", "failed")},
        {ROW(MODEL, GAUGE, SECONDS, "model_load_duration_seconds", "How long its last load took that ended well."),
                FIELD(struct sl_model_stats, load_ns)},
        {ROW(MODEL, GAUGE, AGE, "model_state_age_seconds", "Since when it is in its state."),
                FIELD(struct sl_model_stats, since_ns)},

        {ROW(MODEL_INFO, INFO, ONE, "model", "What is served under the name.")},

        {ROW(QUEUE, GAUGE, ONE, "queue_depth", "Requests of a name that wait for their turn; segments that had it, and wait for a worker of the model."),
                FIELD(struct sl_queue_stats, depth)},
        {ROW(QUEUE, GAUGE, ONE, "queue_samples", "Samples in them."),
                FIELD(struct sl_queue_stats, samples)},
        {ROW(QUEUE, GAUGE, AGE, "queue_oldest_age_seconds", "How long ago the request of the oldest was taken; 0: none waits."),
                FIELD(struct sl_queue_stats, oldest_ns)},
        {ROW(QUEUE, GAUGE, ONE, "queue_given_jobs", "Jobs made of segments that workers have."),
                FIELD(struct sl_queue_stats, given_jobs)},
        {ROW(QUEUE, GAUGE, ONE, "queue_given_samples", "Samples that are not answered: of requests, those broadcast; of segments, those that workers have."),
                FIELD(struct sl_queue_stats, given_samples)},

        SL_STATS_WORKER_STATES(WORKER_STATE)
        {ROW(CREW, COUNTER, ONE, "worker_restarts", "Worker processes that have followed one that ended."),
                FIELD(struct sl_worker_stats, restarts)},
        {ROW(CREW, GAUGE, BYTES, "worker_workspace_bytes", "Activations and scratch of its workers."),
                FIELD(struct sl_worker_stats, workspace_bytes)},
        {ROW(CREW, GAUGE, BYTES, "worker_pool_bytes", "Inputs and outputs of its workers' batches, where several requests are gathered."),
                FIELD(struct sl_worker_stats, pool_bytes)},
        {ROW(CREW, GAUGE, BYTES, "worker_dynamic_bytes", "Of memory_max promised to its workers' data-dependent steps."),
                FIELD(struct sl_worker_stats, dynamic_bytes)},

        {ROW(WORKER, COUNTER, ONE, "worker_batches", "Batches done."),
                FIELD(struct sl_worker_stats, batches)},
        {ROW(WORKER, COUNTER, ONE, "worker_samples", "Samples in these batches."),
                FIELD(struct sl_worker_stats, samples)},
        {ROW(WORKER, COUNTER, SECONDS, "worker_busy_seconds", "Time from batch to prediction."),
                FIELD(struct sl_worker_stats, busy_ns)},
        {ROW(WORKER, GAUGE, ONE, "worker_condition", "Of a variant of a task: 1 active, 2 overloaded, 3 interfered with; else 0."),
                FIELD(struct sl_worker_stats, condition)},
        {ROW(WORKER, COUNTER, ONE, "worker_condition_changes", "Changes of that, by which."),
                FIELD(struct sl_worker_stats, peaks), LABEL("change", "peak")},
        {ROW(WORKER, COUNTER, ONE, "worker_condition_changes", SAME),
                FIELD(struct sl_worker_stats, peak_ends), LABEL("change", "below_peak")},
        {ROW(WORKER, COUNTER, ONE, "worker_condition_changes", SAME),
                FIELD(struct sl_worker_stats, slowdowns), LABEL("change", "slowed")},
        {ROW(WORKER, COUNTER, ONE, "worker_condition_changes", SAME),
                FIELD(struct sl_worker_stats, recoveries), LABEL("change", "recovered")},
        {ROW(WORKER, GAUGE, ONE, "worker_batch_max", "The largest batch that it takes, in samples."),
                FIELD(struct sl_worker_stats, batch_max)},

        {ROW(LET, COUNTER, ONE, "let_jobs", "Jobs given to workers on these cores."),
                FIELD(struct sl_let_stats, turns)},
        {ROW(LET, COUNTER, ONE, "let_samples", "Samples in those that are done."),
                FIELD(struct sl_let_stats, samples)},
        {ROW(LET, COUNTER, SECONDS, "let_busy_seconds", "Time of its workers from batch to prediction."),
                FIELD(struct sl_let_stats, busy_ns)},
        {ROW(LET, COUNTER, SECONDS, "let_background_seconds", "Of that, time of jobs in the background."),
                FIELD(struct sl_let_stats, background_ns)},
        {ROW(LET, GAUGE, ONE, "let_running_jobs", "Jobs given and not answered."),
                FIELD(struct sl_let_stats, running)},
        {ROW(LET, GAUGE, ONE, "let_cores", "How many cores they are."),
                FIELD(struct sl_let_stats, n_cores)},
        {ROW(LET, GAUGE, ONE, "let_workers", "Workers that share them."),
                FIELD(struct sl_let_stats, workers)},

        {ROW(USER, GAUGE, ONE, "clients", "Clients of the user that are attached."),
                USED},
        {ROW(USER, GAUGE, ONE, "client_requests_in_flight", "Their requests in flight."),
                FIELD(struct sl_client_stats, in_flight)},
        {ROW(USER, GAUGE, BYTES, "client_arena_bytes", "Bytes of their arenas."),
                FIELD(struct sl_client_stats, arena_bytes)},
};
/* clang-format on */

const size_t metric_table_rows = sizeof(metric_table) / sizeof(metric_table[0]);

const struct metric_scope_words metric_scope_words[METRIC_SCOPES] = {
        [SCOPE_EXPORTER] = {NULL, "version"},
        [SCOPE_UP] = {"header", "runtime"},
        [SCOPE_RUNTIME] = {"header", "runtime"},
        [SCOPE_BUILD] = {"header", "runtime, version, wait, stats_version"},
        [SCOPE_MEMORY] = {"memory", "runtime, kind"},
        [SCOPE_STEP] = {"steps", "runtime, step"},
        [SCOPE_DISPATCHER] = {"dispatchers", "runtime, dispatcher"},
        [SCOPE_MODEL] = {"models", "runtime, model"},
        [SCOPE_MODEL_INFO] = {"models", "runtime, model, kind, version"},
        [SCOPE_QUEUE] = {"queues", "runtime, model, queue"},
        [SCOPE_CREW] = {"workers", "runtime, model"},
        [SCOPE_WORKER] = {"workers", "runtime, model, worker, executor, core"},
        [SCOPE_LET] = {"lets", "runtime, let, cores"},
        [SCOPE_USER] = {"clients", "runtime, uid"},
};

const char *metric_suffix(enum metric_type type)
{
        static const char *const suffixes[] = {
                [METRIC_COUNTER] = "_total", [METRIC_GAUGE] = "", [METRIC_HISTOGRAM] = "", [METRIC_INFO] = "_info"};

        return suffixes[type];
}

const char *metric_type_name(enum metric_type type)
{
        static const char *const names[] = {
                [METRIC_COUNTER] = "counter", [METRIC_GAUGE] = "gauge", [METRIC_HISTOGRAM] = "histogram", [METRIC_INFO] = "info"};

        return names[type];
}
