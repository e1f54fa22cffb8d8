/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A live run decided once more: what entered a dispatcher, as it wrote it down (serve/decide/decision_log.h), goes into the
 * simulator's server at the same places in the same order, with the same clock, and what that decides is compared with what was
 * decided then, one by one: who was broadcast, and which worker got how many samples. Ends of jobs are given, not computed.
 *
 * A run in which staging or records of segments ran out is none that this decides alike.
 */
#pragma once

#include "decision_log.h"

struct sl_replay {
        uint64_t passes, broadcasts, decisions, answers; /* that were gone through */
        uint32_t differs_at;                             /* the first entry that is decided otherwise; SL_LOGGED_NONE: none is */
        struct sl_logged instead;                        /* what was decided there; PASS: nothing */
};

/* Return: 0; -ENOMEM; -EINVAL: it says what cannot be, or is of a world that sl_sim_world_check() refuses. */
int sl_replay_run(const struct sl_decision_log *log, struct sl_replay *ret_replay);
