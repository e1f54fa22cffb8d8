/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a block takes long and is no child's: looking for its plan in the cache, or opening the one that has been compiled and
 * measuring it. On a thread of its own, which sees nothing but the step; the owner hears of its end by the fd and takes what there
 * is.
 */
#pragma once

#include "base/error.h"
#include "compile.h"
#include "fuse_table.h"
#include "model_digest.h"
#include "plan_cache.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_fuse_step;
struct sl_lower_options;
struct sl_plan;

/* Where the block is kept: made by the search, read by what follows. */
struct sl_fuse_keys {
        bool known;
        struct sl_plan_cache_key merged, members[SL_FUSE_LANES_MAX];
};

/* All is borrowed until the step is freed. */
struct sl_fuse_step_options {
        struct sl_plan_cache *cache; /* NULL: there is none */
        const char *program;
        const struct sl_lower_options *lowering;
        const char *const *paths;              /* of its members, in order */
        const struct sl_model_identity *files; /* of which their plans were made */
        struct sl_plan *const *singles;
        uint32_t n_lanes;
        uint64_t neighbour_bytes; /* fuse_measure.h */
        struct sl_fuse_keys *keys;
        const struct sl_compile_notes *notes; /* of the child, to be kept */
        const struct sl_fuse_table *known;    /* of another block of as many lanes, and */
        const struct sl_plan *known_plan; /* the plan of that: where this one is merged alike only its outputs are checked; NULL */
        int plan_fd;                      /* of what has been compiled; -1: the cache is searched */
        uint32_t batch_max;
        uint64_t budget_ns;
        bool background;
};

struct sl_fuse_found {
        int status; /* 0: plan and table; -ENOENT it is not in the cache; -ENODATA it is known not to be worth it; else -errno,
                       among them -EBADMSG its outputs differ, -ETIME it cannot be measured in time, -ESTALE a member's file is
                       another one than its plan was made of */
        struct sl_plan *plan;
        struct sl_fuse_table table;
        struct sl_compile_notes notes; /* from the cache, or those that were given */
        struct sl_error error;         /* of any status but 0 and -ENOENT */
};

/*
 * What is merged are the files, which may be other ones than the members serve, until they are loaded again. Return: the first of
 * those; NULL: there is none.
 */
const char *sl_fuse_find_changed(const char *const *paths, const struct sl_model_identity *files, uint32_t n);

/* Return: 0; -errno. */
int sl_fuse_step_new(const struct sl_fuse_step_options *options, struct sl_fuse_step **ret_step);

/* Tells its thread to end, and waits for that. NULL is fine. Returns NULL. */
struct sl_fuse_step *sl_fuse_step_free(struct sl_fuse_step *step);

/* Readable at the end. */
int sl_fuse_step_fd(const struct sl_fuse_step *step);

/* Waits for the end. The plan is the caller's to free. */
void sl_fuse_step_take(struct sl_fuse_step *step, struct sl_fuse_found *ret_found);
