/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A schedule while it is made: lets with and without places, and what each model's requests still lack. What schedulers share.
 */
#pragma once

#include "partition.h"
#include "times.h"

#define SL_PARTITION_NONE UINT32_MAX

struct sl_partition_board {
        const struct sl_partition_problem *problem;
        const struct sl_partition_times *times;
        uint32_t n_lets, n_kept; /* kept: of the copy that sl_board_restore() takes back */
        struct sl_partition_let *lets, *kept;
        double *left; /* of each model: requests a second that nothing bears yet */
};

/* Without lets. Return: 0; -ENOMEM. @times is borrowed. */
int sl_board_new(
        const struct sl_partition_problem *problem, const struct sl_partition_times *times, struct sl_partition_board **ret_board);
struct sl_partition_board *sl_board_free(struct sl_partition_board *board);

/* All lets are gone and all rates are left. */
void sl_board_clear(struct sl_partition_board *board);

/* Lets as they are, to be taken back. One copy. */
void sl_board_keep(struct sl_partition_board *board);
void sl_board_restore(struct sl_partition_board *board);

/* Schedules of boards, and boards of schedules. Return: 0; -ENOMEM. */
int sl_board_schedule(const struct sl_partition_board *board, struct sl_partition_schedule **ret_schedule);

/* More than what a model may drop is left of none. */
bool sl_board_is_done(const struct sl_partition_board *board);

/* The sum over models of the share of the rate that is left. */
double sl_board_lacking(const struct sl_partition_board *board);

uint32_t sl_board_class(const struct sl_partition_board *board, uint32_t device);
uint32_t sl_board_units(const struct sl_partition_board *board, uint32_t device); /* all */
/* Units that no let of the device has; how many lets it has. */
uint32_t sl_board_unused(const struct sl_partition_board *board, uint32_t device, uint32_t *ret_lets);

/* An empty let at the end; its number, or SL_PARTITION_NONE: the device has as many as it may have. */
uint32_t sl_board_add(struct sl_partition_board *board, uint32_t device, uint32_t units);
void sl_board_remove(struct sl_partition_board *board, uint32_t let); /* the last one takes its number */

/* What a batch takes on a let beside its neighbours as they are; 0: not known. */
double sl_board_latency(const struct sl_partition_board *board, uint32_t let, uint32_t model, uint32_t batch);

/* Of all batches of a let. */
double sl_board_busy(const struct sl_partition_board *board, uint32_t let);

/* The let's objectives are met with its cycle, or would be with @cycle_ns. */
bool sl_board_holds(const struct sl_partition_board *board, uint32_t let, double cycle_ns);

/*
 * Is the device of @let good, as it is: memory, and each let's objectives? Neighbours whose cycle has become shorter than what
 * their batches take get one as long as that, where it holds.
 */
bool sl_board_settle(struct sl_partition_board *board, uint32_t let);

/* The largest batch of @model with twice its latency within the objective: of a let that computes nothing else. 0: none. */
uint32_t sl_board_saturating(const struct sl_partition_board *board, uint32_t let, uint32_t model);

/*
 * @model alone on an empty let: at its saturating batch where that bears no more than @rate, else with the largest batch whose
 * building and computing are within the objective; @ret_taken is what it bears. What is left is the caller's to count. False, and
 * nothing has changed: it cannot. Until something else changes sl_board_restore() undoes it.
 */
bool sl_board_fill(struct sl_partition_board *board, uint32_t let, uint32_t model, double rate, double *ret_taken);

/*
 * @rate of @model beside what the let has already: Nexus' merging, the shorter of both cycles, batches as large as what comes in
 * it. False, and nothing has changed: that does not hold. Until something else changes sl_board_restore() undoes it.
 */
bool sl_board_merge(struct sl_partition_board *board, uint32_t let, uint32_t model, double rate);
