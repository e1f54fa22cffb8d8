/*
 * Looks for the plan of one model in the cache, on a thread of its own: a model file that is new is read whole for its digest, a
 * plan for its checksum, and the control thread must not wait for either. The thread sees nothing but the search; the owner thread
 * hears of its end by the fd and takes what it found.
 */
#pragma once

#include "lower_options.h"
#include "plan_cache.h"

#include "base/error.h"

#include <stdbool.h>

struct sl_plan;
struct sl_plan_search;

struct sl_plan_search_options {
        struct sl_plan_cache *cache;
        const char *path, *compile_program;
        const struct sl_lower_options *lowering;
        bool sized;           /* the plan may be derived from one of other sizes: */
        struct sl_plan *base; /* that one, if it is loaded */
};

struct sl_plan_found {
        struct sl_plan *plan; /* NULL: it has to be compiled */
        struct sl_plan *base; /* of the plan, or of that to be compiled; NULL: it stands alone */
        bool keyed;           /* `key` says where the plan is kept */
        struct sl_plan_cache_key key;
        struct sl_error error; /* why something in the cache was not used; "" */
};

/* The options are read during the call only, but for the cache. Return: 0; -errno. */
int sl_plan_search_new(const struct sl_plan_search_options *options, struct sl_plan_search **ret_search);

/* Waits for its thread. NULL is fine. Returns NULL. */
struct sl_plan_search *sl_plan_search_free(struct sl_plan_search *search);

/* Readable at the end. */
int sl_plan_search_fd(const struct sl_plan_search *search);

/* Waits for the end. Plan and base are the caller's to free. */
void sl_plan_search_take(struct sl_plan_search *search, struct sl_plan_found *ret_found);
