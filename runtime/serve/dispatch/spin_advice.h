/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the dispatcher tells its clients about spinning (shm/doorbell.h). Dispatcher only.
 */
#pragma once

#include <stdint.h>

struct sl_dispatcher;

/* Tells clients whether it helps to spin, when the last time is long enough ago. */
void sl_spin_advice_give(struct sl_dispatcher *dispatcher, uint64_t now_ns);

/* Workers have come or gone: does one of them run where the dispatcher does? */
void sl_shared_core_note(struct sl_dispatcher *dispatcher);
