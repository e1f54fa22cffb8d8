/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that others follow: of a file, what is being loaded and what serves; of an open name, the sizes whose plan may be the base.
 * An index that is filled once a plan, so that a fleet of names that all want something costs as much a name as a small one. Plain
 * values on the stack of the caller.
 */
#pragma once

#include "fleet.h"

#define SL_LEADS_BUCKETS 4096u

struct sl_lead {
        uint16_t next; /* 1 + number of the next one of the bucket; 0: none */
        uint16_t name;
        uint8_t role;
};

struct sl_leads {
        const struct sl_fleet *fleet; /* NULL: not filled */
        uint32_t n;
        uint16_t heads[SL_LEADS_BUCKETS];
        struct sl_lead leads[5 * SL_FLEET_NAMES_MAX];
};

/* @leads->fleet is NULL at first. What has been filled stays. */
void sl_leads_fill(struct sl_leads *leads, const struct sl_fleet *fleet);

/* One that serves @file as it is wanted, by another model than @model, which began to be loaded at @since or later; SL_FLEET_NONE:
 * none does. */
uint32_t sl_leads_serving(struct sl_leads *leads, uint64_t file, uint64_t model, uint64_t since);

/* One that has the plan of @file on standby, as it is wanted and of that age; SL_FLEET_NONE: none does. */
uint32_t sl_leads_standby(struct sl_leads *leads, uint64_t file, uint64_t since);

/* @file is being loaded, wanted or not. */
bool sl_leads_load(struct sl_leads *leads, uint64_t file);

/* The last that began of the sizes of @open that are being loaded and may be the base of the others; SL_FLEET_NONE: none is. */
uint32_t sl_leads_base(struct sl_leads *leads, uint32_t open);

/* Some name serves this model as it is wanted. */
bool sl_leads_keep(struct sl_leads *leads, uint64_t model);
