/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watchdog of a service manager: WATCHDOG=1 three times in the time that $WATCHDOG_USEC gives, as long as the control thread
 * turns and the dispatcher answers it. A worker is not asked: a step of a network may take long. Control thread only.
 */
#pragma once

struct sl_runtime;

struct sl_watchdog {
        struct sl_runtime *runtime;
        int timer; /* -1: none */
};

/*
 * From here on the runtime's loop feeds the watchdog; the struct must not move. Return: 1; 0 nobody watches this process; -EINVAL a
 * number that makes no sense; -errno.
 */
int sl_watchdog_start(struct sl_watchdog *watchdog, struct sl_runtime *runtime);

/* After sl_runtime_run(). */
void sl_watchdog_stop(struct sl_watchdog *watchdog);
