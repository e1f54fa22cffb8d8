/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The batches and the cycle of a let whose models and rates are given: exact, where Nexus' merging takes the shorter of two cycles.
 */
#pragma once

#include "board.h"

/*
 * Of all batches that meet the let's objectives beside its neighbours as they are, those that keep it busy for the least share of
 * the cycle. With batches b the cycle may be as long as the shortest of b / rate and of objective - last batch, and has to be as
 * long as all of b; smaller batches are shorter, so for each cycle only the least that bear it are looked at. Writes batches and
 * cycle; false: none do, and they are as they were.
 */
bool sl_cycle_find(struct sl_partition_board *board, uint32_t let);
