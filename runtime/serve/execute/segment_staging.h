/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the members' predictions of a segment lie in its staging, and what its rule makes of them:
 *
 *     [member][output][samples...] | side by side [samples] | scratch of the rule | which members have answered [samples] | what is
 * settled [samples]
 *
 * Each output begins on a line of its own. The last two are there where members may be missing (assembly.h, is_partial): a bit for
 * each member whose prediction of a sample counts, and 1 for a sample that wants no further member. A sample that is settled takes
 * none any more, so that the result does not hang on who was asked beside.
 *
 * Memory is the caller's. sl_segment_note() may be called by several threads at a time, for pieces of their own, and what orders it
 * before the others is P1 and P2 of accumulator.h; else one thread for each segment.
 */
#pragma once

#include "assembly.h"
#include "regions.h"

/* Of @samples samples; 0: nothing is staged. */
uint64_t sl_segment_staging_bytes(const struct sl_assembly *assembly, uint32_t samples);

/* Where member @member of a staging that begins at @staging puts its outputs of sample @first, with their strides. */
void sl_segment_staging_places(const struct sl_assembly *assembly, const struct sl_place *staging, uint32_t samples,
        uint32_t member, uint32_t first, struct sl_place *ret_outputs);

/* Where the combiner's inputs of sample @first begin, when sl_segment_combine() has put the predictions side by side. */
void sl_segment_staging_inputs(const struct sl_assembly *assembly, const struct sl_place *staging, uint32_t samples, uint32_t first,
        uint32_t n_inputs, struct sl_place *ret_inputs);

/* A segment of which all predictions are there that were asked for. */
struct sl_staged_segment {
        const struct sl_assembly *assembly;
        const struct sl_regions *regions;
        struct sl_place staging;
        const struct sl_place *outputs; /* of the request; SL_NO_REGION: not wanted */
        uint32_t start, samples;        /* of the request */
};

/* Stores the result in the request's outputs, or makes the combiner's input. All members have answered. */
void sl_segment_combine(const struct sl_staged_segment *segment);

/* ---- where members may be missing ---- */

/* Nobody has answered, nothing is settled. */
void sl_segment_begin(const struct sl_staged_segment *segment);

/* A member's predictions of samples [first, first + samples) of the segment are in their places. */
void sl_segment_note(const struct sl_staged_segment *segment, uint32_t member, uint32_t first, uint32_t samples);

/* Looks which samples are settled by those who have answered. Return: how many want another member. */
uint32_t sl_segment_settle(const struct sl_staged_segment *segment);

/* The next run of samples from @at on that want another member: its first one, and how many. False: there is none. */
bool sl_segment_next_open(const struct sl_staged_segment *segment, uint32_t at, uint32_t *ret_first, uint32_t *ret_samples);

/* Members in the result of any of the samples, and in that of all of them: a bit for each. */
struct sl_members_used {
        uint64_t any, all;
};

/*
 * Stores the result, of each sample by those who have answered. False: of a sample that is not settled fewer than the quorum have,
 * and the outputs are not to be used.
 */
bool sl_segment_combine_part(const struct sl_staged_segment *segment, struct sl_members_used *ret_used);
