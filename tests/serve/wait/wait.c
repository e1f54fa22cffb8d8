/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of the wait, through both of its implementations. */
#include "wait.h"
#include "base/clock.h"
#include "base/error.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LIMIT_NS (120 * SL_NS_PER_SECOND) /* of what must come */

/* One body, two tests. */
#define BOTH(name)                                                                                                                 \
        static void name(enum sl_wait_kind kind);                                                                                  \
        Test(wait_uring, name, .timeout = 60)                                                                                      \
        {                                                                                                                          \
                name(SL_WAIT_URING);                                                                                               \
        }                                                                                                                          \
        Test(wait_epoll, name, .timeout = 60)                                                                                      \
        {                                                                                                                          \
                name(SL_WAIT_EPOLL);                                                                                               \
        }                                                                                                                          \
        static void name(enum sl_wait_kind kind)

static struct sl_wait *make(enum sl_wait_kind kind)
{
        struct sl_wait *wait = NULL;
        struct sl_error error = {""};

        cr_assert_eq(sl_wait_new(kind, &wait, &error), 0, "%s", error.text);
        return wait;
}

/* One event; none within the time of a hang. */
static struct sl_wait_event next(struct sl_wait *wait)
{
        struct sl_wait_event event = {0};
        int n = sl_wait_for(wait, &event, 1, LIMIT_NS);

        cr_assert_geq(n, 0, "sl_wait_for: %d", n);
        return n ? event : (struct sl_wait_event){.token = UINT64_MAX};
}

static void expect_silence(struct sl_wait *wait)
{
        struct sl_wait_event event;

        cr_assert_eq(sl_wait_for(wait, &event, 1, 20 * SL_NS_PER_MS), 0, "an event nobody caused: what %u", event.what);
}

static void tick(int fd)
{
        uint64_t one = 1;

        cr_assert_eq(write(fd, &one, sizeof(one)), (ssize_t)sizeof(one));
}

static void drain(int fd)
{
        uint64_t count;

        cr_assert_eq(read(fd, &count, sizeof(count)), (ssize_t)sizeof(count));
}

BOTH(name_is_the_kind_that_was_asked_for)
{
        struct sl_wait *wait = make(kind);

        cr_assert_str_eq(sl_wait_name(wait), kind == SL_WAIT_URING ? "io_uring" : "epoll");
        sl_wait_free(wait);
}

BOTH(nothing_happens_until_the_time_is_over)
{
        struct sl_wait *wait = make(kind);
        struct sl_wait_event event;
        uint64_t start_ns = sl_clock_ns();

        cr_assert_eq(sl_wait_for(wait, &event, 1, 0), 0);
        cr_assert_eq(sl_wait_for(wait, &event, 1, 3 * SL_NS_PER_MS), 0);
        cr_assert_geq(sl_clock_ns() - start_ns, 3 * SL_NS_PER_MS);
        sl_wait_free(wait);
}

BOTH(a_readable_fd_is_an_event_with_its_token)
{
        struct sl_wait *wait = make(kind);
        int fd = eventfd(0, EFD_NONBLOCK);

        cr_assert_eq(sl_wait_watch(wait, fd, 0xfedcba9876543210u), 0);
        expect_silence(wait);
        tick(fd);
        struct sl_wait_event event = next(wait);
        cr_assert_eq(event.token, 0xfedcba9876543210u);
        cr_assert_eq(event.what, SL_WAIT_READABLE);
        sl_wait_free(wait);
        close(fd);
}

BOTH(what_was_readable_before_the_watch_is_the_first_edge)
{
        struct sl_wait *wait = make(kind);
        int fd = eventfd(1, EFD_NONBLOCK);

        cr_assert_eq(sl_wait_watch(wait, fd, 1), 0);
        cr_assert_eq(next(wait).token, 1);
        sl_wait_free(wait);
        close(fd);
}

BOTH(each_edge_after_a_drain_is_seen)
{
        struct sl_wait *wait = make(kind);
        int fd = eventfd(0, EFD_NONBLOCK);

        sl_wait_watch(wait, fd, 1);
        for (int i = 0; i < 5000; i++) {
                tick(fd);
                cr_assert_eq(next(wait).token, 1, "edge %d was lost", i);
                drain(fd);
        }
        sl_wait_free(wait);
        close(fd);
}

/* More edges than the completion ring has room for: a multishot poll ends by itself then, and must be armed again. */
BOTH(edges_that_overflow_the_ring_are_not_lost)
{
        enum { FDS = 64, ROUNDS = 200 };
        struct sl_wait *wait = make(kind);
        struct sl_wait_event events[128];
        int fds[FDS];

        for (int i = 0; i < FDS; i++) {
                fds[i] = eventfd(0, EFD_NONBLOCK);
                cr_assert_eq(sl_wait_watch(wait, fds[i], (uint64_t)i), 0);
        }
        sl_wait_for(wait, events, 128, 0);
        for (int round = 0; round < ROUNDS; round++)
                for (int i = 0; i < FDS; i++)
                        tick(fds[i]);
        while (sl_wait_for(wait, events, 128, 0) > 0)
                ;
        for (int i = 0; i < FDS; i++) {
                drain(fds[i]);
                tick(fds[i]);
                bool seen = false;
                while (!seen && sl_wait_for(wait, events, 1, LIMIT_NS) > 0)
                        seen = events[0].token == (uint64_t)i;
                cr_assert(seen, "the edge of fd %d was lost after an overflow", i);
                drain(fds[i]);
        }
        sl_wait_free(wait);
        for (int i = 0; i < FDS; i++)
                close(fds[i]);
}

struct ticker {
        int fd;
        int rounds;
        _Atomic int seen;
};

static void *tick_after_each_drain(void *argument)
{
        struct ticker *ticker = argument;

        for (int i = 0; i < ticker->rounds; i++) {
                tick(ticker->fd);
                while (atomic_load(&ticker->seen) <= i)
                        usleep(1);
        }
        return NULL;
}

BOTH(an_edge_from_another_thread_ends_the_sleep)
{
        struct sl_wait *wait = make(kind);
        struct ticker ticker = {.fd = eventfd(0, EFD_NONBLOCK), .rounds = 500};
        pthread_t thread;

        sl_wait_watch(wait, ticker.fd, 1);
        pthread_create(&thread, NULL, tick_after_each_drain, &ticker);
        for (int i = 0; i < ticker.rounds; i++) {
                struct sl_wait_event event;

                cr_assert_eq(sl_wait_for(wait, &event, 1, LIMIT_NS), 1, "round %d", i);
                drain(ticker.fd);
                atomic_fetch_add(&ticker.seen, 1);
        }
        pthread_join(thread, NULL);
        sl_wait_free(wait);
        close(ticker.fd);
}

BOTH(a_watch_is_heard_although_others_never_fall_silent)
{
        struct sl_wait *wait = make(kind);
        int busy = eventfd(0, EFD_NONBLOCK), late = eventfd(1, EFD_NONBLOCK);
        bool seen = false;

        sl_wait_watch(wait, busy, 1);
        expect_silence(wait);
        sl_wait_watch(wait, late, 2);
        for (int i = 0; i < 100 && !seen; i++) {
                tick(busy);
                seen = next(wait).token == 2;
        }
        cr_assert(seen);
        sl_wait_free(wait);
        close(busy);
        close(late);
}

BOTH(end_of_file_is_a_hangup)
{
        struct sl_wait *wait = make(kind);
        int pair[2];

        cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
        sl_wait_watch(wait, pair[0], 9);
        expect_silence(wait);
        close(pair[1]);
        struct sl_wait_event event = next(wait);
        cr_assert_eq(event.token, 9);
        cr_assert(event.what & SL_WAIT_HANGUP);
        sl_wait_free(wait);
        close(pair[0]);
}

BOTH(tokens_are_unique_and_fds_are_open)
{
        struct sl_wait *wait = make(kind);
        int fd = eventfd(0, 0), other = eventfd(0, 0);

        cr_assert_eq(sl_wait_watch(wait, fd, 1), 0);
        cr_assert_eq(sl_wait_watch(wait, other, 1), -EEXIST);
        cr_assert_eq(sl_wait_watch(wait, 12345, 2), -EBADF);
        cr_assert_eq(sl_wait_unwatch(wait, 2), -ENOENT);
        sl_wait_free(wait);
        close(fd);
        close(other);
}

BOTH(after_unwatch_no_event_comes_even_when_the_slot_is_used_again)
{
        struct sl_wait *wait = make(kind);
        int old = eventfd(0, EFD_NONBLOCK), new = eventfd(0, EFD_NONBLOCK);

        sl_wait_watch(wait, old, 1);
        expect_silence(wait);
        tick(old);
        cr_assert_eq(sl_wait_unwatch(wait, 1), 0);
        sl_wait_watch(wait, new, 2);
        expect_silence(wait);
        tick(old);
        expect_silence(wait);
        tick(new);
        cr_assert_eq(next(wait).token, 2);
        sl_wait_free(wait);
        close(old);
        close(new);
}

static int listen_at(const char *path)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

        strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
        cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
        cr_assert_eq(listen(fd, 128), 0);
        return fd;
}

static int connect_to(const char *path)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

        strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
        cr_assert_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0, "connect: %s", strerror(errno));
        return fd;
}

static void socket_path(char *ret_path, size_t bytes)
{
        char folder[] = "/tmp/sl-wait-XXXXXX";

        cr_assert(mkdtemp(folder));
        snprintf(ret_path, bytes, "%s/socket", folder);
}

static void remove_socket(char *path)
{
        unlink(path);
        *strrchr(path, '/') = 0;
        rmdir(path);
}

BOTH(each_connection_is_accepted_once_and_non_blocking)
{
        struct sl_wait *wait = make(kind);
        char path[64];
        int clients[40];

        socket_path(path, sizeof(path));
        int listener = listen_at(path);
        cr_assert_eq(sl_wait_accept(wait, listener, 7), 0);
        for (int i = 0; i < 40; i++)
                clients[i] = connect_to(path);
        int n_accepted = 0;
        for (struct sl_wait_event event = next(wait); event.token == 7;
                event = n_accepted < 40 ? next(wait) : (struct sl_wait_event){0}) {
                cr_assert_eq(event.what, SL_WAIT_ACCEPTED);
                cr_assert(fcntl(event.value, F_GETFL) & O_NONBLOCK);
                cr_assert(fcntl(event.value, F_GETFD) & FD_CLOEXEC);
                close(event.value);
                n_accepted++;
        }
        cr_assert_eq(n_accepted, 40);
        expect_silence(wait);
        for (int i = 0; i < 40; i++)
                close(clients[i]);
        sl_wait_free(wait);
        close(listener);
        remove_socket(path);
}

BOTH(accepting_resumes_by_itself_after_a_lack_of_fds)
{
        struct sl_wait *wait = make(kind);
        struct rlimit limit, none;
        char path[64];

        socket_path(path, sizeof(path));
        int listener = listen_at(path);
        sl_wait_accept(wait, listener, 7);
        int client = connect_to(path);
        getrlimit(RLIMIT_NOFILE, &limit);
        none = limit;
        none.rlim_cur = 3;
        setrlimit(RLIMIT_NOFILE, &none);
        struct sl_wait_event refused = next(wait);
        cr_assert_eq(refused.what, SL_WAIT_ACCEPTED);
        cr_assert_eq(refused.value, -EMFILE, "%d", refused.value);
        expect_silence(wait);
        setrlimit(RLIMIT_NOFILE, &limit);
        struct sl_wait_event accepted = next(wait);
        cr_assert_geq(accepted.value, 0);
        cr_assert_eq(accepted.what, SL_WAIT_ACCEPTED);
        close(accepted.value);
        close(client);
        sl_wait_free(wait);
        close(listener);
        remove_socket(path);
}

BOTH(a_post_without_a_ring_of_its_own_arrives)
{
        struct sl_wait *wait = make(kind);

        cr_assert_eq(sl_wait_post(NULL, wait, 0x8000000000000001u), 0);
        struct sl_wait_event event = next(wait);
        cr_assert_eq(event.token, 0x8000000000000001u);
        cr_assert_eq(event.what, SL_WAIT_POSTED);
        expect_silence(wait);
        sl_wait_free(wait);
}

BOTH(posts_of_different_tokens_all_arrive_whatever_the_room)
{
        struct sl_wait *wait = make(kind);
        uint64_t sum = 0;

        for (uint64_t token = 1; token <= SL_WAIT_POSTS_MAX; token++)
                cr_assert_eq(sl_wait_post(NULL, wait, token), 0);
        cr_assert_eq(sl_wait_post(NULL, wait, 5), 0, "the same token is merged");
        cr_assert_eq(sl_wait_post(NULL, wait, 99999), -EAGAIN);
        for (uint32_t i = 0; i < SL_WAIT_POSTS_MAX; i++)
                sum += next(wait).token;
        cr_assert_eq(sum, SL_WAIT_POSTS_MAX * (SL_WAIT_POSTS_MAX + 1ul) / 2);
        expect_silence(wait);
        sl_wait_free(wait);
}

struct echo {
        enum sl_wait_kind kind;
        struct sl_wait *near, *far;
        int rounds;
};

/* Answers each post of token i with one of token i + 2^63. */
static void *echo_posts(void *argument)
{
        struct echo *echo = argument;

        for (int i = 0; i < echo->rounds; i++) {
                struct sl_wait_event event;

                if (sl_wait_for(echo->far, &event, 1, LIMIT_NS) != 1)
                        return argument;
                sl_wait_post(echo->far, echo->near, event.token | 1ull << 63);
        }
        return NULL;
}

BOTH(posts_between_two_waiting_threads_are_neither_lost_nor_changed)
{
        struct echo echo = {.near = make(kind), .far = make(kind), .rounds = 2000};
        pthread_t thread;
        void *failed;

        pthread_create(&thread, NULL, echo_posts, &echo);
        for (int i = 0; i < echo.rounds; i++) {
                struct sl_wait_event event = {0};
                uint64_t token = (uint64_t)i << 30;

                cr_assert_eq(sl_wait_post(echo.near, echo.far, token), 0);
                cr_assert_eq(sl_wait_for(echo.near, &event, 1, LIMIT_NS), 1, "post %d was lost", i);
                cr_assert_eq(event.what, SL_WAIT_POSTED);
                cr_assert_eq(event.token, token | 1ull << 63);
        }
        pthread_join(thread, &failed);
        cr_assert_null(failed);
        sl_wait_free(echo.near);
        sl_wait_free(echo.far);
}

Test(wait, posts_cross_between_the_implementations, .timeout = 60)
{
        struct sl_wait *ring = make(SL_WAIT_URING), *epoll = make(SL_WAIT_EPOLL);

        cr_assert_eq(sl_wait_post(ring, epoll, 1), 0);
        cr_assert_eq(sl_wait_post(epoll, ring, 2), 0);
        cr_assert_eq(next(epoll).token, 1);
        cr_assert_eq(next(ring).token, 2);
        sl_wait_free(ring);
        sl_wait_free(epoll);
}

static int count_fds(void)
{
        int n = 0;

        for (int fd = 0; fd < 256; fd++)
                n += fcntl(fd, F_GETFD) >= 0;
        return n;
}

BOTH(free_leaves_no_fd_behind)
{
        int before = count_fds();
        struct sl_wait *wait = make(kind);

        sl_wait_post(NULL, wait, 1);
        next(wait);
        cr_assert_null(sl_wait_free(wait));
        cr_assert_null(sl_wait_free(NULL));
        cr_assert_eq(count_fds(), before);
}
