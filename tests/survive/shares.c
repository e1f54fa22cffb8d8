/*
 * One user takes all it can get of what is finite; another one, who is honest, must not notice. The runtime and the greedy are
 * users that are nobody's, the honest one is root.
 */
#include "base/error.h"
#include "honest.h"
#include "raw.h"
#include "users.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ATTEMPTS 200

static void start(struct world *world, const char *config)
{
        users_need_root();
        world_init(world);
        world_move_to_user(world, RUNTIME_UID, "lenet");
        world_configure(world, "access: {allow: ['*'], readers: ['*']}\n");
        world_configure(world, config);
        world_start(world);
}

static void finish(struct world *world)
{
        world_stop(world);
        world_free(world);
}

/* ---- places of those who are attached ---- */

/* Attaches again and again, and stays. Return: how often it was let in; the last refusal's text. */
static uint32_t take_places(const struct world *world, enum sl_role role, char *ret_text, size_t bytes)
{
        const struct sl_channel_shape shape = {.n_queues = 1, .depth = 2, .tensors = 1};
        struct sl_message hello = raw_hello(role, role == SL_ROLE_CLIENT ? &shape : NULL, 0);
        uint32_t n = 0;

        for (int i = 0; i < ATTEMPTS; i++) {
                int fds[SL_MESSAGE_FDS_MAX], socket = raw_dial(world->socket_path);
                struct sl_message answer = {0};
                uint32_t n_fds = 0;

                if (raw_ask(socket, &hello, NULL, 0, &answer, fds, &n_fds) == 0)
                        n++;
                else
                        snprintf(ret_text, bytes, "%s", answer.text);
                while (n_fds > 0)
                        close(fds[--n_fds]);
        }
        return n;
}

static int hold_all_places(const struct world *world)
{
        char text[SL_ERROR_TEXT_BYTES] = "";
        uint32_t clients = take_places(world, SL_ROLE_CLIENT, text, sizeof(text));

        if (clients < 32 || clients > 56 || !strstr(text, "user 60002 has") || !strstr(text, "which is its share"))
                return crossed("%u clients, then \"%s\"", clients, text);
        uint32_t readers = take_places(world, SL_ROLE_READER, text, sizeof(text));
        if (readers < 16 || readers > 28 || !strstr(text, "user 60002 has"))
                return crossed("%u readers, then \"%s\"", readers, text);
        for (int i = 0; i < ATTEMPTS; i++)
                raw_dial(world->socket_path); /* and says nothing */
        users_ready();
        for (;;)
                pause();
}

static int attach_as_all_that_is_allowed(const struct world *world)
{
        char text[SL_ERROR_TEXT_BYTES] = "";
        uint32_t clients = take_places(world, SL_ROLE_CLIENT, text, sizeof(text));
        uint32_t readers = take_places(world, SL_ROLE_READER, text, sizeof(text));

        return clients >= 4 && readers >= 2 ? HELD : crossed("%u clients, %u readers: %s", clients, readers, text);
}

Test(shares, who_takes_all_places_leaves_some_for_every_other_user, .timeout = 60)
{
        struct world world;

        start(&world, "models: [lenet]\n");
        pid_t greedy = users_start(CLIENT_UID, hold_all_places, &world);
        cr_expect_eq(users_try(OTHER_UID, attach_as_all_that_is_allowed, &world), HELD);
        cr_expect_eq(users_try(STRANGER_UID, attach_as_all_that_is_allowed, &world), HELD);
        starling_close(world_connect(&world, STARLING_ROLE_ADMIN));
        struct honest *honest = honest_start(&world, "lenet");
        honest_expect_progress(honest, 100);
        honest_stop(honest);
        users_end(greedy);
        finish(&world);
}

/* ---- lines of the log ---- */

static int be_refused_all_the_time(const struct world *world)
{
        users_ready();
        for (;;) {
                struct sl_message hello = raw_hello(SL_ROLE_ADMIN, NULL, 0), answer;
                int fds[SL_MESSAGE_FDS_MAX], socket = raw_dial(world->socket_path);
                uint32_t n_fds = 0;

                if (socket < 0 || raw_ask(socket, &hello, NULL, 0, &answer, fds, &n_fds) != -EACCES)
                        return BROKEN;
                close(socket);
        }
}

Test(shares, lines_about_one_user_are_bounded_and_the_rest_is_counted, .timeout = 60)
{
        struct world world;

        start(&world, "models: [lenet]\nlimits: {uid: {log_lines: 30}}\n");
        pid_t greedy = users_start(CLIENT_UID, be_refused_all_the_time, &world);
        world_expect_log(&world, "event=log-lines-left-out uid=60002 ");
        starling_close(world_connect(&world, STARLING_ROLE_ADMIN));
        users_end(greedy);
        world_expect_log(&world, "event=client-attached client=");
        cr_expect_leq(world_count_log(&world, "uid=60002"), 60);
        finish(&world);
}
