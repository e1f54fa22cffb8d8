/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closes what other processes had a hand in: fds that they passed, and sockets on which such fds may lie unread. Whoever drops the
 * last reference to an fd waits as long as its maker likes: a TCP socket with unsent data lingers, a large deleted file is given
 * back page by page. That happens on the reaper's thread, for which nobody waits.
 *
 * A signal (SIGURG, of which nobody else takes notice) that comes each millisecond while it closes cuts a lingering short: the
 * kernel goes on with that socket by itself. So what is queued goes at the pace of a message per millisecond, whatever lies in it.
 *
 * Threads: the reaper's own; everything below is the control thread's. What waits is bounded by the fds that the process may have.
 */
#pragma once

struct sl_error;
struct sl_reaper;

/* Return: 0; -ENOMEM, -EAGAIN no thread. */
int sl_reaper_new(struct sl_reaper **ret_reaper, struct sl_error *error);

/* Closes a foreign fd. */
void sl_reaper_close(struct sl_reaper *reaper, int fd);

/* Ends the connections of a socket now, and closes it, with what lies in it unread. What was sent over it still arrives. */
void sl_reaper_end(struct sl_reaper *reaper, int socket);

/*
 * Gives it a second for what is queued. A close that takes longer is left to the end of the process, and the reaper's memory with
 * it. NULL is fine. Returns NULL.
 */
struct sl_reaper *sl_reaper_free(struct sl_reaper *reaper);
