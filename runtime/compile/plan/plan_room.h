/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that runs of a plan compute in, for sl_plan_workspace_bytes() and sl_instance_team_bytes() (plan.h). Pure.
 */
#pragma once

#include "plan_map.h"

/* Sizes of the ladder that an instance up to @batch_max has: they are ascending. */
uint32_t sl_plan_programs_up_to(const struct sl_plan *plan, uint32_t batch_max);
