/* SPDX-License-Identifier: Apache-2.0 */
#include "autoscale.h"

#include "account.h"
#include "applied.h"
#include "arrival_rate.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fields.h"
#include "condition.h"
#include "crew.h"
#include "draft.h"
#include "ensemble.h"
#include "executor.h"
#include "lets.h"
#include "memory.h"
#include "model.h"
#include "offers.h"
#include "registry_state.h"
#include "runtime_options.h"
#include "scaler.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_NS      (50 * SL_NS_PER_MS)
#define HEARD_NS     (10 * SL_NS_PER_MS) /* between looks, when a worker has just been overloaded */
#define IDLE_LOOK_NS (1000 * SL_NS_PER_MS)
#define RETRY_NS     (1000 * SL_NS_PER_MS) /* after a change that could not be had */
#define RATE_S       5.0                   /* over which what a worker does is averaged */
#define LOAD_S       0.02                  /* of the first change, until one has shown it */
#define LOAD_WEIGHT  0.25
#define LEAST_LOAD   1e-3 /* of a model that nobody uses: it keeps a worker */
#define CORES        0u   /* resources */
#define MEMORY       1u

/* A model that is loaded. */
struct row {
        uint64_t serial;
        struct sl_model *model;
        struct sl_served *served; /* a name of it whose workers can be changed; NULL: there is none now */
        struct sl_arrival_rate load;
        uint64_t offered, inlined, samples, busy_ns; /* counters at the last look */
        uint64_t offered_now;
        double did, did_s;          /* samples, and seconds of workers for them, lately */
        uint32_t advised;           /* workers, as was last said; 0: nothing was */
        struct sl_scaler_need need; /* memory */
        struct sl_scaler_kind kind;
};

struct sl_autoscale {
        struct sl_registry *registry;
        struct sl_offers *offers; /* variants of tasks */
        enum sl_scaler scaler;
        struct row *rows;
        uint32_t n, room;
        uint64_t looked_ns, due_ns, not_before_ns;
        uint64_t names;         /* as the registry counted their changes at the last look */
        uint64_t began_ns;      /* of the change under way; 0: there is none */
        uint64_t changes_model; /* one of it, by serial, */
        uint32_t changes_to;    /* which is to have so many workers */
        double load_s;

        /* The problem, by row that can be changed. */
        uint32_t *row_of;
        struct sl_scale_need *needs;
        struct sl_scale_kind *kinds;
        struct sl_scaler_need *need_words;
        struct sl_scaler_kind *kind_words;
        int32_t *change;
};

int sl_autoscale_new(struct sl_registry *r, struct sl_autoscale **ret_autoscale)
{
        const struct sl_runtime_options *options = r->options.runtime;

        *ret_autoscale = NULL;
        if (options->autoscale.mode == SL_AUTOSCALE_OFF)
                return 0;
        *ret_autoscale = calloc(1, sizeof(**ret_autoscale));
        if (!*ret_autoscale)
                return -ENOMEM;
        if (sl_offers_new(r, &(*ret_autoscale)->offers) < 0) {
                free(*ret_autoscale);
                *ret_autoscale = NULL;
                return -ENOMEM;
        }
        (*ret_autoscale)->registry = r;
        (*ret_autoscale)->scaler = (enum sl_scaler)options->autoscale.scaler;
        (*ret_autoscale)->load_s = LOAD_S;
        return 0;
}

struct sl_autoscale *sl_autoscale_free(struct sl_autoscale *a)
{
        if (!a)
                return NULL;
        sl_offers_free(a->offers);
        free(a->rows);
        free(a->row_of);
        free(a->needs);
        free(a->kinds);
        free(a->need_words);
        free(a->kind_words);
        free(a->change);
        free(a);
        return NULL;
}

/* ---- rows ---- */

static bool grow(void **array, uint32_t n, size_t bytes)
{
        void *more = realloc(*array, n * bytes);

        if (more)
                *array = more;
        return more;
}

static bool make_room(struct sl_autoscale *a, uint32_t n)
{
        if (n <= a->room)
                return true;
        n = 2 * n;
        if (!grow((void **)&a->rows, n, sizeof(*a->rows)) || !grow((void **)&a->row_of, n, sizeof(*a->row_of)) ||
                !grow((void **)&a->needs, n, sizeof(*a->needs)) || !grow((void **)&a->kinds, n, sizeof(*a->kinds)) ||
                !grow((void **)&a->need_words, n, sizeof(*a->need_words)) ||
                !grow((void **)&a->kind_words, n, sizeof(*a->kind_words)) || !grow((void **)&a->change, n, sizeof(*a->change)))
                return false;
        a->room = n;
        return true;
}

static const struct sl_model *find_loaded(const struct sl_registry *r, uint64_t serial)
{
        const struct sl_model *model = r->loaded;

        while (model && model->serial != serial)
                model = model->next_loaded;
        return model;
}

static void number_rows(struct sl_autoscale *a)
{
        for (uint32_t i = 0; i < a->n; i++)
                a->rows[i].model->scaling_row = i;
}

/* Each loaded model has one row. */
static bool has_rows(const struct sl_autoscale *a)
{
        uint32_t n = 0;

        for (const struct sl_model *model = a->registry->loaded; model; model = model->next_loaded, n++)
                if (model->scaling_row >= a->n || a->rows[model->scaling_row].serial != model->serial)
                        return false;
        return n == a->n;
}

/* Models have come or gone. Each that stays keeps its row's content. */
static bool follow_models(struct sl_autoscale *a)
{
        struct sl_registry *r = a->registry;
        uint32_t n = 0, loaded = 0;

        for (uint32_t i = 0; i < a->n; i++)
                if (find_loaded(r, a->rows[i].serial))
                        a->rows[n++] = a->rows[i];
        a->n = n;
        number_rows(a);
        for (struct sl_model *model = r->loaded; model; model = model->next_loaded)
                loaded++;
        if (!make_room(a, loaded))
                return false;
        for (struct sl_model *model = r->loaded; model; model = model->next_loaded)
                if (model->scaling_row >= n || a->rows[model->scaling_row].serial != model->serial)
                        a->rows[a->n++] = (struct row){.serial = model->serial, .model = model};
        number_rows(a);
        return true;
}

/* ---- counters ---- */

static bool is_placed(const struct sl_worker_set *set)
{
        for (uint32_t i = 0; i < set->n; i++)
                if (CPU_COUNT(&set->wishes[i].cores) || set->wishes[i].gpu.name[0])
                        return true;
        return false;
}

static bool can_change(struct sl_registry *r, const struct sl_served *served)
{
        const struct sl_crew *crew = served->model ? served->model->crew : NULL;

        return crew && !crew->options.on_gpu && !served->model->bundle && !served->is_shape && sl_served_is_ready(served) &&
               served->want.number && served->want.number == served->serves && !served->load && sl_served_spec(served)->path &&
               served->want.workers_number != served->failed_workers && !sl_served_is_changing(served) && !r->group &&
               !is_placed(&served->want.workers) && !sl_applied_is_pinned(r, served);
}

/* Requests that found no room count as the mean of those that did. */
static uint64_t samples_wanted(const struct sl_served *served)
{
        const struct sl_model_stats *counters = served->counting.counters;
        uint64_t requests, samples, refused;

        if (!counters || served->counting.shared_counters)
                return 0;
        requests = sl_counter_read(&counters->requests);
        samples = sl_counter_read(&counters->samples);
        refused = sl_counter_read(&counters->refused);
        return samples + (requests ? refused * samples / requests : refused);
}

static void add_name(struct sl_autoscale *a, struct sl_served *served)
{
        uint64_t samples = samples_wanted(served);

        if (!served->used || !served->ensemble || served->rests)
                return;
        for (uint32_t m = 0; m < served->ensemble->assembly.n_members; m++) {
                const struct sl_model *member = served->ensemble->members[m];
                struct row *row = &a->rows[member->scaling_row];

                if (member->scaling_row >= a->n || row->model != member)
                        continue; /* nobody computes it: its sizes have rows */
                row->offered_now += samples;
                if (!row->served && served->model == row->model && can_change(a->registry, served))
                        row->served = served;
        }
}

/* What a counter has gained; one that has gone back, as a worker or a name has left, says nothing this time. */
static uint64_t gain(uint64_t *last, uint64_t now)
{
        uint64_t gained = now > *last ? now - *last : 0;

        *last = now;
        return gained;
}

/* Return: whether any came. */
static bool count_row(struct row *row, double since_s, bool is_comparable)
{
        const struct sl_crew *crew = row->model->crew;
        uint64_t samples = 0, busy_ns = 0, inlined = 0, offered, did, did_ns;

        for (uint32_t i = 0; crew && i < crew->n; i++)
                if (crew->workers[i].seat) {
                        samples += sl_counter_read(&crew->workers[i].seat->samples);
                        busy_ns += sl_counter_read(&crew->workers[i].seat->busy_ns);
                }
        if (row->model->inliner && row->model->inliner->stats)
                inlined = sl_counter_read(&row->model->inliner->stats->samples);
        offered = gain(&row->offered, row->offered_now);
        inlined = gain(&row->inlined, inlined);
        did = gain(&row->samples, samples);
        did_ns = gain(&row->busy_ns, busy_ns);
        if (!is_comparable)
                return offered;
        if (did && did_ns) {
                double kept = exp(-since_s / RATE_S);

                row->did = row->did * kept + (double)did;
                row->did_s = row->did_s * kept + (double)did_ns / 1e9;
        }
        sl_arrival_rate_learn(&row->load, offered > inlined ? offered - inlined : 0, since_s);
        return offered;
}

static bool count(struct sl_autoscale *a, double since_s, bool is_comparable)
{
        bool any = false;

        for (uint32_t i = 0; i < a->n; i++) {
                a->rows[i].offered_now = 0;
                a->rows[i].served = NULL;
        }
        for (uint32_t i = 0; i < a->registry->n_awake; i++)
                add_name(a, sl_awake_at(a->registry, i));
        for (uint32_t i = 0; i < a->n; i++)
                any |= count_row(&a->rows[i], since_s, is_comparable);
        return any;
}

/* ---- the problem ---- */

static uint32_t cores_of(const struct sl_autoscale *a, const struct row *row)
{
        uint32_t threads = row->model->crew->options.worker.threads;
        uint32_t cores = (uint32_t)CPU_COUNT(&a->registry->lets->allowed);

        return threads && threads < cores ? threads : cores;
}

static uint64_t bytes_of(const struct row *row)
{
        return row->model->crew->n ? row->model->crew->workers[0].bytes : 0;
}

static uint32_t most_of(const struct sl_autoscale *a, const struct row *row)
{
        uint32_t most = (uint32_t)CPU_COUNT(&a->registry->lets->allowed) / cores_of(a, row);

        return most < 1 ? 1 : most > SL_WORKERS_MAX / 2 ? SL_WORKERS_MAX / 2 : most;
}

/* A second, of one worker. */
static double price_of(const struct sl_autoscale *a, const struct row *row)
{
        const struct sl_runtime_options *options = a->registry->options.runtime;

        return options->autoscale.core_price * cores_of(a, row) + options->autoscale.gib_price * (double)bytes_of(row) / (1u << 30);
}

static uint32_t count_serving(const struct sl_crew *crew)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < crew->n; i++)
                n += crew->workers[i].seat != NULL;
        return n;
}

/* All of its workers are busy without a break while more waits. */
static bool is_overloaded(const struct row *row)
{
        const struct sl_crew *crew = row->model->crew;
        uint32_t overloaded = 0;

        for (uint32_t i = 0; i < crew->n; i++)
                overloaded +=
                        crew->workers[i].seat && sl_counter_read(&crew->workers[i].seat->condition) == SL_CONDITION_OVERLOADED;
        return overloaded && overloaded == count_serving(crew);
}

static struct sl_scale_problem state_problem(struct sl_autoscale *a)
{
        const struct sl_runtime_options *options = a->registry->options.runtime;
        struct sl_scale_problem problem = {
                .needs = a->needs, .kinds = a->kinds, .slack = options->autoscale.slack, .lambda = options->autoscale.lambda};
        double cores = CPU_COUNT(&a->registry->lets->allowed), bytes = (double)sl_memory_left(a->registry->options.memory);

        for (uint32_t i = 0; i < a->n; i++) {
                struct row *row = &a->rows[i];
                uint32_t n = problem.n_needs;

                row->need.verdict = SL_SCALE_STEADY;

                if (!row->served || row->did_s <= 0)
                        continue;
                a->row_of[n] = i;
                a->needs[n] = (struct sl_scale_need){.load = fmax(row->load.rate, LEAST_LOAD),
                        .trend = row->load.trend,
                        .burst = row->load.burst,
                        .is_overloaded = is_overloaded(row),
                        .first = n,
                        .n = 1};
                a->kinds[n] = (struct sl_scale_kind){.cost = price_of(a, row),
                        .load_s = a->load_s,
                        .rate = row->did / row->did_s,
                        .resources = {[CORES] = cores_of(a, row), [MEMORY] = (double)bytes_of(row)},
                        .n = row->served->want.workers.n,
                        .most = most_of(a, row)};
                a->need_words[n] = row->need;
                a->kind_words[n] = row->kind;
                cores += cores_of(a, row);
                bytes += a->kinds[n].n * (double)bytes_of(row);
                problem.n_needs = ++problem.n_kinds;
        }
        problem.resources[CORES].total = cores;
        problem.resources[MEMORY] = (struct sl_scale_resource){.total = bytes, .both = true};
        problem.resources[2].total = problem.resources[3].total = INFINITY;
        return problem;
}

/* ---- what follows ---- */

static void report(struct sl_autoscale *a, uint32_t n, const char *event)
{
        const struct row *row = &a->rows[a->row_of[n]];
        const struct sl_scale_kind *kind = &a->kinds[n];
        struct sl_fields fields = {0};

        sl_fields_add(&fields, "model", row->served->name);
        sl_fields_add(&fields, "verdict", sl_scale_verdict_name(row->need.verdict));
        sl_fields_add_number(&fields, "workers", (long long)kind->n + a->change[n]);
        sl_fields_add_number(&fields, "workers_before", kind->n);
        sl_fields_add_number(&fields, "samples_per_s", llround(a->needs[n].load));
        sl_fields_add_number(&fields, "required_per_s", llround(row->need.required));
        sl_fields_add_number(&fields, "worker_does_per_s", llround(kind->rate));
        sl_account_log(a->registry->options.accounts, NULL, 2, event, fields.text);
}

/* Fewer: the last of them go, which have the smallest batches. More: like the first. */
static bool allot(struct sl_draft *draft, const struct sl_served *served, uint32_t n)
{
        struct sl_allotment *allotment = sl_draft_add(draft, served->name);

        if (!allotment)
                return false;
        allotment->set = served->want.workers;
        for (uint32_t i = allotment->set.n; i < n; i++)
                allotment->set.wishes[i] = allotment->set.wishes[0];
        allotment->set.n = n;
        return true;
}

static void pause_changes(struct sl_autoscale *a, uint64_t now_ns)
{
        a->due_ns = a->not_before_ns = now_ns + RETRY_NS;
}

static void apply(struct sl_autoscale *a, uint32_t n_changed, uint64_t now_ns)
{
        struct sl_draft *draft = calloc(1, sizeof(*draft));
        struct sl_error error = {""};
        bool is_made = draft;
        int r = -ENOMEM;

        for (uint32_t n = 0; n < n_changed && is_made; n++)
                if (a->change[n])
                        is_made = allot(draft, a->rows[a->row_of[n]].served, (uint32_t)((int32_t)a->kinds[n].n + a->change[n]));
        if (is_made)
                r = sl_applied_scale(a->registry, draft, &error); /* which takes the draft */
        else
                sl_draft_free(draft);
        if (r < 0) {
                struct sl_fields fields = {0};

                sl_fields_add(&fields, "cause", error.text[0] ? error.text : "out of memory");
                sl_account_log(a->registry->options.accounts, NULL, 1, "autoscale-refused", fields.text);
                pause_changes(a, now_ns);
                return;
        }
        for (uint32_t n = n_changed; n-- > 0;)
                if (a->change[n]) {
                        a->changes_model = a->rows[a->row_of[n]].serial;
                        a->changes_to = (uint32_t)((int32_t)a->kinds[n].n + a->change[n]);
                }
        a->began_ns = now_ns;
}

static void decide(struct sl_autoscale *a, double since_s, uint64_t now_ns)
{
        struct sl_scale_problem problem = state_problem(a);
        struct sl_scaler_memory memory = {a->need_words, a->kind_words};
        bool acts = a->registry->options.runtime->autoscale.mode == SL_AUTOSCALE_ON, changes = false;

        sl_scaler_look(a->scaler, &problem, since_s, &memory, a->change);
        for (uint32_t n = 0; n < problem.n_needs; n++) {
                struct row *row = &a->rows[a->row_of[n]];
                uint32_t wanted = (uint32_t)((int32_t)a->kinds[n].n + a->change[n]);

                row->need = a->need_words[n];
                row->kind = a->kind_words[n];
                if (acts ? a->change[n] != 0 : wanted != (row->advised ? row->advised : a->kinds[n].n))
                        report(a, n, acts ? "autoscale" : "autoscale-advice");
                row->advised = wanted;
                changes |= a->change[n];
        }
        if (acts && changes)
                apply(a, problem.n_needs, now_ns);
}

static bool can_have_more(const struct sl_autoscale *a, const struct row *row)
{
        return row->served && count_serving(row->model->crew) < most_of(a, row);
}

/* One whose workers are not to be changed lacks as soon as they do not do what is required. */
static struct sl_offer_load load_of_row(const struct sl_autoscale *a, const struct row *row)
{
        struct sl_offer_load load = {.rate = row->did_s > 0 ? row->did / row->did_s : 0,
                .required = fmax(row->load.rate, LEAST_LOAD) * a->registry->options.runtime->autoscale.slack};

        load.lacks =
                row->need.verdict == SL_SCALE_LACKS ||
                (row->model->crew &&
                        ((is_overloaded(row) && !can_have_more(a, row)) ||
                                (!row->served && load.rate > 0 && load.required > load.rate * count_serving(row->model->crew))));
        return load;
}

/* Of an ensemble what its slowest member does. */
static struct sl_offer_load load_of(void *context, const struct sl_served *served)
{
        const struct sl_autoscale *a = context;
        struct sl_offer_load load = {.rate = INFINITY};

        for (uint32_t m = 0; m < served->ensemble->assembly.n_members; m++) {
                const struct sl_model *member = served->ensemble->members[m];
                struct sl_offer_load its = {.rate = 0};

                if (member->scaling_row < a->n && a->rows[member->scaling_row].model == member)
                        its = load_of_row(a, &a->rows[member->scaling_row]);
                load.rate = fmin(load.rate, its.rate);
                load.required = fmax(load.required, its.required);
                load.lacks |= its.lacks;
        }
        load.rate = isinf(load.rate) ? 0 : load.rate;
        return load;
}

/* A change that has ended shows how long it takes until workers serve; one that could not be had is not tried again at once. */
static void end_change(struct sl_autoscale *a, uint64_t now_ns)
{
        if (!a->began_ns || a->registry->group)
                return;
        for (uint32_t i = 0; i < a->registry->n_awake; i++) {
                const struct sl_served *served = sl_awake_at(a->registry, i);

                if (served->model && served->model->serial == a->changes_model && served->want.workers.n != a->changes_to)
                        pause_changes(a, now_ns);
        }
        a->load_s += ((double)(now_ns - a->began_ns) / 1e9 - a->load_s) * LOAD_WEIGHT;
        a->began_ns = 0;
}

uint64_t sl_autoscale_look(struct sl_autoscale *a)
{
        struct sl_registry *r = a ? a->registry : NULL;
        uint64_t now_ns;
        double since_s;
        bool is_comparable, any;

        if (!a)
                return UINT64_MAX;
        now_ns = sl_clock_ns();
        end_change(a, now_ns);
        if (now_ns < a->due_ns)
                return a->due_ns;
        is_comparable = a->looked_ns && a->names == r->names && has_rows(a);
        since_s = (double)(now_ns - a->looked_ns) / 1e9;
        if (!has_rows(a) && !follow_models(a))
                return a->due_ns = now_ns + RETRY_NS;
        a->looked_ns = now_ns;
        a->names = r->names;
        any = count(a, since_s, is_comparable);
        a->due_ns = now_ns + (a->scaler == SL_SCALER_infaas || !any ? IDLE_LOOK_NS : LOOK_NS);
        if (is_comparable && !r->group)
                decide(a, since_s, now_ns);
        if (is_comparable)
                sl_offers_look(a->offers, r->options.runtime->autoscale.mode == SL_AUTOSCALE_ON, now_ns, load_of, a);
        return a->due_ns;
}

void sl_autoscale_hear(struct sl_autoscale *a)
{
        uint64_t next_ns;

        if (!a || a->scaler == SL_SCALER_infaas) /* which looks once a second */
                return;
        next_ns = a->looked_ns + HEARD_NS > a->not_before_ns ? a->looked_ns + HEARD_NS : a->not_before_ns;
        a->due_ns = next_ns < a->due_ns ? next_ns : a->due_ns;
}
