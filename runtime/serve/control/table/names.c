/* SPDX-License-Identifier: Apache-2.0 */
#include "names.h"

#include "account.h"
#include "base/fields.h"
#include "files.h"
#include "registry_state.h"

#include <stdio.h>
#include <string.h>

/* FNV-1a (Fowler, Noll, Vo). */
static uint32_t hash_name(const char *name)
{
        uint32_t hash = 0x811c9dc5u;

        for (; *name; name++)
                hash = (hash ^ (unsigned char)*name) * 0x01000193u;
        return hash;
}

static uint16_t *bucket_of(struct sl_registry *r, uint32_t hash)
{
        return &r->by_name[hash % SL_NAME_BUCKETS];
}

struct sl_served *sl_names_find(struct sl_registry *r, const char *name)
{
        uint32_t hash = hash_name(name);

        for (uint32_t at = *bucket_of(r, hash); at; at = r->next_named[at - 1])
                if (r->name_hashes[at - 1] == hash && strcmp(r->served[at - 1].name, name) == 0)
                        return &r->served[at - 1];
        return NULL;
}

static void link_name(struct sl_registry *r, const struct sl_served *served)
{
        uint32_t hash = hash_name(served->name);
        uint16_t *bucket = bucket_of(r, hash);

        r->name_hashes[served->index] = hash;
        r->next_named[served->index] = *bucket;
        *bucket = (uint16_t)(served->index + 1);
}

static void unlink_name(struct sl_registry *r, const struct sl_served *served)
{
        uint16_t *link = bucket_of(r, r->name_hashes[served->index]);

        while (*link != served->index + 1)
                link = &r->next_named[*link - 1];
        *link = r->next_named[served->index];
}

/* The lowest place that is free, so that what all of them take stays small. */
struct sl_served *sl_names_take(struct sl_registry *r, const char *name)
{
        struct sl_served *served;

        while (r->first_free < SL_CATALOGUE_MODELS && r->served[r->first_free].used)
                r->first_free++;
        if (r->first_free == SL_CATALOGUE_MODELS)
                return NULL;
        served = &r->served[r->first_free];
        served->index = r->first_free++;
        if (r->first_free > r->n_served)
                r->n_served = r->first_free;
        served->used = true;
        r->n_used++;
        snprintf(served->name, sizeof(served->name), "%s", name);
        link_name(r, served);
        sl_names_wake(r, served);
        r->names++;
        return served;
}

/* It stays awake until it is looked at again. */
void sl_names_drop(struct sl_registry *r, struct sl_served *served)
{
        const uint32_t index = served->index, generation = served->generation + 1;
        const bool awake = served->awake;

        unlink_name(r, served);
        sl_files_note(r, served, NULL, NULL);
        sl_own_spec_free(served->want.spec);
        sl_own_spec_free(served->spec);
        *served = (struct sl_served){.index = index, .generation = generation, .awake = awake};
        r->n_used--;
        if (index < r->first_free)
                r->first_free = index;
        r->names++;
}

/* ---- which of them something may be done for ---- */

void sl_names_wake(struct sl_registry *r, struct sl_served *served)
{
        uint32_t at = r->n_awake;

        if (served->awake)
                return;
        served->awake = true;
        while (at && r->awake[at - 1] > served->index)
                at--;
        memmove(&r->awake[at + 1], &r->awake[at], (r->n_awake - at) * sizeof(r->awake[0]));
        r->awake[at] = (uint16_t)served->index;
        r->n_awake++;
}

/* Nothing is there of it, nothing is under way, nobody waits, and converge has nothing to do for it before somebody asks. */
static bool is_still(const struct sl_served *served)
{
        const struct sl_want *want = &served->want;
        bool is_settled =
                served->awaits_want == want->number && (served->awaits == SL_AWAIT_REQUEST || served->awaits == SL_AWAIT_FAILED);

        return is_settled && want->number && want->spec->spec.n_members == 0 && !want->spec->spec.standby &&
               !served->standby_want && !want->request.is_asked && !want->askers.n && !want->group && !served->model &&
               !served->load && !served->changing && !served->drains && !served->news.mark && !served->is_shape;
}

void sl_names_let_sleep(struct sl_registry *r)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < r->n_awake; i++) {
                struct sl_served *served = sl_awake_at(r, i);

                served->awake = served->used && !is_still(served);
                if (served->awake)
                        r->awake[n++] = r->awake[i];
        }
        r->n_awake = n;
}

void sl_names_report_to(struct sl_registry *r, struct sl_account *account, int level, const char *event,
        const struct sl_served *served, const char *text)
{
        struct sl_fields fields = {0};

        sl_fields_add(&fields, "model", served->name);
        sl_fields_add_number(&fields, "version", sl_served_spec(served)->version);
        if (text)
                sl_fields_add(&fields, "cause", text);
        sl_account_log(r->options.accounts, account, level, event, fields.text);
}

void sl_names_report(struct sl_registry *r, int level, const char *event, const struct sl_served *served, const char *text)
{
        sl_names_report_to(r, sl_names_account(r, served), level, event, served, text);
}

struct sl_account *sl_names_account(const struct sl_registry *r, const struct sl_served *served)
{
        const struct sl_want *want = &served->want;

        if (served->asked)
                return sl_account_find(r->options.accounts, served->uid);
        return want->request.is_asked ? sl_account_find(r->options.accounts, want->request.uid) : NULL;
}

bool sl_names_is_version(const char *name, const char *plain)
{
        size_t bytes = strlen(plain);

        return strncmp(name, plain, bytes) == 0 && name[bytes] == ':';
}

void sl_names_command(struct sl_registry *r, enum sl_command_kind kind, void *pointer, uint32_t index)
{
        sl_dispatcher_command(r->options.dispatcher, &(struct sl_command){.kind = kind, .pointer = pointer, .index = index});
}

void sl_names_drain(struct sl_registry *r, struct sl_served *served)
{
        served->drains = true;
        sl_served_publish(r, served);
        sl_names_command(r, SL_COMMAND_WITHDRAW, NULL, served->index);
}
