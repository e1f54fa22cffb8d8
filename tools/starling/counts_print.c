/* SPDX-License-Identifier: Apache-2.0 */
#include "counts.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

static const char *state_of(const struct counts *counts)
{
        static const char *const names[] = {"starting", "ready", "stopping", "stopped"};
        uint32_t state = atomic_load(&counts->header.state);

        if (!counts->live)
                return "dead";
        return state <= SL_RUNTIME_STOPPED ? names[state] : "unknown";
}

/* ---- JSON ---- */

static json_t *number(uint64_t value)
{
        return json_integer((json_int_t)value);
}

/* Fields of a slot by the lists in stats.h, so that a new counter shows up by itself. */
#define JSON_FIELD(name, text) json_object_set_new(object, #name, number(sl_counter_read(&slot->name)));

static json_t *dispatcher_json(const struct sl_dispatcher_stats *slot)
{
        json_t *object = json_object(), *refusals = json_object();

        json_object_set_new(object, "core", slot->core < 0 ? json_null() : json_integer(slot->core));
        SL_DISPATCHER_COUNTERS(JSON_FIELD)
        for (uint32_t i = 0; i < SL_REFUSAL_LIMIT; i++)
                json_object_set_new(refusals, sl_refusal_text((enum sl_refusal)i), number(sl_counter_read(&slot->refusals[i])));
        json_object_set_new(object, "refusals", refusals);
        return object;
}

static json_t *histogram_json(const struct sl_histogram *histogram)
{
        return json_pack("{s:o, s:f, s:o, s:o, s:o, s:o}", "count", number(sl_counter_read(&histogram->count)), "mean_ns",
                sl_histogram_mean(histogram), "p50_ns", number(sl_histogram_quantile(histogram, 0.5)), "p99_ns",
                number(sl_histogram_quantile(histogram, 0.99)), "p999_ns", number(sl_histogram_quantile(histogram, 0.999)),
                "max_ns", number(sl_counter_read(&histogram->max_ns)));
}

static json_t *model_json(const struct model_counts *model)
{
        const struct sl_model_stats *slot = &model->counters;
        json_t *object = json_object(), *stages = json_object();

        json_object_set_new(object, "name", json_string(slot->name));
        SL_MODEL_COUNTERS(JSON_FIELD)
        for (uint32_t i = 0; i < SL_STAGES; i++)
                json_object_set_new(stages, sl_stage_name((enum sl_stage)i), histogram_json(&model->histograms->stages[i]));
        json_object_set_new(object, "latency", stages);
        return object;
}

static json_t *client_json(const struct sl_client_stats *slot)
{
        json_t *object = json_pack("{s:o, s:i, s:i, s:s%}", "id", number(slot->id), "uid", (int)slot->uid, "pid", (int)slot->pid,
                "label", slot->label, strnlen(slot->label, sizeof(slot->label)));

        if (!object)
                object = json_object(); /* a label that is no UTF-8 */
        SL_CLIENT_COUNTERS(JSON_FIELD)
        return object;
}

static json_t *worker_json(const struct sl_worker_stats *slot)
{
        json_t *object = json_object();

        json_object_set_new(object, "model", json_string(slot->model));
        json_object_set_new(object, "executor", json_string(slot->executor));
        json_object_set_new(object, "core", slot->core < 0 ? json_null() : json_integer(slot->core));
        json_object_set_new(object, "batch_max", json_integer(slot->batch_max));
        SL_WORKER_COUNTERS(JSON_FIELD)
        return object;
}

#define JSON_ARRAY(slots, n, to_json)                                                                                              \
        __extension__({                                                                                                            \
                json_t *array = json_array();                                                                                      \
                for (uint32_t i = 0; i < (n); i++)                                                                                 \
                        json_array_append_new(array, to_json(&(slots)[i]));                                                        \
                array;                                                                                                             \
        })

void counts_print_json(const struct counts *counts)
{
        const struct sl_stats_header *header = &counts->header;
        uint64_t memory_max = sl_counter_read(&header->memory_max);
        json_t *object = json_object();

        json_object_set_new(object, "name", json_string(header->runtime_name));
        json_object_set_new(object, "state", json_string(state_of(counts)));
        json_object_set_new(object, "live", json_boolean(counts->live));
        json_object_set_new(object, "pid", json_integer(header->pid));
        json_object_set_new(object, "wait", json_string(header->wait_name));
        json_object_set_new(object, "started_unix_ns", number(header->started_unix_ns));
        json_object_set_new(object, "stats_version", json_integer(header->version));
        json_object_set_new(object, "stats_bytes", number(header->bytes));
        json_object_set_new(object, "memory_bytes", number(sl_counter_read(&header->memory_bytes)));
        json_object_set_new(object, "memory_max", memory_max == UINT64_MAX ? json_null() : number(memory_max));
        json_object_set_new(object, "crowded", number(sl_counter_read(&header->crowded)));
        json_object_set_new(object, "dispatchers", JSON_ARRAY(counts->dispatchers, counts->n_dispatchers, dispatcher_json));
        json_object_set_new(object, "models", JSON_ARRAY(counts->models, counts->n_models, model_json));
        json_object_set_new(object, "clients", JSON_ARRAY(counts->clients, counts->n_clients, client_json));
        json_object_set_new(object, "workers", JSON_ARRAY(counts->workers, counts->n_workers, worker_json));
        json_dumpf(object, stdout, JSON_INDENT(2));
        putchar('\n');
        json_decref(object);
}

/* ---- text ---- */

#define VALUE(slot, field) sl_counter_read(&(slot)->field)

/* A time in three digits and its unit. */
static void print_time(uint64_t ns)
{
        static const char *const units[] = {"ns", "us", "ms", "s"};
        double value = (double)ns;
        uint32_t unit = 0;

        while (value >= 1000 && unit < 3) {
                value /= 1000;
                unit++;
        }
        printf(" %7.3g %-2s", value, units[unit]);
}

static void print_stages(const struct sl_histogram_set *histograms)
{
        for (uint32_t i = 0; i < SL_STAGES; i++) {
                const struct sl_histogram *histogram = &histograms->stages[i];

                if (!sl_counter_read(&histogram->count))
                        continue;
                printf("    %-10s p50", sl_stage_name((enum sl_stage)i));
                print_time(sl_histogram_quantile(histogram, 0.5));
                printf("  p99");
                print_time(sl_histogram_quantile(histogram, 0.99));
                printf("  p99.9");
                print_time(sl_histogram_quantile(histogram, 0.999));
                printf("  max");
                print_time(sl_counter_read(&histogram->max_ns));
                putchar('\n');
        }
}

static void print_dispatcher(const struct sl_dispatcher_stats *slot)
{
        printf("dispatcher  core %d  requests %" PRIu64 "  completions %" PRIu64 "  sleeps %" PRIu64 "  wakes %" PRIu64 "\n",
                slot->core, VALUE(slot, requests), VALUE(slot, completions), VALUE(slot, sleeps), VALUE(slot, wakes));
        for (uint32_t i = 0; i < SL_REFUSAL_LIMIT; i++)
                if (VALUE(slot, refusals[i]))
                        printf("    refused %" PRIu64 ": %s\n", VALUE(slot, refusals[i]), sl_refusal_text((enum sl_refusal)i));
}

static void print_model(const struct model_counts *model)
{
        const struct sl_model_stats *slot = &model->counters;

        printf("model %s  requests %" PRIu64 "  samples %" PRIu64 "  done %" PRIu64 "  failed %" PRIu64 "  expired %" PRIu64
               "  cancelled %" PRIu64 "  refused %" PRIu64 "  batches %" PRIu64 "\n",
                slot->name, VALUE(slot, requests), VALUE(slot, samples), VALUE(slot, completed), VALUE(slot, failed),
                VALUE(slot, expired), VALUE(slot, cancelled), VALUE(slot, refused), VALUE(slot, batches));
        print_stages(model->histograms);
}

/* A client chooses its label: what a terminal would act on is not printed. */
static void print_label(const char *label, size_t bytes)
{
        for (size_t i = 0; i < bytes && label[i]; i++)
                putchar((unsigned char)label[i] < 0x20 || label[i] == 0x7f ? '?' : label[i]);
}

void counts_print(const struct counts *counts)
{
        const struct sl_stats_header *header = &counts->header;

        printf("runtime %s  %s  pid %u  wait %s  stats page %" PRIu64 " bytes\n", header->runtime_name, state_of(counts),
                header->pid, header->wait_name, header->bytes);
        printf("memory  promised %" PRIu64 "  memory_max %" PRIu64 " bytes\n", VALUE(header, memory_bytes),
                VALUE(header, memory_max));
        for (uint32_t i = 0; i < counts->n_dispatchers; i++)
                print_dispatcher(&counts->dispatchers[i]);
        for (uint32_t i = 0; i < counts->n_models; i++)
                print_model(&counts->models[i]);
        for (uint32_t i = 0; i < counts->n_clients; i++) {
                const struct sl_client_stats *slot = &counts->clients[i];

                printf("client %" PRIu64 "  uid %u  pid %u  ", slot->id, slot->uid, slot->pid);
                print_label(slot->label, sizeof(slot->label));
                printf("  requests %" PRIu64 "  completions %" PRIu64 "  in flight %" PRIu64 "  arena %" PRIu64 " bytes\n",
                        VALUE(slot, requests), VALUE(slot, completions), VALUE(slot, in_flight), VALUE(slot, arena_bytes));
        }
        for (uint32_t i = 0; i < counts->n_workers; i++) {
                const struct sl_worker_stats *slot = &counts->workers[i];

                printf("worker of %s  %s  core %d  batch_max %u  batches %" PRIu64 "  samples %" PRIu64 "  busy", slot->model,
                        slot->executor, slot->core, slot->batch_max, VALUE(slot, batches), VALUE(slot, samples));
                print_time(VALUE(slot, busy_ns));
                putchar('\n');
        }
}
