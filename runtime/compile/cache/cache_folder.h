/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder of the cache of plans (plan_cache.h): which one it is, which of its files are ours, and what goes when it is full.
 *
 *     KEY.plan         a plan of a model that the configuration names
 *     KEY.UID.plan     a plan of sizes of an open model that a request of this user asked for
 *     KEY.intact, KEY.UID.intact    the record of such a plan, see plan_cache.h
 *     FAMILY.base, IDENTITY.model, HOST.core, KEY.fuse    see plan_cache.h
 *     KEY.choices, KEY.UID.choices    what a GPU has found out about a plan; of a plan of this user's sizes
 *     SERVED.allocation    where the models of an ensemble run best, see daemon/allocation_cache.h
 *     new.RANDOM       under way
 *
 * Nothing else in the folder is counted, listed or removed. Several processes may share it: files appear whole, by a rename, and
 * whoever finds one gone that it wanted to remove has what it wanted. A use is noted in the file's time of modification, that of a
 * plan in its record's. A record is counted and removed with its plan; it is listed by itself only when it has none any more.
 *
 * Bound: what is beyond goes, used longest ago first, from whoever is most above its share (base/share.h): the models of the
 * configuration together have one, and each user whose sizes are here has one. A user that is alone may so have all that those
 * models do not take.
 *
 * Threads: none of these functions has state; any thread.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct sl_error;

#define SL_CACHE_NAME_BYTES 64

enum sl_cache_file_kind {
        SL_CACHE_PLAN,
        SL_CACHE_RECORD,
        SL_CACHE_BASE,
        SL_CACHE_MODEL,
        SL_CACHE_CORE,
        SL_CACHE_ALLOCATION,
        SL_CACHE_FUSE,
        SL_CACHE_CHOICES,
        SL_CACHE_UNDER_WAY
};

struct sl_cache_file {
        char name[SL_CACHE_NAME_BYTES];
        enum sl_cache_file_kind kind;
        bool asked; /* for a request of this user: */
        uint32_t uid;
        uint64_t bytes; /* whole pages; a plan's with its record's */
        struct timespec used;
};

/*
 * The folder of a user that names none: $XDG_CACHE_HOME/starling, or ~/.cache/starling, where the home is $HOME if that is this
 * user's, else what the user database says. Return: 0; -ENOENT the user has no home; -ENAMETOOLONG; with text.
 */
int sl_cache_folder_default(char ret_path[PATH_MAX], struct sl_error *error);

/* @make: when it is not there (what is above it must be, but of the default one). Return: 0; -EPERM another user owns it or could
 * write to it; -errno; the text names it. */
int sl_cache_folder_open(const char *path, bool make, int *ret_folder, struct sl_error *error);

/* Opens a file of ours for reading, nothing that a link leads to. Return: 0; -ENOENT; -EPERM no regular file, of another user, one
 * that others can write, or one that has other names; -errno. */
int sl_cache_folder_find(int folder, const char *name, int *ret_fd);

/* The name of the plan "KEY.plan" for whomever it is kept. Return: 0, -ENOENT, -errno. */
int sl_cache_folder_plan(int folder, const char *name, char ret_name[SL_CACHE_NAME_BYTES]);

/* The name of the record of the plan @plan, "KEY.plan" or "KEY.UID.plan". Pure. */
void sl_cache_folder_record(const char *plan, char ret_name[SL_CACHE_NAME_BYTES]);

/* A new file, which @write_to (0 or -errno) fills, and which has its name when it is complete. Return: 0 and the file, -errno. */
int sl_cache_folder_put(int folder, const char *name, int (*write_to)(int fd, void *context), void *context, int *ret_fd);

/* All files, used longest ago first. On the heap. Return: 0, -ENOMEM, -errno. */
int sl_cache_folder_list(int folder, struct sl_cache_file **ret_files, uint32_t *ret_n);

/* Removes this file of ours, a plan with its record. Return: 0, also when it was gone; -errno. */
int sl_cache_folder_remove(int folder, const char *name);

/* Removes until no more than @bytes_max are left, but nothing that is under way. A plan that somebody has mapped lives on without
 * its name. Looks at each file. Return: bytes that are free then. */
uint64_t sl_cache_folder_make_room(int folder, uint64_t bytes_max);

/* Removes all. Return: 0 and what that was, -ENOMEM, -errno of the first that cannot be removed. */
int sl_cache_folder_clear(int folder, uint32_t *ret_n, uint64_t *ret_bytes);
