/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a choice takes by itself, without a runtime: as a client makes it at each submit, from a page of tasks in this process which
 * a thread rewrites every millisecond. All variants suit. Beside it what the same takes by comparing each with each.
 */
#pragma once

#include "histogram.h"

#include <stdint.h>

struct sl_query_choice {
        uint32_t variants;
        struct sl_histogram choices;  /* all */
        struct sl_histogram renewals; /* of those that found the page rewritten, and copied the task first */
        struct sl_histogram brute;    /* one of 64 once more, each compared with each */
        uint64_t rewritten;           /* the page was, so often */
        uint64_t wrong;               /* choices of what another one beats */
};

/* @variants: 1 to 256. Return: 0; -ENOMEM, -EAGAIN no thread; -EINTR. */
int sl_query_choice_run(uint32_t variants, uint64_t for_ns, uint32_t seed, struct sl_query_choice *ret_choice);
