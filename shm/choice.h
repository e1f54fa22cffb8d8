/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which variant answers a query: a pure function of what is asked for and how the variants stand, linked by clients. No clock, no
 * memory of its own; equal arguments give equal choices.
 *
 * A variant *suits* when it takes requests now, is as accurate as asked, costs no more than asked, and is expected to answer
 * in time: its wait and a request of these samples. What is not known of it cannot be promised, and does not suit. Where what is
 * known is in doubt, as no job has confirmed it for long (task_page.h), the least that it may be counts: else a figure learned
 * while others had the cores would keep away for ever those whose jobs would correct it.
 *
 * The rule of `starling`, in order; the first that finds one decides:
 *   1. Of those that suit, with an accuracy asked for: the cheapest, where what costs at most a tenth more counts as cheap.
 *      With none: the most accurate, and of equally accurate ones the cheapest in the same way.
 *   2. Of those that suit but are less accurate than asked, at least as `accuracy_least` says: the most accurate, then as in 1.
 *   3. Of those that would suit and are not loaded: the one whose load and answer are expected soonest; then as in 2 the same of
 *      those that are less accurate than asked.
 *   4. With `closest`: of those that take requests, the one that misses by the smallest sum of shares of what was asked for.
 *   5. None: what is lacking, and the variant that is nearest in that.
 *   Of several in 1 and 2, the shortest wait in whole service times counts; of equal ones the turn says which.
 * With a latency asked for, in 1 and 2 those that are interfered with (planner/scale/condition.h) are passed over where a calm one
 * of the accuracy that counts suits: their times are not to be relied on. What bounds the time also bounds what the calm ones are
 * given. Worst case: of what suits by the figures as they were read, and is not passed over, no choice costs more than a tenth
 * above the cheapest.
 *
 * Sources: INFaaS (Romero, Li, Yadwadkar, Kozyrakis, ATC 2021), section 4.1, getVariant: variants that are active and match first,
 * then inactive ones by load and inference latency together, then the closest. The text does not say which of several active
 * matches is taken: `infaas` takes the one that waits least, as its dispatcher takes the least loaded worker. It needs the accuracy
 * asked for, whatever `accuracy_least` says. Of its states, Interfered goes behind what is calm; Overloaded is here the wait, which
 * is in the sum, and a full queue.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*    name       of those that suit                                      */
#define SL_CHOICE_POLICIES(X)                                                                                                      \
        X(starling) /* as above */                                                                                                 \
        X(infaas)   /* a calm one before others; the one that waits least */                                                       \
        X(cheapest) /* the cheapest, whatever waits there; else as infaas */                                                       \
        X(accurate) /* the most accurate, whatever waits there; else as infaas */

enum sl_choice_policy {
#define X(name) SL_CHOICE_##name,
        SL_CHOICE_POLICIES(X)
#undef X
                SL_CHOICE_POLICY_COUNT,
};

/* What is asked for; 0: anything. */
struct sl_needs {
        double accuracy, accuracy_least; /* at least; accuracy_least is at most accuracy, 0: no less than that */
        double cost;                     /* at most */
        uint64_t latency_ns;             /* from now to the answer, at most */
        bool closest;                    /* rather than none */
};

enum sl_candidate_state {
        SL_CANDIDATE_OUT,      /* it cannot be chosen */
        SL_CANDIDATE_SERVES,   /* it takes requests */
        SL_CANDIDATE_FULL,     /* its queue takes none now */
        SL_CANDIDATE_UNLOADED, /* a request waits for its load */
};

struct sl_candidate {
        enum sl_candidate_state state;
        double accuracy, cost; /* cost: in whatever unit, the same for all */
        uint64_t service_ns;   /* what the request takes it; 0: not known */
        uint32_t doubt;        /* of that: it may be as little as service_ns / 2^doubt; below 64 */
        uint64_t wait_ns;      /* before that begins */
        uint64_t load_ns;      /* of UNLOADED; 0: not known */
        bool is_interfered;    /* it takes longer than usual, without having more to do */
};

enum sl_lack {
        SL_LACK_NOTHING,
        SL_LACK_VARIANTS, /* none takes requests */
        SL_LACK_ACCURACY, /* none is so accurate; nearest: the most accurate */
        SL_LACK_COST,     /* none of those that are costs so little; nearest: the cheapest of them */
        SL_LACK_LATENCY,  /* none of those that do is so fast even when nothing waits; nearest: the fastest of them */
        SL_LACK_ROOM,     /* of those one would do, and is busy; nearest: the one that would answer first */
        SL_LACK_LOAD,     /* of those one would do, and is not loaded; nearest: that */
};

enum sl_met { SL_MET_ALL, SL_MET_LEAST, SL_MET_CLOSEST };

struct sl_choice {
        uint32_t number;   /* chosen, or the nearest; UINT32_MAX: there is none */
        enum sl_met met;   /* of one that was chosen */
        enum sl_lack lack; /* NOTHING: one was chosen */
};

/*
 * @turn: any number; another for each query, so that equal variants get equal shares. Return: whether one was chosen. @policy is
 * below SL_CHOICE_POLICY_COUNT.
 */
bool sl_choose(enum sl_choice_policy policy, const struct sl_needs *needs, const struct sl_candidate *candidates, uint32_t n,
        uint64_t turn, struct sl_choice *ret_choice);

/* "starling"; NULL: there is no such policy. */
const char *sl_choice_policy_name(uint32_t policy);
