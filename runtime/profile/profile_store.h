/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles of workers, kept in an SQLite database: a row for each worker, alone or beside others; a newer measurement of the same
 * worker takes the place of the older one. The file says that it is ours (application_id) and its schema's version (user_version).
 *
 * Several processes may have it open; each change is one transaction, and waits for another's. A disk that is full, or a file that
 * is damaged, ends a call with a text and leaves what was stored. The caller ignores SIGXFSZ.
 *
 * A store of schema 1 is brought to this one when it is opened to write, all of it or nothing; who reads finds one thread in each
 * row.
 *
 * Threads: one at a time.
 */
#pragma once

#include "worker_profile.h"

#include <limits.h>

#define SL_PROFILE_STORE_VERSION 2 /* 1: without threads */

struct sl_profile_store;

/* $XDG_DATA_HOME/starling/profiles.db, or ~/.local/share/starling/profiles.db. Return: 0; -ENOENT no home; -ENAMETOOLONG. */
int sl_profile_store_default(char ret_path[PATH_MAX], struct sl_error *error);

/*
 * @write: makes the file, and the folders above it, where they are not there. Return: 0; -ENOENT; -EMEDIUMTYPE no database, or of
 * another program; -EPROTONOSUPPORT of a newer schema; -EBUSY another process holds it for too long; -EIO, -ENOSPC, -ENOMEM,
 * -errno; the text names the file.
 */
int sl_profile_store_open(const char *path, bool write, struct sl_profile_store **ret_store, struct sl_error *error);
/* NULL is fine. Returns NULL. */
struct sl_profile_store *sl_profile_store_free(struct sl_profile_store *store);

/* All of them, in the place of those of the same workers, or none. Return: as above. */
int sl_profile_store_put(
        struct sl_profile_store *store, const struct sl_worker_profile *profiles, size_t n, struct sl_error *error);

/* The profile of the worker that @wanted's keys are of. Return: 0; -ENOENT without a text; as above. */
int sl_profile_store_find(struct sl_profile_store *store, const struct sl_worker_profile *wanted,
        struct sl_worker_profile *ret_profile, struct sl_error *error);

/* Adds all, by host, device, model, precision, what is beside them, batch and threads. Return: as above. */
int sl_profile_store_read(struct sl_profile_store *store, struct sl_profile_list *list, struct sl_error *error);
