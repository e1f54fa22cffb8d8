/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting: spinning, sleeping, time-outs, event loops, and several queue pairs at once.
 */
#include "world.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>

static void *release_late(void *runtime)
{
        usleep(30000);
        fake_runtime_hold(runtime, false);
        return NULL;
}

Test(wait, a_sleeper_is_woken)
{
        struct world w;
        struct starling_completion c;
        pthread_t thread;

        world_enter(&w);
        for (int i = 0; i < 5; i++) {
                fake_runtime_hold(w.runtime, true);
                submit_noops(&w, 1, 5);
                pthread_create(&thread, NULL, release_late, w.runtime);
                cr_assert_eq(starling_wait(w.queue, &c, 1, STARLING_FOREVER), 1);
                pthread_join(thread, NULL);
        }
        world_leave(&w);
}

Test(wait, a_runtime_that_sleeps_is_woken)
{
        struct world w;
        struct starling_completion c;

        world_enter(&w);
        for (int i = 0; i < 10; i++) {
                usleep(10000);
                submit_noops(&w, 1, 5);
                cr_assert_eq(starling_wait(w.queue, &c, 1, STARLING_FOREVER), 1);
        }
        world_leave(&w);
}

/* The first core of these. */
static int first_of(const cpu_set_t *cores)
{
        int core = 0;

        while (!CPU_ISSET(core, cores))
                core++;
        return core;
}

static void pin(const cpu_set_t *cores)
{
        cr_assert_eq(sched_setaffinity(0, sizeof(*cores), cores), 0);
}

static void expect_affinity(const cpu_set_t *cores)
{
        cpu_set_t now;

        cr_assert_eq(sched_getaffinity(0, sizeof(now), &now), 0);
        cr_expect(CPU_EQUAL(&now, cores));
}

/* The runtime sleeps, is rung for from its own core, and answers. Return: the core behind that. */
static int ring_from(struct world *w, const cpu_set_t *from, const cpu_set_t *affinity)
{
        struct starling_completion c;
        int core;

        usleep(20000);
        pin(from);
        pin(affinity);
        submit_noops(w, 1, 5);
        core = sched_getcpu();
        cr_assert_eq(starling_wait(w->queue, &c, 1, STARLING_FOREVER), 1);
        return core;
}

Test(wait, whoever_rings_on_the_dispatchers_core_leaves_it_and_keeps_its_affinity, .timeout = 60)
{
        struct world w;
        cpu_set_t all, one;
        bool left = false;

        cr_assert_eq(sched_getaffinity(0, sizeof(all), &all), 0);
        if (CPU_COUNT(&all) < 2)
                cr_skip_test("there is one core alone");
        CPU_ZERO(&one);
        CPU_SET(first_of(&all), &one);
        world_place(&w);
        w.fake.bound = 1 + (uint32_t)first_of(&all);
        world_start(&w);
        world_join(&w);
        while (!left) { /* it may be another's turn on that core, or the runtime awake yet */
                left = ring_from(&w, &one, &all) != first_of(&all);
                expect_affinity(&all);
        }
        cr_expect_eq(ring_from(&w, &one, &one), first_of(&all), "it has no other");
        expect_affinity(&one);
        pin(&all);
        world_leave(&w);
}

/* How often this thread has given its core away by itself. */
static long sleeps(void)
{
        struct rusage usage;

        cr_assert_eq(getrusage(RUSAGE_THREAD, &usage), 0);
        return usage.ru_nvcsw;
}

static void enter_and_hold(struct world *w, uint32_t wanted, uint32_t requests)
{
        world_place(w);
        w->fake.wanted = wanted;
        world_start(w);
        world_join(w);
        fake_runtime_hold(w->runtime, true);
        submit_noops(w, requests, 5);
}

static void poll_until_it_sleeps(struct world *w)
{
        struct starling_completion c;
        long before = sleeps();

        while (sleeps() < before + 10)
                for (int i = 0; i < 1000; i++)
                        cr_assert_eq(starling_poll(w->queue, &c, 1), 0);
}

static void expect_no_sleep(struct world *w)
{
        struct starling_completion c;
        long before = sleeps();

        for (int i = 0; i < 100000; i++)
                cr_assert_eq(starling_poll(w->queue, &c, 1), 0);
        cr_expect_eq(sleeps(), before);
}

/* A neighbour may have the core between any two polls, so it is tried until it is seen. */
Test(wait, a_row_of_polls_for_nothing_sleeps_where_the_cores_are_crowded)
{
        struct starling_completion c;
        struct world w;

        enter_and_hold(&w, 3, 2);
        poll_until_it_sleeps(&w);
        fake_runtime_hold(w.runtime, false);
        while (starling_poll(w.queue, &c, 1) == 0)
                ;
        cr_expect_eq(c.user_data, 5);
        world_leave(&w);
}

Test(wait, a_row_of_polls_for_one_request_sleeps_where_twice_as_many_want_to_run_as_there_are_cores)
{
        struct world w;

        enter_and_hold(&w, 5, 1);
        poll_until_it_sleeps(&w);
        fake_runtime_hold(w.runtime, false);
        world_leave(&w);
        enter_and_hold(&w, 4, 1);
        expect_no_sleep(&w);
        fake_runtime_hold(w.runtime, false);
        world_leave(&w);
}

Test(wait, a_row_of_polls_for_nothing_does_not_sleep_where_a_core_is_free)
{
        struct world w;

        enter_and_hold(&w, 2, 2);
        expect_no_sleep(&w);
        fake_runtime_hold(w.runtime, false);
        world_leave(&w);
}

Test(wait, whoever_works_between_two_polls_does_not_sleep_in_them)
{
        struct starling_completion c;
        struct world w;
        long before;

        enter_and_hold(&w, 8, 2);
        before = sleeps();
        for (int i = 0; i < 2000; i++) {
                uint64_t until_ns = starling_clock_ns() + 10000;

                while (starling_clock_ns() < until_ns)
                        ;
                cr_assert_eq(starling_poll(w.queue, &c, 1), 0);
        }
        cr_expect_eq(sleeps(), before);
        fake_runtime_hold(w.runtime, false);
        world_leave(&w);
}

Test(wait, ends_in_time_when_nothing_comes)
{
        struct world w;
        struct starling_completion c;

        world_enter(&w);
        cr_assert_eq(starling_wait(w.queue, &c, 1, STARLING_FOREVER), -ENODATA);
        fake_runtime_hold(w.runtime, true);
        submit_noops(&w, 1, 0);
        cr_assert_eq(starling_wait(w.queue, &c, 1, 0), -ETIMEDOUT);
        cr_assert_eq(starling_wait(w.queue, &c, 1, 50000000), -ETIMEDOUT);
        cr_assert_eq(starling_poll(w.queue, &c, 1), 0);
        cr_assert_eq(starling_poll(w.queue, &c, 0), -EINVAL);
        cr_assert_eq(starling_wait(w.queue, &c, 0, 0), -EINVAL);
        world_leave(&w);
}

static void ignore(int signal)
{
        (void)signal;
}

struct waiter {
        pthread_t thread;
        atomic_bool ended;
};

/* Again and again, as nobody sees from here whether it waits by now. */
static void *interrupt(void *context)
{
        struct waiter *waiter = context;

        for (; !atomic_load(&waiter->ended); usleep(10000))
                pthread_kill(waiter->thread, SIGUSR1);
        return NULL;
}

Test(wait, a_signal_ends_it, .timeout = 60)
{
        struct world w;
        struct starling_completion c;
        struct sigaction action = {.sa_handler = ignore};
        struct waiter self = {.thread = pthread_self()};
        pthread_t thread;

        world_enter(&w);
        sigaction(SIGUSR1, &action, NULL);
        fake_runtime_hold(w.runtime, true);
        submit_noops(&w, 1, 0);
        pthread_create(&thread, NULL, interrupt, &self);
        cr_assert_eq(starling_wait(w.queue, &c, 1, STARLING_FOREVER), -EINTR);
        atomic_store(&self.ended, true);
        pthread_join(thread, NULL);
        world_leave(&w);
}

Test(wait, infer_keeps_the_completions_of_others)
{
        struct world w;
        struct echo e;
        struct starling_completion c[8];

        world_enter(&w);
        echo_prepare(&w, 2, &e);
        submit_noops(&w, 3, 100);
        cr_assert_eq(starling_infer(w.queue, &e.request, NULL), 0);
        cr_assert_eq(starling_queue_in_flight(w.queue), 3);
        cr_assert_eq(starling_poll(w.queue, c, 2), 2);
        cr_assert_eq(c[0].user_data, 100);
        cr_assert_eq(c[1].user_data, 101);
        cr_assert_eq(starling_wait(w.queue, c, 8, STARLING_FOREVER), 1);
        cr_assert_eq(c[0].user_data, 102);
        cr_assert_eq(starling_queue_in_flight(w.queue), 0);
        world_leave(&w);
}

Test(wait, completions_not_reaped_count_against_the_depth)
{
        struct world w;
        struct echo e;
        struct starling_completion c[64];

        world_enter(&w);
        echo_prepare(&w, 2, &e);
        submit_noops(&w, 63, 0);
        cr_assert_eq(starling_infer(w.queue, &e.request, NULL), 0);
        submit_noops(&w, 1, 63);
        cr_assert_eq(starling_infer(w.queue, &e.request, NULL), -EAGAIN);
        for (int seen = 0; seen < 64;) {
                int n = starling_wait(w.queue, c, 64, STARLING_FOREVER);

                cr_assert_gt(n, 0);
                for (int i = 0; i < n; i++)
                        cr_assert_eq(c[i].user_data, (uint64_t)seen++);
        }
        world_leave(&w);
}

#define LIMIT_MS 120000 /* of what must come */

static bool readable(int fd, int timeout_ms)
{
        struct pollfd entry = {.fd = fd, .events = POLLIN};

        return poll(&entry, 1, timeout_ms) == 1;
}

Test(wait, an_event_loop_sees_every_completion)
{
        struct world w;
        struct starling_completion c[4];
        pthread_t thread;

        world_enter(&w);
        cr_assert_eq(starling_queue_arm(w.queue), -EINVAL);

        int fd = starling_queue_fd(w.queue);

        cr_assert_geq(fd, 0);
        cr_assert_eq(starling_queue_fd(w.queue), fd);
        for (int i = 0; i < 5; i++) {
                fake_runtime_hold(w.runtime, true);
                submit_noops(&w, 2, 0);
                cr_assert_eq(starling_queue_arm(w.queue), 0);
                cr_assert_not(readable(fd, 5));
                pthread_create(&thread, NULL, release_late, w.runtime);
                cr_assert(readable(fd, LIMIT_MS));
                pthread_join(thread, NULL);
                for (int seen = 0; seen < 2;)
                        seen += starling_poll(w.queue, c, 4);
        }
        submit_noops(&w, 1, 0);
        eventually(starling_queue_arm(w.queue) == 1);
        cr_assert_eq(starling_poll(w.queue, c, 4), 1);
        world_leave(&w);
}

Test(wait, an_event_loop_may_arm_before_anything_is_in_flight)
{
        struct world w;
        struct starling_completion c;

        world_enter(&w);
        int fd = starling_queue_fd(w.queue);

        for (int i = 0; i < 5; i++) {
                cr_assert_eq(starling_queue_in_flight(w.queue), 0);
                cr_assert_eq(starling_queue_arm(w.queue), 0);
                cr_assert_not(readable(fd, 0));
                submit_noops(&w, 1, 0);
                cr_assert(readable(fd, LIMIT_MS), "armed, and not told of what was submitted behind it");
                eventually(starling_poll(w.queue, &c, 1) == 1);
        }
        world_leave(&w);
}

/* infer() puts the completions of others aside: they are there, though no descriptor will tell. */
Test(wait, an_event_loop_does_not_wait_for_what_was_put_aside)
{
        struct world w;
        struct echo e;
        struct starling_completion c[4];

        world_enter(&w);
        cr_assert_geq(starling_queue_fd(w.queue), 0);
        echo_prepare(&w, 1, &e);
        submit_noops(&w, 2, 0);
        cr_assert_eq(starling_infer(w.queue, &e.request, NULL), 0);
        cr_expect_eq(starling_queue_arm(w.queue), 1);
        cr_assert_eq(starling_poll(w.queue, c, 4), 2);
        world_leave(&w);
}

Test(wait, two_event_loops_take_nothing_from_each_other)
{
        struct world w;
        struct starling_queue *other;
        struct starling_completion c;
        struct starling_request request = noop(1);

        world_enter(&w);
        cr_assert_eq(starling_queue_open(w.client, &other, NULL), 0);

        int fd = starling_queue_fd(w.queue), other_fd = starling_queue_fd(other);

        cr_assert_neq(fd, other_fd);
        for (int i = 0; i < 10; i++) {
                fake_runtime_hold(w.runtime, true);
                submit_noops(&w, 1, 0);
                cr_assert_eq(starling_submit(other, &request, NULL), 0);
                eventually(fake_runtime_held(w.runtime) == 2);
                cr_assert_eq(starling_queue_arm(w.queue), 0);
                cr_assert_eq(starling_queue_arm(other), 0);
                fake_runtime_hold(w.runtime, false);
                cr_assert(readable(fd, LIMIT_MS));
                eventually(starling_poll(w.queue, &c, 1) == 1);
                cr_assert_eq(starling_queue_arm(w.queue), 0);
                cr_assert(readable(other_fd, LIMIT_MS));
                eventually(starling_poll(other, &c, 1) == 1);
        }
        world_leave(&w);
}

struct hammer {
        struct starling_client *client;
        int failures;
};

static void *hammer(void *context)
{
        struct hammer *h = context;
        struct starling_queue *queue;
        struct starling_model *model;
        struct starling_tensor in, out;

        if (starling_queue_open(h->client, &queue, NULL) < 0 || starling_model_open(h->client, "echo", &model, NULL) < 0)
                return h->failures++, NULL;
        for (uint32_t i = 1; i <= 300; i++) {
                uint32_t dims[] = {i, 4};

                h->failures += starling_tensor_alloc(h->client, STARLING_F32, 2, dims, &in) < 0;
                h->failures += starling_tensor_alloc(h->client, STARLING_F32, 2, dims, &out) < 0;
                memset(in.data, (int)i, in.bytes);

                struct starling_request request = {.model = model, .inputs = &in, .n_inputs = 1, .outputs = &out, .n_outputs = 1};

                h->failures += starling_infer(queue, &request, NULL) < 0;
                h->failures += memcmp(in.data, out.data, in.bytes) != 0;
                h->failures += starling_free(h->client, in.data) < 0;
                h->failures += starling_free(h->client, out.data) < 0;
        }
        starling_model_close(model);
        starling_queue_close(queue);
        return NULL;
}

Test(wait, threads_share_a_client_each_with_its_queue_pair)
{
        struct world w;
        struct hammer hammers[3];
        pthread_t threads[3];

        world_enter(&w);
        for (int i = 0; i < 3; i++) {
                hammers[i] = (struct hammer){.client = w.client};
                pthread_create(&threads[i], NULL, hammer, &hammers[i]);
        }
        for (int i = 0; i < 3; i++) {
                pthread_join(threads[i], NULL);
                cr_assert_eq(hammers[i].failures, 0);
        }
        world_leave(&w);
}

Test(wait, a_queue_pair_goes_on_after_it_was_closed_with_requests_in_flight)
{
        struct world w;
        struct starling_completion c;
        struct starling_queue *queues[4];

        world_enter(&w);
        fake_runtime_hold(w.runtime, true);
        submit_noops(&w, 5, 0);
        cr_assert_null(starling_queue_close(w.queue));
        cr_assert_null(starling_queue_close(NULL));
        for (int i = 0; i < 4; i++)
                cr_assert_eq(starling_queue_open(w.client, &queues[i], NULL), 0);
        cr_assert_eq(starling_queue_open(w.client, &w.queue, &w.error), -EMFILE);
        cr_assert_not_null(strstr(w.error.text, "all 4 queue pairs"));
        fake_runtime_hold(w.runtime, false);
        w.queue = queues[0];
        submit_noops(&w, 1, 77);
        cr_assert_eq(starling_wait(w.queue, &c, 1, STARLING_FOREVER), 1);
        cr_assert_eq(c.user_data, 77);
        world_leave(&w);
}
