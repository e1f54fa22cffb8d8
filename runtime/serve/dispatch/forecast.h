/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The forecast of a request that comes: how long what goes before it will take, at the service times that its members have shown.
 * Whoever would be late is better told at once: work for it would be in vain, and would make others late. Dispatcher only.
 */
#pragma once

#include <stdint.h>

struct sl_ensemble;

/*
 * What @samples take the members of an ensemble side by side, all of their workers busy; 0: nothing is known. Of a quorum, as many
 * of them as it takes; where members are asked until they agree, those that are asked first.
 */
uint64_t sl_forecast_ns(const struct sl_ensemble *ensemble, uint64_t samples);

/*
 * Is a request of @samples, of which @ahead go before it, expected to end later than in @left_ns? @units: its size, of a request to
 * a plan of any size, else 0; what goes before one is as large as those in flight are in the mean. The time of what goes before
 * counts twice, as it is a mean, and so that what is accepted is done well before its deadline and not just about then. Whoever
 * finds nothing before it is never late: an answer is tried, and the service time learned. Return: 0, or what goes before takes, in
 * nanoseconds.
 */
uint64_t sl_forecast_late(const struct sl_ensemble *ensemble, uint64_t ahead, uint32_t samples, uint64_t units, uint64_t left_ns);
