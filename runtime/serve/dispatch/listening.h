/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a dispatcher that sleeps hears of workers that cannot ring its bell, as their processes do not see it: it waits for their
 * descriptors, and tells them when to write to them. Dispatcher only.
 */
#pragma once

#include <stdbool.h>

struct sl_dispatcher;
struct sl_executor;

void sl_workers_watch(struct sl_dispatcher *dispatcher, const struct sl_executor *worker);

/* Before it is control's again. */
void sl_workers_unwatch(struct sl_dispatcher *dispatcher, const struct sl_executor *worker);

/* Of all models: the dispatcher is about to sleep, before it looks for the last time; or it is awake. */
void sl_workers_listen(const struct sl_dispatcher *dispatcher, bool listening);
