/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checksum of a plan file, by which damage is found and which tells one plan from another. A file in sealed memory, as the
 * compiler's process leaves it, has none: nothing damages it, and a load does not wait for what reads all of it once more.
 */
#pragma once

#include <stdint.h>

/* Of the whole file. Never SL_PLAN_NOT_SUMMED. Pure. */
uint64_t sl_plan_sum(const uint8_t *bytes, uint64_t n_bytes);

/* Writes the checksum into a plan file that has none; whatever else @fd is stays as it is. Return: 0, -errno. */
int sl_plan_sum_write(int fd);

/* Writes a copy of plan file @from to @to, from where that stands, which is its start, with the checksum. Return: 0, -errno. */
int sl_plan_sum_copy(int from, int to);
