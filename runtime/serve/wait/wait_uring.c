/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wait on io_uring: multishot polls and accepts, and MSG_RING between the rings of two threads.
 *
 * The ring is made disabled and enabled by the first sl_wait_for(), whose thread becomes its single issuer. Watches are armed
 * (their entries submitted) by sl_wait_for() alone. A multishot request that ends by itself (the completion lacks
 * IORING_CQE_F_MORE) is armed again by the next call: arming looks at the fd's present state first, so that what came in between is
 * an event, too.
 *
 * A completion's user data: its kind in the top byte, then a watch's key, or the lower half of a post's token (the upper half is
 * the result).
 */
#include "base/clock.h"
#include "base/error.h"
#include "postbox.h"
#include "table.h"
#include "watches.h"

#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SUBMISSIONS 256
#define COMPLETIONS 2048

/* Linux 6.3: liburing 2.3 has no name for it. Earlier kernels complete a MSG_RING without waking a DEFER_TASKRUN ring safely. */
#define FEATURE_REG_REG_RING (1u << 13)

enum { KIND_NONE, KIND_WATCH, KIND_ACCEPT, KIND_POST };

struct wait_uring {
        struct sl_wait wait;
        struct io_uring ring;
        bool made;            /* the ring exists */
        bool messages;        /* MSG_RING may be used towards this ring */
        bool posts_left;      /* the last take left tokens behind */
        _Atomic bool enabled; /* set once by the waiting thread, read by those that post */
        struct sl_watches watches;
};

/* Where the events of one call go. */
struct sink {
        struct sl_wait_event *events;
        uint32_t n, limit;
};

static struct wait_uring *of(struct sl_wait *wait)
{
        return (struct wait_uring *)wait;
}

static uint64_t user_data(uint32_t kind, uint64_t value)
{
        return (uint64_t)kind << 56 | value;
}

static void emit(struct sink *sink, uint64_t token, uint32_t what, int value)
{
        sink->events[sink->n++] = (struct sl_wait_event){.token = token, .what = what, .value = value};
}

/* An entry of the submission ring, cleared; submits what lies there when it is full. NULL when the kernel takes nothing now. */
static struct io_uring_sqe *entry(struct wait_uring *self)
{
        struct io_uring_sqe *sqe = io_uring_get_sqe(&self->ring);

        if (!sqe && io_uring_submit(&self->ring) >= 0)
                sqe = io_uring_get_sqe(&self->ring);
        return sqe;
}

static int uring_watch(struct sl_wait *wait, int fd, uint64_t token)
{
        struct sl_watch *watch;

        return sl_watches_add(&of(wait)->watches, SL_WATCH_POLL, fd, token, &watch);
}

static int uring_accept(struct sl_wait *wait, int fd, uint64_t token)
{
        struct sl_watch *watch;
        int result = sl_watches_add(&of(wait)->watches, SL_WATCH_ACCEPT, fd, token, &watch);

        /* The kernel answers -EAGAIN instead of waiting when the listening fd is non-blocking. */
        if (result == 0)
                fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
        return result;
}

/* Cancelled at once: the request holds a reference to the file, and a listening socket would live on. */
static void cancel(struct wait_uring *self, const struct sl_watch *watch)
{
        uint32_t kind = watch->kind == SL_WATCH_ACCEPT ? KIND_ACCEPT : KIND_WATCH;
        struct io_uring_sqe *sqe = entry(self);

        if (!sqe)
                return;
        io_uring_prep_cancel64(sqe, user_data(kind, sl_watches_key(&self->watches, watch)), 0);
        sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
        io_uring_sqe_set_data64(sqe, user_data(KIND_NONE, 0));
        io_uring_submit(&self->ring);
}

static int uring_unwatch(struct sl_wait *wait, uint64_t token)
{
        struct wait_uring *self = of(wait);
        struct sl_watch *watch = sl_watches_find(&self->watches, token);

        if (!watch)
                return -ENOENT;
        if (watch->armed)
                cancel(self, watch);
        sl_watches_remove(&self->watches, watch);
        return 0;
}

static bool arm(struct wait_uring *self, struct sl_watch *watch)
{
        struct io_uring_sqe *sqe = entry(self);
        uint64_t key = sl_watches_key(&self->watches, watch);

        if (!sqe)
                return false;
        if (watch->kind == SL_WATCH_ACCEPT) {
                io_uring_prep_multishot_accept(sqe, watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
                io_uring_sqe_set_data64(sqe, user_data(KIND_ACCEPT, key));
        } else {
                io_uring_prep_poll_multishot(sqe, watch->fd, POLLIN | POLLRDHUP);
                io_uring_sqe_set_data64(sqe, user_data(KIND_WATCH, key));
        }
        sl_watches_armed(&self->watches, watch);
        return true;
}

static void arm_all(struct wait_uring *self, uint64_t now_ns)
{
        for (uint32_t i = 0; self->watches.n_unarmed && i < self->watches.n; i++) {
                struct sl_watch *watch = &self->watches.slots[i];
                bool wants = watch->kind != SL_WATCH_FREE && !watch->armed && !watch->finished;

                if (wants && watch->resume_ns <= now_ns && !arm(self, watch))
                        return;
        }
}

static void take_posts(struct wait_uring *self, struct sink *sink)
{
        uint64_t tokens[SL_WAIT_POSTS_MAX];
        uint32_t room = sink->limit - sink->n;
        uint32_t n =
                sl_postbox_take(self->wait.postbox, tokens, room < SL_WAIT_POSTS_MAX ? room : SL_WAIT_POSTS_MAX, &self->posts_left);

        for (uint32_t i = 0; i < n; i++)
                emit(sink, tokens[i], SL_WAIT_POSTED, 0);
}

static void handle_poll(struct wait_uring *self, struct sl_watch *watch, int result, bool more, struct sink *sink)
{
        uint32_t mask = result < 0 ? POLLERR : (uint32_t)result;
        bool hangup = mask & (POLLHUP | POLLRDHUP | POLLERR);

        /* A poll that failed or saw both directions end would only say the same again. */
        if (!more && (mask & (POLLHUP | POLLERR)) && result != -ECANCELED)
                sl_watches_finished(&self->watches, watch);
        else if (!more)
                sl_watches_disarmed(&self->watches, watch, 0);

        if (result == -ECANCELED)
                return;
        if (watch->kind == SL_WATCH_POSTBOX)
                take_posts(self, sink);
        else
                emit(sink, watch->token, (mask & POLLIN ? SL_WAIT_READABLE : 0) | (hangup ? SL_WAIT_HANGUP : 0), 0);
}

static void handle_accept(struct wait_uring *self, struct sl_watch *watch, int result, bool more, struct sink *sink)
{
        bool pauses = result < 0 && sl_watches_pauses(-result);
        bool broken = result == -EINVAL || result == -EBADF || result == -EOPNOTSUPP || result == -ENOTSOCK;

        if (broken)
                sl_watches_finished(&self->watches, watch);
        else if (!more)
                sl_watches_disarmed(&self->watches, watch, pauses ? sl_clock_ns() + SL_WAIT_ACCEPT_PAUSE_NS : 0);

        if (result >= 0 || pauses)
                emit(sink, watch->token, SL_WAIT_ACCEPTED, result);
        else if (broken)
                emit(sink, watch->token, SL_WAIT_HANGUP, 0);
}

static void handle(struct wait_uring *self, const struct io_uring_cqe *cqe, struct sink *sink)
{
        uint32_t kind = (uint32_t)(cqe->user_data >> 56);
        bool more = cqe->flags & IORING_CQE_F_MORE;

        if (kind == KIND_POST) {
                emit(sink, (uint64_t)(uint32_t)cqe->res << 32 | (uint32_t)cqe->user_data, SL_WAIT_POSTED, 0);
                return;
        }
        struct sl_watch *watch = kind == KIND_NONE ? NULL : sl_watches_of_key(&self->watches, cqe->user_data);
        if (!watch && kind == KIND_ACCEPT && cqe->res >= 0)
                close(cqe->res); /* accepted while its watch was being cancelled */
        if (!watch)
                return;
        if (kind == KIND_ACCEPT)
                handle_accept(self, watch, cqe->res, more, sink);
        else
                handle_poll(self, watch, cqe->res, more, sink);
}

static void harvest(struct wait_uring *self, struct sink *sink)
{
        struct io_uring_cqe *cqe;

        while (sink->n < sink->limit && io_uring_peek_cqe(&self->ring, &cqe) == 0) {
                handle(self, cqe, sink);
                io_uring_cqe_seen(&self->ring, cqe);
        }
}

/* Submits, then waits for one completion or @timeout_ns. A time-out, a signal and a full completion ring are no errors. */
static int enter(struct wait_uring *self, uint64_t timeout_ns)
{
        struct io_uring_cqe *cqe;
        struct __kernel_timespec timeout = {
                .tv_sec = (long long)(timeout_ns / SL_NS_PER_SECOND), .tv_nsec = (long long)(timeout_ns % SL_NS_PER_SECOND)};
        int result = 0;

        if (timeout_ns)
                result = io_uring_submit_and_wait_timeout(&self->ring, &cqe, 1, timeout_ns == UINT64_MAX ? NULL : &timeout, NULL);
        else if (io_uring_sq_ready(&self->ring))
                result = io_uring_submit(&self->ring);
        bool harmless = result == -ETIME || result == -EINTR || result == -EAGAIN || result == -EBUSY;
        return result < 0 && !harmless ? result : 0;
}

static int enable(struct wait_uring *self)
{
        /* liburing 2.3 declares io_uring_enable_rings() but does not export it. */
        if (syscall(__NR_io_uring_register, self->ring.ring_fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0) < 0)
                return -errno;
        atomic_store(&self->enabled, true);
        return 0;
}

static uint64_t until(uint64_t deadline_ns, uint64_t now_ns)
{
        if (deadline_ns == UINT64_MAX)
                return UINT64_MAX;
        return deadline_ns > now_ns ? deadline_ns - now_ns : 0;
}

static int uring_wait_for(struct sl_wait *wait, struct sl_wait_event *ret_events, uint32_t n, uint64_t timeout_ns)
{
        struct wait_uring *self = of(wait);
        struct sink sink = {.events = ret_events, .limit = n};
        int result = atomic_load_explicit(&self->enabled, memory_order_relaxed) ? 0 : enable(self);

        if (result < 0)
                return result;
        uint64_t now_ns = sl_clock_ns();
        uint64_t deadline_ns = timeout_ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + timeout_ns;

        /* Before the harvest: a caller who always finds events must not keep a new watch from being armed. */
        arm_all(self, now_ns);
        if (io_uring_sq_ready(&self->ring))
                io_uring_submit(&self->ring);
        if (self->posts_left)
                take_posts(self, &sink);
        harvest(self, &sink);
        while (!sink.n) {
                arm_all(self, now_ns);
                uint64_t resume_ns = sl_watches_resume_ns(&self->watches);
                result = enter(self, until(resume_ns < deadline_ns ? resume_ns : deadline_ns, now_ns));
                if (result < 0)
                        return result;
                harvest(self, &sink);
                now_ns = sl_clock_ns();
                if (now_ns >= deadline_ns)
                        break;
        }
        return (int)sink.n;
}

/* The completion of a message that arrived is skipped; one that failed is ignored: its target is going away. */
static bool uring_post(struct sl_wait *from_wait, struct sl_wait *target_wait, uint64_t token)
{
        struct wait_uring *from = of(from_wait), *target = of(target_wait);

        if (!target->messages || !atomic_load(&target->enabled) || !atomic_load(&from->enabled) || from == target)
                return false;
        struct io_uring_sqe *sqe = entry(from);
        if (!sqe)
                return false;
        io_uring_prep_msg_ring(sqe, target->ring.ring_fd, (uint32_t)(token >> 32), user_data(KIND_POST, (uint32_t)token), 0);
        sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
        io_uring_sqe_set_data64(sqe, user_data(KIND_NONE, 0));
        /* What the kernel does not take now would wait for this thread's next entry: the eventfd then wakes the target instead. */
        return io_uring_submit(&from->ring) >= 0;
}

static struct sl_wait *uring_free(struct sl_wait *wait)
{
        struct wait_uring *self = of(wait);

        if (self->made)
                io_uring_queue_exit(&self->ring);
        sl_postbox_free(wait->postbox);
        sl_watches_deinit(&self->watches);
        free(self);
        return NULL;
}

static const struct sl_wait_table uring_table = {
        .name = "io_uring",
        .free = uring_free,
        .watch = uring_watch,
        .accept = uring_accept,
        .unwatch = uring_unwatch,
        .wait_for = uring_wait_for,
        .post_directly = uring_post,
};

/* The best of the set-ups that the kernel takes. */
static int make_ring(struct wait_uring *self)
{
        static const uint32_t flag_sets[] = {
                IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
                IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
                IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
                0,
        };
        int result = -EINVAL;

        for (size_t i = 0; result == -EINVAL && i < sizeof(flag_sets) / sizeof(*flag_sets); i++) {
                struct io_uring_params params = {
                        .flags = flag_sets[i] | IORING_SETUP_CQSIZE | IORING_SETUP_R_DISABLED | IORING_SETUP_CLAMP,
                        .cq_entries = COMPLETIONS};

                result = io_uring_queue_init_params(SUBMISSIONS, &self->ring, &params);
                self->messages = result == 0 && (params.features & FEATURE_REG_REG_RING);
        }
        self->made = result == 0;
        return result;
}

/* Multishot accept and poll have no flag of their own; SENDMSG_ZC came with 6.1, the oldest kernel that Starling supports. */
static bool kernel_suffices(struct wait_uring *self)
{
        struct io_uring_probe *probe = io_uring_get_probe_ring(&self->ring);
        bool suffices = probe && io_uring_opcode_supported(probe, IORING_OP_SENDMSG_ZC);

        io_uring_free_probe(probe);
        return suffices;
}

static const char *cause_of(int result)
{
        char line[8] = "";
        FILE *file = fopen("/proc/sys/kernel/io_uring_disabled", "re");

        if (file) {
                if (!fgets(line, sizeof(line), file))
                        line[0] = 0;
                fclose(file);
        }
        if (line[0] == '1' || line[0] == '2')
                return "denied by the setting kernel.io_uring_disabled";
        if (result == -EPERM || result == -EACCES)
                return "denied, as by a container's seccomp profile";
        return result == -ENOSYS ? "not there: an older kernel, or hidden by a container's seccomp profile"
                                 : strerrordesc_np(-result);
}

static int init(struct wait_uring *self, struct sl_error *error)
{
        int result = make_ring(self);

        if (result < 0)
                return sl_error_set(error, -result, "io_uring: %s", cause_of(result));
        if (!kernel_suffices(self))
                return sl_error_set(error, ENOSYS, "io_uring: the kernel lacks operations of Linux 6.1");
        struct sl_watch *watch;
        result = sl_postbox_new(&self->wait.postbox);
        if (result == 0)
                result = sl_watches_add(&self->watches, SL_WATCH_POSTBOX, sl_postbox_fd(self->wait.postbox), 0, &watch);
        return result < 0 ? sl_error_set(error, -result, "io_uring: %s", strerrordesc_np(-result)) : 0;
}

int sl_wait_uring_new(struct sl_wait **ret_wait, struct sl_error *error)
{
        struct wait_uring *self = calloc(1, sizeof(*self));

        if (!self)
                return sl_error_set(error, ENOMEM, "io_uring: out of memory");
        self->wait.table = &uring_table;
        int result = init(self, error);
        if (result < 0) {
                uring_free(&self->wait);
                return result;
        }
        *ret_wait = &self->wait;
        return 0;
}
