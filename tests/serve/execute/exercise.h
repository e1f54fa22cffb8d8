/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work without a request, a client or a dispatcher around it: what those who compute need to be tested one by one.
 */
#pragma once

#include "accumulator.h"
#include "assembly.h"
#include "job.h"

#define EXERCISE_SEGMENTS 64u
#define EXERCISE_SAMPLES  256u

/* Of an ensemble of @n_members: each makes float32 [N, classes]. Freed with exercise_free(). */
struct exercise {
        struct sl_assembly assembly;
        struct sl_work work;
        struct sl_accumulator *accumulator;
        void *inputs[2]; /* for the test to fill */
        void *outputs[SL_MEMBERS_MAX];
        float *first_output; /* where all outputs lie; zeros */
};

struct exercise *exercise_new(uint32_t n_members, enum sl_rule rule, uint32_t classes);
void exercise_free(struct exercise *exercise);

/* Samples [start, start + samples) of the work. */
struct sl_segment *exercise_segment(struct exercise *exercise, uint32_t start, uint32_t samples, uint32_t *ret_id);
