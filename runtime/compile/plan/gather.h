/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the constants of a merged plan lie that are pieces of its members' constants: one piece where it is, in the mapping of the
 * member's plan; several side by side, each mapped once more from its member's file. The page table is what leads to each lane's
 * part, so that no kernel knows of it and no byte is there twice. Private to sl_plan.
 *
 *     member 0's file  ..[pages of w]....       merged plan   [lane 0's w][lane 1's w]
 *     member 1's file  ....[pages of w]..                      member 0    member 1
 */
#pragma once

struct sl_error;
struct sl_plan;

/* Of a plan that has been checked. Return: 0; -ENOMEM also where the host allows no more mappings; with text. */
int sl_plan_gather(struct sl_plan *plan, struct sl_error *error);

/* All zeros is fine. */
void sl_plan_gather_undo(struct sl_plan *plan);
