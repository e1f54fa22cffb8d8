/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it takes to run models of one architecture in each of the ways that there are, as it was measured on this machine:
 *
 *     separate   each plan in an instance with a workspace of its own, as workers of their own have it
 *     one job    the same plans one after another in one workspace
 *     merged     the merged plan of all lanes; idle ones are left out by steps that can, and computed and discarded by the others
 *
 * All are measured for some numbers of occupied lanes and lie on straight lines in between. Plain values, so that a table
 * can be kept in a file; pure; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SL_FUSE_LANES_MAX       64
#define SL_FUSE_ROWS_MAX        4 /* sizes of the ladder */
#define SL_FUSE_OCCUPANCIES_MAX 4
#define SL_FUSE_LEAST_GAIN      0.03 /* merged is cheaper only by so much of what one job takes, or it is not worth it */
#define SL_FUSE_NEVER           UINT32_MAX

struct sl_fuse_row {
        uint32_t batch;   /* samples of each lane */
        uint32_t n_turns; /* of which the seconds are medians */
        double separate[SL_FUSE_OCCUPANCIES_MAX], one_job[SL_FUSE_OCCUPANCIES_MAX], merged[SL_FUSE_OCCUPANCIES_MAX];
};

struct sl_fuse_table {
        uint32_t n_lanes, n_rows;
        uint32_t n_occupancies, reserved;
        uint32_t occupied[SL_FUSE_OCCUPANCIES_MAX]; /* lanes, ascending from 1 to n_lanes */
        struct sl_fuse_row rows[SL_FUSE_ROWS_MAX];  /* batches ascending */
        double difference; /* of outputs to those of the single plans, the largest, as a share of the largest value */
};

/* Without rows: 1, a quarter, half and all of @n_lanes, each once. @n_lanes: 2 to SL_FUSE_LANES_MAX. */
void sl_fuse_table_init(struct sl_fuse_table *table, uint32_t n_lanes);

/* It may have come from a file: its numbers are within their bounds, and each is one that may have been measured. */
bool sl_fuse_table_is_sound(const struct sl_fuse_table *table);

/*
 * The least number of occupied lanes from which on the merged plan is cheaper than one job by SL_FUSE_LEAST_GAIN, when the fullest
 * lane has @samples. SL_FUSE_NEVER: not even when all are; or nobody has measured so large a batch.
 */
uint32_t sl_fuse_least_lanes(const struct sl_fuse_table *table, uint32_t samples);

/* Seconds of @lanes single plans as one job (or each in its own workspace), each of @samples; infinite beyond what was measured. */
double sl_fuse_one_job_seconds(const struct sl_fuse_table *table, uint32_t lanes, uint32_t samples);
double sl_fuse_separate_seconds(const struct sl_fuse_table *table, uint32_t lanes, uint32_t samples);

/* Seconds of the merged plan with @lanes occupied, whose fullest has @samples; infinite beyond what was measured. */
double sl_fuse_merged_seconds(const struct sl_fuse_table *table, uint32_t lanes, uint32_t samples);

/* One job over merged, all lanes occupied, at the smallest batch; 0 without rows. */
double sl_fuse_gain(const struct sl_fuse_table *table);

/*
 * One job over the cheaper way, at the smallest batch, where the lanes are some of @n_models (their number and more), of which an
 * eighth, a quarter, half and all are occupied, any of them as likely as another, and half of these wait while the others have just
 * been answered: the geometric mean. Many lanes gain most where all are occupied, few lanes where few neighbours are; what is left
 * out for idle ones counts. 0 without rows.
 */
double sl_fuse_gain_among(const struct sl_fuse_table *table, uint32_t n_models);

/*
 * Occupied lanes from which on who serves computes a merged plan of @n_lanes itself, whatever gains by the table: more than half.
 * As it answers together what it computes together, it has nothing to do until who sent that sends more, so that few lanes gain
 * less than they lose so (perf/docs/papers.md).
 */
uint32_t sl_fuse_fewest_inline(uint32_t n_lanes);

/*
 * By what numbers of lanes are compared. @short_ns: what single plans take, who serves computes itself, and a merged plan as well
 * as long as a run with all lanes occupied, at the smallest batch, takes no longer; 0: it computes nothing itself, and that gain is
 * what counts. Else it is the gain of what it does itself, from sl_fuse_fewest_inline() lanes on. A plan that takes longer, and is
 * hardly used, is worth less than any that does not.
 */
double sl_fuse_worth(const struct sl_fuse_table *table, uint32_t n_models, uint64_t short_ns);
