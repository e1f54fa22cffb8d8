/* SPDX-License-Identifier: Apache-2.0 */
#include "listing.h"

#include "base/error.h"
#include "base/fields.h"
#include "change.h"
#include "lets.h"
#include "loads.h"
#include "names.h"
#include "registry_state.h"
#include "serving.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LEFT_OUT_LINES 32
#define LEFT_OUT_BYTES 768 /* of names in a line */

int sl_listing_read(struct sl_registry *r, struct sl_listing *listing, struct sl_error *error)
{
        int result = r->options.runtime->scan(r->options.runtime->context, &listing->specs, &listing->n, error);
        uint32_t workers = 0, fused = 0;

        if (result < 0)
                return result;
        for (uint32_t i = 0; i < listing->n; i++) {
                const struct sl_model_spec *spec = &listing->specs[i];
                const struct sl_worker_set *set = sl_change_workers(r, spec->name);

                uint32_t unplaced = spec->path && !spec->on_gpu ? sl_worker_set_unplaced(set ? set : &spec->workers) : 0;

                if (spec->fuse == SL_SHARING_NEVER)
                        workers += unplaced;
                else /* as if they all were of one architecture */
                        fused = unplaced > fused ? unplaced : fused;
        }
        sl_lets_expect(r->lets, workers + fused);
        return 0;
}

const struct sl_model_spec *sl_listing_find(const struct sl_listing *listing, const char *name)
{
        for (uint32_t i = 0; i < listing->n; i++)
                if (strcmp(listing->specs[i].name, name) == 0)
                        return &listing->specs[i];
        return NULL;
}

/* Served, and the repository has nothing to say of it any more: not even that it is broken, which would leave it alone. */
static bool is_gone(const struct sl_served *served, const struct sl_listing *listing)
{
        for (uint32_t i = 0; i < listing->n; i++)
                if (strcmp(listing->specs[i].name, served->own.name) == 0 ||
                        (listing->specs[i].refused && sl_names_is_version(served->own.name, listing->specs[i].name)))
                        return false;
        return !served->is_shape;
}

/* What the repository says of it is looked at once more when it is there. */
static void note_busy(struct sl_served *served)
{
        if (served && served->load)
                served->look_again = true;
}

/* A name that is not in the table. */
static void report_unwanted(struct sl_registry *r, const char *text)
{
        struct sl_fields fields = {0};

        sl_fields_add(&fields, "cause", text);
        if (r->options.runtime->log)
                r->options.runtime->log(r->options.runtime->context, 1, "model-not-loaded", fields.text);
}

/* Return: -ENOSPC the table has no room for the name; else 0. */
static int want_spec(struct sl_registry *r, const struct sl_model_spec *spec)
{
        struct sl_served *served;
        struct sl_error cause;
        int result;

        if (spec->refused)
                return sl_names_refuse(r, spec);
        result = sl_names_want(r, spec, false, &served, &cause);
        if (result == -ENOSPC)
                return result;
        if (result < 0) {
                report_unwanted(r, cause.text);
                note_busy(sl_names_find(r, spec->name));
        }
        return 0;
}

static bool is_meant(const struct sl_model_spec *spec, const char *plain)
{
        return !plain || sl_names_is_version(spec->name, plain);
}

static void log_left_out(struct sl_registry *r, const struct sl_fields *fields)
{
        if (r->options.runtime->log)
                r->options.runtime->log(r->options.runtime->context, 1, "models-left-out", fields->text);
}

/* As many as go into a line. Return: how many of the specifications from @first on have been looked at. */
static uint32_t report_names(struct sl_registry *r, const struct sl_listing *listing, const char *plain, uint32_t first)
{
        struct sl_fields fields = {0};
        char names[LEFT_OUT_BYTES] = "";
        uint32_t i = first;

        for (size_t used = 0; i < listing->n; i++) {
                const char *name = listing->specs[i].name;

                if (!is_meant(&listing->specs[i], plain) || sl_names_find(r, name))
                        continue;
                if (used && used + strlen(name) + 3 > sizeof(names))
                        break;
                used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", used ? ", " : "", name);
        }
        sl_fields_add(&fields, "names", names);
        log_left_out(r, &fields);
        return i;
}

/* Names for which the table has no room: how many, then which, in as many lines as a reader bears. */
static void report_left_out(struct sl_registry *r, const struct sl_listing *listing, const char *plain, uint32_t n)
{
        struct sl_fields fields = {0};
        uint32_t at = 0;

        sl_fields_add_number(&fields, "models", n);
        sl_fields_add_number(&fields, "limit", SL_CATALOGUE_MODELS);
        sl_fields_add(&fields, "cause", "a runtime has no more names: say under \"models\" of its configuration which it is to serve");
        log_left_out(r, &fields);
        for (uint32_t line = 0; line < LEFT_OUT_LINES && at < listing->n; line++)
                at = report_names(r, listing, plain, at);
}

/* Before anything was made for it. */
static void forget_waiting(struct sl_registry *r, struct sl_served *served)
{
        sl_names_answer(r, served, -ENOENT, "it is not in the repository any more");
        sl_serving_clear(r, served);
}

static void remove_gone(struct sl_registry *r, struct sl_served *served)
{
        if (sl_loads_give_up(r, served))
                sl_serving_fail(r, served, -ECANCELED, "it is not in the repository any more");
        if (served->load)
                note_busy(served);
        else if (served->state == SL_SERVED_READY)
                sl_serving_withdraw(r, served);
        else if (served->state == SL_SERVED_FAILED)
                sl_serving_clear(r, served);
        else if (served->state == SL_SERVED_WAITING)
                forget_waiting(r, served);
}

void sl_listing_follow(struct sl_registry *r, const struct sl_listing *listing, const char *plain)
{
        uint32_t n_left_out = 0;

        for (uint32_t i = 0; i < listing->n; i++)
                if (is_meant(&listing->specs[i], plain))
                        n_left_out += want_spec(r, &listing->specs[i]) < 0;
        if (!plain)
                r->n_left_out = n_left_out;
        if (n_left_out)
                report_left_out(r, listing, plain, n_left_out);
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++)
                if ((!plain || sl_names_is_version(r->served[i].own.name, plain)) && is_gone(&r->served[i], listing))
                        remove_gone(r, &r->served[i]);
}

static bool is_behind(const struct sl_served *served)
{
        return served->look_again && !served->load;
}

bool sl_listing_is_behind(const struct sl_registry *r)
{
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++)
                if (is_behind(&r->served[i]))
                        return true;
        return false;
}

static void catch_up(struct sl_registry *r, struct sl_served *served, const struct sl_listing *listing)
{
        const struct sl_model_spec *spec = sl_listing_find(listing, served->own.name);

        if (spec && !spec->refused)
                (void)want_spec(r, spec); /* it has a place */
        else if (is_gone(served, listing))
                remove_gone(r, served);
}

void sl_listing_catch_up(struct sl_registry *r)
{
        struct sl_listing listing;
        struct sl_error error;
        bool can_say = sl_listing_read(r, &listing, &error) == 0;

        if (!can_say)
                report_unwanted(r, error.text);
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++) {
                if (!is_behind(&r->served[i]))
                        continue;
                r->served[i].look_again = false;
                if (can_say)
                        catch_up(r, &r->served[i], &listing);
        }
}
