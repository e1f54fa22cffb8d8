/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workers of one model, as control has them: from one set to another while the model serves. New ones start first; those that
 * are too many leave once none starts, or, where the change is held, once it is released. That is the point of no return: a worker
 * that cannot start before it undoes the change.
 */
#pragma once

#include "dice.h"
#include "ledger.h"

#include <stdbool.h>
#include <stdint.h>

#define SL_SIM_STAFF_MAX    32u
#define SL_SIM_START_NS     900000000ull /* at most, from a worker's start until it is ready, or has failed */
#define SL_SIM_LEAVE_NS     500000000ull
#define SL_SIM_WORKER_BYTES 10ull

/* @n workers of one kind: another kind is another place or batch, and none of it can stay. */
struct sl_sim_set {
        uint32_t kind, n;
};

struct sl_sim_staff {
        struct sl_sim_set has, wants; /* the same when nothing changes */
        bool changes, holds;
        struct sl_sim_staffer {
                enum { SL_SIM_STAFF_NONE, SL_SIM_STAFF_STARTS, SL_SIM_STAFF_WORKS, SL_SIM_STAFF_LEAVES, SL_SIM_STAFF_DEAD } state;
                uint32_t kind;
                uint64_t due_ns;
                bool is_new, fails; /* since the change began; it will */
        } staffers[SL_SIM_STAFF_MAX];
};

/* All at once, as a load that has ended has them. Return: 0; -ENOMEM. */
int sl_sim_staff_open(struct sl_sim_staff *staff, struct sl_sim_set set, struct sl_sim_ledger *ledger);
void sl_sim_staff_close(struct sl_sim_staff *staff, struct sl_sim_ledger *ledger);

/* Begins to go over to @set, also while it goes over to another one. @fails_in: one worker in so many does not start; 0: all do.
 * Return: 0; -ENOMEM: nothing has changed; -E2BIG. */
int sl_sim_staff_change(struct sl_sim_staff *staff, struct sl_sim_set set, uint64_t now_ns, uint32_t fails_in,
        struct sl_sim_dice *dice, struct sl_sim_ledger *ledger);

/* What is due. Return: 1: a change is under way; 0: none is; -EIO: a worker cannot start: to be undone. */
int sl_sim_staff_hear(struct sl_sim_staff *staff, uint64_t now_ns, struct sl_sim_dice *dice, struct sl_sim_ledger *ledger);

/* Those that are new leave; the others stay, or go on leaving. */
void sl_sim_staff_undo(struct sl_sim_staff *staff, uint64_t now_ns, struct sl_sim_ledger *ledger);

/* One that works dies, and another one will take its place. */
void sl_sim_staff_kill(struct sl_sim_staff *staff, uint64_t now_ns, struct sl_sim_dice *dice);

/* UINT64_MAX: nothing is. */
uint64_t sl_sim_staff_due_ns(const struct sl_sim_staff *staff);

bool sl_sim_staff_starts(const struct sl_sim_staff *staff);
uint32_t sl_sim_staff_works(const struct sl_sim_staff *staff, bool with_dead);
uint32_t sl_sim_staff_old(const struct sl_sim_staff *staff); /* that were there before the change, and do not leave */
uint32_t sl_sim_staff_of_kind(
        const struct sl_sim_staff *staff, uint32_t kind, bool ready); /* working, dead for a while, or starting */
uint32_t sl_sim_staff_count(const struct sl_sim_staff *staff);        /* all that take memory */
