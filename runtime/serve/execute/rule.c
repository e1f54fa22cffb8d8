/* SPDX-License-Identifier: Apache-2.0 */
#include "rule.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static const char *const rule_names[SL_RULE_COUNT] = {
#define X(id, name) [SL_RULE_##id] = name,
        SL_RULES(X)
#undef X
};

const char *sl_rule_name(uint32_t rule)
{
        return rule < SL_RULE_COUNT ? rule_names[rule] : NULL;
}

int sl_rule_find(const char *name)
{
        for (int i = 0; i < SL_RULE_COUNT; i++)
                if (strcmp(rule_names[i], name) == 0)
                        return i;
        return -EINVAL;
}
