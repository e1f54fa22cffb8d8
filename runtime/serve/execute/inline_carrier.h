/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The carrier without a thread: what its giver launches is computed there and then, lane after lane, with one look at the clock for
 * each. Its lanes are inline executors (inline_executor.h), which answer for themselves.
 */
#pragma once

#include "carrier.h"

/* Return: 0, -ENOMEM. */
int sl_inline_carrier_new(struct sl_carrier **ret_carrier);
