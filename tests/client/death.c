/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of the runtime: every accepted request gets exactly one completion, nothing hangs, and a reconnect finds the tensors
 * where they were.
 */
#include "world.h"

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* Reaps until there is nothing more; counts by status. */
static void reap_all(struct world *w, int *ret_done, int *ret_gone)
{
        struct starling_completion c[16];
        bool seen[64] = {false};
        int n;

        *ret_done = *ret_gone = 0;
        while ((n = starling_wait(w->queue, c, 16, STARLING_FOREVER)) > 0)
                for (int i = 0; i < n; i++) {
                        cr_assert_lt(c[i].user_data, 64);
                        cr_assert_not(seen[c[i].user_data], "two completions of one request");
                        seen[c[i].user_data] = true;
                        cr_assert(c[i].status == 0 || c[i].status == -EPIPE, "%d", c[i].status);
                        *(c[i].status == 0 ? ret_done : ret_gone) += 1;
                }
        cr_assert(n == -EPIPE || n == -ENODATA, "%d", n);
}

static void *kill_late(void *context)
{
        struct world *w = context;

        usleep(30000);
        w->runtime = fake_runtime_kill(w->runtime, 0);
        return NULL;
}

Test(death, what_was_published_counts_and_the_rest_is_completed_as_gone)
{
        struct world w;
        struct starling_request request = noop(0);
        struct starling_completion c;
        int done, gone;

        world_enter(&w);
        fake_runtime_hold(w.runtime, true);
        submit_noops(&w, 40, 0);
        eventually(fake_runtime_held(w.runtime) == 40);
        w.runtime = fake_runtime_kill(w.runtime, 13);
        reap_all(&w, &done, &gone);
        cr_assert_eq(done, 13);
        cr_assert_eq(gone, 27);
        cr_assert_eq(starling_queue_in_flight(w.queue), 0);
        cr_assert_eq(starling_poll(w.queue, &c, 1), -EPIPE);
        cr_assert_eq(starling_wait(w.queue, &c, 1, STARLING_FOREVER), -EPIPE);
        cr_assert_eq(starling_submit(w.queue, &request, NULL), -EPIPE);
        cr_assert_eq(starling_submit_many(w.queue, &request, 1, NULL), -EPIPE);
        cr_assert_eq(starling_queue_open(w.client, &w.queue, &w.error), -EPIPE);
        world_leave(&w);
}

Test(death, a_sleeper_learns_of_it)
{
        struct world w;
        pthread_t thread;
        int done, gone;

        world_enter(&w);
        fake_runtime_hold(w.runtime, true);
        submit_noops(&w, 3, 0);
        pthread_create(&thread, NULL, kill_late, &w);
        reap_all(&w, &done, &gone);
        pthread_join(thread, NULL);
        cr_assert_eq(gone, 3);
        world_leave(&w);
}

Test(death, one_who_only_polls_learns_of_it)
{
        struct world w;
        struct starling_completion c;
        int n = 0;

        world_enter(&w);
        fake_runtime_hold(w.runtime, true);
        submit_noops(&w, 1, 0);
        w.runtime = fake_runtime_kill(w.runtime, 0);
        while (n == 0)
                n = starling_poll(w.queue, &c, 1);
        cr_assert_eq(n, 1);
        cr_assert_eq(c.status, -EPIPE);
        world_leave(&w);
}

Test(death, infer_ends_and_keeps_the_others)
{
        struct world w;
        struct echo e;
        pthread_t thread;
        int done, gone;

        world_enter(&w);
        echo_prepare(&w, 2, &e);
        fake_runtime_hold(w.runtime, true);
        submit_noops(&w, 2, 0);
        pthread_create(&thread, NULL, kill_late, &w);
        cr_assert_eq(starling_infer(w.queue, &e.request, NULL), -EPIPE);
        pthread_join(thread, NULL);
        reap_all(&w, &done, &gone);
        cr_assert_eq(gone, 2);
        world_leave(&w);
}

Test(death, a_noop_that_is_waited_for_ends)
{
        struct starling_request request = noop(7);
        struct starling_completion c;
        pthread_t thread;
        struct world w;

        world_enter(&w);
        fake_runtime_hold(w.runtime, true);
        pthread_create(&thread, NULL, kill_late, &w);
        cr_expect_eq(starling_infer(w.queue, &request, &c), -EPIPE);
        cr_expect_eq(c.user_data, 7);
        cr_expect(starling_queue_error(w.queue)[0]);
        pthread_join(thread, NULL);
        world_leave(&w);
}

Test(death, an_event_loop_learns_of_it)
{
        struct world w;
        struct starling_completion c;
        struct pollfd entry = {.events = POLLIN};

        world_enter(&w);
        entry.fd = starling_queue_fd(w.queue);
        fake_runtime_hold(w.runtime, true);
        submit_noops(&w, 1, 0);
        cr_assert_eq(starling_queue_arm(w.queue), 0);
        w.runtime = fake_runtime_kill(w.runtime, 0);
        cr_assert_eq(poll(&entry, 1, 120000), 1);
        cr_assert_eq(starling_queue_arm(w.queue), 1);
        cr_assert_eq(starling_poll(w.queue, &c, 1), 1);
        cr_assert_eq(c.status, -EPIPE);
        cr_assert_eq(starling_queue_arm(w.queue), -EPIPE);
        world_leave(&w);
}

static void expect_end_by(uint16_t tag, uint32_t index)
{
        struct world w;
        int done, gone;

        world_enter(&w);
        fake_runtime_hold(w.runtime, true);
        submit_noops(&w, 4, 0);
        eventually(fake_runtime_held(w.runtime) == 4);
        fake_runtime_lie(w.runtime, tag, index);
        reap_all(&w, &done, &gone);
        cr_expect_eq(done, 0, "tag %u, index %u", tag, index);
        cr_expect_eq(gone, 4, "tag %u, index %u", tag, index);
        world_leave(&w);
}

/* What was completed already is not completed again, whichever tag it had. */
static void expect_end_by_double(uint16_t tag, uint32_t index)
{
        struct world w;
        int done, gone;

        world_enter(&w);
        submit_noops(&w, 3, 0);
        reap_all(&w, &done, &gone);
        cr_expect_eq(done, 3);
        fake_runtime_hold(w.runtime, true);
        submit_noops(&w, 1, 3);
        eventually(fake_runtime_held(w.runtime) == 1);
        fake_runtime_lie(w.runtime, tag, index);
        reap_all(&w, &done, &gone);
        cr_expect_eq(done, 0, "tag %u, index %u", tag, index);
        cr_expect_eq(gone, 1, "tag %u, index %u", tag, index);
        world_leave(&w);
}

Test(death, a_second_completion_of_a_request_ends_the_connection)
{
        for (uint16_t tag = 0; tag < 3; tag++)
                for (uint32_t index = 0; index < 3; index++)
                        expect_end_by_double(tag, index);
}

/* Of another submission, of a tag that does not fly, and of tags that there are not. */
Test(death, an_impossible_completion_ends_the_connection)
{
        expect_end_by(0, 12345);
        expect_end_by(0, 1);
        expect_end_by(4, 4);
        expect_end_by(64, 0);
        expect_end_by(UINT16_MAX, 0);
}

Test(death, reconnect_finds_the_tensors_where_they_were)
{
        struct world w;
        struct echo e;
        void *address;
        int done, gone;

        world_enter(&w);
        echo_prepare(&w, 100, &e);
        address = e.input.data;
        fake_runtime_hold(w.runtime, true);
        submit_noops(&w, 10, 0);
        eventually(fake_runtime_held(w.runtime) == 10);
        w.runtime = fake_runtime_kill(w.runtime, 4);
        cr_assert_eq(starling_reconnect(w.client, 0, &w.error), -ENOENT);
        cr_assert_not_null(strstr(w.error.text, w.socket));
        cr_assert_eq(starling_reconnect(w.client, 20000000, NULL), -ENOENT);
        world_start(&w);
        cr_assert_eq(starling_reconnect(w.client, 0, &w.error), 0, "%s", w.error.text);
        cr_assert_eq(starling_queue_in_flight(w.queue), 10);
        cr_assert_eq(starling_infer(w.queue, &e.request, NULL), 0, "%s", starling_queue_error(w.queue));
        cr_assert_eq(e.input.data, address);
        cr_assert_arr_eq(e.output.data, e.input.data, e.input.bytes);
        reap_all(&w, &done, &gone);
        cr_assert_eq(done, 4);
        cr_assert_eq(gone, 6);
        submit_noops(&w, 64, 0);
        reap_all(&w, &done, &gone);
        cr_assert_eq(done, 64);
        world_leave(&w);
}

Test(death, reconnect_works_again_and_again_and_ids_stay_apart)
{
        struct world w;
        struct starling_request request = noop(0);
        struct starling_completion c;
        uint64_t ids[6];

        world_enter(&w);
        for (int i = 0; i < 6; i++) {
                cr_assert_eq(starling_submit(w.queue, &request, &ids[i]), 0);
                cr_assert_eq(starling_wait(w.queue, &c, 1, STARLING_FOREVER), 1);
                for (int k = 0; k < i; k++)
                        cr_assert_neq(ids[i], ids[k]);
                w.runtime = fake_runtime_kill(w.runtime, 0);
                world_start(&w);
                cr_assert_eq(starling_reconnect(w.client, 0, &w.error), 0, "%s", w.error.text);
                cr_assert_eq(starling_cancel(w.queue, ids[i]), -ENOENT);
        }
        world_leave(&w);
}

Test(death, reconnect_hands_back_more_regions_than_one_message_carries)
{
        struct world w;
        struct echo e;
        uint64_t *last = NULL;

        world_place(&w);
        w.fake.region_limit_bytes = 2 << 20; /* else each would be as large as all before it */
        world_start(&w);
        world_join(&w);
        for (int i = 0; i < 40; i++) {
                last = starling_alloc(w.client, 900 << 10);
                cr_assert_not_null(last);
        }
        *last = 4711;
        echo_prepare(&w, 1024, &e);
        cr_assert_gt(fake_runtime_regions(w.runtime), 16);

        uint32_t regions = fake_runtime_regions(w.runtime);

        w.runtime = fake_runtime_kill(w.runtime, 0);
        world_start(&w);
        cr_assert_eq(starling_reconnect(w.client, 0, &w.error), 0, "%s", w.error.text);
        cr_assert_eq(fake_runtime_regions(w.runtime), regions);
        cr_assert_eq(*last, 4711);
        cr_assert_eq(starling_infer(w.queue, &e.request, NULL), 0);
        cr_assert_arr_eq(e.output.data, e.input.data, e.input.bytes);
        cr_assert_not_null(starling_alloc(w.client, 900 << 10));
        world_leave(&w);
}

Test(death, a_model_that_changed_meanwhile_is_stale_and_a_missing_one_is_missing)
{
        struct world w;
        struct echo e;

        world_enter(&w);
        echo_prepare(&w, 1, &e);
        w.runtime = fake_runtime_kill(w.runtime, 0);
        w.fake.without_echo = true;
        world_start(&w);
        cr_assert_eq(starling_reconnect(w.client, 0, NULL), 0);
        cr_assert_eq(starling_submit(w.queue, &e.request, NULL), -ENOENT);
        cr_expect_eq(starling_model_changed(e.request.model), 1);
        w.runtime = fake_runtime_kill(w.runtime, 0);
        w.fake.without_echo = false;
        world_start(&w);
        cr_assert_eq(starling_reconnect(w.client, 0, NULL), 0);
        cr_assert_eq(starling_infer(w.queue, &e.request, NULL), 0);
        cr_expect_eq(starling_model_changed(e.request.model), 0);
        w.runtime = fake_runtime_kill(w.runtime, 0);
        cr_expect_eq(starling_model_changed(e.request.model), 0, "nobody is there to have changed it");
        w.fake.echo_width = 8;
        world_start(&w);
        cr_assert_eq(starling_reconnect(w.client, 0, NULL), 0);
        cr_assert_eq(starling_submit(w.queue, &e.request, NULL), -ESTALE);
        cr_assert_not_null(strstr(starling_queue_error(w.queue), "model \"echo\""));
        cr_expect_eq(starling_model_changed(e.request.model), 1);
        world_leave(&w);
}

Test(death, reconnect_refuses_other_limits_and_may_be_tried_again)
{
        struct world w;
        int done, gone;

        world_enter(&w);
        fake_runtime_hold(w.runtime, true);
        submit_noops(&w, 2, 0);
        w.runtime = fake_runtime_kill(w.runtime, 0);
        w.fake.depth_granted = 32;
        world_start(&w);
        cr_assert_eq(starling_reconnect(w.client, 0, &w.error), -EPROTO);
        cr_assert_not_null(strstr(w.error.text, "of depth 32"));
        w.runtime = fake_runtime_kill(w.runtime, 0);
        w.fake.depth_granted = 0;
        world_start(&w);
        cr_assert_eq(starling_reconnect(w.client, 0, &w.error), 0, "%s", w.error.text);
        reap_all(&w, &done, &gone);
        cr_assert_eq(gone, 2);
        world_leave(&w);
}

Test(death, disconnect_keeps_the_arena)
{
        struct world w;
        struct echo e;
        int done, gone;

        world_enter(&w);
        echo_prepare(&w, 3, &e);
        fake_runtime_hold(w.runtime, true);
        submit_noops(&w, 5, 0);
        starling_disconnect(w.client);
        reap_all(&w, &done, &gone);
        cr_assert_eq(gone, 5);
        cr_assert_eq(((float *)e.input.data)[11], 11);
        cr_assert_not_null(starling_alloc(w.client, 64));
        cr_assert_null(starling_alloc(w.client, 8 << 20));
        cr_assert_eq(errno, EPIPE);
        fake_runtime_hold(w.runtime, false);
        cr_assert_eq(starling_reconnect(w.client, LIMIT_NS, &w.error), 0, "%s", w.error.text);
        cr_assert_eq(starling_infer(w.queue, &e.request, NULL), 0);
        world_leave(&w);
}

Test(death, an_event_loop_goes_on_after_a_reconnect)
{
        struct world w;
        struct starling_completion c;
        struct pollfd entry = {.events = POLLIN};

        world_enter(&w);
        entry.fd = starling_queue_fd(w.queue);
        w.runtime = fake_runtime_kill(w.runtime, 0);
        world_start(&w);
        fake_runtime_hold(w.runtime, true);
        cr_assert_eq(starling_reconnect(w.client, 0, NULL), 0);
        cr_assert_eq(starling_queue_fd(w.queue), entry.fd);
        submit_noops(&w, 1, 0);
        cr_assert_eq(starling_queue_arm(w.queue), 0);
        fake_runtime_hold(w.runtime, false);
        cr_assert_eq(poll(&entry, 1, 120000), 1);
        eventually(starling_poll(w.queue, &c, 1) == 1);
        world_leave(&w);
}

/* ---- fork ---- */

/* What a child gets from its parent's handles; the number of the first answer that is wrong, or 0. */
static int answers_in_child(struct world *w, struct echo *e)
{
        struct starling_completion c;
        struct starling_request request = noop(0);
        struct starling_client_info info;
        struct starling_model *model;
        struct starling_model_entry entry;
        struct starling_queue *queue;
        struct starling_tensor tensor;
        int results[] = {
                starling_submit(w->queue, &request, NULL),
                starling_submit_many(w->queue, &request, 1, NULL),
                starling_poll(w->queue, &c, 1),
                starling_wait(w->queue, &c, 1, STARLING_FOREVER),
                starling_infer(w->queue, &e->request, NULL),
                starling_cancel(w->queue, 1),
                starling_queue_fd(w->queue),
                starling_queue_arm(w->queue),
                starling_queue_open(w->client, &queue, NULL),
                starling_model_open(w->client, "echo", &model, NULL),
                starling_model_list(w->client, &entry, 1),
                starling_client_describe(w->client, &info),
                starling_reconnect(w->client, 0, NULL),
                starling_admin_load(w->client, "x", NULL),
                starling_tensor_alloc(w->client, STARLING_F32, 0, NULL, &tensor),
                starling_free(w->client, e->input.data),
        };

        for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
                if (results[i] != -ECHILD)
                        return (int)i + 1;
        starling_disconnect(w->client);
        starling_queue_close(w->queue);
        starling_model_close(e->model);
        starling_close(w->client);
        return 0;
}

/* One of its sockets to runtimes has ended. */
static bool sees_an_end(void)
{
        for (int fd = 3; fd < 256; fd++) {
                struct pollfd end = {.fd = fd, .events = POLLRDHUP};
                int type = 0;
                socklen_t bytes = sizeof(type);

                if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 && type == SOCK_SEQPACKET && poll(&end, 1, 0) > 0)
                        return true;
        }
        return false;
}

/* Though the child has the socket, too. */
Test(fork, a_client_that_is_closed_is_so_for_the_runtime)
{
        struct world w;
        int closes[2], status;
        char byte;

        world_enter(&w);
        cr_assert_eq(pipe(closes), 0);
        cr_assert_not(sees_an_end());

        pid_t child = fork();

        if (child == 0) {
                (void)!read(closes[0], &byte, 1);
                _exit(!sees_an_end());
        }
        w.client = starling_close(w.client);
        cr_assert_eq(write(closes[1], "c", 1), 1);
        cr_assert_eq(waitpid(child, &status, 0), child);
        cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        close(closes[0]);
        close(closes[1]);
        world_leave(&w);
}

Test(fork, every_call_of_a_child_says_so_and_the_parent_goes_on)
{
        struct world w;
        struct echo e;
        int status;

        world_enter(&w);
        echo_prepare(&w, 3, &e);
        submit_noops(&w, 1, 0);

        pid_t child = fork();

        if (child == 0)
                _exit(answers_in_child(&w, &e));
        cr_assert_eq(waitpid(child, &status, 0), child);
        cr_assert(WIFEXITED(status));
        cr_assert_eq(WEXITSTATUS(status), 0, "call %d answers otherwise", WEXITSTATUS(status));
        cr_assert_eq(starling_infer(w.queue, &e.request, NULL), 0);
        cr_assert_eq(starling_queue_in_flight(w.queue), 1);
        world_leave(&w);
}
