/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plan files kept on disk from one start to the next, in a folder that only its owner can write (cache_folder.h).
 *
 *     KEY.plan         a plan file; KEY.UID.plan: of sizes of an open model that this user asked for
 *     KEY.intact       what the file system said of the plan when its content was last known to be right; KEY.UID.intact likewise
 *     FAMILY.base      which plan is the base of all sizes of a model's open dimensions
 *     KEY.fuse         what came of merging several models (fuse/fuse_record.h); KEY.plan is the merged plan, where there is one
 *     KEY.choices      what a GPU has found out about a plan (gpu_choices.h); KEY.UID.choices: about one of such sizes. KEY is
 *                      that of the plan file, the GPU's number and the let; whether it is still that GPU is its process's to say
 *     IDENTITY.model   the content's digest when the file system last said IDENTITY of the model: unchanged, it is not read again
 *
 * KEY is the digest of all that a plan depends on: content of the model and its external data, options, processor, libraries,
 * version of the format, the program that compiles, and the base that it is derived from. FAMILY is a KEY without those sizes.
 *
 * Written under another name and renamed; opened without following links; used only when the owner is this user, nobody else can
 * write and it has no other name; walked whole by sl_plan_open() before use. What is damaged is removed and compiled again. When
 * the folder is over its bound, the files that were used longest ago go, from those who are above their share. Several processes
 * may share a folder: each looks at it after a sixty-fourth of the bound that it has kept, and when what it knows to be free is
 * used up, so that each other one may be above the bound by as much.
 *
 * A plan is read for damage unless its record holds the file's device, inode, size, times of modification and of change, and this
 * start of the host: not, then, when it was written since (but for one tick of the file system's clock), replaced, or left behind
 * by a crash. No trust depends on that: the walk takes the checksum for forged in any case.
 *
 * Keys are made, and plans found, on any thread; the rest has one owner thread. A thread of the cache's own copies what is to be
 * kept, since that is as slow as the disk.
 */
#pragma once

#include "model_digest.h"
#include "plan_info.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_target;
struct sl_error;
struct sl_lower_options;
struct sl_plan;
struct sl_stop;
struct sl_plan_cache;

#define SL_PLAN_CACHE_NAME_BYTES 48
#define SL_PLAN_CACHE_LOOKS      64 /* at the folder, while a process keeps as much as the bound */

struct sl_plan_cache_key {
        char name[SL_PLAN_CACHE_NAME_BYTES];
        char family[SL_PLAN_CACHE_NAME_BYTES];
        struct sl_digest digest;   /* the name's */
        struct sl_digest identity; /* of the model when the key was made */
        struct sl_digest content;  /* of it then */
        bool folder;
        bool asked; /* the caller's: a request of this user wanted the plan, which counts as its when it is stored */
        uint32_t uid;
};

/*
 * @directory: is made when it is not there (its parent must be); NULL: sl_cache_folder_default().
 * Return: 0; -EPERM another user owns it or could write to it; -errno; the text names it.
 */
int sl_plan_cache_new(const char *directory, uint64_t bytes_max, struct sl_plan_cache **ret_cache, struct sl_error *error);
/* Its owner's: gives up copies that are under way. NULL is fine. Returns NULL. */
struct sl_plan_cache *sl_plan_cache_free(struct sl_plan_cache *cache);

/* A thread that makes keys or finds plans, and that its owner may not wait for, keeps it so long. NULL is fine. Any thread. */
struct sl_plan_cache *sl_plan_cache_hold(struct sl_plan_cache *cache);
void sl_plan_cache_drop(struct sl_plan_cache *cache);

/*
 * What a backend finds to plan for on this host (sl_planner.measure): from the folder, HOST.core, or measured now and kept there.
 * The same for all who share the folder, this program and this kind of processor. Some tens of milliseconds once. Return: 0;
 * -ENOTSUP this processor has nothing to measure; -ENOMEM.
 */
int sl_plan_cache_target(struct sl_plan_cache *cache, const char *backend, struct sl_target *ret_target);

/* The same, as far as it is in the folder. Return: 0; -ENOENT nobody has measured it; -ENOTSUP. */
int sl_plan_cache_recall_target(const struct sl_plan_cache *cache, const char *backend, struct sl_target *ret_target);

/*
 * @program: that compiles, NULL: this one. Reads the model when its identity is new, until @stop says so (NULL: to the end), and no
 * more than model_bytes_max. Return: 0; -EFBIG the file is larger, and no model; -EAGAIN it has external data that are more, and
 * changed just now; of @stop: -ETIME or its verdict; -errno; with text.
 */
int sl_plan_cache_key(struct sl_plan_cache *cache, const char *model_path, const char *program,
        const struct sl_lower_options *lowering, const struct sl_stop *stop, struct sl_plan_cache_key *ret_key,
        struct sl_error *error);

/* Of the same plan, derived from @base (NULL: it stands alone, and @key stays as it is). Pure. */
void sl_plan_cache_key_on(struct sl_plan_cache_key *key, const struct sl_plan *base);

/*
 * Of the merged plan of models, from the keys of their own plans, in order. Kept by sl_plan_cache_store_merged() alone. Pure.
 */
void sl_plan_cache_key_merged(const struct sl_plan_cache_key *members, uint32_t n, struct sl_plan_cache_key *ret_key);

/* A record (cache_record.h) about the key, KEY.fuse. Any thread. Return: 0; -ENOENT; -EBADMSG it is another one, or damaged;
 * -errno. */
int sl_plan_cache_recall(
        struct sl_plan_cache *cache, const struct sl_plan_cache_key *key, uint64_t kind, void *ret_record, size_t bytes);

/* Sets its checksum. What cannot be written is found out again, no more. */
void sl_plan_cache_remember(struct sl_plan_cache *cache, const struct sl_plan_cache_key *key, void *record, size_t bytes);

/*
 * @base: that of the key, or NULL. Return: 0 and the plan, checked; -ENOENT; another -errno with a text: it was not used, and
 * removed if it was damaged.
 */
int sl_plan_cache_find(struct sl_plan_cache *cache, const struct sl_plan_cache_key *key, struct sl_plan *base,
        struct sl_plan **ret_plan, struct sl_error *error);

/* The same of a merged plan, with the plans of its members (sl_plan_open_merged()). */
int sl_plan_cache_find_merged(struct sl_plan_cache *cache, const struct sl_plan_cache_key *key, struct sl_plan *const *members,
        uint32_t n_members, struct sl_plan **ret_plan, struct sl_error *error);

/*
 * The plan from which those of other sizes of the key's model are derived. *ret_own: it is the key's own plan. Return: 0; -ENOENT
 * none is known; another -errno with a text: the one that was is gone, or is another now.
 */
int sl_plan_cache_find_base(struct sl_plan_cache *cache, const struct sl_plan_cache_key *key, struct sl_plan **ret_base,
        bool *ret_own, struct sl_error *error);

/* @base, which is kept under @key, is from now on what find_base() finds. Return: 0; -errno with text. */
int sl_plan_cache_keep_base(
        struct sl_plan_cache *cache, const struct sl_plan_cache_key *key, const struct sl_plan *base, struct sl_error *error);

/*
 * Begins to keep a copy of the plan file, which has been opened and which nobody may change any more. @key: made before the
 * compilation began. Return: 0; -ESTALE the model has changed since, nothing is kept; -EFBIG larger than the cache; -errno; with
 * text. What a copy before this one met is told here too, once.
 */
int sl_plan_cache_store(struct sl_plan_cache *cache, const struct sl_plan_cache_key *key, const char *model_path, int plan_fd,
        struct sl_error *error);

/* The same for a merged plan of models at @paths, whose own keys were @members before the compilation began. */
int sl_plan_cache_store_merged(struct sl_plan_cache *cache, const struct sl_plan_cache_key *key,
        const struct sl_plan_cache_key *members, const char *const *paths, uint32_t n, int plan_fd, struct sl_error *error);

/* Of what a GPU has found out about a plan. */
struct sl_plan_choices_key {
        struct sl_plan_identity plan;
        uint32_t gpu, percent;
        bool compiles; /* engines that are compiled at run time were among what was timed */
        bool asked;    /* a request of this user wanted the plan */
        uint32_t uid;
};

/* Its file, for reading, in which nothing has been checked. The owner's thread. Return: 0; -ENOENT; -errno. */
int sl_plan_cache_find_choices(struct sl_plan_cache *cache, const struct sl_plan_choices_key *key, int *ret_fd);

/* Begins to keep a copy of a file that has been checked and that nobody may change any more. Return: as sl_plan_cache_store(). */
int sl_plan_cache_store_choices(struct sl_plan_cache *cache, const struct sl_plan_choices_key *key, int fd, struct sl_error *error);

/* Waits until all copies are complete. Return: 0; what the first that failed met, with text. */
int sl_plan_cache_wait(struct sl_plan_cache *cache, struct sl_error *error);
