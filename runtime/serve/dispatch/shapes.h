/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sizes for which an open ensemble has been asked: one whose model has open dimensions beside the batch ("sequence"). It
 * computes nothing itself. Each combination of sizes is a model of its own ("bert[128]"), compiled when it is asked for the first
 * time; requests for it wait in its slot meanwhile, and all others go on. Dispatcher only, but for sl_shapes_new() and
 * sl_shapes_free().
 *
 * Slots are bounded: of those in which nothing is in flight the one that was used longest ago makes room. Each user keeps as many
 * of those that it used last as its share is (sl_share_each()); others' sizes do not take their place. What is being loaded cannot
 * be taken back: a user has no more of that at a time than its share, and than sl_share_grants() says.
 *
 *     FREE --asked for--> LOADING --served--> READY --made room, unloaded--> FREE
 *                            |
 *                            +--failed--> FAILED --made room--> FREE
 */
#pragma once

#include "base/dim_sizes.h"
#include "fault.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct sl_descriptor;
struct sl_ensemble;
struct sl_entry;
struct sl_reason;
struct sl_request;
struct sl_user;

#define SL_SHAPES_MAX 64 /* combinations of sizes of one model that are served at a time */

enum sl_shape_state { SL_SHAPE_FREE, SL_SHAPE_LOADING, SL_SHAPE_READY, SL_SHAPE_FAILED };

struct sl_shape_slot {
        enum sl_shape_state state;
        int32_t status; /* of FAILED: what its requests end with, and why */
        char why[SL_FAULT_BYTES];
        int64_t sizes[SL_SYMBOLS_MAX]; /* behind the symbols that there are, 1: optional inputs are given; else 0 */
        struct sl_ensemble *ensemble;  /* of READY */
        struct sl_request *first, *last;
        bool only_own;         /* the plan of any size could not compute one of these */
        uint64_t used;         /* turn of the last request */
        struct sl_user *asker; /* of LOADING; NULL: it is no user's request, or the user has gone */
};

/* Requests of a size that has no plan of its own, lately. */
struct sl_size_count {
        int64_t sizes[SL_SYMBOLS_MAX];
        uint32_t requests;
};

#define SL_SIZE_COUNTS 32
#define SL_SIZES_ASKED 4

/* The first sizes that the plan of any size was asked for. The dispatcher appends; any thread reads what `n` counts. */
struct sl_sizes_asked {
        _Atomic uint32_t n; /* release: the sizes below are written; acquire */
        int64_t sizes[SL_SIZES_ASKED][SL_SYMBOLS_MAX];
};

struct sl_shapes {
        struct sl_ensemble *any; /* computes sizes that have no plan of their own; NULL: they wait for one */
        uint32_t counted;        /* requests that it was given since the counts were last cleared */
        struct sl_size_count counts[SL_SIZE_COUNTS];
        struct sl_sizes_asked asked;
        uint32_t n_symbols, n_slots, n_users;
        uint64_t turn;
        uint32_t active; /* users that have used some */
        uint32_t *used;  /* [n_users]: how many each has used */
        uint64_t *uses;  /* [n_users][n_slots]: turn of the last request of a user, by its number; 0: none */
        struct sl_shape_slot slots[];
};

/* @n_users: more than the number of any user. Return: 0, -ENOMEM. */
int sl_shapes_new(uint32_t n_symbols, uint32_t n_slots, uint32_t n_users, struct sl_shapes **ret_shapes);
struct sl_shapes *sl_shapes_free(struct sl_shapes *shapes);

/*
 * The sizes that a request has, from private copies of its entry, which was admitted, and of its inputs' descriptors. Return: 0;
 * -EINVAL a type, rank or dimension that the signature does not allow, or one symbol with two sizes.
 */
int sl_shapes_sizes(const struct sl_ensemble *open, const struct sl_entry *entry, const struct sl_descriptor *descriptors,
        int64_t ret_sizes[SL_SYMBOLS_MAX], struct sl_reason *ret_reason);

/* The slot of these sizes; NULL. */
struct sl_shape_slot *sl_shapes_find(struct sl_shapes *shapes, const int64_t sizes[SL_SYMBOLS_MAX]);

/*
 * A FREE slot, or one that makes room for another size of @user (NULL: of nobody's request). Return: 0; -EBUSY something is in
 * flight, or loading, in all of them; -EDQUOT the user has its share.
 */
int sl_shapes_room(struct sl_shapes *shapes, const struct sl_user *user, struct sl_shape_slot **ret_slot);

/* This slot was asked for just now, by this user (NULL: nobody's request). */
void sl_shapes_touch(struct sl_shapes *shapes, struct sl_shape_slot *slot, const struct sl_user *user);

/*
 * A request of these sizes is computed by the plan of any size. Return: whether a plan of their own is worth it: they come again
 * and again, SL_SIZE_OFTEN times in SL_SIZE_WINDOW, and there is a slot that nobody has used for as long. So sizes of which there
 * are more than slots do not make room for each other in turn.
 */
#define SL_SIZE_WINDOW 256
#define SL_SIZE_OFTEN  12
bool sl_shapes_count(struct sl_shapes *shapes, const int64_t sizes[SL_SYMBOLS_MAX]);

/* -> FREE. Nothing is parked in it. */
void sl_shapes_clear(struct sl_shapes *shapes, struct sl_shape_slot *slot);

/* The user has no clients any more, and its number will be another's. */
void sl_shapes_forget(struct sl_shapes *shapes, const struct sl_user *user);

/* FREE -> PARKED, behind those that wait already; and out of the slot again, in any order (the state stays). */
void sl_shapes_park(struct sl_shape_slot *slot, struct sl_request *request);
void sl_shapes_unpark(struct sl_request *request);
