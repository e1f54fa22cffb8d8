/* SPDX-License-Identifier: Apache-2.0 */
#include "views.h"

#include "quantity.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#define N(columns) (uint32_t)(sizeof(columns) / sizeof((columns)[0]))
#define TEXT(title)                                                                                                                \
        {                                                                                                                          \
                title, true                                                                                                        \
        }
#define NUMBER(title)                                                                                                              \
        {                                                                                                                          \
                title, false                                                                                                       \
        }
#define COUNTER(slot, name) sl_counter_read(&(slot)->name)

static const struct table_column model_columns[] = {TEXT("model"), TEXT("state"), NUMBER("req/s"), NUMBER("smp/s"),
        NUMBER("fail/s"), NUMBER("refd/s"), NUMBER("batch"), NUMBER("wait"), NUMBER("infl"), NUMBER("p50"), NUMBER("p99"),
        NUMBER("p99.9"), NUMBER("busy"), NUMBER("workers"), TEXT("kind")};
static const struct table_column worker_columns[] = {TEXT("model"), TEXT("executor"), TEXT("state"), NUMBER("on"), NUMBER("pid"),
        NUMBER("restarts"), NUMBER("batch/s"), NUMBER("smp/s"), NUMBER("batch"), NUMBER("max"), NUMBER("busy"), NUMBER("p50"),
        NUMBER("p99"), NUMBER("memory")};
static const struct table_column queue_columns[] = {
        TEXT("model"), TEXT("waiting"), NUMBER("depth"), NUMBER("samples"), NUMBER("oldest"), NUMBER("jobs"), NUMBER("given")};
static const struct table_column let_columns[] = {TEXT("let"), TEXT("cores"), NUMBER("workers"), NUMBER("at once"),
        NUMBER("running"), NUMBER("jobs/s"), NUMBER("smp/s"), NUMBER("busy")};
static const struct table_column client_columns[] = {NUMBER("id"), TEXT("label"), NUMBER("uid"), NUMBER("pid"), NUMBER("req/s"),
        NUMBER("smp/s"), NUMBER("fail/s"), NUMBER("refd/s"), NUMBER("infl"), NUMBER("arena"), NUMBER("wakes/s"), NUMBER("waking"),
        NUMBER("queues"), NUMBER("attached")};
static const struct table_column memory_columns[] = {TEXT("purpose"), NUMBER("promised"), NUMBER("most"), NUMBER("of max")};

static const struct {
        const char *name;
        char key;
        uint32_t sort_column;
} views[VIEWS] = {
#define X(id, name, key, column) [VIEW_##id] = {name, key, column},
        TOP_VIEWS(X)
#undef X
};

const char *view_name(enum view view)
{
        return views[view].name;
}

char view_key(enum view view)
{
        return views[view].key;
}

uint32_t view_sort_column(enum view view)
{
        return views[view].sort_column;
}

/* ---- cells ---- */

static void put_count(struct table_row *row, uint32_t *at, double value)
{
        char text[QUANTITY_BYTES];

        table_number(row, at, value, quantity_count(value, text));
}

static void put_time(struct table_row *row, uint32_t *at, uint64_t ns)
{
        char text[QUANTITY_BYTES];

        table_number(row, at, (double)ns, ns ? quantity_time(ns, text) : "-");
}

static void put_bytes(struct table_row *row, uint32_t *at, uint64_t bytes)
{
        char text[QUANTITY_BYTES];

        table_number(row, at, (double)bytes, quantity_bytes(bytes, text));
}

static void put_share(struct table_row *row, uint32_t *at, double share)
{
        char text[QUANTITY_BYTES];

        table_number(row, at, share, quantity_share(share, text));
}

/* Of what is none it shows nothing. */
static void put_integer(struct table_row *row, uint32_t *at, int64_t value, int64_t none)
{
        char text[QUANTITY_BYTES] = "-";

        if (value != none)
                snprintf(text, sizeof(text), "%lld", (long long)value);
        table_number(row, at, (double)value, text);
}

/* ---- models ---- */

static enum canvas_style model_style(uint32_t state)
{
        switch (state) {
        case SL_STATS_MODEL_READY:
                return STYLE_GOOD;
        case SL_STATS_MODEL_FAILED:
                return STYLE_BAD;
        default:
                return STYLE_WARNING;
        }
}

/* Why it stands so; of one that serves, where its requests' time went. */
static void describe_model(const struct model_interval *model, char *text, size_t bytes)
{
        size_t used = 0;

        if (model->now->slot.why[0])
                used += (size_t)snprintf(text, bytes, "%s", model->now->slot.why);
        for (uint32_t stage = 0; stage < SL_STAGES && used < bytes; stage++) {
                const struct stage_times *times = &model->stages[stage];
                char p50[QUANTITY_BYTES], p99[QUANTITY_BYTES];

                if (times->count)
                        used += (size_t)snprintf(text + used, bytes - used, "%s%s %s/%s",
                                used ? "  " : "p50/p99: ", sl_stage_name(stage), quantity_time(times->p50_ns, p50),
                                quantity_time(times->p99_ns, p99));
        }
}

static void fill_model(struct table_row *row, const struct model_interval *model)
{
        const struct sl_model_stats *slot = &model->now->slot;
        const struct model_rates *rates = &model->per_second;
        const struct stage_times *total = &model->stages[SL_STAGE_TOTAL];
        char workers[QUANTITY_BYTES];
        uint32_t at = 0;

        table_text(row, &at, STYLE_BOLD, slot->name);
        table_text(row, &at, model_style(slot->state), sl_stats_model_state_name(slot->state));
        put_count(row, &at, rates->requests);
        put_count(row, &at, rates->samples);
        put_count(row, &at, rates->failed + rates->expired + rates->cancelled);
        put_count(row, &at, rates->refused);
        put_count(row, &at, model->batch_samples);
        put_count(row, &at, (double)(model->waiting.requests + model->waiting.segments));
        put_count(row, &at, (double)model->in_flight);
        put_time(row, &at, total->p50_ns);
        put_time(row, &at, total->p99_ns);
        put_time(row, &at, total->p999_ns);
        put_count(row, &at, model->busy);
        snprintf(workers, sizeof(workers), "%u/%u", slot->workers_serving, slot->workers_wanted);
        table_number(row, &at, slot->workers_serving, slot->workers_wanted ? workers : "-");
        table_text(row, &at, STYLE_DIM, sl_stats_model_kind_name(slot->kind));
        describe_model(model, row->detail, sizeof(row->detail));
}

/* The common slot is shown when somebody counts there. */
static int fill_models(const struct interval *interval, struct table *table)
{
        for (uint32_t i = 0; i < interval->now->n_models; i++) {
                const struct model_interval *model = &interval->models[i];
                struct table_row *row;

                if (model->now->index == 0 && !COUNTER(&model->now->slot, requests))
                        continue;
                row = table_add(table, model->now->index);
                if (!row)
                        return -ENOMEM;
                fill_model(row, model);
        }
        return 0;
}

/* ---- workers ---- */

static enum canvas_style worker_style(uint32_t state)
{
        switch (state) {
        case SL_STATS_WORKER_SERVING:
                return STYLE_GOOD;
        case SL_STATS_WORKER_ENDED:
        case SL_STATS_WORKER_BACKING_OFF:
                return STYLE_BAD;
        default:
                return STYLE_WARNING;
        }
}

static void describe_worker(const struct interval *interval, const struct sl_worker_stats *slot, char *text, size_t bytes)
{
        char age[QUANTITY_BYTES];
        uint64_t taken_ns = interval->now->taken_ns;
        int used = snprintf(text, bytes, "%s for %s", sl_stats_worker_state_name(slot->state),
                quantity_age(taken_ns > slot->since_ns ? taken_ns - slot->since_ns : 0, age));

        if (slot->why[0] && used > 0 && (size_t)used < bytes)
                snprintf(text + used, bytes - (size_t)used, "; before: %s", slot->why);
}

/* Its core, or its GPU, which is behind all cores in order. */
static void put_place(struct table_row *row, uint32_t *at, const struct snapshot *now, const struct sl_worker_stats *slot)
{
        const char *gpu = snapshot_gpu(now, slot);

        if (gpu)
                table_number(row, at, (double)(CPU_SETSIZE + slot->let), gpu);
        else
                put_integer(row, at, slot->core, -1);
}

static void fill_worker(struct table_row *row, const struct interval *interval, const struct worker_interval *worker)
{
        const struct sl_worker_stats *slot = &worker->now->slot;
        uint32_t at = 0;

        table_text(row, &at, STYLE_BOLD, slot->model);
        table_text(row, &at, STYLE_PLAIN, slot->executor);
        table_text(row, &at, worker_style(slot->state), sl_stats_worker_state_name(slot->state));
        put_place(row, &at, interval->now, slot);
        put_integer(row, &at, slot->pid, 0);
        put_count(row, &at, slot->restarts);
        put_count(row, &at, worker->per_second.batches);
        put_count(row, &at, worker->per_second.samples);
        put_count(row, &at, worker->batch_samples);
        put_count(row, &at, slot->batch_max);
        put_share(row, &at, worker->busy);
        put_time(row, &at, worker->total.p50_ns);
        put_time(row, &at, worker->total.p99_ns);
        put_bytes(row, &at, COUNTER(slot, workspace_bytes) + COUNTER(slot, pool_bytes) + COUNTER(slot, dynamic_bytes));
        describe_worker(interval, slot, row->detail, sizeof(row->detail));
}

static int fill_workers(const struct interval *interval, struct table *table)
{
        for (uint32_t i = 0; i < interval->now->n_workers; i++) {
                struct table_row *row = table_add(table, interval->now->workers[i].index);

                if (!row)
                        return -ENOMEM;
                fill_worker(row, interval, &interval->workers[i]);
        }
        return 0;
}

/* ---- queues ---- */

static void fill_queue(struct table_row *row, const struct snapshot *now, const struct sl_queue_stats *slot)
{
        uint64_t oldest_ns = COUNTER(slot, oldest_ns);
        uint32_t at = 0;

        table_text(row, &at, STYLE_BOLD, slot->model);
        table_text(row, &at, STYLE_PLAIN, sl_stats_queue_kind_name(slot->kind));
        put_count(row, &at, (double)COUNTER(slot, depth));
        put_count(row, &at, (double)COUNTER(slot, samples));
        put_time(row, &at, oldest_ns && now->taken_ns > oldest_ns ? now->taken_ns - oldest_ns : 0);
        put_count(row, &at, (double)COUNTER(slot, given_jobs));
        put_count(row, &at, (double)COUNTER(slot, given_samples));
        snprintf(row->detail, sizeof(row->detail), "%s",
                slot->kind == SL_STATS_QUEUE_REQUESTS ? "requests that wait for their turn; given: samples that are broadcast"
                                                      : "segments that wait for a worker; given: samples that workers have");
}

static int fill_queues(const struct interval *interval, struct table *table)
{
        for (uint32_t i = 0; i < interval->now->n_queues; i++) {
                struct table_row *row = table_add(table, interval->now->queues[i].index);

                if (!row)
                        return -ENOMEM;
                fill_queue(row, interval->now, &interval->now->queues[i].slot);
        }
        return 0;
}

/* ---- lets ---- */

static void fill_let(struct table_row *row, const struct let_interval *let)
{
        const struct sl_let_stats *slot = &let->now->slot;
        uint32_t at = 0;

        table_text(row, &at, STYLE_BOLD, slot->name);
        table_text(row, &at, STYLE_PLAIN, slot->cores[0] ? slot->cores : "any");
        put_count(row, &at, slot->workers);
        put_count(row, &at, slot->at_once);
        put_count(row, &at, (double)COUNTER(slot, running));
        put_count(row, &at, let->per_second.turns);
        put_count(row, &at, let->per_second.samples);
        put_share(row, &at, let->busy);
        snprintf(row->detail, sizeof(row->detail), "%s",
                slot->for_one ? "a core for one worker, which may spin there" : "shared: more urgent jobs go first");
}

static int fill_lets(const struct interval *interval, struct table *table)
{
        for (uint32_t i = 0; i < interval->now->n_lets; i++) {
                struct table_row *row = table_add(table, interval->now->lets[i].index);

                if (!row)
                        return -ENOMEM;
                fill_let(row, &interval->lets[i]);
        }
        return 0;
}

/* ---- clients ---- */

static void fill_client(struct table_row *row, const struct interval *interval, const struct client_interval *client)
{
        const struct sl_client_stats *slot = &client->now->slot;
        const struct client_rates *rates = &client->per_second;
        uint64_t taken_ns = interval->now->taken_ns;
        uint32_t at = 0;

        put_integer(row, &at, (int64_t)slot->id, -1);
        table_text(row, &at, STYLE_BOLD, slot->label);
        put_integer(row, &at, slot->uid, -1);
        put_integer(row, &at, slot->pid, 0);
        put_count(row, &at, rates->requests);
        put_count(row, &at, rates->samples);
        put_count(row, &at, rates->failed);
        put_count(row, &at, rates->refused);
        put_count(row, &at, (double)COUNTER(slot, in_flight));
        put_bytes(row, &at, COUNTER(slot, arena_bytes));
        put_count(row, &at, rates->wakes);
        put_time(row, &at, (uint64_t)client->waking_ns);
        put_count(row, &at, slot->n_queues);
        put_time(row, &at, taken_ns > slot->attached_ns ? taken_ns - slot->attached_ns : 0);
}

static int fill_clients(const struct interval *interval, struct table *table)
{
        for (uint32_t i = 0; i < interval->now->n_clients; i++) {
                struct table_row *row = table_add(table, interval->now->clients[i].slot.id);

                if (!row)
                        return -ENOMEM;
                fill_client(row, interval, &interval->clients[i]);
        }
        return 0;
}

/* ---- memory ---- */

static int fill_memory(const struct interval *interval, struct table *table)
{
        uint64_t max = COUNTER(&interval->now->header, memory_max);

        for (uint32_t i = 0; i < interval->now->n_memory; i++) {
                const struct sl_memory_stats *slot = &interval->now->memory[i].slot;
                struct table_row *row = table_add(table, interval->now->memory[i].index);
                uint32_t at = 0;

                if (!row)
                        return -ENOMEM;
                table_text(row, &at, STYLE_BOLD, slot->name);
                put_bytes(row, &at, COUNTER(slot, bytes));
                put_bytes(row, &at, COUNTER(slot, most_bytes));
                put_share(row, &at, max == UINT64_MAX ? 0 : (double)COUNTER(slot, bytes) / (double)max);
        }
        return 0;
}

int view_fill(enum view view, const struct interval *interval, struct table *ret_table)
{
        static const struct {
                const struct table_column *columns;
                uint32_t n_columns;
                int (*fill)(const struct interval *interval, struct table *table);
        } kinds[VIEWS] = {
                [VIEW_MODELS] = {model_columns, N(model_columns), fill_models},
                [VIEW_WORKERS] = {worker_columns, N(worker_columns), fill_workers},
                [VIEW_QUEUES] = {queue_columns, N(queue_columns), fill_queues},
                [VIEW_LETS] = {let_columns, N(let_columns), fill_lets},
                [VIEW_CLIENTS] = {client_columns, N(client_columns), fill_clients},
                [VIEW_MEMORY] = {memory_columns, N(memory_columns), fill_memory},
        };

        table_init(ret_table, kinds[view].columns, kinds[view].n_columns);
        return kinds[view].fill(interval, ret_table);
}
