/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What jobs take by their size, where no two need have the same one: a line through those that ended, of which older ones count
 * less and less. Owner: the dispatcher; pure but for the learning.
 */
#pragma once

#include <stdint.h>

/* Jobs before a line says anything. */
#define SL_SIZE_LINE_JOBS 8u

struct sl_size_line {
        uint32_t jobs;           /* up to SL_SIZE_LINE_JOBS */
        double n, x, y, xx, xy;  /* weighted sums over jobs: of 1, the size, the time, and their products */
        double fixed_ns, one_ns; /* of a job, and of a unit of size; neither is negative */
};

/* A job of this size, in any unit, took @ns. */
void sl_size_line_learn(struct sl_size_line *line, uint64_t size, uint64_t ns);

/* What a job of this size is expected to take; 0: too little is known. */
uint64_t sl_size_line_ns(const struct sl_size_line *line, uint64_t size);

/* What so many jobs take one behind the other, which have @size together; as above. */
uint64_t sl_size_line_sum_ns(const struct sl_size_line *line, uint64_t jobs, uint64_t size);
