/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the dispatcher's stages say why: each fills the reason where it finds the fault and returns the status. Plain values.
 */
#pragma once

#include "reason.h"

/* What a refusal says beside its status. */
struct sl_refused {
        uint64_t bytes_needed; /* with -EMSGSIZE */
        uint64_t wait_ns;      /* -EBUSY: it would wait so long, which is too long for its deadline */
        struct sl_reason reason;
        const char *text; /* of a reason that is TEXT; valid until the completion is filled */
};

/* Return: @status. */
static inline int sl_refuse(struct sl_reason *reason, int status, enum sl_reason_code code, uint64_t got, uint64_t limit)
{
        *reason = (struct sl_reason){.code = (uint16_t)code, .got = got, .limit = limit};
        return status;
}

/* The same of a tensor: @tensor below @n_inputs is an input, the others are outputs. */
static inline int sl_refuse_tensor(struct sl_reason *reason, int status, enum sl_reason_code code, uint32_t tensor,
        uint32_t n_inputs, uint64_t got, uint64_t limit)
{
        sl_refuse(reason, status, code, got, limit);
        reason->tensor = (uint16_t)(tensor < n_inputs ? tensor : SL_REASON_OUTPUT | (tensor - n_inputs));
        return status;
}
