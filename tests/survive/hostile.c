/* SPDX-License-Identifier: Apache-2.0 */
#include "builder.h"
#include "honest.h"
#include "raw.h"
#include "stats.h"
#include "world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* int64 [N, 4] picks rows of a table: what a client writes there must be checked at use. */
static void add_lookup(struct world *world)
{
        struct builder *b = builder_new(13);
        size_t bytes;

        builder_input(b, "rows", 7, DIMS(-1, 4));
        builder_random(b, "table", DIMS(100, 8));
        builder_node(b, "Gather", "table,rows", "picked");
        builder_node(b, "Relu", "picked", "y");
        builder_output(b, "y");
        const uint8_t *file = builder_pack(b, &bytes);
        world_add_model(world, "lookup", file, bytes);
        builder_free(b);
}

static uint64_t refusals(const struct world *world)
{
        struct sl_dispatcher_stats dispatcher;
        struct sl_stats_view *view;
        uint64_t n = 0;

        cr_assert_eq(sl_stats_open(world->name, NULL, &view, NULL), 0);
        cr_assert_eq(sl_stats_read_dispatcher(view, 0, &dispatcher), 0);
        for (int i = 0; i < SL_REFUSAL_LIMIT; i++)
                n += dispatcher.refusals[i];
        sl_stats_close(view);
        return n;
}

static pid_t attack(const struct world *world, const char *name, uint32_t seed, uint32_t ms)
{
        char seed_text[16], ms_text[16];

        snprintf(seed_text, sizeof(seed_text), "%u", seed);
        snprintf(ms_text, sizeof(ms_text), "%u", ms);
        return world_spawn((const char *const[]){HOSTILE_CLIENT, world->socket_path, seed_text, ms_text, name, NULL});
}

static void expect_gone(pid_t pid, const char *name, struct world *world)
{
        int status = 0;

        for (int i = 0; i < 6000; i++) {
                if (waitpid(pid, &status, WNOHANG) == pid) {
                        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "attack \"%s\": wait status %#x\n%s", name, status,
                                world_log(world));
                        return;
                }
                world_pause_us(10000);
        }
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        cr_assert_fail("attack \"%s\" hangs\n%.4000s", name, world_log(world));
}

/* Two attackers with different seeds at once; the honest client works and checks meanwhile, and after. */
static void withstand(const char *name, const char *cause)
{
        uint32_t ms = world_rounds("STARLING_ATTACK_MS", WORLD_SLOW ? 30000 : 4000);
        struct footprint before;
        struct honest *honest;
        struct world world;

        world_init(&world);
        add_lookup(&world);
        world_start(&world);
        honest = honest_start(&world, "digits");
        honest_expect_progress(honest, 1);
        before = world_footprint(&world);
        pid_t first = attack(&world, name, 1, ms), second = attack(&world, name, 2, ms);
        expect_gone(first, name, &world);
        expect_gone(second, name, &world);
        honest_expect_progress(honest, 10);
        world_expect_footprint(&world, &before);
        if (cause)
                cr_assert(strstr(world_log(&world), cause), "no \"%s\" in the log:\n%.4000s", cause, world_log(&world));
        else
                cr_assert_gt(refusals(&world), 0);
        honest_stop(honest);
        world_stop(&world);
        world_free(&world);
}

Test(hostile, lies_in_rings_descriptors_and_indices_harm_the_liar_alone, .timeout = 60)
{
        withstand("rings", "event=client-ejected");
}

Test(hostile, inputs_of_any_value_are_bounded_where_they_index, .timeout = 60)
{
        withstand("inputs", "event=client-");
}

Test(hostile, bells_can_neither_block_nor_blind_the_dispatcher, .timeout = 60)
{
        withstand("bells", "event=client-");
}

Test(doors, garbage_on_the_socket_is_refused_with_a_cause, .timeout = 60)
{
        withstand("socket", "cause=");
}

Test(doors, floods_of_connections_leave_those_who_are_attached_alone, .timeout = 60)
{
        withstand("seats", "clients_max");
}

/* Silent connections make room for those who speak, and readers have a limit of their own. */
Test(doors, connections_that_others_hold_keep_no_client_out, .timeout = 60)
{
        const struct sl_channel_shape shape = {.n_queues = 1, .depth = 2, .tensors = 1};
        int silent[200], readers[40], fds[SL_MESSAGE_FDS_MAX];
        struct sl_message hello = raw_hello(SL_ROLE_READER, &shape, 0), answer;
        struct world world;
        uint32_t n_fds = 0, refused = 0;

        world_init(&world);
        world_configure(&world, "models: [lenet]\nlimits: {clients: 4}\n");
        world_start(&world);
        for (int i = 0; i < 40; i++) {
                readers[i] = raw_dial(world.socket_path);
                refused += raw_ask(readers[i], &hello, NULL, 0, &answer, fds, &n_fds) == -EDQUOT;
                while (n_fds > 0)
                        close(fds[--n_fds]);
        }
        cr_expect_geq(refused, 8);
        cr_expect_lt(refused, 30);
        for (int i = 0; i < 200; i++) {
                silent[i] = raw_dial(world.socket_path);
                cr_assert_geq(silent[i], 0);
        }
        starling_close(world_connect(&world, STARLING_ROLE_CLIENT));
        starling_close(world_connect(&world, STARLING_ROLE_ADMIN));
        cr_expect_geq(world_count_log(&world, "no hello, and others want to connect"), 1);
        for (int i = 0; i < 40; i++)
                close(readers[i]);
        for (int i = 0; i < 200; i++)
                close(silent[i]);
        world_stop(&world);
        world_free(&world);
}
