/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the constants of a plan lie in the memory of a device. plan.h has what makes and ends it. One thread at a time.
 */
#pragma once

#include "plan_map.h"

struct sl_residence;

/* Pure. */
void *sl_residence_constant(const struct sl_residence *residence, const struct sl_plan_constant *constant);
