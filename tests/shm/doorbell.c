/* SPDX-License-Identifier: Apache-2.0 */
#include "doorbell.h"

#include "base/clock.h"
#include "futex_watch.h"
#include "pair.h"
#include "ring.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define ROUNDS   20000u
#define LIMIT_NS (60 * SL_NS_PER_SECOND)
#define LIMIT_MS 20000

struct game {
        struct pair pair;
        struct sl_dispatcher_line line;
        int doorbell, completion_fd; /* completion_fd: -1, the client sleeps on the futex */
        uint32_t lost;               /* sleeps of the dispatcher that only the limit ended */
};

static struct game new_game(int completion_fd)
{
        struct game game = {
                .pair = pair_new(8, 1), .doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .completion_fd = completion_fd};

        cr_assert_geq(game.doorbell, 0);
        return game;
}

static void end_game(struct game *game)
{
        close(game->doorbell);
        pair_free(&game->pair);
}

/* Sleeps after every empty look, without spinning first: the worst case for the protocol. */
static void sleep_until_there_is_work(struct game *game, uint32_t head)
{
        const struct sl_queue_map *q = &game->pair.map;
        struct pollfd bell = {.fd = game->doorbell, .events = POLLIN};

        sl_dispatcher_sleep(&game->line);
        if (atomic_load(&q->entries[head & q->mask].seq) != head + 1) {
                game->lost += poll(&bell, 1, LIMIT_MS) == 0;
                sl_doorbell_clear(game->doorbell);
        }
        sl_dispatcher_wake(&game->line);
}

static void *answer(void *context)
{
        struct game *game = context;
        const struct sl_queue_map *q = &game->pair.map;
        struct sl_completer completer = {0};
        struct sl_entry entry;
        uint32_t head = 0;

        while (head < ROUNDS) {
                if (!sl_entry_take(head, q, &entry)) {
                        sleep_until_there_is_work(game, head);
                        continue;
                }
                sl_consumed_publish(++head, q);
                sl_completer_put(&completer, q, &(struct sl_completion){.user_data = entry.user_data});
                sl_completer_publish(&completer, q);
                sl_client_wake(q, game->completion_fd);
        }
        return NULL;
}

static int sleep_in_event_loop(struct game *game, uint32_t seen)
{
        const struct sl_queue_map *q = &game->pair.map;
        struct pollfd fd = {.fd = game->completion_fd, .events = POLLIN};
        int r = 0;

        atomic_store(&q->request->sleep, SL_ASLEEP_FD);
        if (!sl_tail_is_beyond(atomic_load(&q->response->tail), seen)) {
                r = poll(&fd, 1, LIMIT_MS) == 0 ? -ETIMEDOUT : 0;
                sl_doorbell_clear(game->completion_fd);
        }
        atomic_store(&q->request->sleep, SL_AWAKE);
        return r;
}

static uint32_t ask(struct game *game)
{
        const struct sl_queue_map *q = &game->pair.map;
        struct sl_submitter submitter = {0};
        struct sl_reaper reaper = {0};
        uint32_t wrong = 0;

        for (uint32_t i = 0; i < ROUNDS; i++) {
                sl_submitter_room(&submitter, q);
                sl_submitter_slot(&submitter, q)->user_data = i;
                sl_submitter_publish(&submitter, q);
                if (sl_dispatcher_sleeps(&game->line))
                        sl_doorbell_ring(game->doorbell);
                while (!sl_reaper_peek(&reaper, q)) {
                        int r = game->completion_fd < 0 ? sl_client_sleep(q, reaper.head, LIMIT_NS)
                                                        : sleep_in_event_loop(game, reaper.head);
                        wrong += r == -ETIMEDOUT;
                }
                wrong += sl_reaper_peek(&reaper, q)->user_data != i;
                sl_reaper_advance(&reaper);
                sl_reaper_publish(&reaper, q);
        }
        return wrong;
}

static void play(int completion_fd)
{
        struct game game = new_game(completion_fd);
        pthread_t thread;

        cr_assert_eq(pthread_create(&thread, NULL, answer, &game), 0);
        cr_expect_eq(ask(&game), 0);
        pthread_join(thread, NULL);
        cr_expect_eq(game.lost, 0);
        cr_expect_eq(futex_sleeps_lost(), 0);
        cr_expect(completion_fd >= 0 || futex_sleeps() > 0, "nobody has slept");
        end_game(&game);
}

Test(doorbell, two_that_sleep_at_every_turn_never_hang)
{
        play(-1);
}

Test(doorbell, a_client_in_its_event_loop_is_woken_through_its_fd)
{
        int fd = sl_completion_bell_new();

        play(fd);
        close(fd);
}

Test(doorbell, a_sleep_ends_at_its_limit_and_says_so)
{
        struct game game = new_game(-1);

        cr_expect_eq(sl_client_sleep(&game.pair.map, 0, SL_NS_PER_MS), -ETIMEDOUT);
        cr_expect_eq(atomic_load(&game.pair.map.request->sleep), SL_AWAKE);
        end_game(&game);
}

Test(doorbell, who_has_work_already_does_not_sleep)
{
        struct game game = new_game(-1);

        atomic_store(&game.pair.map.response->tail, 1);
        cr_expect_eq(sl_client_sleep(&game.pair.map, 0, UINT64_MAX), 0);
        end_game(&game);
}

/* Who is awake may have reaped what the tail does not count yet. */
Test(doorbell, a_tail_behind_what_was_reaped_is_no_work)
{
        struct game game = new_game(-1);

        atomic_store(&game.pair.map.response->tail, UINT32_MAX);
        cr_expect_eq(sl_client_sleep(&game.pair.map, 0, SL_NS_PER_MS), -ETIMEDOUT);
        cr_expect_eq(sl_client_sleep(&game.pair.map, UINT32_MAX - 1, SL_NS_PER_MS), 0, "beyond, across 2^32");
        end_game(&game);
}

Test(doorbell, nobody_rings_for_those_who_are_awake)
{
        struct game game = new_game(-1);
        int fd = sl_completion_bell_new();
        uint64_t rings;

        cr_expect_not(sl_dispatcher_sleeps(&game.line));
        cr_expect_not(sl_client_wake(&game.pair.map, fd));
        cr_expect_lt(read(fd, &rings, sizeof(rings)), 0);
        atomic_store(&game.pair.map.request->sleep, 77); /* a value that means nothing counts as awake */
        cr_expect_not(sl_client_wake(&game.pair.map, fd));
        cr_expect_lt(read(fd, &rings, sizeof(rings)), 0);
        close(fd);
        end_game(&game);
}

Test(doorbell, clearing_never_blocks_even_when_the_other_side_made_the_fd_blocking)
{
        int fd = eventfd(0, EFD_CLOEXEC);

        sl_doorbell_clear(fd);
        cr_expect_eq(sl_doorbell_ring(fd), 0);
        sl_doorbell_clear(fd);
        sl_doorbell_clear(fd);
        close(fd);
}

Test(doorbell, ringing_a_full_bell_is_no_error)
{
        int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        uint64_t full = UINT64_MAX - 1;

        cr_assert_eq(write(fd, &full, sizeof(full)), sizeof(full));
        cr_expect_eq(sl_doorbell_ring(fd), 0);
        close(fd);
        cr_expect_eq(sl_doorbell_ring(-1), -EBADF);
}

Test(doorbell, a_pipe_serves_as_well_and_its_reader_cannot_make_the_ringer_block)
{
        int ends[2];

        cr_assert_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
        cr_assert_eq(fcntl(ends[0], F_SETFL, 0), 0);
        for (int i = 0; i < 100000; i++)
                cr_assert_eq(sl_doorbell_ring(ends[1]), 0);
        close(ends[0]);
        close(ends[1]);
}

/* The client shares the open file: it may make it blocking, and it never has to read it. */
Test(doorbell, a_completion_bell_rings_every_time_and_never_blocks)
{
        struct game game = new_game(-1);
        int fd = sl_completion_bell_new(), epoll = epoll_create1(EPOLL_CLOEXEC);
        struct epoll_event event = {.events = EPOLLIN | EPOLLET};

        cr_assert_eq(fcntl(fd, F_SETFL, 0), 0);
        cr_assert_eq(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
        atomic_store(&game.pair.map.request->sleep, SL_ASLEEP_FD);
        for (int i = 0; i < 1000; i++) {
                cr_assert(sl_client_wake(&game.pair.map, fd));
                cr_assert_eq(epoll_wait(epoll, &event, 1, LIMIT_MS), 1);
        }
        close(epoll);
        close(fd);
        end_game(&game);
}

Test(doorbell, spinning_helps_while_there_is_a_core_for_everybody_and_the_dispatcher_is_in_time)
{
        struct sl_dispatcher_line line = {0};

        cr_expect(sl_spin_helps(&line, 0), "a dispatcher that says nothing is no reason to sleep");
        sl_spin_advise(&line, 2, 2, 5000, 0);
        cr_expect(sl_spin_helps(&line, 5000));
        cr_expect_not(sl_spin_helps(&line, 4999), "later than the client would spin");
        sl_spin_advise(&line, 2, 3, 0, 0);
        cr_expect(sl_cores_crowded(&line));
        cr_expect(sl_yield_helps(&line));
        sl_spin_advise(&line, 2, 3, 0, 1);
        cr_expect(sl_cores_crowded(&line));
        cr_expect_not(sl_yield_helps(&line), "somebody computes");
        cr_expect_not(sl_spin_helps(&line, 5000), "more threads than cores");
        sl_spin_advise(&line, 0, 3, 0, 0);
        cr_expect(sl_spin_helps(&line, 5000), "the cores are not known");
}

Test(doorbell, a_dispatcher_says_which_core_is_its_only_one)
{
        struct sl_dispatcher_line line = {0};

        cr_expect_not(sl_is_dispatcher_core(&line, 0), "it has said nothing");
        cr_expect_not(sl_is_dispatcher_core(&line, -1));
        sl_dispatcher_bound(&line, 0);
        cr_expect(sl_is_dispatcher_core(&line, 0));
        cr_expect_not(sl_is_dispatcher_core(&line, 1));
}
