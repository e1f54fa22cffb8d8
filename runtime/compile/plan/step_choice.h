/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which algorithm a node got and why: written by the compiler, kept in the plan for people. Nothing runs by it: what a kernel obeys
 * is the node's ALGORITHM attribute. Plain values.
 */
#pragma once

#include "node.h"

#include <stddef.h>
#include <stdint.h>

enum sl_choice_reason {
        SL_CHOICE_NONE,      /* there was nothing to choose */
        SL_CHOICE_GUESS,     /* the backend names it first */
        SL_CHOICE_FASTEST,   /* of those that were timed */
        SL_CHOICE_RULED_OUT, /* the first was approximate, and the options rule those out */
        SL_CHOICE_INEXACT,   /* the first was over the error bound */
        SL_CHOICE_BASE,      /* that of the base plan, with which it shares the weights */
        SL_CHOICE_AS_FAST,   /* the first guess: none of those that were timed is clearly faster */
        SL_CHOICE_REASON_COUNT,
};

struct sl_step_choice {
        uint32_t algorithm;   /* enum sl_algorithm */
        uint32_t reason;      /* enum sl_choice_reason */
        uint32_t passed_over; /* INEXACT, RULED_OUT: the algorithm that was not taken; else AUTO */
        uint32_t n_timed;
        float relative_error; /* of the approximate algorithm that was taken, or passed over; 0: none was measured */
        float microseconds;   /* of one launch at batch 1; 0: not timed */
        float runner_up_microseconds;
        uint32_t reserved;
};

#define SL_CHOICE_TEXT_BYTES 128

/* "winograd-4, 612 us against 1105 us, error 2.1e-06"; "" for NONE. */
void sl_choice_text(const struct sl_step_choice *choice, char ret_text[SL_CHOICE_TEXT_BYTES]);

/* "direct"; "" for AUTO and for a number that is none. */
const char *sl_algorithm_name(uint32_t algorithm);
