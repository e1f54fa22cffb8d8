/* SPDX-License-Identifier: Apache-2.0 */
#include "stats_print.h"

#include "interval.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static json_t *number(uint64_t value)
{
        return json_integer((json_int_t)value);
}

static json_t *number_or_null(uint64_t value, uint64_t nothing)
{
        return value == nothing ? json_null() : number(value);
}

/* A text that is no UTF-8 is shown as what of it is ASCII. */
static json_t *string(const char *text)
{
        char plain[256];
        json_t *value = json_string(text);

        return value ? value : json_string(quantity_text(text, plain, sizeof(plain)));
}

static void set(json_t *object, const char *key, json_t *value)
{
        json_object_set_new(object, key, value);
}

/* Fields of a slot by the lists in stats_layout.h, so that a new counter shows up by itself. */
#define JSON_FIELD(name, text) set(object, #name, number(sl_counter_read(&slot->name)));
#define JSON_SUM(name, text)   set(object, #name, number(sums->name));

/* ---- everything once ------------------------------------------------------------------------------------------------- */

static json_t *dispatcher_json(const struct dispatcher_snapshot *entry)
{
        const struct sl_dispatcher_stats *slot = &entry->slot;
        json_t *object = json_object(), *refusals = json_object();

        set(object, "core", slot->core < 0 ? json_null() : json_integer(slot->core));
        SL_DISPATCHER_COUNTERS(JSON_FIELD)
        for (uint32_t i = 0; i < SL_REFUSAL_LIMIT; i++)
                set(refusals, sl_refusal_text(i), number(sl_counter_read(&slot->refusals[i])));
        set(object, "refusals", refusals);
        return object;
}

static json_t *histogram_json(const struct sl_histogram *histogram)
{
        return json_pack("{s:o, s:f, s:o, s:o, s:o, s:o}", "count", number(sl_counter_read(&histogram->count)), "mean_ns",
                sl_histogram_mean(histogram), "p50_ns", number(sl_histogram_quantile(histogram, 0.5)), "p99_ns",
                number(sl_histogram_quantile(histogram, 0.99)), "p999_ns", number(sl_histogram_quantile(histogram, 0.999)),
                "max_ns", number(sl_counter_read(&histogram->max_ns)));
}

static json_t *stages_json(const struct sl_histogram_set *histograms)
{
        json_t *stages = json_object();

        for (uint32_t i = 0; i < SL_STAGES; i++)
                set(stages, sl_stage_name(i), histogram_json(&histograms->stages[i]));
        return stages;
}

static json_t *sums_json(const struct model_sums *sums)
{
        json_t *object = json_object();

        SL_MODEL_SUMS(JSON_SUM)
        return object;
}

static json_t *model_json(const struct model_snapshot *entry)
{
        const struct sl_model_stats *slot = &entry->slot;
        json_t *object = json_object();

        set(object, "name", string(slot->name));
        set(object, "state", json_string(sl_stats_model_state_name(slot->state)));
        set(object, "kind", json_string(sl_stats_model_kind_name(slot->kind)));
        set(object, "why", slot->why[0] ? string(slot->why) : json_null());
        set(object, "version", json_integer(slot->version));
        set(object, "since_ns", number(slot->since_ns));
        set(object, "members", number(slot->n_members));
        set(object, "loads", number(slot->loads));
        set(object, "load_failures", number(slot->load_failures));
        set(object, "load_ns", number(slot->load_ns));
        set(object, "workers_wanted", number(slot->workers_wanted));
        set(object, "workers_serving", number(slot->workers_serving));
        set(object, "segment_samples", number(slot->segment_samples));
        set(object, "samples_max", number(slot->samples_max));
        set(object, "queue_requests", number(slot->queue_requests));
        SL_MODEL_COUNTERS(JSON_FIELD)
        set(object, "with_sizes", entry->has_sizes ? sums_json(&entry->with_sizes) : json_null());
        set(object, "latency", stages_json(entry->histograms));
        return object;
}

static json_t *queue_json(const struct queue_snapshot *entry)
{
        const struct sl_queue_stats *slot = &entry->slot;
        json_t *object = json_object();

        set(object, "model", string(slot->model));
        set(object, "kind", json_string(sl_stats_queue_kind_name(slot->kind)));
        SL_QUEUE_COUNTERS(JSON_FIELD)
        return object;
}

static json_t *client_json(const struct client_snapshot *entry)
{
        const struct sl_client_stats *slot = &entry->slot;
        json_t *object = json_object();

        set(object, "id", number(slot->id));
        set(object, "uid", number(slot->uid));
        set(object, "pid", number(slot->pid));
        set(object, "label", string(slot->label));
        set(object, "attached_ns", number(slot->attached_ns));
        set(object, "queues", number(slot->n_queues));
        set(object, "depth", number(slot->depth));
        SL_CLIENT_COUNTERS(JSON_FIELD)
        return object;
}

static json_t *worker_json(const struct worker_snapshot *entry)
{
        const struct sl_worker_stats *slot = &entry->slot;
        json_t *object = json_object();

        set(object, "model", string(slot->model));
        set(object, "executor", string(slot->executor));
        set(object, "state", json_string(sl_stats_worker_state_name(slot->state)));
        set(object, "core", slot->core < 0 ? json_null() : json_integer(slot->core));
        set(object, "let", number_or_null(slot->let, SL_STATS_NONE));
        set(object, "pid", number_or_null(slot->pid, 0));
        set(object, "restarts", number(slot->restarts));
        set(object, "why", slot->why[0] ? string(slot->why) : json_null());
        set(object, "ended_unix_ns", number_or_null(slot->ended_unix_ns, 0));
        set(object, "since_ns", number(slot->since_ns));
        set(object, "batch_max", number(slot->batch_max));
        SL_WORKER_COUNTERS(JSON_FIELD)
        if (entry->histograms)
                set(object, "latency", stages_json(entry->histograms));
        return object;
}

static json_t *let_json(const struct let_snapshot *entry)
{
        const struct sl_let_stats *slot = &entry->slot;
        json_t *object = json_object();

        set(object, "index", number(entry->index));
        set(object, "name", string(slot->name));
        set(object, "cores", string(slot->cores));
        set(object, "at_once", number(slot->at_once));
        set(object, "workers", number(slot->workers));
        set(object, "for_one", json_boolean(slot->for_one));
        SL_LET_COUNTERS(JSON_FIELD)
        return object;
}

static json_t *memory_json(const struct memory_snapshot *entry)
{
        const struct sl_memory_stats *slot = &entry->slot;
        json_t *object = json_object();

        set(object, "name", string(slot->name));
        SL_MEMORY_COUNTERS(JSON_FIELD)
        return object;
}

#define JSON_ARRAY(entries, n, to_json)                                                                                            \
        __extension__({                                                                                                            \
                json_t *array = json_array();                                                                                      \
                for (uint32_t i = 0; i < (n); i++)                                                                                 \
                        json_array_append_new(array, to_json(&(entries)[i]));                                                      \
                array;                                                                                                             \
        })

static json_t *header_json(const struct snapshot *s)
{
        const struct sl_stats_header *header = &s->header;
        json_t *object = json_object();

        set(object, "name", string(header->runtime_name));
        set(object, "state", json_string(snapshot_state(s)));
        set(object, "live", json_boolean(s->live));
        set(object, "pid", number(header->pid));
        set(object, "release", string(header->release));
        set(object, "wait", string(header->wait_name));
        set(object, "started_unix_ns", number(header->started_unix_ns));
        set(object, "started_ns", number(header->started_ns));
        set(object, "taken_ns", number(s->taken_ns));
        set(object, "stats_version", number(header->version));
        set(object, "stats_bytes", number(header->bytes));
        set(object, "memory_bytes", number(sl_counter_read(&header->memory_bytes)));
        set(object, "memory_max", number_or_null(sl_counter_read(&header->memory_max), UINT64_MAX));
        set(object, "crowded", number(sl_counter_read(&header->crowded)));
        return object;
}

void stats_print_json(const struct snapshot *s)
{
        json_t *object = header_json(s);

        set(object, "dispatchers", JSON_ARRAY(s->dispatchers, s->n_dispatchers, dispatcher_json));
        set(object, "models", JSON_ARRAY(s->models, s->n_models, model_json));
        set(object, "queues", JSON_ARRAY(s->queues, s->n_queues, queue_json));
        set(object, "clients", JSON_ARRAY(s->clients, s->n_clients, client_json));
        set(object, "workers", JSON_ARRAY(s->workers, s->n_workers, worker_json));
        set(object, "lets", JSON_ARRAY(s->lets, s->n_lets, let_json));
        set(object, "memory", JSON_ARRAY(s->memory, s->n_memory, memory_json));
        json_dumpf(object, stdout, JSON_INDENT(2));
        putchar('\n');
        json_decref(object);
}

/* ---- an interval a line ---------------------------------------------------------------------------------------------- */

static json_t *real(double value)
{
        return json_real(value);
}

static json_t *rates_json(const struct model_interval *model)
{
        const struct model_rates *rates = &model->per_second;
        const struct stage_times *total = &model->stages[SL_STAGE_TOTAL];
        json_t *object = json_object();

        set(object, "requests_per_second", real(rates->requests));
        set(object, "samples_per_second", real(rates->samples));
        set(object, "completed_per_second", real(rates->completed));
        set(object, "failed_per_second", real(rates->failed));
        set(object, "expired_per_second", real(rates->expired));
        set(object, "cancelled_per_second", real(rates->cancelled));
        set(object, "refused_per_second", real(rates->refused));
        set(object, "batch_samples", real(model->batch_samples));
        set(object, "busy_workers", real(model->busy));
        set(object, "in_flight", number(model->in_flight));
        set(object, "waiting_requests", number(model->waiting.requests));
        set(object, "waiting_segments", number(model->waiting.segments));
        set(object, "waiting_samples", number(model->waiting.samples));
        set(object, "oldest_age_ns", number(model->waiting.oldest_age_ns));
        set(object, "p50_ns", number(total->p50_ns));
        set(object, "p99_ns", number(total->p99_ns));
        set(object, "p999_ns", number(total->p999_ns));
        set(object, "max_ns", number(total->max_ns));
        return object;
}

static json_t *named_rates_json(const struct model_interval *model)
{
        json_t *object = rates_json(model);

        set(object, "name", string(model->now->slot.name));
        set(object, "state", json_string(sl_stats_model_state_name(model->now->slot.state)));
        return object;
}

static uint64_t unix_ns(void)
{
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void stats_print_line_json(const struct interval *interval, const struct model_interval *shown)
{
        const struct snapshot *now = interval->now;
        json_t *object = rates_json(shown);

        set(object, "unix_ns", number(unix_ns()));
        set(object, "seconds", real(interval->seconds));
        set(object, "runtime", string(now->header.runtime_name));
        set(object, "pid", number(now->header.pid));
        set(object, "state", json_string(snapshot_state(now)));
        set(object, "live", json_boolean(now->live));
        set(object, "clients", number(now->n_clients));
        if (shown == &interval->all)
                set(object, "models", JSON_ARRAY(interval->models, now->n_models, named_rates_json));
        else
                set(object, "model", string(shown->now->slot.name));
        json_dumpf(object, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
        putchar('\n');
        json_decref(object);
}
