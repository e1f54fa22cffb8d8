/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a model's samples are batched: the policy of its table row (policy.h) and what that is told. Plain values; what a policy does
 * not know of it does not look at. sl_batching_state is what a policy remembers of jobs that ended, its owner's.
 */
#pragma once

#include "ebird_engine.h"

#include <stdbool.h>
#include <stdint.h>

/* One row for each policy: name in config.yaml, function sl_policy_NAME, and how long a request may wait while a worker is idle. */
/* clang-format off */
#define SL_POLICIES(X) \
        /* name           waits at most */ \
        X(work_conserving, "never") \
        X(starling,        "never") \
        X(single,          "never") \
        X(no_wait,         "never") \
        X(opt_wait,        "batching_delay_us") \
        X(static,          "batching_delay_us") \
        X(triton,          "batching_delay_us; in order, one batch longer") \
        X(aimd,            "never") \
        X(n_ebird,         "until all workers are idle") \
        X(e_ebird,         "until all workers are idle")
/* clang-format on */

enum sl_policy_id {
#define X(name, waits) SL_POLICY_##name,
        SL_POLICIES(X)
#undef X
                SL_POLICY_COUNT
};

#define SL_BATCHING_SIZES_MAX 64u

struct sl_batching {
        uint32_t policy;     /* enum sl_policy_id */
        uint32_t delay_us;   /* opt_wait, static, triton: what is not full waits so long for more */
        uint32_t latency_ms; /* aimd: of a batch, at most */
        uint32_t in_order;   /* triton: one batch at a time, so that answers keep the order of requests */
        uint32_t n_sizes;
        uint32_t sizes[SL_BATCHING_SIZES_MAX]; /* triton: preferred, ascending */
        struct sl_ebird_engine engine;         /* e_ebird: what the offline phase stored */
};

struct sl_batching_state {
        double batch_max; /* aimd: today's; below 1: 1 */
};

void sl_aimd_learn(
        struct sl_batching_state *state, const struct sl_batching *batching, uint32_t samples, uint32_t batch_max, uint64_t ns);

/* A job of @samples took @ns, of a model whose largest batch is @batch_max. aimd alone learns of it. */
static inline void sl_batching_learn(
        struct sl_batching_state *state, const struct sl_batching *batching, uint32_t samples, uint32_t batch_max, uint64_t ns)
{
        if (batching->policy == SL_POLICY_aimd)
                sl_aimd_learn(state, batching, samples, batch_max, ns);
}

/* What is wrong with it, told in one sentence that begins with the key; NULL: nothing. */
const char *sl_batching_wrong(const struct sl_batching *batching);
