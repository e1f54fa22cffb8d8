/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns on a let that several workers share: as long as something more urgent computes or waits there, no more jobs run than it has
 * room for at once, so that it shares a core with nobody for longer than the jobs last that run already. Among equals the operating
 * system divides the cores by time. Who has a let for itself waits for nobody. Dispatcher only.
 */
#pragma once

#include <stdint.h>

struct sl_let;

/* How many more jobs of class @priority may start there, in this run of the scheduler. Pure. */
uint32_t sl_turns_left(const struct sl_let *let, uint32_t priority, uint64_t run);

/* Segments of that class find no idle worker there, in this run. */
void sl_turns_wait(struct sl_let *let, uint32_t priority, uint64_t run);
