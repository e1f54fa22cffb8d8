/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wait on epoll, for hosts that deny io_uring. Polls are edge-triggered; accepts are level-triggered, because a caller's array
 * may be full before the backlog is empty.
 */
#include "base/clock.h"
#include "base/error.h"
#include "postbox.h"
#include "table.h"
#include "watches.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS_MAX 64

struct wait_epoll {
        struct sl_wait wait;
        int fd;
        bool posts_left; /* the last take left tokens behind */
        bool coarse;     /* the kernel lacks epoll_pwait2(): milliseconds */
        struct sl_watches watches;
};

/* Where the events of one call go. */
struct sink {
        struct sl_wait_event *events;
        uint32_t n, limit;
};

static struct wait_epoll *of(struct sl_wait *wait)
{
        return (struct wait_epoll *)wait;
}

static void emit(struct sink *sink, uint64_t token, uint32_t what, int value)
{
        sink->events[sink->n++] = (struct sl_wait_event){.token = token, .what = what, .value = value};
}

static int control(struct wait_epoll *self, int operation, const struct sl_watch *watch, uint32_t events)
{
        struct epoll_event event = {.events = events, .data.u64 = sl_watches_key(&self->watches, watch)};

        return epoll_ctl(self->fd, operation, watch->fd, &event) < 0 ? -errno : 0;
}

static int epoll_add(struct wait_epoll *self, enum sl_watch_kind kind, int fd, uint64_t token, uint32_t events)
{
        struct sl_watch *watch;
        int result = sl_watches_add(&self->watches, kind, fd, token, &watch);

        if (result < 0)
                return result;
        result = control(self, EPOLL_CTL_ADD, watch, events);
        if (result < 0)
                sl_watches_remove(&self->watches, watch);
        else
                sl_watches_armed(&self->watches, watch);
        return result;
}

static int epoll_watch(struct sl_wait *wait, int fd, uint64_t token)
{
        return epoll_add(of(wait), SL_WATCH_POLL, fd, token, EPOLLIN | EPOLLRDHUP | EPOLLET);
}

static int epoll_accept(struct sl_wait *wait, int fd, uint64_t token)
{
        int flags = fcntl(fd, F_GETFL);

        if (flags >= 0)
                fcntl(fd, F_SETFL, flags | O_NONBLOCK);
        return epoll_add(of(wait), SL_WATCH_ACCEPT, fd, token, EPOLLIN);
}

static int epoll_unwatch(struct sl_wait *wait, uint64_t token)
{
        struct wait_epoll *self = of(wait);
        struct sl_watch *watch = sl_watches_find(&self->watches, token);

        if (!watch)
                return -ENOENT;
        epoll_ctl(self->fd, EPOLL_CTL_DEL, watch->fd, NULL);
        sl_watches_remove(&self->watches, watch);
        return 0;
}

static void take_posts(struct wait_epoll *self, struct sink *sink)
{
        uint64_t tokens[EVENTS_MAX];
        uint32_t room = sink->limit - sink->n;
        uint32_t n = sl_postbox_take(self->wait.postbox, tokens, room < EVENTS_MAX ? room : EVENTS_MAX, &self->posts_left);

        for (uint32_t i = 0; i < n; i++)
                emit(sink, tokens[i], SL_WAIT_POSTED, 0);
}

static void accept_all(struct wait_epoll *self, struct sl_watch *watch, struct sink *sink)
{
        while (sink->n < sink->limit) {
                int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

                if (fd >= 0) {
                        emit(sink, watch->token, SL_WAIT_ACCEPTED, fd);
                        continue;
                }
                if (sl_watches_pauses(errno)) {
                        emit(sink, watch->token, SL_WAIT_ACCEPTED, -errno);
                        control(self, EPOLL_CTL_MOD, watch, 0);
                        sl_watches_disarmed(&self->watches, watch, sl_clock_ns() + SL_WAIT_ACCEPT_PAUSE_NS);
                }
                return;
        }
}

static void handle(struct wait_epoll *self, const struct epoll_event *event, struct sink *sink)
{
        struct sl_watch *watch = sl_watches_of_key(&self->watches, event->data.u64);

        if (!watch)
                return;
        if (watch->kind == SL_WATCH_POSTBOX)
                take_posts(self, sink);
        else if (watch->kind == SL_WATCH_ACCEPT && (event->events & EPOLLIN))
                accept_all(self, watch, sink);
        else {
                uint32_t what = event->events & EPOLLIN ? SL_WAIT_READABLE : 0;

                if (event->events & (EPOLLHUP | EPOLLRDHUP | EPOLLERR))
                        what |= SL_WAIT_HANGUP;
                emit(sink, watch->token, what, 0);
        }
}

static void resume_accepts(struct wait_epoll *self, uint64_t now_ns)
{
        for (uint32_t i = 0; self->watches.n_unarmed && i < self->watches.n; i++) {
                struct sl_watch *watch = &self->watches.slots[i];

                if (watch->kind == SL_WATCH_ACCEPT && !watch->armed && watch->resume_ns <= now_ns &&
                        control(self, EPOLL_CTL_MOD, watch, EPOLLIN) == 0)
                        sl_watches_armed(&self->watches, watch);
        }
}

static int enter(struct wait_epoll *self, struct epoll_event *events, int n, uint64_t timeout_ns)
{
        if (!self->coarse) {
                struct timespec timeout = {
                        .tv_sec = (time_t)(timeout_ns / SL_NS_PER_SECOND), .tv_nsec = (long)(timeout_ns % SL_NS_PER_SECOND)};
                int got = epoll_pwait2(self->fd, events, n, timeout_ns == UINT64_MAX ? NULL : &timeout, NULL);

                if (got >= 0 || (errno != ENOSYS && errno != EPERM))
                        return got < 0 ? -errno : got;
                self->coarse = true;
        }
        uint64_t ms = timeout_ns / SL_NS_PER_MS + (timeout_ns % SL_NS_PER_MS ? 1 : 0);
        int got = epoll_wait(self->fd, events, n, timeout_ns == UINT64_MAX ? -1 : ms > 1000000 ? 1000000 : (int)ms);
        return got < 0 ? -errno : got;
}

static uint64_t until(uint64_t deadline_ns, uint64_t now_ns)
{
        if (deadline_ns == UINT64_MAX)
                return UINT64_MAX;
        return deadline_ns > now_ns ? deadline_ns - now_ns : 0;
}

static int epoll_wait_for(struct sl_wait *wait, struct sl_wait_event *ret_events, uint32_t n, uint64_t timeout_ns)
{
        struct wait_epoll *self = of(wait);
        struct sink sink = {.events = ret_events, .limit = n};
        struct epoll_event events[EVENTS_MAX];
        uint64_t now_ns = sl_clock_ns();
        uint64_t deadline_ns = timeout_ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + timeout_ns;

        if (self->posts_left)
                take_posts(self, &sink);
        while (!sink.n) {
                resume_accepts(self, now_ns);
                uint64_t resume_ns = sl_watches_resume_ns(&self->watches);
                uint64_t next_ns = resume_ns < deadline_ns ? resume_ns : deadline_ns;
                int got = enter(self, events, n < EVENTS_MAX ? (int)n : EVENTS_MAX, until(next_ns, now_ns));

                if (got < 0 && got != -EINTR)
                        return got;
                /* One slot per kernel event is left for those that follow: an edge that finds no room would be lost. */
                for (int i = 0; i < got; i++) {
                        sink.limit = n - (uint32_t)(got - i - 1);
                        handle(self, &events[i], &sink);
                }
                now_ns = sl_clock_ns();
                if (now_ns >= deadline_ns)
                        break;
        }
        return (int)sink.n;
}

static struct sl_wait *epoll_free(struct sl_wait *wait)
{
        struct wait_epoll *self = of(wait);

        if (self->fd >= 0)
                close(self->fd);
        sl_postbox_free(wait->postbox);
        sl_watches_deinit(&self->watches);
        free(self);
        return NULL;
}

static const struct sl_wait_table epoll_table = {
        .name = "epoll",
        .free = epoll_free,
        .watch = epoll_watch,
        .accept = epoll_accept,
        .unwatch = epoll_unwatch,
        .wait_for = epoll_wait_for,
};

static int init(struct wait_epoll *self)
{
        self->fd = epoll_create1(EPOLL_CLOEXEC);
        if (self->fd < 0)
                return -errno;
        int result = sl_postbox_new(&self->wait.postbox);
        if (result < 0)
                return result;
        return epoll_add(self, SL_WATCH_POSTBOX, sl_postbox_fd(self->wait.postbox), 0, EPOLLIN | EPOLLET);
}

int sl_wait_epoll_new(struct sl_wait **ret_wait, struct sl_error *error)
{
        struct wait_epoll *self = calloc(1, sizeof(*self));

        if (!self)
                return sl_error_set(error, ENOMEM, "epoll: out of memory");
        self->wait.table = &epoll_table;
        self->fd = -1;
        int result = init(self);
        if (result < 0) {
                epoll_free(&self->wait);
                return sl_error_set(error, -result, "epoll: %s", strerrordesc_np(-result));
        }
        *ret_wait = &self->wait;
        return 0;
}
