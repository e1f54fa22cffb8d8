/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watches of one wait: a table whose keys travel through the kernel and come back with its events. A key holds the slot's
 * generation, so that a late event of a watch that is gone finds nothing, even when its slot serves another by then.
 *
 * Threads: the wait's own.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum sl_watch_kind { SL_WATCH_FREE, SL_WATCH_POLL, SL_WATCH_ACCEPT, SL_WATCH_POSTBOX };

struct sl_watch {
        uint64_t token;
        int fd;
        enum sl_watch_kind kind;
        uint32_t generation; /* 24 bits are used */
        bool armed;          /* the kernel knows of it */
        bool finished;       /* nothing more comes: it is not armed again */
        uint64_t resume_ns;  /* of an accept that found no fd or memory: not armed again before; 0: at once */
};

struct sl_watches {
        struct sl_watch *slots;
        uint32_t n;         /* slots in use or freed, all below are initialised */
        uint32_t n_unarmed; /* watches that are neither armed nor finished */
};

void sl_watches_deinit(struct sl_watches *watches);

/* The new watch is not armed yet. Return: 0; -EEXIST, -ENOMEM; -EBADF when @fd is not open. Pointers to watches become invalid. */
int sl_watches_add(struct sl_watches *watches, enum sl_watch_kind kind, int fd, uint64_t token, struct sl_watch **ret_watch);
void sl_watches_remove(struct sl_watches *watches, struct sl_watch *watch);

/* The watch that the user made with @token, or NULL. */
struct sl_watch *sl_watches_find(struct sl_watches *watches, uint64_t token);

/* Bits 0..55; the upper ones are the implementation's own. */
uint64_t sl_watches_key(const struct sl_watches *watches, const struct sl_watch *watch);

/* The watch of a key, or NULL when it is gone. */
struct sl_watch *sl_watches_of_key(struct sl_watches *watches, uint64_t key);

void sl_watches_armed(struct sl_watches *watches, struct sl_watch *watch);
void sl_watches_disarmed(struct sl_watches *watches, struct sl_watch *watch, uint64_t resume_ns);
void sl_watches_finished(struct sl_watches *watches, struct sl_watch *watch);

/* The earliest time at which an unarmed watch wants to be armed; UINT64_MAX when there is none. */
uint64_t sl_watches_resume_ns(const struct sl_watches *watches);

/* True for the errors of accept() that only time cures: no fd or no memory is left. */
bool sl_watches_pauses(int error);
