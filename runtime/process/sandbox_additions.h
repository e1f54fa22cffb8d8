/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a build needs in the sandbox beside what its process is for: nothing, or what its sanitizer does. The build picks one of two
 * files.
 */
#pragma once

#include "call_filter.h"

#include <stddef.h>

struct sl_sandbox_additions {
        const struct sl_call_rule *rules;
        size_t n_rules;
        const char *readable_folder; /* as in landlock.h */
};

extern const struct sl_sandbox_additions sl_sandbox_additions;
