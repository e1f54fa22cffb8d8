/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes of open dimensions that are served, each combination under a name of its own. The first plan that is loaded is the base of
 * the others: they are derived from it and share its weights. So are plans for requests that give optional inputs, of any model,
 * but they stand alone. Those that come while it is being compiled wait for it, but not for long.
 */
#include "sizes.h"

#include "account.h"
#include "base/bytes.h"
#include "base/error.h"
#include "ensemble.h"
#include "lets.h"
#include "memory.h"
#include "model.h"
#include "names.h"
#include "registry_state.h"
#include "requested.h"
#include "shape_spec.h"
#include "shapes.h"
#include "tried_sizes.h"
#include "want.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* Who asks has said the model's name. */
static const char *without_path(const struct sl_served *open, const char *why)
{
        const char *path = open->spec ? open->spec->spec.path : NULL;
        size_t n = path ? strlen(path) : 0;

        return n && !strncmp(why, path, n) && !strncmp(why + n, ": ", 2) ? why + n + 2 : why;
}

void sl_sizes_failed(struct sl_registry *r, uint32_t open, const int64_t *sizes, int status, bool keep, const char *why)
{
        struct sl_command command = {.kind = SL_COMMAND_SHAPE_FAILED, .index = open, .status = status, .keep = keep};

        memcpy(command.sizes, sizes, sizeof(command.sizes));
        sl_error_fit(without_path(&r->served[open], why), command.why, sizeof(command.why));
        sl_dispatcher_command(r->options.dispatcher, &command);
}

/* Of what serves, as what is wanted may be what is to follow, or has failed to. */
static const struct sl_model_spec *spec_of(const struct sl_served *open)
{
        return &open->spec->spec;
}

/* Nobody has said how many workers there are, or where, or what else computes: one for each core suits a plan that all sizes share.
 */
static bool are_workers_free(const struct sl_served *open)
{
        const struct sl_model_spec *spec = &open->want.spec->spec;

        return spec->workers_free && spec->worker.threads == 1 && spec->fuse == SL_SHARING_NEVER &&
               sl_worker_set_equal(&open->want.workers, &spec->workers) && sl_worker_set_unplaced(&spec->workers) == 1;
}

/* Each may make as much as a run may, and half of what is left of the memory is for others. */
static uint32_t workers_within(const struct sl_registry *r, const struct sl_model_spec *spec, uint32_t wanted)
{
        uint64_t most = sl_memory_left(r->options.memory) / 2 / spec->lowering.dynamic_bytes_max;

        most = most > SL_WORKERS_MAX ? SL_WORKERS_MAX : most;
        return wanted < most ? wanted : most > 1 ? (uint32_t)most : 1;
}

/* Of plans of any size beside @open's, workers beyond the one that the configuration has of each. */
static uint32_t count_further(struct sl_registry *r, const struct sl_served *open)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < r->n_awake; i++) {
                const struct sl_served *served = sl_awake_at(r, i);

                if (served->is_shape && served->want.number && sl_shape_is_any(served->sizes) && served->open != open->index)
                        n += served->want.workers.n - 1;
        }
        return n;
}

/* The workers of the open model, and of the plan of any size one for each core where nobody has said how many. */
static struct sl_worker_set workers_of(struct sl_registry *r, const struct sl_served *open, const int64_t *sizes)
{
        struct sl_worker_set set = open->want.workers;
        uint32_t others = count_further(r, open);

        if (!sl_shape_is_any(sizes) || !are_workers_free(open))
                return set;
        sl_lets_expect_further(r->lets, others);
        set.n = workers_within(r, &open->want.spec->spec, sl_lets_each(r->lets));
        for (uint32_t i = 1; i < set.n; i++)
                set.wishes[i] = set.wishes[0];
        sl_lets_expect_further(r->lets, others + set.n - 1);
        return set;
}

/* Before anything is made for them: workers that hold the inputs of one sample are the least that these sizes take. */
static int check_memory(const struct sl_registry *r, struct sl_served *open, const int64_t *sizes, struct sl_error *error)
{
        uint64_t bytes = sl_shape_input_bytes(open->model->info, sizes);
        uint32_t workers = open->want.workers.n;
        int result;

        if (sl_mul_overflows(bytes, workers, &bytes))
                bytes = UINT64_MAX;
        result = sl_memory_check(r->options.memory, bytes, error);
        return result < 0 ? sl_error_prefix(error, result, "the inputs of one sample for each of %u workers", workers) : 0;
}

static bool is_size_of(const struct sl_served *served, const struct sl_served *open)
{
        return served->used && served->is_shape && served->open == open->index && served->want.number;
}

/* A folder may have the name of a size. */
static int check_name(struct sl_registry *r, const char *name, struct sl_error *error)
{
        const struct sl_served *there = sl_names_find(r, name);

        return there && !there->is_shape ? sl_error_set(error, EEXIST, "\"%s\" is the name of a model of the repository", name) : 0;
}

/* Return: 0: they are wanted; -errno. With text. */
static int want_shape(struct sl_registry *r, struct sl_served *open, const int64_t *sizes, enum sl_want_origin origin,
        struct sl_served **ret_served, struct sl_error *error)
{
        struct sl_model_spec spec;
        struct sl_served *served;
        char name[SL_MODEL_NAME_BYTES];
        int result = sl_shape_spec(spec_of(open), open->model->info, sizes, name, &spec, error);

        if (result == 0)
                result = check_memory(r, open, sizes, error);
        if (result < 0)
                return sl_error_prefix(error, result, "%s", name);
        result = check_name(r, name, error);
        spec.workers = workers_of(r, open, sizes);
        if (sl_shape_is_any(sizes) && open->any_shares)
                spec.stamp ^= 1; /* another load of the same file */
        if (result == 0)
                result = sl_want(r, &spec, false, origin, &served, error);
        if (result < 0)
                return result;
        *ret_served = served;
        served->is_shape = true;
        served->open = open->index;
        served->given = sl_shape_is_given(open->model->info, sizes);
        memcpy(served->sizes, sizes, sizeof(served->sizes));
        return 0;
}

/* The sizes that the open model's own plan has, when it can be run: the leading dimension is 1, and no batch. */
static bool has_own_sizes(const struct sl_plan_info *info, const int64_t *sizes)
{
        for (uint32_t i = 0; i < info->n_symbols; i++)
                if (sizes[i] != 1)
                        return false;
        return info->n_batches > 0 && !sl_shape_is_given(info, sizes);
}

bool sl_sizes_are_own(const struct sl_registry *r, const struct sl_served *served)
{
        const struct sl_served *open = &r->served[served->open];

        return open->model && has_own_sizes(open->model->info, served->sizes);
}

static void prepare(struct sl_registry *r, struct sl_served *open, const int64_t *sizes)
{
        struct sl_served *served;
        struct sl_error error;

        if (want_shape(r, open, sizes, SL_WANT_REPOSITORY, &served, &error) < 0)
                sl_names_report(r, 1, "shape-not-loaded", open, error.text);
}

/*
 * On the CPU, in this process or in one of its own: a GPU has plans of single sizes. So has what wants the same bits for a sample
 * in any batch, as such a plan computes all of a request at once.
 */
static bool may_compute_any(const struct sl_served *open)
{
        const struct sl_model_spec *spec = spec_of(open);

        return open->model->info->n_symbols && spec->lowering.any_size == SL_ANY_SIZE_AUTO && !spec->lowering.batch_invariant &&
               !spec->on_gpu && !sl_worker_options_are_fake(&spec->worker);
}

static void prepare_any(struct sl_registry *r, struct sl_served *open)
{
        int64_t sizes[SL_SYMBOLS_MAX] = {0};

        for (uint32_t i = 0; i < open->model->info->n_symbols; i++)
                sizes[i] = SL_DIM_SIZE_ANY;
        prepare(r, open, sizes);
}

static void prepare_own_sizes(struct sl_registry *r, struct sl_served *open)
{
        int64_t sizes[SL_SYMBOLS_MAX] = {0};

        for (uint32_t i = 0; i < open->model->info->n_symbols; i++)
                sizes[i] = 1;
        prepare(r, open, sizes);
}

void sl_sizes_prepare(struct sl_registry *r, struct sl_served *open)
{
        if (open->model->info->n_batches)
                prepare_own_sizes(r, open);
        if (may_compute_any(open))
                prepare_any(r, open);
        for (uint32_t i = 0; i < spec_of(open)->n_prepared; i++) {
                int64_t sizes[SL_SYMBOLS_MAX];
                struct sl_error error;
                const struct sl_dim_sizes *named = &spec_of(open)->prepared[i];
                int result = spec_of(open)->prepared_known ? sl_shape_known(open->model->info, named, &error) : 0;

                if (result == 0)
                        result = sl_shape_sizes(open->model->info, named, sizes, &error);
                if (result < 0)
                        sl_names_report(r, 1, "shape-not-loaded", open, error.text);
                else
                        prepare(r, open, sizes);
        }
}

void sl_sizes_closed(struct sl_registry *r, struct sl_served *served)
{
        const struct sl_model_spec *spec = spec_of(served);
        struct sl_error error;

        if (spec->n_prepared && spec->prepared_known && sl_shape_known(served->model->info, &spec->prepared[0], &error) < 0)
                sl_names_report(r, 1, "shape-not-loaded", served, error.text);
}

static struct sl_served *open_of(struct sl_registry *r, const struct sl_ensemble *ensemble)
{
        struct sl_served *served = &r->served[ensemble->index];

        return served->ensemble == ensemble && !served->drains ? served : NULL;
}

/* Names in the catalogue are finite, too. */
static int check_share(const struct sl_registry *r, uint32_t uid, struct sl_error *error)
{
        uint32_t taken = r->n_used, held = 0;

        for (uint32_t i = 0; i < r->n_awake; i++) {
                const struct sl_served *served = sl_awake_at(r, i);

                held += served->used && served->asked && served->uid == uid;
        }
        return sl_share_grants(SL_CATALOGUE_MODELS, taken, held)
                       ? 0
                       : sl_error_set(error, EDQUOT, "user %u has %u sizes of %u models, which is its share while %u are free", uid,
                                 held, SL_CATALOGUE_MODELS, SL_CATALOGUE_MODELS - taken);
}

void sl_sizes_wanted(struct sl_registry *r, struct sl_ensemble *ensemble, const int64_t *sizes, uint32_t uid)
{
        struct sl_served *open = open_of(r, ensemble), *served;
        struct sl_error error;
        int result;

        if (!open) /* it has retired, and nobody waits in it */
                return;
        if (open->rests) {
                result = sl_requested_ask(r, open, uid, &error);
                if (result < 0)
                        sl_sizes_failed(r, open->index, sizes, result, false, error.text);
                return;
        }
        result = check_share(r, uid, &error);
        if (result == 0)
                result = want_shape(r, open, sizes, SL_WANT_REQUEST, &served, &error);
        if (result < 0) {
                sl_names_report_to(r, sl_account_find(r->options.accounts, uid), 1, "shape-not-loaded", open, error.text);
                sl_sizes_failed(r, open->index, sizes, result, false, error.text);
                return;
        }
        if (sl_served_is_ready(served)) { /* asked for before the dispatcher had them, or it found no place for them */
                sl_names_command(r, SL_COMMAND_ATTACH, served->ensemble, 0);
        } else if (!served->load) {
                served->asked = true;
                served->uid = uid;
        }
}

/* It may have been unloaded, or replaced, by others meanwhile. */
void sl_sizes_unwanted(struct sl_registry *r, const struct sl_ensemble *ensemble)
{
        for (uint32_t i = 0; i < r->n_awake; i++) {
                struct sl_served *served = sl_awake_at(r, i);

                if (served->is_shape && served->ensemble == ensemble && !served->drains && !served->load)
                        sl_want_nothing(r, served, SL_WANT_REQUEST, "no request is for it");
        }
}

void sl_sizes_withdraw(struct sl_registry *r, struct sl_served *open)
{
        open->base = sl_plan_free(open->base);
        open->any_shares = false;
        for (uint32_t i = 0; i < r->n_awake; i++) {
                struct sl_served *served = sl_awake_at(r, i);

                if (!is_size_of(served, open))
                        continue;
                sl_want_nothing(r, served, SL_WANT_REPOSITORY, "its model goes, or is replaced");
                if (sl_served_is_ready(served)) /* at once: the same sizes may be wanted of what takes the model's place */
                        sl_names_drain(r, served);
        }
}

void sl_sizes_want_workers(struct sl_registry *r, struct sl_served *open)
{
        for (uint32_t i = 0; i < r->n_awake; i++) {
                struct sl_served *served = sl_awake_at(r, i);

                if (is_size_of(served, open)) {
                        struct sl_worker_set set = workers_of(r, open, served->sizes);

                        sl_want_workers(r, served, &set);
                }
        }
}

bool sl_sizes_share(const struct sl_served *served)
{
        return served->is_shape && !served->given && !sl_shape_is_any(served->sizes);
}

struct sl_plan *sl_sizes_base(const struct sl_registry *r, const struct sl_served *served)
{
        return served->is_shape && !served->given ? r->served[served->open].base : NULL;
}

static bool has_sizes(const struct sl_port *port, const struct sl_port *open, const int64_t *sizes)
{
        for (uint32_t i = 0; i < open->shape.rank; i++)
                if (open->symbols[i] != SL_PORT_NO_SYMBOL && port->shape.dims[i] != sizes[open->symbols[i]])
                        return false;
        return true;
}

static void add_served(const struct sl_plan_info *info, const int64_t *sizes, struct sl_tried_sizes *tried)
{
        struct sl_dim_sizes *item = &tried->items[tried->n];

        item->n = 0;
        for (uint32_t i = 0; i < info->n_symbols; i++)
                (void)sl_dim_sizes_add(item, info->symbols[i], strlen(info->symbols[i]), sizes[i]);
        tried->n += item->n > 0;
}

/* Those that the plan of any size has computed. */
static void add_asked(const struct sl_served *served, struct sl_tried_sizes *tried)
{
        const struct sl_shapes *shapes = served->model && served->ensemble ? served->ensemble->shapes : NULL;
        uint32_t n = shapes ? atomic_load_explicit(&shapes->asked.n, memory_order_acquire) : 0;

        for (uint32_t i = 0; i < n && tried->n < SL_TRIED_SIZES_MAX; i++)
                add_served(served->model->info, shapes->asked.sizes[i], tried);
}

struct sl_tried_sizes sl_sizes_to_try(const struct sl_registry *r, const struct sl_served *served)
{
        const struct sl_model_spec *spec = &served->want.spec->spec;
        struct sl_tried_sizes tried = {.n = 0};

        for (uint32_t i = 0; i < spec->n_prepared && !served->is_shape && tried.n < SL_TRIED_SIZES_MAX; i++)
                tried.items[tried.n++] = spec->prepared[i];
        for (uint32_t i = 0; i < r->n_awake && served->model && tried.n < SL_TRIED_SIZES_MAX; i++) {
                const struct sl_served *other = sl_awake_at(r, i);

                if (is_size_of(other, served) && sl_served_is_ready(other) && !sl_shape_is_any(other->sizes))
                        add_served(served->model->info, other->sizes, &tried);
        }
        add_asked(served, &tried);
        return tried;
}

bool sl_sizes_is_base(const struct sl_registry *r, const struct sl_served *served)
{
        const struct sl_plan *base = sl_sizes_base(r, served);
        const struct sl_plan_info *signature;
        bool same = base != NULL;

        if (!same)
                return false;
        signature = r->served[served->open].model->info;
        for (uint32_t i = 0; i < signature->n_inputs && same; i++)
                same = has_sizes(&sl_plan_info(base)->inputs[i], &signature->inputs[i], served->sizes);
        return same;
}

/* Weights of so many bytes are worth a second compilation. */
#define SHARED_MIN (1ull << 20)

static bool has_own_weights(const struct sl_served *any)
{
        return sl_served_is_ready(any) && any->model && !sl_plan_base(any->model->plan) &&
               any->model->info->weights_bytes >= SHARED_MIN;
}

/* The plan of any size was there before the base: one that is derived takes its place, so that weights of one form are there once.
 */
static void share_any(struct sl_registry *r, struct sl_served *open)
{
        for (uint32_t i = 0; i < r->n_awake && open->base && !open->any_shares; i++) {
                struct sl_served *served = sl_awake_at(r, i);

                if (!is_size_of(served, open) || !sl_shape_is_any(served->sizes) || !has_own_weights(served))
                        continue;
                open->any_shares = true;
                prepare_any(r, open);
        }
}

void sl_sizes_loaded(struct sl_registry *r, const struct sl_served *served, const struct sl_model *model)
{
        struct sl_served *open = &r->served[served->open];
        struct sl_plan *base = sl_plan_base(model->plan);

        if (!open->base && sl_sizes_share(served))
                open->base = sl_plan_hold(base ? base : model->plan);
        share_any(r, open);
}
