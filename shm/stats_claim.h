/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may write a file of a given name: taking it over from the dead, never from the living. Control thread.
 *
 * The proof of life is a write lock on byte 0 that belongs to the open file (fcntl OFD): the kernel drops it however the process
 * ends. It is not flock(), which anybody who may read the file could hold to keep a runtime from starting: a write lock needs an fd
 * open for writing, and read locks count for nothing here. A process forked without exec shares the lock and must close the fd.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_error;

/* What becomes of a file without a living writer, of this user's own: it is renamed to @as, in its folder, if it is worth that. */
struct sl_claim_keep {
        const char *as;
        bool (*is_worth)(int fd);
};

/*
 * Creates @directory/@file with mode 0600 and locks it; a file without a living writer is removed first (@keep NULL), or kept, and
 * *ret_stale says so. Return: 0; -EADDRINUSE the writer lives; -EPERM a symbolic link, no regular file, or somebody else's; -errno.
 */
int sl_claim_create(const char *directory, const char *file, const struct sl_claim_keep *keep, bool *ret_stale, int *ret_fd,
        struct sl_error *error);

/* Removes the name if it still means the file @fd. */
void sl_claim_remove(const char *directory, const char *file, int fd);

/*
 * True when process @pid is no more, or on its way out: a process that was killed keeps its locks until the kernel has given back
 * its memory. A pid of another namespace means nothing here and may give either answer.
 */
bool sl_claim_owner_is_ending(uint32_t pid);

/* True when there is such a process here: a holder that lives in another namespace is not, nor one that is no more. */
bool sl_claim_owner_is_here(uint32_t pid);

/* True when some process holds the write lock. @fd may be open for reading only. */
bool sl_claim_is_held(int fd);
