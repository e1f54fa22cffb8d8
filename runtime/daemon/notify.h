/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The readiness protocol of service managers (sd_notify): datagrams to the socket that $NOTIFY_SOCKET names, a path or, with "@"
 * in front, an abstract name. Written by hand; libsystemd is not needed. Any thread.
 */
#pragma once

/*
 * Sends "READY=1", "STOPPING=1", ... Return: 1 sent; 0 nobody asked to be told ($NOTIFY_SOCKET is not set); -EINVAL a value that is
 * neither a path nor an abstract name; -ENAMETOOLONG; -errno.
 */
int sl_notify(const char *state);

/* RELOADING=1 with the time stamp that Type=notify-reload wants. READY=1 follows when the reload is done. */
int sl_notify_reloading(void);
