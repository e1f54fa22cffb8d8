/* SPDX-License-Identifier: Apache-2.0 */
#include "listing.h"

#include "base/error.h"
#include "base/fields.h"
#include "draft.h"
#include "lets.h"
#include "names.h"
#include "registry_state.h"
#include "want.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LEFT_OUT_LINES 32
#define LEFT_OUT_BYTES 768 /* of names in a line */

void sl_listing_count(struct sl_registry *r, const struct sl_listing *listing)
{
        uint32_t workers = 0, fused = 0;

        for (uint32_t i = 0; i < listing->n; i++) {
                const struct sl_model_spec *spec = &listing->specs[i];
                const struct sl_allotment *applied = sl_draft_find(r->in_force, spec->name);

                uint32_t unplaced =
                        spec->path && !spec->on_gpu ? sl_worker_set_unplaced(applied ? &applied->set : &spec->workers) : 0;

                if (spec->fuse == SL_SHARING_NEVER)
                        workers += unplaced;
                else /* as if they all were of one architecture */
                        fused = unplaced > fused ? unplaced : fused;
        }
        sl_lets_expect(r->lets, workers + fused);
}

const struct sl_model_spec *sl_listing_find(const struct sl_listing *listing, const char *name)
{
        for (uint32_t i = 0; i < listing->n; i++)
                if (strcmp(listing->specs[i].name, name) == 0)
                        return &listing->specs[i];
        return NULL;
}

static void note_listed(struct sl_registry *r, const struct sl_model_spec *spec)
{
        struct sl_served *served = sl_names_find(r, spec->name);

        if (!served)
                return;
        served->listed = r->listings;
        served->is_broken = spec->refused;
}

/* A version of a name that the repository has, and which is broken there: that leaves it alone. */
static bool is_of_broken(struct sl_registry *r, const struct sl_served *served)
{
        char plain[SL_MODEL_NAME_BYTES];
        const struct sl_served *there;

        snprintf(plain, sizeof(plain), "%.*s", (int)strcspn(served->name, ":"), served->name);
        there = served->name[strlen(plain)] ? sl_names_find(r, plain) : NULL;
        return there && there->listed == r->listings && there->is_broken;
}

/* Served, and the repository has nothing to say of it any more: not even that it is broken. */
static bool is_gone(struct sl_registry *r, const struct sl_served *served)
{
        return served->listed != r->listings && !served->is_shape && !is_of_broken(r, served);
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
                return sl_want_refused(r, spec) == -ENOSPC ? -ENOSPC : 0;
        result = sl_want(r, spec, false, SL_WANT_REPOSITORY, &served, &cause);
        if (result < 0 && result != -ENOSPC)
                report_unwanted(r, cause.text);
        return result == -ENOSPC ? -ENOSPC : 0;
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
        sl_fields_add(
                &fields, "cause", "a runtime has no more names: say under \"models\" of its configuration which it is to serve");
        log_left_out(r, &fields);
        for (uint32_t line = 0; line < LEFT_OUT_LINES && at < listing->n; line++)
                at = report_names(r, listing, plain, at);
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
        r->listings++;
        for (uint32_t i = 0; i < listing->n; i++)
                note_listed(r, &listing->specs[i]);
        for (uint32_t i = 0; i < r->n_served; i++) {
                struct sl_served *served = &r->served[i];

                if (served->used && served->want.number && (!plain || sl_names_is_version(served->name, plain)) &&
                        is_gone(r, served))
                        sl_want_nothing(r, served, SL_WANT_REPOSITORY, "it is not in the repository any more");
        }
}
