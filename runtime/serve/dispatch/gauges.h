/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What waits and what is under way just now, as the stats page shows it: of the dispatcher, of each name and model, of each let.
 * Written once a millisecond while something is in flight, and before a sleep, so that a request costs nothing more. Dispatcher
 * only; relaxed stores.
 */
#pragma once

#include <stdint.h>

struct sl_dispatcher;
struct sl_ensemble;
struct sl_let;

/* Of a name. One that drains and the one in its place share a slot: what that shows of it goes with its last request. */
void sl_gauges_in_flight(struct sl_ensemble *ensemble);

/* Of a let, which its last worker may have left: what follows shows those of workers. */
void sl_gauges_let(const struct sl_let *let);

/* When it is time. */
void sl_gauges_show(struct sl_dispatcher *dispatcher, uint64_t now_ns);

/* At once: it may be long until the next time. */
void sl_gauges_show_before_sleep(struct sl_dispatcher *dispatcher);
