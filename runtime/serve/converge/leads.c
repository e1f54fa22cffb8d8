/* SPDX-License-Identifier: Apache-2.0 */
#include "leads.h"

#include "base/assert.h"

#include <string.h>

enum role {
        LOADING, /* by file: any */
        SERVING, /* the last that began to be loaded */
        OTHER,   /* the same, of those that have another model than SERVING */
        STANDBY, /* the same, of those that have a plan on standby */
        BASE,    /* by open name: the last that began */
        KEEPER,  /* by model: any */
};

static bool is_loading(const struct sl_fleet_name *name)
{
        return name->load == SL_FLEET_LOAD_SOON || name->load == SL_FLEET_LOAD_BOUND || name->load == SL_FLEET_LOAD_LOADED;
}

static bool is_wanted_load(const struct sl_fleet_name *name)
{
        return name->want && name->load_want == name->want;
}

static uint64_t key_of(const struct sl_fleet_name *name, enum role role)
{
        if (role == LOADING)
                return name->load_file ? name->load_file : name->file;
        return role == BASE ? name->open : role == KEEPER ? name->model : name->file;
}

static uint16_t *bucket_of(struct sl_leads *leads, uint64_t key)
{
        return &leads->heads[key * 0x9e3779b97f4a7c15ull >> 52];
}

/* NULL: there is none. */
static struct sl_lead *find(struct sl_leads *leads, enum role role, uint64_t key)
{
        for (uint16_t at = *bucket_of(leads, key); at; at = leads->leads[at - 1].next) {
                struct sl_lead *lead = &leads->leads[at - 1];

                if (lead->role == role && key_of(&leads->fleet->names[lead->name], role) == key)
                        return lead;
        }
        return NULL;
}

static void add(struct sl_leads *leads, enum role role, uint32_t name)
{
        uint16_t *bucket = bucket_of(leads, key_of(&leads->fleet->names[name], role));

        leads->leads[leads->n] = (struct sl_lead){.next = *bucket, .name = (uint16_t)name, .role = (uint8_t)role};
        *bucket = (uint16_t)++leads->n;
}

/* What is not wanted any more is led by as well, where it is known of which file it is: no file is loaded twice at a time. */
static void add_loading(struct sl_leads *leads, uint32_t i)
{
        const struct sl_fleet_name *name = &leads->fleet->names[i];
        struct sl_lead *lead;

        if (!is_loading(name))
                return;
        if ((name->load_file || is_wanted_load(name)) && !find(leads, LOADING, key_of(name, LOADING)))
                add(leads, LOADING, i);
        if (!name->needs_base || !is_wanted_load(name))
                return;
        lead = find(leads, BASE, name->open);
        if (!lead)
                add(leads, BASE, i);
        else if (name->load_since_ns > leads->fleet->names[lead->name].load_since_ns)
                lead->name = (uint16_t)i;
}

/* In the place of one that is older, if there is one. */
static void add_newest(struct sl_leads *leads, enum role role, uint32_t i)
{
        const struct sl_fleet_name *names = leads->fleet->names;
        struct sl_lead *lead = find(leads, role, names[i].file);

        if (!lead)
                add(leads, role, i);
        else if (names[i].begun > names[lead->name].begun)
                lead->name = (uint16_t)i;
}

static void add_serving(struct sl_leads *leads, uint32_t i)
{
        const struct sl_fleet_name *name = &leads->fleet->names[i];
        struct sl_lead *lead;
        uint32_t other = i;

        if (name->kind == SL_FLEET_ENSEMBLE || !name->want || name->serves != name->want || name->rests)
                return;
        if (!find(leads, KEEPER, name->model))
                add(leads, KEEPER, i);
        lead = find(leads, SERVING, name->file);
        if (lead && leads->fleet->names[lead->name].model == name->model)
                return;
        if (lead && name->begun > leads->fleet->names[lead->name].begun) {
                other = lead->name;
                lead->name = (uint16_t)i;
        }
        add_newest(leads, lead ? OTHER : SERVING, other);
}

static void add_standby(struct sl_leads *leads, uint32_t i)
{
        const struct sl_fleet_name *name = &leads->fleet->names[i];

        if (name->standby && name->standby == name->want)
                add_newest(leads, STANDBY, i);
}

void sl_leads_fill(struct sl_leads *leads, const struct sl_fleet *fleet)
{
        if (leads->fleet)
                return;
        SL_ASSERT(fleet->n <= SL_FLEET_NAMES_MAX);
        leads->fleet = fleet;
        leads->n = 0;
        memset(leads->heads, 0, sizeof(leads->heads));
        for (uint32_t i = 0; i < fleet->n; i++) {
                if (!fleet->names[i].used)
                        continue;
                add_loading(leads, i);
                add_serving(leads, i);
                add_standby(leads, i);
        }
}

static uint32_t one_since(const struct sl_leads *leads, const struct sl_lead *lead, uint64_t since)
{
        return lead && leads->fleet->names[lead->name].begun >= since ? lead->name : SL_FLEET_NONE;
}

uint32_t sl_leads_serving(struct sl_leads *leads, uint64_t file, uint64_t model, uint64_t since)
{
        const struct sl_lead *lead = find(leads, SERVING, file);

        if (lead && leads->fleet->names[lead->name].model == model)
                lead = find(leads, OTHER, file);
        return one_since(leads, lead, since);
}

uint32_t sl_leads_standby(struct sl_leads *leads, uint64_t file, uint64_t since)
{
        return one_since(leads, find(leads, STANDBY, file), since);
}

bool sl_leads_load(struct sl_leads *leads, uint64_t file)
{
        return find(leads, LOADING, file);
}

uint32_t sl_leads_base(struct sl_leads *leads, uint32_t open)
{
        const struct sl_lead *lead = find(leads, BASE, open);

        return lead ? lead->name : SL_FLEET_NONE;
}

bool sl_leads_keep(struct sl_leads *leads, uint64_t model)
{
        return find(leads, KEEPER, model);
}
