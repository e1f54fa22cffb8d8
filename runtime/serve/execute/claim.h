/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who runs an executor that several threads may run: one at a time, and somebody as long as it has jobs.
 *
 *     0 --sl_claim_give: somebody is told--> GIVEN --sl_claim_take--> RUN --sl_claim_end--> 0
 *     0 --sl_claim_try--> RUN                                          |  ^
 *                                       sl_claim_give: nobody is told  v  | sl_claim_end: goes on
 *                                                                  RUN|GIVEN
 *
 * sl_claim_hand_on() goes from RUN, with GIVEN or without, back to GIVEN: another one is told.
 *
 * Every change is a read-modify-write: what was put before sl_claim_give() is seen by who runs it next (acq_rel on both sides), and
 * what one runner has done by the next one. The change to 0 is a runner's last access.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SL_CLAIM_GIVEN 1u
#define SL_CLAIM_RUN   2u

struct sl_claim {
        _Atomic uint32_t word;
};

/* A job was put. True: nobody knows of it yet, and one has to be told. */
static inline bool sl_claim_give(struct sl_claim *claim)
{
        return atomic_fetch_or_explicit(&claim->word, SL_CLAIM_GIVEN, memory_order_acq_rel) == 0;
}

/* Who was told. */
static inline void sl_claim_take(struct sl_claim *claim)
{
        atomic_exchange_explicit(&claim->word, SL_CLAIM_RUN, memory_order_acq_rel);
}

/* Who was not told of anything. False: another one runs it, or will. */
static inline bool sl_claim_try(struct sl_claim *claim)
{
        return atomic_compare_exchange_strong_explicit(
                &claim->word, &(uint32_t){0}, SL_CLAIM_RUN, memory_order_acq_rel, memory_order_relaxed);
}

/* The runner. False: something was given meanwhile, and it is the runner's still. */
static inline bool sl_claim_end(struct sl_claim *claim)
{
        if (atomic_compare_exchange_strong_explicit(
                    &claim->word, &(uint32_t){SL_CLAIM_RUN}, 0, memory_order_acq_rel, memory_order_relaxed))
                return true;
        sl_claim_take(claim);
        return false;
}

/* The runner, which leaves something: it tells somebody of that. */
static inline void sl_claim_hand_on(struct sl_claim *claim)
{
        atomic_exchange_explicit(&claim->word, SL_CLAIM_GIVEN, memory_order_acq_rel);
}

static inline bool sl_claim_is_free(const struct sl_claim *claim)
{
        return atomic_load_explicit(&claim->word, memory_order_acquire) == 0;
}
