/*
 * The runtime's only wait: what a thread does when it has nothing to do. One sl_wait per thread, used by that thread alone, except
 * sl_wait_post(). Two implementations behind one table: io_uring (wait_uring.c) and epoll (wait_epoll.c, for hosts that deny
 * io_uring); sl_wait_new() takes the first that works, or the one that is asked for.
 *
 * Events are small values: the token that was given when the watch was made, and what happened.
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
        SL_WAIT_ACCEPTED = 1 << 2, /* `value` is the new connection's fd (close-on-exec, non-blocking), the receiver's to close */
        SL_WAIT_POSTED = 1 << 3,   /* another thread's sl_wait_post() */
};

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

/* Watches @fd for READABLE and HANGUP until unwatched; edge-triggered: drain before waiting again. Tokens are unique. -EEXIST,
 * -ENOMEM. */
int sl_wait_watch(struct sl_wait *wait, int fd, uint64_t token);

/* Accepts connections on @fd until unwatched (multishot accept). */
int sl_wait_accept(struct sl_wait *wait, int fd, uint64_t token);

/* After return no event with this token is delivered any more. The fd may then be closed. -ENOENT. */
int sl_wait_unwatch(struct sl_wait *wait, uint64_t token);

/*
 * Waits until something happens or @timeout_ns (relative; 0: only look, UINT64_MAX: no limit) has passed.
 * Return: number of events stored (at most @n), 0 on time-out, -EINTR never (signals are for signalfd), -errno.
 */
int sl_wait_for(struct sl_wait *wait, struct sl_wait_event *ret_events, uint32_t n, uint64_t timeout_ns);

/*
 * Wakes the thread that waits in @target with an event {token, POSTED}. Any thread. io_uring: MSG_RING from @from (the caller's own
 * wait) when both are rings, else an eventfd inside @target; several posts may be merged into one event. @from may be NULL. Return:
 * 0, -errno.
 */
int sl_wait_post(struct sl_wait *from, struct sl_wait *target, uint64_t token);
