/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which variants of a task are to serve: a pure function. Queries choose among those that do, by what each wants; this says
 * which there are to choose among.
 *
 *     rung     a variant, as it serves or would
 *     lacks    it requires more than there can be of it (scaler.h: SL_SCALE_LACKS)
 *     waits    it has been offered lately and no query took it: not yet again
 *
 * One rung comes at a time:
 *   1. Where one that serves lacks, and none that serves and is faster has anything to spare: of those that are faster than the
 *      fastest that lacks, the most accurate. INFaaS calls that an upgrade.
 *   2. Where none lacks: of those that are more accurate than all that serve and do what all of these are required to, the most
 *      accurate. INFaaS calls that a downgrade.
 * A rung goes when no query has chosen it for longer than it takes to load, which is not decided here: nothing is required of it
 * then. How fast a rung is that has never computed is not known: it counts as faster than what is more accurate, and never as
 * enough for 2.
 *
 * Sources: INFaaS (Romero, Li, Yadwadkar, Kozyrakis, ATC 2021), sections 4.2.1 and 4.2.2.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_rung {
        double accuracy;
        double rate;     /* samples a second of one worker at its peak; 0: not known */
        double required; /* samples a second, with headroom; of one that serves */
        bool serves;
        bool comes; /* it is being loaded */
        bool lacks, waits;
};

#define SL_RUNGS_MOVES(X)                                                                                                         \
        X(STAY, "stay")                                                                                                            \
        X(FASTER, "faster")                                                                                                        \
        X(ACCURATE, "more-accurate")

enum sl_rungs_move {
#define X(id, name) SL_RUNGS_##id,
        SL_RUNGS_MOVES(X)
#undef X
};

/* @ret_rung: which one is to come; of STAY untouched. */
enum sl_rungs_move sl_rungs_next(const struct sl_rung *rungs, uint32_t n, uint32_t *ret_rung);

const char *sl_rungs_move_name(enum sl_rungs_move move);
