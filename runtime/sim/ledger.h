/* SPDX-License-Identifier: Apache-2.0 */
/* Memory with a limit: bytes are promised before they are used, or refused. */
#pragma once

#include <errno.h>
#include <stdint.h>

struct sl_sim_ledger {
        uint64_t limit_bytes, promised_bytes;
        uint32_t refused; /* so often */
};

/* Return: 0; -ENOMEM. */
static inline int sl_sim_ledger_take(struct sl_sim_ledger *ledger, uint64_t bytes)
{
        if (bytes > ledger->limit_bytes - ledger->promised_bytes) {
                ledger->refused++;
                return -ENOMEM;
        }
        ledger->promised_bytes += bytes;
        return 0;
}

static inline void sl_sim_ledger_give(struct sl_sim_ledger *ledger, uint64_t bytes)
{
        ledger->promised_bytes -= bytes;
}
