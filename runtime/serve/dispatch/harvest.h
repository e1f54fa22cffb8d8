/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From predictions to finished segments, and what is learned from them. Dispatcher only.
 */
#pragma once

#include <stdint.h>

struct sl_dispatcher;

/* Takes all answers of all workers; models of which all is answered are no longer busy. Return: how many. */
uint32_t sl_harvest(struct sl_dispatcher *dispatcher);

/* Of models that have just become busy: a worker of theirs may have ended since it was last looked at. */
void sl_harvest_new(struct sl_dispatcher *dispatcher);

/* Those of what the dispatcher has computed itself. */
void sl_harvest_inline(struct sl_dispatcher *dispatcher);
