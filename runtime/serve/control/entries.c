/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table itself: who is found in it, who gets a place, and what the world hears of an entry.
 */
#include "registry_state.h"

#include "account.h"
#include "base/error.h"
#include "base/fields.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void sl_entries_report_to(struct sl_registry *r, struct sl_account *account, int level, const char *event,
        const struct sl_served *entry, const char *text)
{
        struct sl_fields fields = {0};

        sl_fields_add(&fields, "model", entry->own.name);
        sl_fields_add_number(&fields, "version", entry->own.spec.version);
        if (text)
                sl_fields_add(&fields, "cause", text);
        sl_account_log(r->options.accounts, account, level, event, fields.text);
}

void sl_entries_report(struct sl_registry *r, int level, const char *event, const struct sl_served *entry, const char *text)
{
        sl_entries_report_to(r, sl_entries_account(r, entry), level, event, entry, text);
}

struct sl_account *sl_entries_account(const struct sl_registry *r, const struct sl_served *entry)
{
        return entry->asked ? sl_account_find(r->options.accounts, entry->uid) : NULL;
}

void sl_entries_answer(struct sl_registry *r, struct sl_served *entry, int status, const char *text)
{
        if (entry->asker)
                r->options.answer(r->options.context, entry->asker, status, text);
        entry->asker = 0;
}

void sl_entries_command(struct sl_registry *r, enum sl_command_kind kind, void *pointer, uint32_t index)
{
        sl_dispatcher_command(r->options.dispatcher, &(struct sl_command){.kind = kind, .pointer = pointer, .index = index});
}

struct sl_served *sl_entries_find(struct sl_registry *r, const char *name)
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

int sl_entries_want(
        struct sl_registry *r, const struct sl_model_spec *spec, bool again, struct sl_served **ret_entry, struct sl_error *error)
{
        struct sl_served *entry = sl_entries_find(r, spec->name);

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

void sl_entries_refuse(struct sl_registry *r, const struct sl_model_spec *spec)
{
        struct sl_served *entry = sl_entries_find(r, spec->name);

        if (!entry)
                entry = find_free(r);
        if (!entry || (entry->state != SL_SERVED_NONE && entry->state != SL_SERVED_FAILED))
                return;
        entry->state = SL_SERVED_FAILED;
        sl_own_spec_copy(&entry->own, spec);
        snprintf(entry->why, sizeof(entry->why), "%s", spec->refused);
        entry->own.spec.refused = entry->why;
        sl_served_publish(r->options.catalogue, entry);
}

void sl_entries_drain(struct sl_registry *r, struct sl_served *entry)
{
        entry->state = SL_SERVED_DRAINING;
        sl_served_publish(r->options.catalogue, entry);
        sl_entries_command(r, SL_COMMAND_WITHDRAW, NULL, entry->index);
}
