/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connecting: what is granted, what is refused and in which words, who may do what.
 */
#include "world.h"

#include <pthread.h>

static void expect_refused(struct world *w, int code, const char *words)
{
        struct starling_client *client = NULL;
        int r = starling_connect(&w->options, &client, &w->error);

        cr_assert_eq(r, -code, "%d instead of %d: %s", r, -code, w->error.text);
        cr_assert_null(client);
        cr_assert_not_null(strstr(w->error.text, words), "\"%s\" says nothing of \"%s\"", w->error.text, words);
}

Test(attach, grants_what_was_asked_for)
{
        struct world w;
        struct starling_client_info info;

        world_place(&w);
        w.options.queue_pairs = 2;
        w.options.queue_depth = 8;
        w.options.tensors_per_request = 5;
        world_start(&w);
        world_join(&w);
        cr_assert_eq(starling_client_describe(w.client, &info), 0);
        cr_assert_eq(info.queue_pairs, 2);
        cr_assert_eq(info.queue_depth, 8);
        cr_assert_eq(info.tensors_per_request, 5);
        cr_assert_eq(info.arena_bytes, 1 << 20);
        cr_assert_eq(info.arena_used_bytes, 0);
        cr_assert_eq(info.client_id, 7);
        world_leave(&w);
}

Test(attach, options_out_of_range_are_refused_with_value_and_limit)
{
        struct world w;
        struct starling_options good;

        world_place(&w);
        good = w.options;
        w.options.queue_depth = 100;
        expect_refused(&w, EINVAL, "queue_depth is 100, wants a power of two from 2 to 1024");
        w.options = good;
        w.options.queue_pairs = 65;
        expect_refused(&w, EINVAL, "queue_pairs is 65, wants at most 64");
        w.options = good;
        w.options.tensors_per_request = 1025;
        expect_refused(&w, EINVAL, "tensors_per_request is 1025, wants at most 1024");
        w.options = good;
        w.options.queue_pairs = 64;
        w.options.queue_depth = 1024;
        expect_refused(&w, E2BIG, "exceed 262144 bytes");
        w.options = good;
        w.options.role = (enum starling_role)9;
        expect_refused(&w, EINVAL, "role 9");
        w.options = good;
        w.options.arena_bytes = UINT64_MAX;
        expect_refused(&w, EINVAL, "arena_bytes");
        w.options = good;
        w.options.reserved[3] = 1;
        expect_refused(&w, EINVAL, "reserved[3]");
        rmdir(w.folder);
}

Test(attach, a_runtime_that_is_not_there_is_named)
{
        struct world w;
        char long_path[300];

        world_place(&w);
        expect_refused(&w, ENOENT, w.socket);
        memset(long_path, '/', sizeof(long_path) - 1);
        long_path[sizeof(long_path) - 1] = '\0';
        w.options.runtime = long_path;
        expect_refused(&w, ENAMETOOLONG, "longer than");
        rmdir(w.folder);
}

static void *start_late(void *context)
{
        usleep(50000);
        world_start(context);
        return NULL;
}

Test(attach, waits_for_a_runtime_that_is_starting)
{
        struct world w;
        pthread_t thread;

        world_place(&w);
        w.options.timeout_ns = LIMIT_NS;
        pthread_create(&thread, NULL, start_late, &w);
        world_join(&w);
        pthread_join(thread, NULL);
        world_leave(&w);
}

Test(attach, a_refusal_comes_with_the_runtimes_words)
{
        struct world w;

        world_place(&w);
        w.fake.refusal = "user 1000 is not among the users of this runtime";
        world_start(&w);
        expect_refused(&w, EACCES, w.fake.refusal);
        world_leave(&w);
}

Test(attach, another_version_of_the_wire_is_refused)
{
        struct world w;

        world_place(&w);
        w.fake.wire_version = 99;
        world_start(&w);
        expect_refused(&w, EPROTO, "version 99");
        world_leave(&w);
}

Test(attach, readers_list_models_and_do_nothing_else)
{
        struct world w;
        struct starling_model_entry entries[2];

        world_place(&w);
        world_start(&w);
        w.options.role = STARLING_ROLE_READER;
        cr_assert_eq(starling_connect(&w.options, &w.client, &w.error), 0, "%s", w.error.text);
        cr_assert_eq(starling_model_list(w.client, entries, 2), 9);
        cr_assert_str_eq(entries[0].name, "echo");
        cr_assert_eq(entries[0].state, STARLING_MODEL_READY);
        cr_assert_eq(entries[1].ensemble, 1);
        cr_assert_eq(starling_queue_open(w.client, &w.queue, &w.error), -EPERM);
        cr_assert_null(starling_alloc(w.client, 64));
        cr_assert_eq(errno, EPERM);
        cr_assert_eq(starling_admin_load(w.client, "x", &w.error), -EPERM);
        world_leave(&w);
}

Test(attach, administrators_get_the_runtimes_answer)
{
        struct world w;

        world_place(&w);
        world_start(&w);
        w.options.role = STARLING_ROLE_ADMIN;
        cr_assert_eq(starling_connect(&w.options, &w.client, &w.error), 0, "%s", w.error.text);
        cr_assert_eq(starling_admin_load(w.client, "lenet", &w.error), 0);
        cr_assert_eq(starling_admin_reload(w.client, "lenet", NULL), 0);
        cr_assert_eq(starling_admin_unload(w.client, "missing", &w.error), -ENOENT);
        cr_assert_not_null(strstr(w.error.text, "no model \"missing\" in the repository"));
        cr_assert_eq(starling_admin_load(w.client, "", &w.error), -EINVAL);
        w.runtime = fake_runtime_kill(w.runtime, 0);
        cr_assert_eq(starling_admin_load(w.client, "lenet", &w.error), -EPIPE);
        world_leave(&w);
}

Test(attach, a_client_that_closes_leaves_nothing_behind)
{
        struct world w;

        world_enter(&w);
        eventually(fake_runtime_clients(w.runtime) == 1);
        w.client = starling_close(w.client);
        eventually(fake_runtime_clients(w.runtime) == 0);
        cr_assert_null(starling_close(NULL));
        world_leave(&w);
}

static void expect_unattached(struct world *w, const char *words)
{
        world_start(w);
        cr_expect_eq(starling_connect(&w->options, &w->client, &w->error), -EPROTO, "%s", w->error.text);
        cr_expect_not_null(strstr(w->error.text, words), "\"%s\" says nothing of \"%s\"", w->error.text, words);
        cr_expect_null(w->client);
        world_leave(w);
}

Test(attach, a_channel_that_is_not_what_the_welcome_says_is_refused)
{
        struct world w;

        world_place(&w);
        w.fake.wrong_request_header = true;
        expect_unattached(&w, "header");
        world_place(&w);
        w.fake.wrong_response_header = true;
        expect_unattached(&w, "header");
        world_place(&w);
        w.fake.impossible_dispatcher = true;
        expect_unattached(&w, "dispatcher 16 of at most 16");
        world_place(&w);
        w.fake.impossible_shape = true;
        expect_unattached(&w, "impossible shape");
}
