/* SPDX-License-Identifier: Apache-2.0 */
#include "fault.h"

#include <stdio.h>

void sl_fault_tell(struct sl_fault *fault, const char *text)
{
        if (atomic_exchange_explicit(&fault->told, 1, memory_order_relaxed) == 0)
                snprintf(fault->text, sizeof(fault->text), "%s", text);
}

const char *sl_fault_text(const struct sl_fault *fault)
{
        return atomic_load_explicit(&fault->told, memory_order_relaxed) ? fault->text : NULL;
}

void sl_fault_clear(struct sl_fault *fault)
{
        atomic_store_explicit(&fault->told, 0, memory_order_relaxed);
}
