/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schedulers of the table in partition.h, and what they share: a board on which one of them works.
 */
#pragma once

#include "board.h"

/* Each as sl_partition_scheduler.make(). */
int sl_partition_sbp(const struct sl_partition_problem *problem, struct sl_partition_schedule **ret_schedule);
int sl_partition_sbp_halves(const struct sl_partition_problem *problem, struct sl_partition_schedule **ret_schedule);
int sl_partition_self_tuning(const struct sl_partition_problem *problem, struct sl_partition_schedule **ret_schedule);
int sl_partition_elastic(const struct sl_partition_problem *problem, struct sl_partition_schedule **ret_schedule);
int sl_partition_ideal(const struct sl_partition_problem *problem, struct sl_partition_schedule **ret_schedule);
int sl_partition_starling(const struct sl_partition_problem *problem, struct sl_partition_schedule **ret_schedule);

/* A scheduler's part: places on a board that has only empty lets, or none. Return: 0; -ENOMEM. */
typedef int sl_partition_work(struct sl_partition_board *board);
int sl_partition_sbp_work(struct sl_partition_board *board);
int sl_partition_sbp_halves_work(struct sl_partition_board *board);
int sl_partition_self_tuning_work(struct sl_partition_board *board);

/* Of the first @n_devices. @splits: whole devices are parted as it goes; else the board's empty lets are all that there are. */
int sl_partition_elastic_work(struct sl_partition_board *board, uint32_t n_devices, bool splits);

/* The schedule of what @work makes of an empty board. Return: 0; -ENOMEM. */
int sl_partition_of_work(
        const struct sl_partition_problem *problem, sl_partition_work *work, struct sl_partition_schedule **ret_schedule);
