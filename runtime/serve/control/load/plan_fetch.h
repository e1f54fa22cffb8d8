/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gets the plan of one model ready on a thread of its own: looks for it in the cache, or seals and opens the one that has been
 * compiled. A model file that is new is read whole for its digest, a plan for its checksum, the kernel may take its time to seal,
 * and the control thread must not wait for any of it. What is not found is to be compiled: the search says what that needs. The
 * thread sees nothing but the fetch, and the cache, which it holds; the owner hears of its end by the fd and takes what there is. A
 * read of a file system that does not answer never returns: the thread is left to itself then, and frees what it has if it ever
 * ends. A process ends without it, but where the kernel waits for such a read whatever comes (FUSE, once its server has it).
 */
#pragma once

#include "lower_options.h"
#include "plan_cache.h"

#include "base/error.h"

#include <sched.h>
#include <stdbool.h>

struct sl_plan;
struct sl_plan_fetch;

struct sl_plan_fetch_options {
        struct sl_plan_cache *cache; /* NULL: there is none to search */
        const char *path, *compile_program;
        const struct sl_lower_options *lowering;
        uint64_t seconds;     /* that reading a new model for its digest may take */
        bool background;      /* something is served meanwhile */
        cpu_set_t cores;      /* where its thread runs; empty: anywhere */
        bool sized;           /* the plan may be derived from one of other sizes: */
        struct sl_plan *base; /* that one, if it is loaded */
        int plan_fd; /* of what has been compiled, taken in any case: it is opened on the base; -1: the cache is searched */
};

struct sl_plan_found {
        struct sl_plan *plan; /* NULL: it is not in the cache, or cannot be opened */
        int status;           /* of opening what has been compiled, or of the key: 0, or -errno with `error` */
        struct sl_plan *base; /* of the plan, or of that to be compiled; NULL: it stands alone */
        int plan_fd;          /* of what has been compiled: the caller's; else -1 */
        bool keyed;           /* `key` says where the plan is kept */
        struct sl_plan_cache_key key;
        struct sl_model_identity file; /* before it was read; where no cache has looked at it, without external data */
        uint64_t need, files;          /* of a compilation (compile_need.h); 0: not known */
        struct sl_error error;         /* why something in the cache was not used; "" */
};

/* The options are read during the call only. Return: 0; -errno. */
int sl_plan_fetch_new(const struct sl_plan_fetch_options *options, struct sl_plan_fetch **ret_fetch);

/* Tells its thread to read no further, and does not wait while it searches. NULL is fine. Returns NULL. */
struct sl_plan_fetch *sl_plan_fetch_free(struct sl_plan_fetch *fetch);

/* Readable at the end, and when a search has not come to it in its time. */
int sl_plan_fetch_fd(const struct sl_plan_fetch *fetch);

/* At the end, or of a search whose time is over: then the status is -ETIME with text. Plan and base are the caller's to free. */
void sl_plan_fetch_take(struct sl_plan_fetch *fetch, struct sl_plan_found *ret_found);
