/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merged plans for the members of a bundle, from the cache or compiled in children, with the tables of what running them takes. The
 * members, in the order that they are given in, are cut into blocks of so many lanes as gain most; the last block may have fewer.
 *
 *     SEARCHING --no plan--> COMPILING --plan file--> MEASURING --> the next number of lanes, or the next block --> ... --> over
 *         |                      |                        |
 *         +--plan, table---------+--nothing is merged-----+--outputs differ--> the same
 *
 * COMPILING is a child (compile.h); SEARCHING and MEASURING are a thread, which sees nothing but its step. The owner hears by one
 * fd and never waits, but for the start of a child, where it does not have that done elsewhere: ORDERED, sl_fuse_wants(). What goes wrong with a block (a member that crashes its compiler, outputs that differ) leaves that block
 * unmerged, and one line says so; the members serve as before.
 *
 * One owner thread, as compilations want it.
 */
#pragma once

#include "base/error.h"
#include "fuse_table.h"
#include "model_digest.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_compilation;
struct sl_compile_options;
struct sl_compile_zygote;
struct sl_fuse;
struct sl_lower_options;
struct sl_plan;
struct sl_plan_cache;
struct sl_plan_info;

#define SL_FUSE_BLOCKS_MAX (SL_FUSE_LANES_MAX / 2)
#define SL_FUSE_MEASURE_NS (300ull * 1000 * 1000)

/* What became of the members first to first + n_lanes - 1 as one plan, for the log and for people. */
struct sl_fuse_trial {
        uint32_t first, n_lanes;
        int status;                        /* 0; or -errno with the cause: of -ENODATA, that it would not be worth it */
        const char *cause, *notes;         /* notes: lines that the compiler said of the merge; "" */
        const struct sl_fuse_table *table; /* of status 0, else NULL; */
        const struct sl_plan_info *info;   /* so is that of the merged plan */
        bool compiled;                     /* and not found in the cache */
};

struct sl_fuse_member {
        const char *path;              /* model.onnx */
        struct sl_model_identity file; /* of which its plan was made; not known: nobody looks whether it is still the same */
        struct sl_plan *plan;          /* its own, which is held as long as it is needed */
};

struct sl_fuse_options {
        const struct sl_fuse_member *members;
        uint32_t n_members;                         /* 2 to SL_FUSE_LANES_MAX */
        const struct sl_lower_options *lowering;    /* with which all of them were compiled */
        struct sl_plan_cache *cache;                /* NULL: nothing is looked for or kept */
        const char *compile_program;                /* as in sl_compile_options */
        const struct sl_data_folders *data_folders; /* likewise; outlives it */
        struct sl_compile_zygote *zygote;
        bool orders;           /* the owner has children started: sl_fuse_wants() */
        bool background;       /* gives way to whoever serves */
        uint64_t memory_bytes; /* of a child: as in sl_compile_options. One runs at a time */
        uint64_t seconds;
        uint32_t batch_max;                                              /* larger ones are not measured; 0: the ladder's largest */
        uint32_t lanes;                                                  /* of a block; 0: the number is chosen */
        uint64_t short_ns;                                               /* as of sl_fuse_worth(), by which it is */
        bool always;                                                     /* keeps plans that are never the cheapest way, too */
        uint64_t measure_ns;                                             /* for all that is timed; 0: SL_FUSE_MEASURE_NS */
        void (*tried)(void *context, const struct sl_fuse_trial *trial); /* called by sl_fuse_advance(); NULL: nobody listens */
        void *context;
};

/* A block: members first to first + n_lanes - 1 as one plan. Ports: those of the first member, then those of the next, and so on,
 * each as its own plan has them, which has been checked. */
struct sl_fused {
        uint32_t first, n_lanes;
        struct sl_plan *plan;
        struct sl_fuse_table table;
};

struct sl_fuse_result {
        uint32_t n_blocks;
        struct sl_fused blocks[SL_FUSE_BLOCKS_MAX];
        struct sl_error error; /* why a block, or everything, stays unmerged: the first line of those; "" */
        int status;            /* of that; 0 */
};

/* Reads the options during the call only, but for cache, zygote and plans. Return: 0; -EINVAL the number of members or lanes;
 * -ENOMEM; -errno; with text. */
int sl_fuse_begin(const struct sl_fuse_options *options, struct sl_fuse **ret_fuse, struct sl_error *error);

/* Readable when there is something to advance: the same one from begin to end. */
int sl_fuse_fd(const struct sl_fuse *fuse);

/* Goes as far as it can without waiting. True: it is over. */
bool sl_fuse_advance(struct sl_fuse *fuse);

/*
 * A child is to be started, as @ret_options say, which are good until it is given or the merge is freed. False: none is. Of what the
 * owner gives @r is what sl_compile_start() has returned, of 0 with its compilation, else with its text. To be advanced thereafter.
 */
bool sl_fuse_wants(const struct sl_fuse *fuse, struct sl_compile_options *ret_options);
void sl_fuse_give(struct sl_fuse *fuse, int r, struct sl_compilation *compilation, const struct sl_error *error);

/* It is over: the plans are the caller's to free. */
void sl_fuse_take(struct sl_fuse *fuse, struct sl_fuse_result *ret_result);

/* What compiles now, which is the caller's to end, and the merge is only to be freed then; NULL: nothing compiles. */
struct sl_compilation *sl_fuse_take_compilation(struct sl_fuse *fuse);

/* Ends whatever is under way, for which it waits some milliseconds, and frees; with it what was not taken. NULL is fine. Returns
 * NULL. */
struct sl_fuse *sl_fuse_free(struct sl_fuse *fuse);

/* Frees the plans. All zeros is fine. */
void sl_fuse_result_deinit(struct sl_fuse_result *result);

/* The most that it takes at any time beside the plans of the members: a child, or what measuring takes. Pure. */
uint64_t sl_fuse_bytes(const struct sl_fuse_options *options);
