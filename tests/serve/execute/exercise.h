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
#define EXERCISE_REGIONS  128u

/* Of an ensemble of @n_members: each makes float32 [N, classes]. Freed with exercise_free(). */
struct exercise {
        struct sl_served_port ports[SL_MEMBERS_MAX];
        struct sl_assembly assembly; /* whose outputs those are */
        struct sl_work work;
        struct sl_regions *regions;
        struct sl_accumulator *accumulator;
        struct sl_place inputs[2], outputs[SL_MEMBERS_MAX]; /* inputs: for the test to fill */
        uint32_t output_region;
        float *first_output; /* where all outputs lie; zeros */
        struct sl_job *job;  /* of one input and one output, empty */
};

struct exercise *exercise_new(uint32_t n_members, enum sl_rule rule, uint32_t classes);
void exercise_free(struct exercise *exercise);

/* A region of the test's own memory, and where it begins. */
struct sl_place exercise_place(struct exercise *exercise, void *memory, uint64_t bytes, uint64_t stride);

/* Where member @member puts its output of samples [first, ...) of the segment: of a piece made for it. */
float *exercise_output(struct exercise *exercise, uint32_t segment, uint32_t member, uint32_t first);

/* Samples [start, start + samples) of the work. */
struct sl_segment *exercise_segment(struct exercise *exercise, uint32_t start, uint32_t samples, uint32_t *ret_id);
