/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot.h"

#include "base/clock.h"
#include "base/error.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT alignof(struct sl_histogram_set)

/* A kind of entries: its index, and behind that the slot of a section. */
struct kind {
        enum sl_stats_section section;
        size_t bytes, slot_offset;
};

#define KIND(section, type)                                                                                                        \
        &(const struct kind)                                                                                                       \
        {                                                                                                                          \
                section, sizeof(struct type), offsetof(struct type, slot)                                                          \
        }

/* Slots that cannot be read, each for some ms. Beyond that the page is damaged, and no more of the section is looked at. */
#define BUSY_MAX 16u

/* Room for twice as many entries as before, the new ones zero. NULL: no memory, and @entries is gone. */
static char *grow(char *entries, size_t bytes, uint32_t *n_max)
{
        uint32_t more = *n_max ? 2 * *n_max : 64;
        char *grown = aligned_alloc(ALIGNMENT, more * bytes);

        if (grown) {
                if (*n_max)
                        memcpy(grown, entries, *n_max * bytes);
                memset(grown + *n_max * bytes, 0, (more - *n_max) * bytes);
                *n_max = more;
        }
        free(entries);
        return grown;
}

/* Every slot in use of one section. Return: 0, -ENOMEM. */
static int read_section(const struct sl_stats_view *view, const struct kind *kind, void **ret_entries, uint32_t *ret_n)
{
        uint32_t n_slots = sl_stats_count(view, kind->section), n = 0, n_max = 0, n_busy = 0;
        char *entries = grow(NULL, kind->bytes, &n_max);

        for (uint32_t i = 0; i < n_slots && n_busy < BUSY_MAX; i++) {
                if (n == n_max)
                        entries = grow(entries, kind->bytes, &n_max);
                if (!entries)
                        return -ENOMEM;
                char *entry = entries + (size_t)n * kind->bytes;
                int r = sl_stats_read_slot(view, kind->section, i, (struct sl_stats_slot *)(void *)(entry + kind->slot_offset));

                n_busy += r == -EAGAIN;
                if (r < 0)
                        continue;
                memcpy(entry, &i, sizeof(i));
                n++;
        }
        if (!entries)
                return -ENOMEM;
        *ret_entries = entries;
        *ret_n = n;
        return 0;
}

/* Zeros where there are none. */
static int copy_histograms(const struct sl_stats_view *view, uint32_t number, struct sl_histogram_set **ret_set)
{
        struct sl_histogram_set *set = aligned_alloc(ALIGNMENT, sizeof(*set));

        if (!set)
                return -ENOMEM;
        if (sl_stats_read_histograms(view, number, set) < 0)
                memset(set, 0, sizeof(*set));
        *ret_set = set;
        return 0;
}

/* ---- models --------------------------------------------------------------------------------------------------------- */

static struct model_snapshot *find_model(const struct snapshot *snapshot, uint32_t n, const char *name)
{
        for (uint32_t i = 0; i < n; i++)
                if (strcmp(snapshot->models[i].slot.name, name) == 0)
                        return &snapshot->models[i];
        return NULL;
}

#define ADD_FIELD(name, text) sl_counter_add(&sum->slot.name, sl_counter_read(&entry->slot.name));
#define ADD_LEFT(name, text)  sl_counter_add(&sum->slot.left_##name, sl_counter_read(&entry->slot.left_##name));

static int add_model(const struct snapshot *snapshot, const struct sl_stats_view *view, struct model_snapshot *sum,
        const struct model_snapshot *entry)
{
        struct sl_histogram_set *histograms;

        SL_MODEL_COUNTERS(ADD_FIELD)
        SL_ENSEMBLE_COUNTERS(ADD_FIELD)
        SL_MODEL_SUMS(ADD_LEFT)
        if (entry->slot.histograms == SL_STATS_NONE)
                return 0;
        if (sum->histograms == snapshot->no_histograms)
                return copy_histograms(view, entry->slot.histograms, &sum->histograms);
        if (copy_histograms(view, entry->slot.histograms, &histograms) < 0)
                return -ENOMEM;
        for (uint32_t stage = 0; stage < SL_STAGES; stage++)
                sl_histogram_merge(&sum->histograms->stages[stage], &histograms->stages[stage]);
        free(histograms);
        return 0;
}

/* Those of one name become one. */
static int join_models(struct snapshot *snapshot, const struct sl_stats_view *view)
{
        uint32_t n = 0;
        int r = 0;

        for (uint32_t i = 0; i < snapshot->n_models && r == 0; i++) {
                const struct model_snapshot *entry = &snapshot->models[i];
                struct model_snapshot *sum = find_model(snapshot, n, entry->slot.name);

                if (sum) {
                        r = add_model(snapshot, view, sum, entry);
                        continue;
                }
                memmove(&snapshot->models[n], entry, sizeof(*entry));
                snapshot->models[n].histograms = snapshot->no_histograms;
                if (snapshot->models[n].slot.histograms != SL_STATS_NONE)
                        r = copy_histograms(view, snapshot->models[n].slot.histograms, &snapshot->models[n].histograms);
                n += r == 0;
        }
        snapshot->n_models = n;
        return r;
}

#define ADD_SUM(name, text)      sums->name += sl_counter_read(&slot->name);
#define ADD_LEFT_SUM(name, text) sums->name += sl_counter_read(&slot->left_##name);

static void add_sums(struct model_sums *sums, const struct sl_model_stats *slot)
{
        SL_MODEL_SUMS(ADD_SUM)
        SL_MODEL_SUMS(ADD_LEFT_SUM)
}

static void add_sizes(struct snapshot *snapshot)
{
        char open[SL_STATS_MODEL_BYTES];

        for (uint32_t i = 0; i < snapshot->n_models; i++) {
                struct model_snapshot *model = &snapshot->models[i];

                model->has_sizes = model->slot.kind == SL_STATS_MODEL_OPEN || sl_counter_read(&model->slot.left_requests);
                add_sums(&model->with_sizes, &model->slot);
        }
        for (uint32_t i = 0; i < snapshot->n_models; i++) {
                const struct sl_model_stats *sizes = &snapshot->models[i].slot;
                struct model_snapshot *model =
                        sl_stats_sizes_of(sizes, open) ? find_model(snapshot, snapshot->n_models, open) : NULL;

                if (model)
                        add_sums(&model->with_sizes, sizes);
        }
}

static int read_models(struct snapshot *snapshot, const struct sl_stats_view *view)
{
        int r = copy_histograms(view, SL_STATS_NONE, &snapshot->no_histograms);

        if (r == 0)
                r = read_section(view, KIND(SL_STATS_MODELS, model_snapshot), (void **)&snapshot->models, &snapshot->n_models);
        r = r < 0 ? r : join_models(snapshot, view);
        if (r == 0)
                add_sizes(snapshot);
        return r;
}

static int read_workers(struct snapshot *snapshot, const struct sl_stats_view *view)
{
        int r = read_section(view, KIND(SL_STATS_WORKERS, worker_snapshot), (void **)&snapshot->workers, &snapshot->n_workers);

        for (uint32_t i = 0; r == 0 && i < snapshot->n_workers; i++) {
                struct worker_snapshot *worker = &snapshot->workers[i];

                if (worker->slot.histograms < sl_stats_count(view, SL_STATS_HISTOGRAMS))
                        r = copy_histograms(view, worker->slot.histograms, &worker->histograms);
        }
        return r;
}

/* ---- queues --------------------------------------------------------------------------------------------------------- */

static struct queue_snapshot *find_queue(const struct snapshot *snapshot, uint32_t n, const char *model, uint32_t kind)
{
        for (uint32_t i = 0; i < n; i++)
                if (snapshot->queues[i].slot.kind == kind && strcmp(snapshot->queues[i].slot.model, model) == 0)
                        return &snapshot->queues[i];
        return NULL;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
        return !a || (b && b < a) ? b : a;
}

static void add_queue(struct sl_queue_stats *sum, const struct sl_queue_stats *slot)
{
        sl_counter_add(&sum->depth, sl_counter_read(&slot->depth));
        sl_counter_add(&sum->samples, sl_counter_read(&slot->samples));
        sl_counter_add(&sum->given_jobs, sl_counter_read(&slot->given_jobs));
        sl_counter_add(&sum->given_samples, sl_counter_read(&slot->given_samples));
        sl_counter_set(&sum->oldest_ns, earlier(sl_counter_read(&sum->oldest_ns), sl_counter_read(&slot->oldest_ns)));
}

/* One that drains and the one in its place become one. */
static void join_queues(struct snapshot *snapshot)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < snapshot->n_queues; i++) {
                const struct queue_snapshot *entry = &snapshot->queues[i];
                struct queue_snapshot *sum = find_queue(snapshot, n, entry->slot.model, entry->slot.kind);

                if (sum)
                        add_queue(&sum->slot, &entry->slot);
                else
                        memmove(&snapshot->queues[n++], entry, sizeof(*entry));
        }
        snapshot->n_queues = n;
}

const struct sl_let_stats *snapshot_let(const struct snapshot *snapshot, const struct sl_worker_stats *worker)
{
        for (uint32_t i = 0; i < snapshot->n_lets; i++)
                if (snapshot->lets[i].index == worker->let)
                        return &snapshot->lets[i].slot;
        return NULL;
}

const char *snapshot_gpu(const struct snapshot *snapshot, const struct sl_worker_stats *worker)
{
        const struct sl_let_stats *let = snapshot_let(snapshot, worker);

        return let && strncmp(let->name, "gpu:", 4) == 0 && memchr(let->name, 0, sizeof(let->name)) ? let->name : NULL;
}

const struct model_snapshot *snapshot_model(const struct snapshot *snapshot, const char *name)
{
        return find_model(snapshot, snapshot->n_models, name);
}

const struct model_snapshot *snapshot_model_at(const struct snapshot *snapshot, uint32_t index)
{
        for (uint32_t i = 0; i < snapshot->n_models; i++)
                if (snapshot->models[i].index == index)
                        return &snapshot->models[i];
        return NULL;
}

const struct queue_snapshot *snapshot_queue(const struct snapshot *snapshot, const char *model, enum sl_stats_queue_kind kind)
{
        return find_queue(snapshot, snapshot->n_queues, model, kind);
}

/* ---- all of it ------------------------------------------------------------------------------------------------------ */

static int read_all(struct snapshot *s, const struct sl_stats_view *view)
{
        int r = read_section(view, KIND(SL_STATS_DISPATCHERS, dispatcher_snapshot), (void **)&s->dispatchers, &s->n_dispatchers);

        if (r == 0)
                r = read_models(s, view);
        if (r == 0)
                r = read_section(view, KIND(SL_STATS_CLIENTS, client_snapshot), (void **)&s->clients, &s->n_clients);
        if (r == 0)
                r = read_workers(s, view);
        if (r == 0)
                r = read_section(view, KIND(SL_STATS_QUEUES, queue_snapshot), (void **)&s->queues, &s->n_queues);
        if (r == 0)
                r = read_section(view, KIND(SL_STATS_LETS, let_snapshot), (void **)&s->lets, &s->n_lets);
        if (r == 0)
                r = read_section(view, KIND(SL_STATS_MEMORY, memory_snapshot), (void **)&s->memory, &s->n_memory);
        if (r == 0)
                r = read_section(view, KIND(SL_STATS_STEPS, step_snapshot), (void **)&s->steps, &s->n_steps);
        join_queues(s);
        return r;
}

int snapshot_take(const struct sl_stats_view *view, struct snapshot **ret_snapshot, struct sl_error *error)
{
        struct snapshot *snapshot = aligned_alloc(alignof(struct snapshot), sizeof(*snapshot));
        int r;

        if (!snapshot)
                return sl_error_set(error, ENOMEM, "out of memory");
        memset(snapshot, 0, sizeof(*snapshot));
        snapshot->live = sl_stats_is_live(view);
        sl_stats_read_header(view, &snapshot->header);
        r = read_all(snapshot, view);
        snapshot->taken_ns = sl_clock_ns();
        r = r < 0 ? sl_error_set(error, -r, "out of memory") : sl_stats_check(view, error);
        if (r < 0)
                snapshot_free(snapshot);
        else
                *ret_snapshot = snapshot;
        return r;
}

int snapshot_of(const char *name, struct snapshot **ret_snapshot, struct sl_error *error)
{
        struct sl_stats_view *view;
        int r = sl_stats_open(name, NULL, &view, error);

        if (r < 0)
                return r;
        r = snapshot_take(view, ret_snapshot, error);
        sl_stats_close(view);
        return r;
}

struct snapshot *snapshot_free(struct snapshot *snapshot)
{
        if (!snapshot)
                return NULL;
        for (uint32_t i = 0; i < snapshot->n_models; i++)
                if (snapshot->models[i].histograms != snapshot->no_histograms)
                        free(snapshot->models[i].histograms);
        free(snapshot->no_histograms);
        for (uint32_t i = 0; i < snapshot->n_workers; i++)
                free(snapshot->workers[i].histograms);
        free(snapshot->dispatchers);
        free(snapshot->models);
        free(snapshot->clients);
        free(snapshot->workers);
        free(snapshot->queues);
        free(snapshot->lets);
        free(snapshot->memory);
        free(snapshot->steps);
        free(snapshot);
        return NULL;
}

const char *snapshot_state(const struct snapshot *snapshot)
{
        static const char *const names[] = {"starting", "ready", "stopping", "stopped"};
        uint32_t state = atomic_load_explicit(&snapshot->header.state, memory_order_relaxed);

        if (!snapshot->live && state != SL_RUNTIME_STOPPED)
                return "dead";
        return state <= SL_RUNTIME_STOPPED ? names[state] : "unknown";
}
