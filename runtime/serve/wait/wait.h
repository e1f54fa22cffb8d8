/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime's only wait: what a thread does when it has nothing to do. One sl_wait per thread, used by that thread alone, except
 * sl_wait_post(). Two implementations behind one table: io_uring (wait_uring.c) and epoll (wait_epoll.c, for hosts that deny
 * io_uring); sl_wait_new() takes the first that works, or the one that is asked for.
 *
 * Events are small values: the token that was given when the watch was made, and what happened.
 *
 * A wait may be made and freed by another thread than the one that waits: the ring is bound to a thread by its first
 * sl_wait_for(). Watches may be added before that.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_error;
struct sl_wait;

enum sl_wait_kind { SL_WAIT_ANY, SL_WAIT_URING, SL_WAIT_EPOLL };

enum sl_wait_what {
        SL_WAIT_READABLE = 1 << 0, /* data, or a connection was refused: read until EAGAIN */
        SL_WAIT_HANGUP = 1 << 1,   /* end of file or error */
        /*
         * `value` is the new connection's fd (close-on-exec, non-blocking), the receiver's to close; or -EMFILE, -ENFILE, -ENOMEM:
         * nothing was accepted, and the watch tries again after SL_WAIT_ACCEPT_PAUSE_NS by itself.
         */
        SL_WAIT_ACCEPTED = 1 << 2,
        SL_WAIT_POSTED = 1 << 3, /* another thread's sl_wait_post() */
};

#define SL_WAIT_ACCEPT_PAUSE_NS 100000000ull

struct sl_wait_event {
        uint64_t token;
        uint32_t what;
        int32_t value;
};

/* Return: 0; -ENOSYS/-EPERM when the kind asked for is denied (the text says by what); -ENOMEM, -EMFILE. */
int sl_wait_new(enum sl_wait_kind kind, struct sl_wait **ret_wait, struct sl_error *error);
struct sl_wait *sl_wait_free(struct sl_wait *wait);

/* "io_uring" or "epoll", for the stats page. */
const char *sl_wait_name(const struct sl_wait *wait);

/*
 * Watches @fd for READABLE and HANGUP until unwatched; edge-triggered: drain before waiting again. What is readable already counts
 * as the first edge. Tokens are unique. Return: 0; -EEXIST, -EBADF, -ENOMEM.
 */
int sl_wait_watch(struct sl_wait *wait, int fd, uint64_t token);

/*
 * Accepts connections on @fd until unwatched (multishot accept). The wait sets O_NONBLOCK of @fd as its implementation needs it.
 * Errors as of sl_wait_watch().
 */
int sl_wait_accept(struct sl_wait *wait, int fd, uint64_t token);

/*
 * After return no event with this token is stored any more (those that an earlier sl_wait_for() stored are the caller's to skip).
 * The fd may then be closed. Return: 0; -ENOENT.
 */
int sl_wait_unwatch(struct sl_wait *wait, uint64_t token);

/*
 * Waits until something happens or @timeout_ns (relative; 0: only look, UINT64_MAX: no limit) has passed.
 * Return: number of events stored (at most @n), 0 on time-out, -EINTR never (signals are for signalfd), -errno.
 */
int sl_wait_for(struct sl_wait *wait, struct sl_wait_event *ret_events, uint32_t n, uint64_t timeout_ns);

/*
 * Wakes the thread that waits in @target with an event {token, POSTED}. Any thread. io_uring: MSG_RING from @from (the caller's own
 * wait) when both are rings, else an eventfd inside @target; several posts of one token may be merged into one event. @from may be
 * NULL. The target must outlive the call. Return: 0; -EAGAIN when SL_WAIT_POSTS_MAX different tokens wait to be seen.
 */
#define SL_WAIT_POSTS_MAX 256u
int sl_wait_post(struct sl_wait *from, struct sl_wait *target, uint64_t token);
