/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a run of the scheduler that the dispatcher computes itself (inline_rule.h), within its budget. Dispatcher only.
 */
#pragma once

#include <stdint.h>

struct sl_schedule;

/* The shortest of what waits in that class first; of a bundle all models that have something. Return: jobs. */
uint32_t sl_inline_run(const struct sl_schedule *schedule, uint32_t priority);
