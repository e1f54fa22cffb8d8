/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot_json.h"

#include "json_value.h"

/* Fields of a slot by the lists in stats_layout.h, so that a new counter shows up by itself. */
#define JSON_FIELD(name, text) json_set(object, #name, json_number(sl_counter_read(&slot->name)));
#define JSON_SUM(name, text)   json_set(object, #name, json_number(sums->name));

static json_t *dispatcher_json(const struct dispatcher_snapshot *entry)
{
        const struct sl_dispatcher_stats *slot = &entry->slot;
        json_t *object = json_object(), *refusals = json_object();

        json_set(object, "core", slot->core < 0 ? json_null() : json_integer(slot->core));
        SL_DISPATCHER_COUNTERS(JSON_FIELD)
        for (uint32_t i = 0; i < SL_REFUSAL_LIMIT; i++)
                json_set(refusals, sl_refusal_text(i), json_number(sl_counter_read(&slot->refusals[i])));
        json_set(object, "refusals", refusals);
        return object;
}

static json_t *histogram_json(const struct sl_histogram *histogram)
{
        return json_pack("{s:o, s:f, s:o, s:o, s:o, s:o}", "count", json_number(sl_counter_read(&histogram->count)), "mean_ns",
                sl_histogram_mean(histogram), "p50_ns", json_number(sl_histogram_quantile(histogram, 0.5)), "p99_ns",
                json_number(sl_histogram_quantile(histogram, 0.99)), "p999_ns",
                json_number(sl_histogram_quantile(histogram, 0.999)), "max_ns", json_number(sl_counter_read(&histogram->max_ns)));
}

static json_t *stages_json(const struct sl_histogram_set *histograms)
{
        json_t *stages = json_object();

        for (uint32_t i = 0; i < SL_STAGES; i++)
                json_set(stages, sl_stage_name(i), histogram_json(&histograms->stages[i]));
        return stages;
}

static json_t *sums_json(const struct model_sums *sums)
{
        json_t *object = json_object();

        SL_MODEL_SUMS(JSON_SUM)
        return object;
}

static json_t *text_or_null(const char *text)
{
        return text[0] ? json_text(text) : json_null();
}

json_t *snapshot_want_json(const struct snapshot *s, const struct sl_model_stats *slot)
{
        const struct model_snapshot *of = snapshot_model_at(s, slot->awaits_of);
        json_t *object = json_object();

        json_set(object, "number", json_number_or_null(slot->want, 0));
        json_set(object, "origin", text_or_null(slot->origin));
        json_set(object, "since_ns", json_number_or_null(slot->wanted_ns, 0));
        json_set(object, "served", json_number_or_null(slot->want_served, 0));
        json_set(object, "failed", json_number_or_null(slot->want_failed, 0));
        json_set(object, "awaits", text_or_null(slot->awaits));
        json_set(object, "awaits_of", of ? json_text(of->slot.name) : json_null());
        json_set(object, "awaits_since_ns", json_number_or_null(slot->awaits_ns, 0));
        json_set(object, "step", text_or_null(slot->step));
        json_set(object, "cause", text_or_null(slot->cause));
        return object;
}

static json_t *model_json(const struct snapshot *s, const struct model_snapshot *entry)
{
        const struct sl_model_stats *slot = &entry->slot;
        json_t *object = json_object();

        json_set(object, "name", json_text(slot->name));
        json_set(object, "state", json_string(sl_stats_model_state_name(slot->state)));
        json_set(object, "kind", json_string(sl_stats_model_kind_name(slot->kind)));
        json_set(object, "why", slot->why[0] ? json_text(slot->why) : json_null());
        json_set(object, "version", json_integer(slot->version));
        json_set(object, "since_ns", json_number(slot->since_ns));
        json_set(object, "members", json_number(slot->n_members));
        json_set(object, "loads", json_number(slot->loads));
        json_set(object, "load_failures", json_number(slot->load_failures));
        json_set(object, "load_ns", json_number(slot->load_ns));
        json_set(object, "workers_wanted", json_number(slot->workers_wanted));
        json_set(object, "workers_serving", json_number(slot->workers_serving));
        json_set(object, "segment_samples", json_number(slot->segment_samples));
        json_set(object, "samples_max", json_number(slot->samples_max));
        json_set(object, "queue_requests", json_number(slot->queue_requests));
        SL_MODEL_COUNTERS(JSON_FIELD)
        SL_ENSEMBLE_COUNTERS(JSON_FIELD)
        json_set(object, "want", snapshot_want_json(s, slot));
        json_set(object, "with_sizes", entry->has_sizes ? sums_json(&entry->with_sizes) : json_null());
        json_set(object, "latency", stages_json(entry->histograms));
        return object;
}

static json_t *models_json(const struct snapshot *s)
{
        json_t *array = json_array();

        for (uint32_t i = 0; i < s->n_models; i++)
                json_array_append_new(array, model_json(s, &s->models[i]));
        return array;
}

static json_t *queue_json(const struct queue_snapshot *entry)
{
        const struct sl_queue_stats *slot = &entry->slot;
        json_t *object = json_object();

        json_set(object, "model", json_text(slot->model));
        json_set(object, "kind", json_string(sl_stats_queue_kind_name(slot->kind)));
        SL_QUEUE_COUNTERS(JSON_FIELD)
        return object;
}

static json_t *client_json(const struct client_snapshot *entry)
{
        const struct sl_client_stats *slot = &entry->slot;
        json_t *object = json_object();

        json_set(object, "id", json_number(slot->id));
        json_set(object, "uid", json_number(slot->uid));
        json_set(object, "pid", json_number(slot->pid));
        json_set(object, "label", json_text(slot->label));
        json_set(object, "attached_ns", json_number(slot->attached_ns));
        json_set(object, "queues", json_number(slot->n_queues));
        json_set(object, "depth", json_number(slot->depth));
        SL_CLIENT_COUNTERS(JSON_FIELD)
        return object;
}

static json_t *worker_json(const struct worker_snapshot *entry)
{
        const struct sl_worker_stats *slot = &entry->slot;
        json_t *object = json_object();

        json_set(object, "model", json_text(slot->model));
        json_set(object, "executor", json_text(slot->executor));
        json_set(object, "state", json_string(sl_stats_worker_state_name(slot->state)));
        json_set(object, "core", slot->core < 0 ? json_null() : json_integer(slot->core));
        json_set(object, "let", json_number_or_null(slot->let, SL_STATS_NONE));
        json_set(object, "pid", json_number_or_null(slot->pid, 0));
        json_set(object, "restarts", json_number(slot->restarts));
        json_set(object, "why", slot->why[0] ? json_text(slot->why) : json_null());
        json_set(object, "ended_unix_ns", json_number_or_null(slot->ended_unix_ns, 0));
        json_set(object, "since_ns", json_number(slot->since_ns));
        json_set(object, "batch_max", json_number(slot->batch_max));
        SL_WORKER_COUNTERS(JSON_FIELD)
        if (entry->histograms)
                json_set(object, "latency", stages_json(entry->histograms));
        return object;
}

static json_t *let_json(const struct let_snapshot *entry)
{
        const struct sl_let_stats *slot = &entry->slot;
        json_t *object = json_object();

        json_set(object, "index", json_number(entry->index));
        json_set(object, "name", json_text(slot->name));
        json_set(object, "cores", json_text(slot->cores));
        json_set(object, "at_once", json_number(slot->at_once));
        json_set(object, "workers", json_number(slot->workers));
        json_set(object, "for_one", json_boolean(slot->for_one));
        SL_LET_COUNTERS(JSON_FIELD)
        return object;
}

static json_t *memory_json(const struct memory_snapshot *entry)
{
        const struct sl_memory_stats *slot = &entry->slot;
        json_t *object = json_object();

        json_set(object, "name", json_text(slot->name));
        SL_MEMORY_COUNTERS(JSON_FIELD)
        return object;
}

static json_t *step_json(const struct step_snapshot *entry)
{
        const struct sl_step_stats *slot = &entry->slot;
        json_t *object = json_object();

        json_set(object, "name", json_text(slot->name));
        SL_STEP_COUNTERS(JSON_FIELD)
        return object;
}

static json_t *header_json(const struct snapshot *s)
{
        const struct sl_stats_header *header = &s->header;
        json_t *object = json_object();

        json_set(object, "name", json_text(header->runtime_name));
        json_set(object, "state", json_string(snapshot_state(s)));
        json_set(object, "live", json_boolean(s->live));
        json_set(object, "pid", json_number(header->pid));
        json_set(object, "release", json_text(header->release));
        json_set(object, "wait", json_text(header->wait_name));
        json_set(object, "started_unix_ns", json_number(header->started_unix_ns));
        json_set(object, "started_ns", json_number(header->started_ns));
        json_set(object, "taken_ns", json_number(s->taken_ns));
        json_set(object, "stats_version", json_number(header->version));
        json_set(object, "stats_bytes", json_number(header->bytes));
        json_set(object, "memory_bytes", json_number(sl_counter_read(&header->memory_bytes)));
        json_set(object, "memory_max", json_number_or_null(sl_counter_read(&header->memory_max), UINT64_MAX));
        json_set(object, "crowded", json_number(sl_counter_read(&header->crowded)));
        return object;
}

json_t *snapshot_json(const struct snapshot *s)
{
        json_t *object = header_json(s);

        json_set(object, "dispatchers", JSON_ARRAY(s->dispatchers, s->n_dispatchers, dispatcher_json));
        json_set(object, "models", models_json(s));
        json_set(object, "queues", JSON_ARRAY(s->queues, s->n_queues, queue_json));
        json_set(object, "clients", JSON_ARRAY(s->clients, s->n_clients, client_json));
        json_set(object, "workers", JSON_ARRAY(s->workers, s->n_workers, worker_json));
        json_set(object, "lets", JSON_ARRAY(s->lets, s->n_lets, let_json));
        json_set(object, "memory", JSON_ARRAY(s->memory, s->n_memory, memory_json));
        json_set(object, "steps", JSON_ARRAY(s->steps, s->n_steps, step_json));
        return object;
}
