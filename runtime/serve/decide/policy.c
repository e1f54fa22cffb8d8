/* SPDX-License-Identifier: Apache-2.0 */
#include "policy.h"

#include <stddef.h>

const struct sl_policy sl_policies[SL_POLICY_COUNT] = {
#define X(row, waits) [SL_POLICY_##row] = {#row, sl_policy_##row, waits},
        SL_POLICIES(X)
#undef X
};

static const char *sizes_wrong(const struct sl_batching *batching)
{
        if (batching->n_sizes && batching->policy != SL_POLICY_triton)
                return "batching_sizes belong to triton";
        for (uint32_t i = 1; i < batching->n_sizes; i++)
                if (batching->sizes[i] <= batching->sizes[i - 1])
                        return "batching_sizes ascend";
        return NULL;
}

static const char *engine_wrong(const struct sl_batching *batching)
{
        for (uint32_t row = 0; row < SL_EBIRD_ROWS; row++)
                if (sl_ebird_total(&batching->engine.rows[row]) != sl_ebird_load(row))
                        return "batching_rows of e_ebird are four, whose batch sizes add up to 4, 8, 16 and 32";
        return NULL;
}

const char *sl_batching_wrong(const struct sl_batching *batching)
{
        bool waits = batching->policy == SL_POLICY_opt_wait || batching->policy == SL_POLICY_static;

        if (waits && !batching->delay_us)
                return "batching_delay_us of opt_wait and static is at least 1";
        if (batching->delay_us && !waits && batching->policy != SL_POLICY_triton)
                return "batching_delay_us belongs to opt_wait, static and triton";
        if (batching->in_order && batching->policy != SL_POLICY_triton)
                return "batching_in_order belongs to triton";
        if (batching->policy == SL_POLICY_e_ebird && engine_wrong(batching))
                return engine_wrong(batching);
        return sizes_wrong(batching);
}
