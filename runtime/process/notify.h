/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The readiness protocol of service managers (sd_notify): datagrams to the socket that $NOTIFY_SOCKET names, a path or, with "@"
 * in front, an abstract name. Written by hand; libsystemd is not needed. Any thread.
 */
#pragma once

#include <stdint.h>

/*
 * Sends "READY=1", "STOPPING=1", ... Return: 1 sent; 0 nobody asked to be told ($NOTIFY_SOCKET is not set); -EINVAL a value that is
 * neither a path nor an abstract name; -ENAMETOOLONG; -errno.
 */
int sl_notify(const char *state);

/* Whoever is watched says so that often in the time that the manager waits. */
#define SL_NOTIFY_FEEDINGS 3

/*
 * How often the manager wants to hear WATCHDOG=1 at the least ($WATCHDOG_USEC). Return: 1; 0 nobody watches this process; -EINVAL a
 * number that makes no sense.
 */
int sl_notify_watchdog(uint64_t *ret_us);

/* RELOADING=1 with the time stamp that Type=notify-reload wants. READY=1 follows when the reload is done. */
int sl_notify_reloading(void);
