/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task: a name for a need that several models answer, its variants. Plain values; strings and arrays belong to whoever made it.
 */
#pragma once

#include <stdint.h>

struct sl_task_spec {
        const char *name;            /* as clients open it */
        const char *const *variants; /* names of models and ensembles */
        const double *accuracies;    /* [n], 0 to 1 */
        const double *costs;         /* [n]; NULL: what a variant costs is the time that it computes */
        const double *latencies_ms;  /* [n], of one sample, until it has been measured; NULL: none is known */
        uint32_t n;
        uint32_t policy; /* enum sl_choice_policy */
};
