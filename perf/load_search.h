/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The highest rate at which a percentile of the latencies keeps the objective, by bisection: a rate is kept when its run is valid
 * and no larger share of its requests violates the objective. Below lies 0, above what a closed loop brings; the rate that is found
 * is confirmed by all repeats, or a lower one is. One thread.
 */
#pragma once

#include "load_result.h"

/* @level: what each rate is asked with; its rate is not read. The point of the rate that was found is added to @result. Return: 0,
 * -errno. */
int sl_load_search(struct sl_load_session *session, const struct sl_load_level *level, uint32_t repeats,
        struct sl_load_result *result, struct starling_error *error);
