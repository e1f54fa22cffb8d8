/* SPDX-License-Identifier: Apache-2.0 */
#include "interval.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- counters ------------------------------------------------------------------------------------------------------- */

static uint64_t grown(uint64_t before, uint64_t now)
{
        return now >= before ? now - before : now;
}

static double ratio(double a, double b)
{
        return b > 0 ? a / b : 0;
}

/* Of each field of a list: @before NULL: from zero. */
#define RATE_FIELD(name, text)                                                                                                     \
        rates->name = (double)grown(before ? sl_counter_read(&before->name) : 0, sl_counter_read(&now->name)) / seconds;

#define DEFINE_RATES(function, list, rates_type, slot_type)                                                                        \
        static void function(                                                                                                      \
                struct rates_type *rates, const struct slot_type *before, const struct slot_type *now, double seconds)             \
        {                                                                                                                          \
                list(RATE_FIELD)                                                                                                   \
        }

DEFINE_RATES(rate_dispatcher, SL_DISPATCHER_COUNTERS, dispatcher_rates, sl_dispatcher_stats)
DEFINE_RATES(rate_model, SL_MODEL_COUNTERS, model_rates, sl_model_stats)
DEFINE_RATES(rate_client, SL_CLIENT_COUNTERS, client_rates, sl_client_stats)
DEFINE_RATES(rate_worker, SL_WORKER_COUNTERS, worker_rates, sl_worker_stats)
DEFINE_RATES(rate_let, SL_LET_COUNTERS, let_rates, sl_let_stats)

/* Entry number @index of @entries, which are in the order of their indices; NULL: it was not in use. */
static const void *entry_at(const void *entries, uint32_t n, size_t bytes, uint32_t index)
{
        uint32_t low = 0, high = n;

        while (low < high) {
                uint32_t middle = low + (high - low) / 2, at;

                memcpy(&at, (const char *)entries + middle * bytes, sizeof(at));
                if (at == index)
                        return (const char *)entries + middle * bytes;
                if (at < index)
                        low = middle + 1;
                else
                        high = middle;
        }
        return NULL;
}

#define ENTRY_AT(snapshot, list, index)                                                                                            \
        ((snapshot) ? entry_at((snapshot)->list, (snapshot)->n_##list, sizeof((snapshot)->list[0]), (index)) : NULL)

/* ---- histograms ----------------------------------------------------------------------------------------------------- */

static uint64_t read_bucket(const struct sl_histogram *histogram, uint32_t bucket)
{
        return histogram ? sl_counter_read(&histogram->buckets[bucket]) : 0;
}

/* The largest value: the true one when it is new, else that of the last bucket. */
static uint64_t largest(const struct sl_histogram *before, const struct sl_histogram *now, uint32_t last_bucket)
{
        uint64_t max_ns = sl_counter_read(&now->max_ns), value_ns = sl_histogram_value(last_bucket);

        if (!before || max_ns > sl_counter_read(&before->max_ns))
                return max_ns;
        return value_ns < max_ns ? value_ns : max_ns;
}

void histogram_since(struct sl_histogram *between, const struct sl_histogram *before, const struct sl_histogram *now)
{
        uint64_t count = 0;
        uint32_t last = 0;

        if (before && sl_counter_read(&before->count) > sl_counter_read(&now->count)) /* it is somebody else's now */
                before = NULL;
        memset(between, 0, sizeof(*between));
        for (uint32_t i = 0; i < SL_HISTOGRAM_BUCKETS; i++) {
                uint64_t n = grown(read_bucket(before, i), read_bucket(now, i));

                sl_counter_set(&between->buckets[i], n);
                count += n;
                last = n ? i : last;
        }
        sl_counter_set(&between->count, count);
        sl_counter_set(&between->sum_ns, grown(before ? sl_counter_read(&before->sum_ns) : 0, sl_counter_read(&now->sum_ns)));
        sl_counter_set(&between->max_ns, count ? largest(before, now, last) : 0);
}

void stage_times_of(const struct sl_histogram *histogram, struct stage_times *times)
{
        *times = (struct stage_times){.count = sl_counter_read(&histogram->count)};
        if (!times->count)
                return;
        times->p50_ns = sl_histogram_quantile(histogram, 0.5);
        times->p99_ns = sl_histogram_quantile(histogram, 0.99);
        times->p999_ns = sl_histogram_quantile(histogram, 0.999);
        times->max_ns = sl_counter_read(&histogram->max_ns);
        times->mean_ns = sl_histogram_mean(histogram);
}

/* ---- models --------------------------------------------------------------------------------------------------------- */

/* Histograms of one model in the interval, and of all: too large for a stack. */
struct scratch {
        struct sl_histogram_set one, all;
};

static void find_times(struct model_interval *model, const struct model_snapshot *before, struct scratch *scratch)
{
        for (uint32_t stage = 0; stage < SL_STAGES; stage++) {
                struct sl_histogram *between = &scratch->one.stages[stage];

                histogram_since(
                        between, before ? &before->histograms->stages[stage] : NULL, &model->now->histograms->stages[stage]);
                stage_times_of(between, &model->stages[stage]);
                sl_histogram_merge(&scratch->all.stages[stage], between);
        }
}

static uint64_t age(const struct snapshot *now, uint64_t since_ns)
{
        return since_ns && now->taken_ns > since_ns ? now->taken_ns - since_ns : 0;
}

static uint64_t count_of(const struct queue_snapshot *queue, const _Atomic uint64_t *counter)
{
        return queue ? sl_counter_read(counter) : 0;
}

#define COUNT_OF(queue, field) count_of((queue), &(queue)->slot.field)

static void find_waiting(struct waiting_now *waiting, const struct snapshot *now, const char *name)
{
        const struct queue_snapshot *requests = snapshot_queue(now, name, SL_STATS_QUEUE_REQUESTS),
                                    *segments = snapshot_queue(now, name, SL_STATS_QUEUE_SEGMENTS);
        uint64_t older = age(now, requests ? COUNT_OF(requests, oldest_ns) : 0),
                 other = age(now, segments ? COUNT_OF(segments, oldest_ns) : 0);

        *waiting = (struct waiting_now){
                .requests = requests ? COUNT_OF(requests, depth) : 0,
                .segments = segments ? COUNT_OF(segments, depth) : 0,
                .samples = (requests ? COUNT_OF(requests, samples) : 0) + (segments ? COUNT_OF(segments, samples) : 0),
                .given_samples = segments ? COUNT_OF(segments, given_samples) : 0,
                .oldest_age_ns = older > other ? older : other,
        };
}

static const struct model_snapshot *model_before(const struct snapshot *before, const struct model_snapshot *now)
{
        for (uint32_t i = 0; before && i < before->n_models; i++)
                if (strcmp(before->models[i].slot.name, now->slot.name) == 0)
                        return &before->models[i];
        return NULL;
}

#define ADD_RATE(name, text) all->per_second.name += model->per_second.name;

static void add_to_all(struct model_interval *all, const struct model_interval *model)
{
        SL_MODEL_COUNTERS(ADD_RATE)
        all->busy += model->busy;
        all->in_flight += model->in_flight;
        all->waiting.requests += model->waiting.requests;
        all->waiting.segments += model->waiting.segments;
        all->waiting.samples += model->waiting.samples;
        all->waiting.given_samples += model->waiting.given_samples;
        if (model->waiting.oldest_age_ns > all->waiting.oldest_age_ns)
                all->waiting.oldest_age_ns = model->waiting.oldest_age_ns;
}

static void find_model(struct interval *interval, uint32_t i, const struct snapshot *before, struct scratch *scratch)
{
        struct model_interval *model = &interval->models[i];
        const struct model_snapshot *earlier;

        model->now = &interval->now->models[i];
        earlier = model_before(before, model->now);
        rate_model(&model->per_second, earlier ? &earlier->slot : NULL, &model->now->slot, interval->seconds);
        model->batch_samples = ratio(model->per_second.batch_samples, model->per_second.batches);
        model->busy = model->per_second.worker_busy_ns / 1e9;
        model->in_flight = sl_counter_read(&model->now->slot.in_flight);
        find_times(model, earlier, scratch);
        find_waiting(&model->waiting, interval->now, model->now->slot.name);
        add_to_all(&interval->all, model);
}

static int find_models(struct interval *interval, const struct snapshot *before)
{
        struct scratch *scratch = aligned_alloc(alignof(struct scratch), sizeof(*scratch));

        if (!scratch)
                return -ENOMEM;
        memset(scratch, 0, sizeof(*scratch));
        for (uint32_t i = 0; i < interval->now->n_models; i++)
                find_model(interval, i, before, scratch);
        interval->all.batch_samples = ratio(interval->all.per_second.batch_samples, interval->all.per_second.batches);
        for (uint32_t stage = 0; stage < SL_STAGES; stage++)
                stage_times_of(&scratch->all.stages[stage], &interval->all.stages[stage]);
        free(scratch);
        return 0;
}

/* ---- the others ----------------------------------------------------------------------------------------------------- */

static void find_dispatcher(struct interval *interval, uint32_t i, const struct snapshot *before)
{
        struct dispatcher_interval *dispatcher = &interval->dispatchers[i];
        const struct dispatcher_snapshot *earlier;

        dispatcher->now = &interval->now->dispatchers[i];
        earlier = ENTRY_AT(before, dispatchers, dispatcher->now->index);
        rate_dispatcher(&dispatcher->per_second, earlier ? &earlier->slot : NULL, &dispatcher->now->slot, interval->seconds);
}

static void find_client(struct interval *interval, uint32_t i, const struct snapshot *before)
{
        struct client_interval *client = &interval->clients[i];
        const struct client_snapshot *earlier;

        client->now = &interval->now->clients[i];
        earlier = ENTRY_AT(before, clients, client->now->index);
        if (earlier && earlier->slot.id != client->now->slot.id)
                earlier = NULL;
        rate_client(&client->per_second, earlier ? &earlier->slot : NULL, &client->now->slot, interval->seconds);
        client->waking_ns = ratio(client->per_second.waking_ns, client->per_second.wakes);
}

/* A seat that changed hands counts from zero. */
static bool is_same_seat(const struct sl_worker_stats *a, const struct sl_worker_stats *b)
{
        return strcmp(a->model, b->model) == 0 && strcmp(a->executor, b->executor) == 0 &&
               sl_counter_read(&a->batches) <= sl_counter_read(&b->batches);
}

static int find_worker(struct interval *interval, uint32_t i, const struct snapshot *before)
{
        struct worker_interval *worker = &interval->workers[i];
        const struct worker_snapshot *earlier;
        struct sl_histogram *between;

        worker->now = &interval->now->workers[i];
        earlier = ENTRY_AT(before, workers, worker->now->index);
        if (earlier && !is_same_seat(&earlier->slot, &worker->now->slot))
                earlier = NULL;
        rate_worker(&worker->per_second, earlier ? &earlier->slot : NULL, &worker->now->slot, interval->seconds);
        worker->batch_samples = ratio(worker->per_second.samples, worker->per_second.batches);
        worker->busy = worker->per_second.busy_ns / 1e9;
        if (!worker->now->histograms)
                return 0;
        between = aligned_alloc(alignof(struct sl_histogram), sizeof(*between));
        if (!between)
                return -ENOMEM;
        histogram_since(between, earlier && earlier->histograms ? &earlier->histograms->stages[SL_STAGE_TOTAL] : NULL,
                &worker->now->histograms->stages[SL_STAGE_TOTAL]);
        stage_times_of(between, &worker->total);
        free(between);
        return 0;
}

static void find_let(struct interval *interval, uint32_t i, const struct snapshot *before)
{
        struct let_interval *let = &interval->lets[i];
        const struct let_snapshot *earlier;

        let->now = &interval->now->lets[i];
        earlier = ENTRY_AT(before, lets, let->now->index);
        rate_let(&let->per_second, earlier ? &earlier->slot : NULL, &let->now->slot, interval->seconds);
        let->busy = ratio(let->per_second.busy_ns / 1e9, let->now->slot.at_once);
}

static int find_others(struct interval *interval, const struct snapshot *before)
{
        int r = 0;

        for (uint32_t i = 0; i < interval->now->n_dispatchers; i++)
                find_dispatcher(interval, i, before);
        for (uint32_t i = 0; i < interval->now->n_clients; i++)
                find_client(interval, i, before);
        for (uint32_t i = 0; r == 0 && i < interval->now->n_workers; i++)
                r = find_worker(interval, i, before);
        for (uint32_t i = 0; i < interval->now->n_lets; i++)
                find_let(interval, i, before);
        return r;
}

static int allocate(struct interval *interval, const struct snapshot *now)
{
        interval->dispatchers = calloc(now->n_dispatchers + 1ul, sizeof(*interval->dispatchers));
        interval->models = calloc(now->n_models + 1ul, sizeof(*interval->models));
        interval->clients = calloc(now->n_clients + 1ul, sizeof(*interval->clients));
        interval->workers = calloc(now->n_workers + 1ul, sizeof(*interval->workers));
        interval->lets = calloc(now->n_lets + 1ul, sizeof(*interval->lets));
        return interval->dispatchers && interval->models && interval->clients && interval->workers && interval->lets ? 0 : -ENOMEM;
}

static bool is_same_runtime(const struct snapshot *a, const struct snapshot *b)
{
        return a->header.pid == b->header.pid && a->header.started_ns == b->header.started_ns;
}

int interval_init(struct interval *interval, const struct snapshot *before, const struct snapshot *now)
{
        int r;

        if (before && !is_same_runtime(before, now))
                before = NULL;
        *interval = (struct interval){.now = now, .from_start = !before};
        interval->seconds = (double)(now->taken_ns - (before ? before->taken_ns : now->header.started_ns)) / 1e9;
        if (interval->seconds < 1e-9) /* no time has passed, or the clocks differ */
                interval->seconds = 1e-9;
        r = allocate(interval, now);
        if (r == 0)
                r = find_models(interval, before);
        if (r == 0)
                r = find_others(interval, before);
        if (r < 0)
                interval_deinit(interval);
        return r;
}

void interval_deinit(struct interval *interval)
{
        free(interval->dispatchers);
        free(interval->models);
        free(interval->clients);
        free(interval->workers);
        free(interval->lets);
        *interval = (struct interval){0};
}
