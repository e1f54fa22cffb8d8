/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes of open dimensions that are served, each combination under a name of its own. The first plan that is loaded is the base of
 * the others: they are derived from it and share its weights. Those that come while it is being compiled wait for it, but not for
 * long.
 */
#include "sizes.h"

#include "account.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "ensemble.h"
#include "loads.h"
#include "memory.h"
#include "model.h"
#include "names.h"
#include "registry_state.h"
#include "serving.h"
#include "shape_spec.h"
#include "tried_sizes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* What takes longer is not worth the wait: the next one stands alone. */
#define BASE_WAIT_NS (3 * SL_NS_PER_SECOND)

void sl_sizes_failed(struct sl_registry *r, uint32_t open, const int64_t *sizes, int status, bool keep, const char *why)
{
        struct sl_command command = {.kind = SL_COMMAND_SHAPE_FAILED, .index = open, .status = status, .keep = keep};

        memcpy(command.sizes, sizes, sizeof(command.sizes));
        snprintf(command.why, sizeof(command.why), "%.*s", (int)sizeof(command.why) - 1, why);
        sl_dispatcher_command(r->options.dispatcher, &command);
}

static struct sl_model_spec *spec_of(struct sl_served *open)
{
        return open->served_spec ? &open->served_spec->spec : &open->own.spec;
}

/* Before anything is made for them: workers that hold the inputs of one sample are the least that these sizes take. */
static int check_memory(const struct sl_registry *r, struct sl_served *open, const int64_t *sizes, struct sl_error *error)
{
        uint64_t bytes = sl_shape_input_bytes(open->model->info, sizes);
        uint32_t workers = spec_of(open)->workers.n;
        int result;

        if (sl_mul_overflows(bytes, workers, &bytes))
                bytes = UINT64_MAX;
        result = sl_memory_check(r->options.memory, bytes, error);
        return result < 0 ? sl_error_prefix(error, result, "the inputs of one sample for each of %u workers", workers) : 0;
}

static bool is_size_of(const struct sl_served *served, const struct sl_served *open)
{
        return served->is_shape && served->open == open->index && !served->orphan;
}

/* A folder may have the name of a size. */
static int check_name(struct sl_registry *r, const char *name, struct sl_error *error)
{
        const struct sl_served *there = sl_names_find(r, name);

        return there && !there->is_shape ? sl_error_set(error, EEXIST, "\"%s\" is the name of a model of the repository", name) : 0;
}

/* Return: 0: they are WAITING, or LOADING or READY already; -EBUSY those of the model before have not gone; -errno. With text. */
static int want_shape(
        struct sl_registry *r, struct sl_served *open, const int64_t *sizes, struct sl_served **ret_served, struct sl_error *error)
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
        if (result == 0)
                result = sl_names_want(r, &spec, false, &served, error);
        if (result < 0)
                return result;
        *ret_served = served;
        if (served->is_shape)
                return 0;
        served->is_shape = true;
        served->open = open->index;
        memcpy(served->sizes, sizes, sizeof(served->sizes));
        return 0;
}

/* The sizes that the open model's own plan has, when it can be run: the leading dimension is 1, and no batch. */
static bool has_own_sizes(const struct sl_plan_info *info, const int64_t *sizes)
{
        for (uint32_t i = 0; i < info->n_symbols; i++)
                if (sizes[i] != 1)
                        return false;
        return info->n_batches > 0;
}

/* Those are served by its own workers, at once. */
static void serve_own_sizes(struct sl_registry *r, struct sl_served *open, struct sl_served *served)
{
        struct sl_error error;
        bool waits = served->state == SL_SERVED_WAITING && has_own_sizes(open->model->info, served->sizes);
        int result = waits ? sl_serving_model(r, served, open->model, &error) : 0;

        if (result < 0)
                sl_serving_fail(r, served, result, error.text);
}

static void prepare_own_sizes(struct sl_registry *r, struct sl_served *open)
{
        int64_t sizes[SL_SYMBOLS_MAX] = {0};
        struct sl_served *served;
        struct sl_error error;
        int result;

        for (uint32_t i = 0; i < open->model->info->n_symbols; i++)
                sizes[i] = 1;
        result = want_shape(r, open, sizes, &served, &error);
        if (result == 0)
                serve_own_sizes(r, open, served);
        else if (result != -EBUSY) /* those of the model before have not gone: sl_sizes_gone() */
                sl_names_report(r, 1, "shape-not-loaded", open, error.text);
}

void sl_sizes_prepare(struct sl_registry *r, struct sl_served *open)
{
        if (open->model->info->n_batches)
                prepare_own_sizes(r, open);
        for (uint32_t i = 0; i < spec_of(open)->n_prepared; i++) {
                int64_t sizes[SL_SYMBOLS_MAX];
                struct sl_served *served;
                struct sl_error error;
                const struct sl_dim_sizes *named = &spec_of(open)->prepared[i];
                int result = spec_of(open)->prepared_known ? sl_shape_known(open->model->info, named, &error) : 0;

                if (result == 0)
                        result = sl_shape_sizes(open->model->info, named, sizes, &error);
                if (result == 0)
                        result = want_shape(r, open, sizes, &served, &error);
                if (result < 0 && result != -EBUSY)
                        sl_names_report(r, 1, "shape-not-loaded", open, error.text);
        }
}

void sl_sizes_closed(struct sl_registry *r, struct sl_served *served)
{
        const struct sl_model_spec *spec = spec_of(served);
        struct sl_error error;

        if (spec->n_prepared && spec->prepared_known && sl_shape_known(served->model->info, &spec->prepared[0], &error) < 0)
                sl_names_report(r, 1, "shape-not-loaded", served, error.text);
}

static void prepare_again(struct sl_registry *r, uint32_t index)
{
        struct sl_served *open = &r->served[index];

        if (open->state == SL_SERVED_READY && open->ensemble && open->ensemble->open && open->model)
                sl_sizes_prepare(r, open);
}

static struct sl_served *open_of(struct sl_registry *r, const struct sl_ensemble *ensemble)
{
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++)
                if (r->served[i].ensemble == ensemble && r->served[i].state == SL_SERVED_READY)
                        return &r->served[i];
        return NULL;
}

/* Names in the catalogue are finite, too. */
static int check_share(const struct sl_registry *r, uint32_t uid, struct sl_error *error)
{
        uint32_t taken = 0, held = 0;

        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++) {
                const struct sl_served *served = &r->served[i];

                taken += served->state != SL_SERVED_NONE;
                held += served->state != SL_SERVED_NONE && served->asked && served->uid == uid;
        }
        return sl_share_grants(SL_CATALOGUE_MODELS, taken, held)
                       ? 0
                       : sl_error_set(error, EDQUOT, "user %u has %u sizes of %u models, which is its share while %u are free", uid,
                                 held, SL_CATALOGUE_MODELS, SL_CATALOGUE_MODELS - taken);
}

/* They are just going, as others were wanted, or with the model before: who asks waits until they have. */
static bool wait_until_gone(struct sl_registry *r, struct sl_served *open, const int64_t *sizes, uint32_t uid)
{
        struct sl_model_spec spec;
        struct sl_served *there;
        char name[SL_MODEL_NAME_BYTES];

        if (sl_shape_spec(spec_of(open), open->model->info, sizes, name, &spec, NULL) < 0)
                return false;
        there = sl_names_find(r, name);
        if (!there || !there->is_shape || there->state != SL_SERVED_DRAINING)
                return false;
        there->again.wanted = true;
        there->again.open = open->index;
        there->again.uid = uid;
        return true;
}

void sl_sizes_gone(struct sl_registry *r, const struct sl_served *gone)
{
        const struct sl_served *open = &r->served[gone->again.open];

        if (gone->orphan)
                prepare_again(r, gone->open);
        if (gone->again.wanted && open->state == SL_SERVED_READY && open->ensemble && open->ensemble->open && open->model)
                sl_sizes_wanted(r, open->ensemble, gone->sizes, gone->again.uid);
}

void sl_sizes_wanted(struct sl_registry *r, struct sl_ensemble *ensemble, const int64_t *sizes, uint32_t uid)
{
        struct sl_served *open = open_of(r, ensemble), *served;
        struct sl_error error;
        int result;

        if (!open) /* it has retired, and nobody waits in it */
                return;
        result = check_share(r, uid, &error);
        if (result == 0)
                result = want_shape(r, open, sizes, &served, &error);
        if (result == -EBUSY && wait_until_gone(r, open, sizes, uid))
                return;
        if (result < 0) {
                sl_names_report_to(r, sl_account_find(r->options.accounts, uid), 1, "shape-not-loaded", open, error.text);
                sl_sizes_failed(r, open->index, sizes, result, false, error.text);
                return;
        }
        if (served->state == SL_SERVED_READY) { /* asked for before the dispatcher had them, or it found no place for them */
                sl_names_command(r, SL_COMMAND_ATTACH, served->ensemble, 0);
        } else if (served->state == SL_SERVED_WAITING) {
                served->asked = true;
                served->uid = uid;
                serve_own_sizes(r, open, served);
        }
}

/* It may have been unloaded, or replaced, by others meanwhile. */
void sl_sizes_unwanted(struct sl_registry *r, const struct sl_ensemble *ensemble)
{
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++) {
                struct sl_served *served = &r->served[i];

                if (served->is_shape && served->ensemble == ensemble && served->state == SL_SERVED_READY && !served->load)
                        sl_names_drain(r, served);
        }
}

/* What is still being loaded is of no use to the model that comes, and in the way of the sizes that it will want. */
static void withdraw_size(struct sl_registry *r, struct sl_served *served)
{
        sl_loads_cancel(r, served);
        if (!served->ensemble)
                sl_serving_clear(r, served);
        else if (served->state == SL_SERVED_READY)
                sl_names_drain(r, served);
}

void sl_sizes_withdraw(struct sl_registry *r, struct sl_served *open)
{
        open->base = sl_plan_free(open->base);
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++) {
                struct sl_served *served = &r->served[i];

                if (!served->is_shape || served->open != open->index)
                        continue;
                served->orphan = true;
                withdraw_size(r, served);
        }
}

void sl_sizes_resize(struct sl_registry *r, struct sl_served *open)
{
        spec_of(open)->workers = open->own.spec.workers;
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++) {
                struct sl_served *served = &r->served[i];

                if (!is_size_of(served, open))
                        continue;
                served->own.spec.workers = open->own.spec.workers;
                served->resize |= served->model != open->model;
        }
}

bool sl_sizes_base_comes(const struct sl_registry *r, const struct sl_served *served)
{
        uint64_t since = sl_clock_ns() - BASE_WAIT_NS;

        if (!served->is_shape || r->served[served->open].base)
                return false;
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++) {
                const struct sl_served *other = &r->served[i];

                if (other->is_shape && other->open == served->open && other->load && other->load_ns > since)
                        return true;
        }
        return false;
}

struct sl_plan *sl_sizes_base(const struct sl_registry *r, const struct sl_served *served)
{
        return served->is_shape ? r->served[served->open].base : NULL;
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

struct sl_tried_sizes sl_sizes_to_try(const struct sl_registry *r, const struct sl_served *served)
{
        const struct sl_model_spec *spec = &served->own.spec;
        struct sl_tried_sizes tried = {.n = 0};

        for (uint32_t i = 0; i < spec->n_prepared && !served->is_shape && tried.n < SL_TRIED_SIZES_MAX; i++)
                tried.items[tried.n++] = spec->prepared[i];
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS && served->model && tried.n < SL_TRIED_SIZES_MAX; i++) {
                const struct sl_served *other = &r->served[i];

                if (is_size_of(other, served) && other->state == SL_SERVED_READY)
                        add_served(served->model->info, other->sizes, &tried);
        }
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

void sl_sizes_loaded(struct sl_registry *r, const struct sl_served *served, const struct sl_model *model)
{
        struct sl_served *open = &r->served[served->open];
        struct sl_plan *base = sl_plan_base(model->plan);

        if (!open->base)
                open->base = sl_plan_hold(base ? base : model->plan);
}
