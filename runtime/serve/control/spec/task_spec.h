/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task: a name for a need that several models answer, its variants. Plain values; strings and arrays belong to whoever made it.
 */
#pragma once

#include <stdint.h>

#define SL_TASK_BATCHES       7u  /* of 1, 2, 4 ... 64 samples */
#define SL_TASK_DIGEST_DIGITS 32u /* of a model file's content */

struct sl_task_spec {
        const char *name;            /* as clients open it */
        const char *const *variants; /* names of models and ensembles */
        const double *accuracies;    /* [n], 0 to 1 */
        const double *costs;         /* [n]; NULL: what a variant costs is the time that it computes */
        const double *latencies_ms;  /* [n], of one sample, until it has been measured; NULL: none is known */
        const double *batches_ms;    /* [n][SL_TASK_BATCHES], likewise; 0: not known; NULL: none is */
        const char *const *files;    /* [n], digests of the model files that were measured; "": not told; NULL: none is */
        const char *processor;       /* where latencies were measured, as sl_processor_name() says; NULL: not told */
        const char *version;         /* by which version; NULL: not told */
        uint32_t n;
        uint32_t policy; /* enum sl_choice_policy */
};
