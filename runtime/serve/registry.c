#include "registry.h"

#include "accumulator.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/quote.h"
#include "ensemble.h"
#include "loader.h"
#include "served.h"
#include "shape_spec.h"
#include "stats.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sl_registry {
        struct sl_registry_options options;
        struct sl_served entries[SL_CATALOGUE_MODELS];
        uint32_t loads;          /* under way */
        uint32_t load_numbers;   /* given so far */
        cpu_set_t own_cores;     /* for workers one by one; empty when there are too few */
        struct sl_model *loaded; /* all models that have workers */
};

int sl_registry_new(const struct sl_registry_options *options, struct sl_registry **ret_registry)
{
        struct sl_registry *registry = calloc(1, sizeof(*registry));

        if (!registry)
                return -ENOMEM;
        registry->options = *options;
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++)
                registry->entries[i].index = i;
        *ret_registry = registry;
        return 0;
}

/* ---- talking ---- */

static void report(struct sl_registry *r, int level, const char *event, const struct sl_served *entry, const char *text)
{
        char fields[SL_ERROR_TEXT_BYTES + 256], name[128], cause[SL_ERROR_TEXT_BYTES] = "";

        if (text)
                sl_quote(text, cause, sizeof(cause));
        snprintf(fields, sizeof(fields), "model=%s version=%lld%s%s", sl_quote(entry->own.name, name, sizeof(name)),
                (long long)entry->own.spec.version, text ? " cause=" : "", cause);
        if (r->options.runtime->log)
                r->options.runtime->log(r->options.runtime->context, level, event, fields);
}

/* A name for which there is no entry. */
static void report_unwanted(struct sl_registry *r, const char *text)
{
        char fields[SL_ERROR_TEXT_BYTES + 16], cause[SL_ERROR_TEXT_BYTES];

        snprintf(fields, sizeof(fields), "cause=%s", sl_quote(text, cause, sizeof(cause)));
        if (r->options.runtime->log)
                r->options.runtime->log(r->options.runtime->context, 1, "model-not-loaded", fields);
}

static void answer(struct sl_registry *r, struct sl_served *entry, int status, const char *text)
{
        if (entry->asker)
                r->options.answer(r->options.context, entry->asker, status, text);
        entry->asker = 0;
}

static void command(struct sl_registry *r, enum sl_command_kind kind, void *pointer, uint32_t index)
{
        sl_dispatcher_command(r->options.dispatcher, &(struct sl_command){.kind = kind, .pointer = pointer, .index = index});
}

/* ---- the table ---- */

static struct sl_served *find(struct sl_registry *r, const char *name)
{
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++)
                if (r->entries[i].state != SL_SERVED_NONE && strcmp(r->entries[i].own.name, name) == 0)
                        return &r->entries[i];
        return NULL;
}

static struct sl_served *find_free(struct sl_registry *r)
{
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++)
                if (r->entries[i].state == SL_SERVED_NONE)
                        return &r->entries[i];
        return NULL;
}

/* What is to be served under one name: a new entry, a replacement, or what is there already or on its way. */
static int want(
        struct sl_registry *r, const struct sl_model_spec *spec, bool again, struct sl_served **ret_entry, struct sl_error *error)
{
        struct sl_served *entry = find(r, spec->name);

        if (!entry) {
                entry = find_free(r);
                if (!entry)
                        return sl_error_set(
                                error, ENOSPC, "no room for \"%s\": %u models are the limit", spec->name, SL_CATALOGUE_MODELS);
                entry->state = SL_SERVED_WAITING;
        } else if (entry->state == SL_SERVED_FAILED) {
                entry->state = SL_SERVED_WAITING;
        } else if (!again && entry->state != SL_SERVED_DRAINING && sl_spec_same(&entry->own.spec, spec)) {
                *ret_entry = entry;
                return 0;
        } else if (entry->state != SL_SERVED_READY || entry->load) {
                return sl_error_set(error, EBUSY, "\"%s\" is being loaded or unloaded", spec->name);
        } else {
                entry->replace = true;
        }
        sl_own_spec_copy(&entry->own, spec);
        sl_served_publish(r->options.catalogue, entry);
        *ret_entry = entry;
        return 0;
}

static const struct sl_served *ensemble_with(const struct sl_registry *r, const char *member)
{
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++) {
                const struct sl_served *entry = &r->entries[i];

                if (entry->state == SL_SERVED_NONE || entry->state == SL_SERVED_DRAINING || entry->state == SL_SERVED_FAILED)
                        continue;
                for (uint32_t m = 0; m < entry->own.spec.n_members; m++)
                        if (strcmp(entry->own.members[m], member) == 0)
                                return entry;
        }
        return NULL;
}

/* ---- going down ---- */

static void drop_model(struct sl_registry *r, struct sl_model *model)
{
        if (--model->refs == 0)
                command(r, SL_COMMAND_REMOVE_MODEL, model, 0);
}

static void clear_entry(struct sl_registry *r, struct sl_served *entry)
{
        entry->state = SL_SERVED_NONE;
        sl_served_publish(r->options.catalogue, entry);
        report(r, 2, "model-unloaded", entry, NULL);
        answer(r, entry, 0, "unloaded");
        uint32_t index = entry->index, generation = entry->generation + 1;
        *entry = (struct sl_served){.index = index, .generation = generation};
}

static void withdraw_shapes(struct sl_registry *r, const struct sl_served *open);
static void prepare_shapes(struct sl_registry *r, struct sl_served *open);

static void withdraw(struct sl_registry *r, struct sl_served *entry)
{
        withdraw_shapes(r, entry);
        entry->state = SL_SERVED_DRAINING;
        sl_served_publish(r->options.catalogue, entry);
        command(r, SL_COMMAND_WITHDRAW, NULL, entry->index);
}

/* What is still being loaded goes when it is there. */
static void withdraw_shapes(struct sl_registry *r, const struct sl_served *open)
{
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++) {
                struct sl_served *entry = &r->entries[i];

                if (!entry->is_shape || entry->open != open->index)
                        continue;
                entry->orphan = true;
                if (entry->state == SL_SERVED_READY && !entry->load)
                        withdraw(r, entry);
        }
}

/* Ensembles come out of the dispatcher when nothing of them is in flight; what they shared goes with the last of them. */
static void ensemble_retired(struct sl_registry *r, struct sl_ensemble *ensemble)
{
        struct sl_served *entry = &r->entries[ensemble->index];

        for (uint32_t m = 0; m < ensemble->n_members; m++)
                drop_model(r, ensemble->members[m]);
        if (entry->ensemble == ensemble) {
                entry->ensemble = NULL;
                clear_entry(r, entry);
        }
        sl_stats_model_remove(r->options.stats, &ensemble->counting);
        sl_ensemble_free(ensemble);
}

static void unload_model(struct sl_registry *r, struct sl_model *model)
{
        struct sl_model **link = &r->loaded;

        while (*link != model)
                link = &(*link)->next_loaded;
        *link = model->next_loaded;
        sl_model_free(model);
}

/* ---- coming up ---- */

/* A model that cannot have these sizes never will; @keep: say so again to who asks again. */
static void shape_failed(struct sl_registry *r, uint32_t open, const int64_t *sizes, int status, bool keep)
{
        struct sl_command command = {
                .kind = SL_COMMAND_SHAPE_FAILED, .index = open, .status = keep ? -EINVAL : status, .keep = keep};

        memcpy(command.sizes, sizes, sizeof(command.sizes));
        sl_dispatcher_command(r->options.dispatcher, &command);
}

static void fail(struct sl_registry *r, struct sl_served *entry, int status, const char *text)
{
        report(r, 0, entry->ensemble ? "model-not-replaced" : "model-failed", entry, text);
        entry->load = sl_load_free(entry->load);
        entry->replace = false;
        if (entry->is_shape && !entry->ensemble) {
                shape_failed(r, entry->open, entry->sizes, status, true);
                clear_entry(r, entry);
                return;
        }
        if (!entry->ensemble)
                entry->state = SL_SERVED_FAILED;
        else
                entry->own.spec.stamp = 0; /* what serves is not what the repository has: the next scan tries again */
        sl_served_publish(r->options.catalogue, entry);
        answer(r, entry, status, text);
}

static int check_staging(const struct sl_registry *r, const struct sl_ensemble *ensemble, struct sl_error *error)
{
        uint64_t bytes = sl_accumulator_staging_bytes(ensemble, ensemble->segment_samples);

        if (bytes <= r->options.runtime->staging_bytes)
                return 0;
        return sl_error_set(error, ENOMEM, "\"%s\": a segment of %u samples needs %llu bytes of staging, staging_bytes is %llu",
                ensemble->name, ensemble->segment_samples, (unsigned long long)bytes,
                (unsigned long long)r->options.runtime->staging_bytes);
}

/* Hands an ensemble to the dispatcher, in the place of what the entry had. */
static void serve(struct sl_registry *r, struct sl_served *entry, struct sl_ensemble *ensemble)
{
        struct sl_error error;

        if (entry->ensemble && !sl_ensemble_same_ports(entry->ensemble, ensemble))
                entry->generation++;
        ensemble->index = entry->index;
        ensemble->generation = entry->generation;
        if (sl_stats_model_add(r->options.stats, ensemble->name, &ensemble->counting, &error) < 0)
                report(r, 1, "model-without-histograms", entry, error.text);
        for (uint32_t m = 0; m < ensemble->n_members; m++)
                ensemble->members[m]->refs++;
        ensemble->is_shape = entry->is_shape;
        ensemble->open_index = entry->open;
        memcpy(ensemble->sizes, entry->sizes, sizeof(ensemble->sizes));
        if (entry->ensemble)
                withdraw_shapes(r, entry);
        entry->ensemble = ensemble;
        entry->state = SL_SERVED_READY;
        entry->replace = false;
        command(r, SL_COMMAND_SERVE, ensemble, 0);
        sl_served_publish(r->options.catalogue, entry);
}

static int build(struct sl_registry *r, const struct sl_own_spec *own, struct sl_model *const *members, uint32_t n,
        struct sl_ensemble **ret_ensemble, struct sl_error *error)
{
        struct sl_ensemble *ensemble;
        int result = sl_ensemble_new(&own->spec, members, n, r->options.runtime->clients_max, &ensemble, error);

        if (result < 0)
                return result;
        result = check_staging(r, ensemble, error);
        if (result < 0) {
                sl_ensemble_free(ensemble);
                return result;
        }
        *ret_ensemble = ensemble;
        return 0;
}

/* Return: 0: all members are there; -EAGAIN: some are still loading; -ENOENT: one is missing or has failed. */
static int find_members(struct sl_registry *r, const struct sl_served *entry, struct sl_model **ret_members, struct sl_error *error)
{
        for (uint32_t m = 0; m < entry->own.spec.n_members; m++) {
                const struct sl_served *member = find(r, entry->own.members[m]);

                if (!member || member->state == SL_SERVED_FAILED || member->state == SL_SERVED_DRAINING || !member->own.spec.path)
                        return sl_error_set(error, ENOENT, "member \"%s\" %s", entry->own.members[m],
                                !member                         ? "is not in the repository"
                                : member->own.spec.path == NULL ? "is an ensemble itself"
                                                                : "is not loaded");
                if (!member->model)
                        return -EAGAIN;
                ret_members[m] = member->model;
        }
        return 0;
}

static void advance_ensemble(struct sl_registry *r, struct sl_served *entry)
{
        struct sl_model *members[SL_MEMBERS_MAX];
        struct sl_ensemble *ensemble;
        struct sl_error error;
        int result = find_members(r, entry, members, &error);

        if (result == -EAGAIN)
                return;
        if (result == 0)
                result = build(r, &entry->own, members, entry->own.spec.n_members, &ensemble, &error);
        if (result < 0) {
                fail(r, entry, result, error.text);
                return;
        }
        entry->model = NULL; /* of a model that had this name before */
        serve(r, entry, ensemble);
        report(r, 2, "ensemble-ready", entry, NULL);
        answer(r, entry, 0, "ready");
}

/* The ensemble serves, and goes over to a new member; or it has failed, and nothing that it needs is missing any more. */
static bool wants_new_member(struct sl_registry *r, const struct sl_served *entry, const char *member)
{
        struct sl_model *members[SL_MEMBERS_MAX];

        if (entry->state != SL_SERVED_READY && entry->state != SL_SERVED_FAILED)
                return false;
        for (uint32_t m = 0; m < entry->own.spec.n_members; m++)
                if (strcmp(entry->own.members[m], member) == 0)
                        return entry->state == SL_SERVED_READY || find_members(r, entry, members, NULL) == 0;
        return false;
}

/* A new model takes its place, or that of the old one, in every ensemble. */
static void rebuild_ensembles(struct sl_registry *r, const char *member)
{
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++)
                if (wants_new_member(r, &r->entries[i], member))
                        advance_ensemble(r, &r->entries[i]);
}

/* Another name for the same file, as "lenet" and "lenet:2" are: the model is loaded once and serves under both. */
static const struct sl_served *find_twin(const struct sl_registry *r, const struct sl_served *entry)
{
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++) {
                const struct sl_served *other = &r->entries[i];

                if (other == entry || !other->own.spec.path || strcmp(other->own.path, entry->own.path) != 0 ||
                        other->own.spec.stamp != entry->own.spec.stamp)
                        continue;
                if (other->load || (other->state == SL_SERVED_READY && !other->replace))
                        return other;
        }
        return NULL;
}

static int serve_model(struct sl_registry *r, struct sl_served *entry, struct sl_model *model, struct sl_error *error)
{
        bool replaced = entry->model != NULL;
        struct sl_ensemble *ensemble;
        int result = build(r, &entry->own, &model, 1, &ensemble, error);

        if (result < 0)
                return result;
        entry->load = sl_load_free(entry->load);
        if (model->refs == 0) {
                model->next_loaded = r->loaded;
                r->loaded = model;
                command(r, SL_COMMAND_ADD_MODEL, model, 0);
        }
        entry->model = model;
        serve(r, entry, ensemble);
        report(r, 2, replaced ? "model-replaced" : "model-ready", entry, NULL);
        if (entry->orphan) {
                withdraw(r, entry);
                return 0;
        }
        if (model->info->n_symbols)
                prepare_shapes(r, entry);
        rebuild_ensembles(r, entry->own.name);
        answer(r, entry, 0, replaced ? "replaced" : "ready");
        return 0;
}

static void model_ready(struct sl_registry *r, struct sl_served *entry)
{
        struct sl_model *model = sl_load_take(entry->load);
        struct sl_error error;

        model->first_core = entry->first_core;
        int result = serve_model(r, entry, model, &error);

        if (result == 0)
                return;
        sl_model_free(model);
        fail(r, entry, result, error.text);
}

/* Return: false when there is none but one that serves just what is to be replaced: the model has to be loaded. */
static bool follow_twin(struct sl_registry *r, struct sl_served *entry)
{
        const struct sl_served *twin = find_twin(r, entry);
        struct sl_error error;
        int result = 0;

        if (!twin || (!twin->load && twin->model == entry->model))
                return false;
        if (!twin->load)
                result = serve_model(r, entry, twin->model, &error);
        if (result < 0)
                fail(r, entry, result, error.text);
        return true;
}

static uint64_t token_of(const struct sl_served *entry)
{
        return SL_REGISTRY_TOKEN | (uint64_t)entry->load_number << 16 | entry->index;
}

static void count_workers(uint32_t *users, uint32_t n_cores, uint32_t first, uint32_t workers)
{
        for (uint32_t w = 0; w < workers; w++)
                users[(first + w) % n_cores]++;
}

/* The own cores with the fewest workers, those that the new model replaces not counted. */
static uint32_t choose_first_core(const struct sl_registry *r, const struct sl_served *entry)
{
        uint32_t n = (uint32_t)CPU_COUNT(&r->own_cores), users[CPU_SETSIZE] = {0}, best = 0, fewest = UINT32_MAX;

        for (const struct sl_model *model = r->loaded; n && model; model = model->next_loaded)
                if (model != entry->model)
                        count_workers(users, n, model->first_core, model->n_workers);
        for (uint32_t i = 0; n && i < SL_CATALOGUE_MODELS; i++)
                if (r->entries[i].load)
                        count_workers(users, n, r->entries[i].first_core, r->entries[i].own.spec.workers);
        for (uint32_t first = 0; first < n; first++) {
                uint32_t met = 0;

                for (uint32_t w = 0; w < entry->own.spec.workers; w++)
                        met += users[(first + w) % n];
                if (met < fewest) {
                        fewest = met;
                        best = first;
                }
        }
        return best;
}

static void start_load(struct sl_registry *r, struct sl_served *entry)
{
        struct sl_load_options options = {
                .runtime = r->options.runtime,
                .accumulator = r->options.accumulator,
                .stats = r->options.stats,
                .segments = r->options.segments,
                .control = r->options.control,
                .dispatcher = sl_dispatcher_bell(r->options.dispatcher),
                .own_cores = r->own_cores,
                .first_core = choose_first_core(r, entry),
        };
        struct sl_error error;
        int result = sl_load_new(&entry->own.spec, &options, &entry->load, &error);

        if (result == 0) {
                entry->load_number = ++r->load_numbers;
                result = sl_wait_watch(r->options.wait, sl_load_fd(entry->load), token_of(entry));
                if (result < 0)
                        sl_error_set(&error, -result, "its compilation cannot be watched: %s", strerror(-result));
        }
        if (result < 0) {
                fail(r, entry, result, error.text);
                return;
        }
        entry->compiled = false;
        entry->first_core = options.first_core;
        r->loads++;
        if (entry->state == SL_SERVED_WAITING)
                entry->state = SL_SERVED_LOADING;
}

static void advance_load(struct sl_registry *r, struct sl_served *entry)
{
        struct sl_error error;

        switch (sl_load_advance(entry->load, &error)) {
        case SL_LOAD_COMPILING:
        case SL_LOAD_STARTING:
                return;
        case SL_LOAD_READY:
                r->loads--;
                model_ready(r, entry);
                return;
        case SL_LOAD_FAILED:
                r->loads--;
                fail(r, entry, -EIO, error.text);
                return;
        }
}

void sl_registry_compiled(struct sl_registry *r, uint64_t token)
{
        struct sl_served *entry = &r->entries[(uint16_t)token % SL_CATALOGUE_MODELS];

        if (!entry->load || token != token_of(entry)) /* an event of an earlier load comes late */
                return;
        sl_wait_unwatch(r->options.wait, token);
        entry->compiled = true;
        advance_load(r, entry);
        sl_registry_advance(r);
}

static bool needs_load(const struct sl_served *entry)
{
        return entry->own.spec.path && !entry->load &&
               (entry->state == SL_SERVED_WAITING || (entry->state == SL_SERVED_READY && entry->replace));
}

static bool needs_build(const struct sl_served *entry)
{
        return !entry->own.spec.path && (entry->state == SL_SERVED_WAITING || (entry->state == SL_SERVED_READY && entry->replace));
}

void sl_registry_advance(struct sl_registry *r)
{
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++)
                if (r->entries[i].load && r->entries[i].compiled)
                        advance_load(r, &r->entries[i]);
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS && r->loads < r->options.runtime->compile_jobs; i++)
                if (needs_load(&r->entries[i]) && !follow_twin(r, &r->entries[i]))
                        start_load(r, &r->entries[i]);
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++)
                if (needs_build(&r->entries[i]))
                        advance_ensemble(r, &r->entries[i]);
}

bool sl_registry_busy(const struct sl_registry *r, uint32_t *ret_failed)
{
        bool busy = false;

        *ret_failed = 0;
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++) {
                const struct sl_served *entry = &r->entries[i];

                busy |= entry->load || entry->state == SL_SERVED_WAITING || entry->state == SL_SERVED_LOADING;
                *ret_failed += entry->state == SL_SERVED_FAILED;
        }
        return busy;
}

/* ---- sizes of open dimensions ---- */

static int want_shape(struct sl_registry *r, struct sl_served *open, const int64_t *sizes, struct sl_error *error)
{
        struct sl_model_spec spec;
        struct sl_served *entry;
        char name[SL_MODEL_NAME_BYTES];
        int result = sl_shape_spec(&open->own.spec, open->model->info, sizes, name, &spec, error);

        if (result == 0)
                result = want(r, &spec, false, &entry, error);
        if (result < 0)
                return result;
        if (entry->state != SL_SERVED_WAITING)
                return sl_error_set(error, EBUSY, "\"%s\" is being loaded or unloaded", name);
        entry->is_shape = true;
        entry->open = open->index;
        memcpy(entry->sizes, sizes, sizeof(entry->sizes));
        return 0;
}

/* Whoever advances the registry starts what is wanted here. */
static void prepare_shapes(struct sl_registry *r, struct sl_served *open)
{
        for (uint32_t i = 0; i < open->own.spec.n_prepared; i++) {
                int64_t sizes[SL_SYMBOLS_MAX];
                struct sl_error error;
                int result = sl_shape_sizes(open->model->info, &open->own.spec.prepared[i], sizes, &error);

                if (result == 0)
                        result = want_shape(r, open, sizes, &error);
                if (result < 0)
                        report(r, 1, "shape-not-loaded", open, error.text);
        }
}

static struct sl_served *open_entry(struct sl_registry *r, const struct sl_ensemble *ensemble)
{
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++)
                if (r->entries[i].ensemble == ensemble && r->entries[i].state == SL_SERVED_READY)
                        return &r->entries[i];
        return NULL;
}

static void shape_wanted(struct sl_registry *r, struct sl_ensemble *ensemble, const int64_t *sizes)
{
        struct sl_served *open = open_entry(r, ensemble);
        struct sl_error error;
        int result;

        if (!open) /* it has retired, and nobody waits in it */
                return;
        result = want_shape(r, open, sizes, &error);
        if (result < 0) {
                report(r, 1, "shape-not-loaded", open, error.text);
                shape_failed(r, open->index, sizes, result, false);
                return;
        }
        sl_registry_advance(r);
}

/* It may have been unloaded, or replaced, by others meanwhile. */
static void shape_unwanted(struct sl_registry *r, const struct sl_ensemble *ensemble)
{
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++) {
                struct sl_served *entry = &r->entries[i];

                if (entry->is_shape && entry->ensemble == ensemble && entry->state == SL_SERVED_READY && !entry->load)
                        withdraw(r, entry);
        }
}

void sl_registry_event(struct sl_registry *r, const struct sl_event *event)
{
        switch ((enum sl_event_kind)event->kind) {
        case SL_EVENT_ENSEMBLE_RETIRED:
                ensemble_retired(r, event->pointer);
                break;
        case SL_EVENT_MODEL_GONE:
                unload_model(r, event->pointer);
                break;
        case SL_EVENT_SHAPE_WANTED:
                shape_wanted(r, event->pointer, event->sizes);
                break;
        case SL_EVENT_SHAPE_UNWANTED:
                shape_unwanted(r, event->pointer);
                break;
        default:
                break;
        }
}

/* ---- what is asked for ---- */

/* A core that the dispatcher has too is nobody's own. */
static void choose_own_cores(struct sl_registry *r, uint32_t workers)
{
        const struct sl_runtime_options *runtime = r->options.runtime;
        cpu_set_t shared;

        CPU_AND(&shared, &runtime->worker_cpus, &runtime->dispatcher_cpus);
        CPU_XOR(&r->own_cores, &runtime->worker_cpus, &shared);
        if (workers > (uint32_t)CPU_COUNT(&r->own_cores))
                CPU_ZERO(&r->own_cores);
}

static int scan(struct sl_registry *r, const struct sl_model_spec **ret_specs, uint32_t *ret_n, struct sl_error *error)
{
        int result = r->options.runtime->scan(r->options.runtime->context, ret_specs, ret_n, error);
        uint32_t workers = 0;

        if (result < 0)
                return result;
        for (uint32_t i = 0; i < *ret_n; i++)
                workers += (*ret_specs)[i].path ? (*ret_specs)[i].workers : 0;
        choose_own_cores(r, workers);
        return 0;
}

static const struct sl_model_spec *find_spec(const struct sl_model_spec *specs, uint32_t n, const char *name)
{
        for (uint32_t i = 0; i < n; i++)
                if (strcmp(specs[i].name, name) == 0)
                        return &specs[i];
        return NULL;
}

int sl_registry_sync(struct sl_registry *r, struct sl_error *error)
{
        const struct sl_model_spec *specs;
        struct sl_served *entry;
        uint32_t n;
        int result = scan(r, &specs, &n, error);

        if (result < 0)
                return result;
        for (uint32_t i = 0; i < n; i++) {
                struct sl_error cause;

                if (want(r, &specs[i], false, &entry, &cause) < 0)
                        report_unwanted(r, cause.text);
        }
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++) {
                entry = &r->entries[i];
                if (entry->is_shape)
                        continue;
                if (entry->state == SL_SERVED_READY && !entry->load && !find_spec(specs, n, entry->own.name))
                        withdraw(r, entry);
                else if (entry->state == SL_SERVED_FAILED && !find_spec(specs, n, entry->own.name))
                        clear_entry(r, entry);
        }
        sl_registry_advance(r);
        return 0;
}

static int want_members(struct sl_registry *r, const struct sl_model_spec *spec, const struct sl_model_spec *specs, uint32_t n,
        struct sl_error *error)
{
        for (uint32_t m = 0; m < spec->n_members; m++) {
                const struct sl_model_spec *member = find_spec(specs, n, spec->members[m]);
                const struct sl_served *there = find(r, spec->members[m]);
                struct sl_served *entry;
                int result = 0;

                if (!member)
                        return sl_error_set(error, ENOENT, "ensemble \"%s\": member \"%s\" is not in the repository", spec->name,
                                spec->members[m]);
                if (!there || there->state == SL_SERVED_FAILED)
                        result = want(r, member, false, &entry, error);
                if (result < 0)
                        return result;
        }
        return 0;
}

/* Everybody who asks gets an answer: one at a time may wait for it. */
static int check_asker(struct sl_registry *r, const char *name, struct sl_error *error)
{
        const struct sl_served *entry = find(r, name);

        return entry && entry->asker ? sl_error_set(error, EBUSY, "\"%s\" is being loaded or unloaded", name) : 0;
}

int sl_registry_load(struct sl_registry *r, const char *name, bool again, uint64_t asker, struct sl_error *error)
{
        const struct sl_model_spec *specs, *spec;
        struct sl_served *entry;
        uint32_t n;
        int result = scan(r, &specs, &n, error);

        if (result < 0)
                return result;
        spec = find_spec(specs, n, name);
        if (!spec)
                return sl_error_set(error, ENOENT, "no model \"%s\" in the repository", name);
        result = check_asker(r, name, error);
        if (result < 0)
                return result;
        result = want_members(r, spec, specs, n, error);
        if (result == 0)
                result = want(r, spec, again, &entry, error);
        if (result < 0)
                return result;
        if (entry->state == SL_SERVED_READY && !entry->replace)
                return sl_error_set(error, EEXIST, "\"%s\" is loaded already, and has not changed", name);
        entry->asker = asker;
        sl_registry_advance(r);
        return 0;
}

int sl_registry_unload(struct sl_registry *r, const char *name, uint64_t asker, struct sl_error *error)
{
        struct sl_served *entry = find(r, name);
        const struct sl_served *user;

        if (!entry)
                return sl_error_set(error, ENOENT, "no model \"%s\" is loaded", name);
        user = ensemble_with(r, name);
        if (user)
                return sl_error_set(error, EBUSY, "\"%s\" is a member of ensemble \"%s\": unload that first", name, user->own.name);
        if (entry->asker || (entry->state != SL_SERVED_FAILED && (entry->state != SL_SERVED_READY || entry->load)))
                return sl_error_set(error, EBUSY, "\"%s\" is being loaded or unloaded", name);
        entry->asker = asker;
        if (entry->state == SL_SERVED_FAILED)
                clear_entry(r, entry);
        else
                withdraw(r, entry);
        return 0;
}

/* ---- the end ---- */

struct sl_registry *sl_registry_free(struct sl_registry *r)
{
        if (!r)
                return NULL;
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++) {
                struct sl_served *entry = &r->entries[i];

                if (entry->load && !entry->compiled)
                        sl_wait_unwatch(r->options.wait, token_of(entry));
                sl_load_free(entry->load);
                sl_ensemble_free(entry->ensemble);
        }
        while (r->loaded)
                unload_model(r, r->loaded);
        free(r);
        return NULL;
}
