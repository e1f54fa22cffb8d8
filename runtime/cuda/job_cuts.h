/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job of pieces, one behind the other, as launches of sizes that a worker has graphs for, and a launch as fragments of pieces.
 * Pure; one thread.
 *
 *     pieces    |  5 samples  | 2 |   4   |
 *     launches  |     8           | 2 |1|        sizes 1 2 4 8
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The largest size that is not above @samples; 0: all are. @sizes are ascending. */
uint32_t sl_job_cut(const uint32_t *sizes, uint32_t n_sizes, uint32_t samples);

/* Samples that one piece and one launch have in common. */
struct sl_job_fragment {
        uint32_t piece;
        uint32_t in_piece, in_launch; /* where it begins */
        uint32_t samples;
};

/* Where a walk over the fragments of a job's launches, one after another, has come. Zeros: to its beginning. */
struct sl_job_walk {
        uint32_t piece, in_piece;
};

/* Samples of its piece from here on, the next piece when none is left. Before: some are left of the job. */
uint32_t sl_job_walk_left(struct sl_job_walk *walk, const uint32_t *samples);

/*
 * The next fragment of a launch of @launch samples, of which those before @ret_fragment->in_launch + samples have been told; before
 * the first, the fragment is zeros. @samples: of each piece, all of which have the launch's samples in them. False: no more.
 */
bool sl_job_walk_next(struct sl_job_walk *walk, const uint32_t *samples, uint32_t launch, struct sl_job_fragment *fragment);
