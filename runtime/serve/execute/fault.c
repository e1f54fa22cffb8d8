/* SPDX-License-Identifier: Apache-2.0 */
#include "fault.h"

#include "base/error.h"

#include <stdio.h>

void sl_fault_tell(struct sl_fault *fault, const char *text)
{
        if (!fault->text[0])
                sl_error_fit(text, fault->text, sizeof(fault->text));
}

const char *sl_fault_text(const struct sl_fault *fault)
{
        return fault->text[0] ? fault->text : NULL;
}

void sl_fault_clear(struct sl_fault *fault)
{
        fault->text[0] = 0;
}
