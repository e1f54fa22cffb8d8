/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words for the codes in a stats page, from the lists of its layout; and which of its names are of sizes of another one.
 */
#include "stats.h"

#include <string.h>

#define TEXT(id, text)         [SL_REFUSAL_##id] = text,
#define REASON(id, text)       [SL_BATCH_##id] = text,
#define STAGE(id, name)        [SL_STAGE_##id] = name,
#define MODEL(id, name, text)  [SL_STATS_MODEL_##id] = name,
#define QUEUE(id, name, text)  [SL_STATS_QUEUE_##id] = name,
#define WORKER(id, name, text) [SL_STATS_WORKER_##id] = name,
#define FLIGHT(id, name, text) [SL_FLIGHT_##id] = name,
#define DEFINE(function, list, row, limit)                                                                                         \
        const char *function(uint32_t code)                                                                                        \
        {                                                                                                                          \
                static const char *const names[limit] = {list(row)};                                                               \
                                                                                                                                   \
                return code < (limit) ? names[code] : "unknown";                                                                   \
        }

DEFINE(sl_refusal_text, SL_REFUSALS, TEXT, SL_REFUSAL_LIMIT)
DEFINE(sl_batch_reason_text, SL_BATCH_REASONS, REASON, SL_BATCH_REASON_LIMIT)
DEFINE(sl_stage_name, SL_STAGES_OF_A_REQUEST, STAGE, SL_STAGES)
DEFINE(sl_stats_model_state_name, SL_STATS_MODEL_STATES, MODEL, SL_STATS_MODEL_STATE_LIMIT)
DEFINE(sl_stats_model_kind_name, SL_STATS_MODEL_KINDS, MODEL, SL_STATS_MODEL_KIND_LIMIT)
DEFINE(sl_stats_queue_kind_name, SL_STATS_QUEUE_KINDS, QUEUE, SL_STATS_QUEUE_KIND_LIMIT)
DEFINE(sl_stats_worker_state_name, SL_STATS_WORKER_STATES, WORKER, SL_STATS_WORKER_STATE_LIMIT)
DEFINE(sl_flight_stage_name, SL_FLIGHT_STAGES, FLIGHT, SL_FLIGHT_STAGE_LIMIT)

bool sl_stats_sizes_of(const struct sl_model_stats *model, char ret_name[SL_STATS_MODEL_BYTES])
{
        const char *sizes = model->kind == SL_STATS_MODEL_SIZES ? memrchr(model->name, '[', sizeof(model->name)) : NULL;

        if (!sizes)
                return false;
        memset(ret_name, 0, SL_STATS_MODEL_BYTES);
        memcpy(ret_name, model->name, (size_t)(sizes - model->name));
        return true;
}
