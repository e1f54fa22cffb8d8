/* SPDX-License-Identifier: Apache-2.0 */
#include "job_cuts.h"

uint32_t sl_job_cut(const uint32_t *sizes, uint32_t n_sizes, uint32_t samples)
{
        uint32_t size = 0;

        for (uint32_t i = 0; i < n_sizes && sizes[i] <= samples; i++)
                size = sizes[i];
        return size;
}

uint32_t sl_job_walk_left(struct sl_job_walk *walk, const uint32_t *samples)
{
        while (walk->in_piece == samples[walk->piece]) {
                walk->piece++;
                walk->in_piece = 0;
        }
        return samples[walk->piece] - walk->in_piece;
}

bool sl_job_walk_next(struct sl_job_walk *walk, const uint32_t *samples, uint32_t launch, struct sl_job_fragment *fragment)
{
        uint32_t told = fragment->in_launch + fragment->samples, left = launch - told, here;

        if (!left)
                return false;
        here = sl_job_walk_left(walk, samples);
        *fragment = (struct sl_job_fragment){
                .piece = walk->piece, .in_piece = walk->in_piece, .in_launch = told, .samples = here < left ? here : left};
        walk->in_piece += fragment->samples;
        return true;
}
