/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the repository lists, and how the wants follow it: what is new or another one is wanted, what is gone is to go. Control
 * thread only; whoever calls these advances the registry.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_error;
struct sl_model_spec;
struct sl_registry;

/* Good until the next one is read. */
struct sl_listing {
        const struct sl_model_spec *specs;
        uint32_t n;
};

/* One that has just been read: how many workers there are to be, which says where each may run. */
void sl_listing_count(struct sl_registry *registry, const struct sl_listing *listing);

/* NULL: there is none of that name. */
const struct sl_model_spec *sl_listing_find(const struct sl_listing *listing, const char *name);

/* Versions of @plain, or everything when that is NULL: wanted as the repository has it, and what it has no more goes. */
void sl_listing_follow(struct sl_registry *registry, const struct sl_listing *listing, const char *plain);
