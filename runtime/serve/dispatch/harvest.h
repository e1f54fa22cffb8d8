/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From predictions to finished segments, and what is learned from them. Dispatcher only.
 */
#pragma once

#include <stdint.h>

struct sl_dispatcher;
struct sl_request;
struct sl_task;

/* Takes all answers of all workers; models of which all is answered are no longer busy. Return: how many. */
uint32_t sl_harvest(struct sl_dispatcher *dispatcher);

/* A task of the request that waited for a worker is answered with @status; its scheduler forgets it. */
void sl_harvest_dropped(struct sl_dispatcher *dispatcher, struct sl_request *request, const struct sl_task *task, int status);

/* Of models that have just become busy: a worker of theirs may have ended since it was last looked at. */
void sl_harvest_new(struct sl_dispatcher *dispatcher);

/* Those of what the dispatcher has computed itself. */
void sl_harvest_inline(struct sl_dispatcher *dispatcher);
