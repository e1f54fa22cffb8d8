/* SPDX-License-Identifier: Apache-2.0 */
#include "batch_limit.h"

#include "batcher.h"
#include "plan.h"

static bool fits(const struct sl_plan *plan, uint32_t batch, uint64_t bytes_max)
{
        uint64_t workspace = sl_plan_workspace_bytes(plan, batch), pool = sl_batcher_bytes(sl_plan_info(plan), batch);

        return workspace <= bytes_max && pool <= bytes_max - workspace;
}

struct sl_batch_limit sl_batch_limit_choose(const struct sl_plan *plan, uint32_t batch_max, uint64_t bytes_max)
{
        const struct sl_plan_info *info = sl_plan_info(plan);
        struct sl_batch_limit limit = {.batch_max = info->batches[0],
                .reason = info->n_batches == 1 ? SL_BATCH_ONE_SIZE
                          : bytes_max          ? SL_BATCH_LADDER
                                               : SL_BATCH_CONFIGURED};

        for (uint32_t i = 1; i < info->n_batches && info->batches[i] <= batch_max; i++) {
                if (bytes_max && !fits(plan, info->batches[i], bytes_max)) {
                        limit.reason = SL_BATCH_BYTES;
                        break;
                }
                limit.batch_max = info->batches[i];
        }
        limit.workspace_bytes = sl_plan_workspace_bytes(plan, limit.batch_max);
        limit.pool_bytes = sl_batcher_bytes(info, limit.batch_max);
        return limit;
}
