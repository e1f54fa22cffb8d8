/* SPDX-License-Identifier: Apache-2.0 */
#include "scaler.h"

#include "scaler_rules.h"

#include <stddef.h>

uint32_t sl_scaler_look(enum sl_scaler scaler, const struct sl_scale_problem *problem, double since_s,
        struct sl_scaler_memory *memory, int32_t *ret_change)
{
        struct sl_scale_room room;

        sl_scale_room_begin(&room, problem, ret_change);
        return scaler == SL_SCALER_infaas ? sl_infaas_scale(&room, since_s, memory) : sl_starling_scale(&room, since_s, memory);
}

const char *sl_scaler_name(uint32_t scaler)
{
        static const char *const names[] = {
#define X(name) [SL_SCALER_##name] = #name,
                SL_SCALERS(X)
#undef X
        };

        return scaler < SL_SCALER_COUNT ? names[scaler] : NULL;
}

const char *sl_scale_verdict_name(enum sl_scale_verdict verdict)
{
        static const char *const names[] = {
#define X(id, name) [SL_SCALE_##id] = name,
                SL_SCALE_VERDICTS(X)
#undef X
        };

        return names[verdict];
}
