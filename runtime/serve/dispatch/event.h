/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the dispatcher tells control (message.h). Dispatcher only.
 */
#pragma once

#include "message.h"

#include <stdbool.h>

struct sl_dispatcher;
struct sl_ensemble;
struct sl_model;

void sl_event_send(struct sl_dispatcher *dispatcher, enum sl_event_kind kind, void *pointer, int32_t status, const char *text);

/* Messages that the mailbox of events has room for beside those about workers. */
uint32_t sl_events_reserved(uint32_t clients_max);

/* A worker is gone, and control's again. There is room when sl_event_worker_fits(); else control has too many such events to read. */
bool sl_event_worker_fits(struct sl_dispatcher *dispatcher);
void sl_event_worker(struct sl_dispatcher *dispatcher, struct sl_model *model, struct sl_executor *worker);

/* About sizes of an open ensemble. Return: 0; -EBUSY as many sizes are being loaded as there is room for. */
int sl_event_shape(struct sl_dispatcher *dispatcher, enum sl_event_kind kind, struct sl_ensemble *ensemble,
        const int64_t sizes[SL_SYMBOLS_MAX], uint32_t uid);
