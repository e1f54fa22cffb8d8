/* SPDX-License-Identifier: Apache-2.0 */
#include "builder.h"
#include "catalogue.h"
#include "digits.h"
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
        pid_t ended = 0;
        int status = 0;

        WORLD_AWAIT((ended = waitpid(pid, &status, WNOHANG)) != 0);
        if (!ended) {
                kill(pid, SIGKILL);
                waitpid(pid, NULL, 0);
                cr_assert_fail("attack \"%s\" hangs\n%.4000s", name, world_log(world));
        }
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "attack \"%s\": wait status %#x\n%s", name, status,
                world_log(world));
}

static bool was_noticed(struct world *world, const char *cause)
{
        return cause ? strstr(world_log(world), cause) != NULL : refusals(world) > 0;
}

/* Two attackers with different seeds at once; the honest client works and checks meanwhile, and after. They come again until they
 * have got to what is noticed: on a busy machine one may spend its time on less. */
static void withstand(const char *name, const char *cause)
{
        uint64_t begun_ns = starling_clock_ns();
        uint32_t seed = 1;
        uint32_t ms = world_rounds("STARLING_ATTACK_MS", WORLD_SLOW ? 20000 : 2000);
        struct footprint before;
        struct honest *honest;
        struct world world;

        world_init(&world);
        add_lookup(&world);
        world_start(&world);
        honest = honest_start(&world, "digits");
        honest_expect_progress(honest, 1);
        before = world_footprint(&world);
        do {
                pid_t first = attack(&world, name, seed, ms), second = attack(&world, name, seed + 1, ms);

                expect_gone(first, name, &world);
                expect_gone(second, name, &world);
                seed += 2;
        } while (!was_noticed(&world, cause) && starling_clock_ns() - begun_ns < WORLD_PATIENCE_NS);
        honest_expect_progress(honest, 10);
        world_expect_footprint(&world, &before);
        cr_assert(was_noticed(&world, cause), "no \"%s\" in the log:\n%.4000s", cause ? cause : "refusal", world_log(&world));
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

/* ---- regions that are released ---- */

#define REGION_BYTES (1ull << 20)

static int ask_for(const struct raw *raw, enum sl_message_type type, uint32_t index, uint64_t bytes, struct sl_message *ret_answer)
{
        struct sl_message question = {.magic = SL_WIRE_MAGIC, .type = type};
        int fds[SL_MESSAGE_FDS_MAX];
        uint32_t n = 0;
        int r;

        question.region.index = index;
        question.region.bytes = bytes;
        r = raw_ask(raw->socket, &question, NULL, 0, ret_answer, fds, &n);
        while (n > 0)
                close(fds[--n]);
        return r;
}

static void add_relu(struct world *world)
{
        struct builder *b = builder_new(13);
        size_t bytes;

        builder_input(b, "x", 1, DIMS(-1, 16));
        builder_node(b, "Relu", "x", "y");
        builder_output(b, "y");
        const uint8_t *file = builder_pack(b, &bytes);
        world_add_model(world, "relu", file, bytes);
        builder_free(b);
}

static int request_relu(const struct raw *raw)
{
        const struct sl_descriptor tensor = {.bytes = 64, .dtype = SL_DTYPE_F32, .rank = 2, .dims = {1, 16}};
        struct sl_catalogue_model found;
        uint32_t index;

        cr_assert_eq(sl_catalogue_find(raw->catalogue.base, "relu", &index, &found), 0);
        return raw_request(raw,
                &(struct sl_entry){.model = index, .generation = found.generation, .samples = 1, .n_inputs = 1, .n_outputs = 1},
                (struct sl_descriptor[]){tensor, tensor});
}

static uint64_t memory_promised(const struct world *world)
{
        struct sl_stats_header header;
        struct sl_stats_view *view;

        cr_assert_eq(sl_stats_open(world->name, NULL, &view, NULL), 0);
        sl_stats_read_header(view, &header);
        sl_stats_close(view);
        return sl_counter_read(&header.memory_bytes);
}

static void start_small(struct world *world)
{
        world_init(world);
        add_relu(world);
        world_configure(world, "models: [lenet, relu]\nlimits: {client: {arena_bytes: 4 MiB}, uid: {arena_bytes: 8 MiB}}\n");
        world_start(world);
}

Test(regions, only_one_that_there_is_can_be_released_and_only_once, .timeout = 60)
{
        const struct sl_channel_shape shape = {.n_queues = 1, .depth = 16, .tensors = 2};
        const uint32_t unknown[] = {1, 63, 64, 65, UINT32_MAX};
        struct sl_message answer;
        struct world world;
        struct raw raw;

        start_small(&world);
        cr_assert_eq(raw_attach(&raw, world.socket_path, &shape, REGION_BYTES), 0);
        for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
                cr_expect_eq(ask_for(&raw, SL_MESSAGE_RELEASE, unknown[i], 0, &answer), -ENOENT);
        cr_expect_str_eq(answer.text, "arena region 4294967295 is to be released, and there is none");
        cr_expect_eq(ask_for(&raw, SL_MESSAGE_RELEASE, 0, 0, &answer), 0);
        cr_expect_eq(answer.region.bytes, 0);
        cr_expect_eq(ask_for(&raw, SL_MESSAGE_RELEASE, 0, 0, &answer), -ENOENT);
        cr_expect_not(raw_ended(&raw));
        raw_detach(&raw);
        world_stop(&world);
        world_free(&world);
}

/* More than the 64 that there may be at a time, and of more bytes than user and client may have. */
Test(regions, what_is_released_counts_no_more_and_its_index_is_free, .timeout = 60)
{
        const struct sl_channel_shape shape = {.n_queues = 1, .depth = 16, .tensors = 2};
        struct footprint before;
        struct sl_message answer;
        struct world world;
        struct raw raw;
        uint64_t promised;

        start_small(&world);
        before = world_footprint(&world);
        cr_assert_eq(raw_attach(&raw, world.socket_path, &shape, REGION_BYTES), 0);
        promised = memory_promised(&world);
        for (uint32_t i = 0; i < 100; i++) {
                cr_assert_eq(ask_for(&raw, SL_MESSAGE_REGION, 0, 3 * REGION_BYTES, &answer), 0, "%s", answer.text);
                cr_assert_eq(answer.region.index, 1);
                cr_assert_eq(ask_for(&raw, SL_MESSAGE_REGION, 0, REGION_BYTES, &answer), -EDQUOT);
                cr_assert_eq(ask_for(&raw, SL_MESSAGE_RELEASE, 1, 0, &answer), 0, "%s", answer.text);
                cr_assert_eq(memory_promised(&world), promised);
        }
        cr_assert_eq(ask_for(&raw, SL_MESSAGE_RELEASE, 0, 0, &answer), 0);
        cr_assert_eq(ask_for(&raw, SL_MESSAGE_REGION, 0, 4 * REGION_BYTES, &answer), 0, "%s", answer.text);
        cr_assert_eq(answer.region.index, 0);
        raw_detach(&raw);
        world_expect_footprint(&world, &before);
        world_stop(&world);
        world_free(&world);
}

/* What was in it is gone for whoever keeps it open, and a request that names it is refused. */
Test(regions, a_request_that_names_a_released_region_is_refused, .timeout = 60)
{
        const struct sl_channel_shape shape = {.n_queues = 1, .depth = 16, .tensors = 2};
        struct sl_message answer;
        struct world world;
        struct raw raw;

        start_small(&world);
        cr_assert_eq(raw_attach(&raw, world.socket_path, &shape, REGION_BYTES), 0);
        cr_expect_eq(request_relu(&raw), 0);
        ((char *)raw.arena.base)[REGION_BYTES - 1] = 1;
        cr_assert_eq(ask_for(&raw, SL_MESSAGE_RELEASE, 0, 0, &answer), 0);
        cr_expect_eq(((char *)raw.arena.base)[REGION_BYTES - 1], 0);
        cr_expect_eq(request_relu(&raw), -EFAULT);
        cr_assert_eq(ask_for(&raw, SL_MESSAGE_REGION, 0, REGION_BYTES, &answer), 0);
        cr_expect_eq(request_relu(&raw), 0);
        raw_detach(&raw);
        world_stop(&world);
        world_free(&world);
}

/* Nothing but one block is ever in use: no row of sizes may come to an end below the limits. */
Test(regions, blocks_of_any_size_follow_each_other_without_end, .timeout = 60)
{
        struct starling_client *client, *other;
        struct footprint before;
        struct world world;
        uint32_t seed = 3;

        start_small(&world);
        before = world_footprint(&world);
        cr_assert_eq(
                starling_connect(&(struct starling_options){.runtime = world.socket_path, .arena_bytes = 64 << 10}, &client, NULL),
                0);
        for (uint32_t i = 0; i < 1000; i++) {
                uint64_t bytes = 1 + digits_random(&seed, 3u << 20);
                char *block = starling_alloc(client, bytes);

                cr_assert_not_null(block, "%llu bytes, round %u\n%s", (unsigned long long)bytes, i, world_log(&world));
                block[0] = block[bytes - 1] = 1;
                cr_assert_eq(starling_free(client, block), 0);
        }
        cr_assert_eq(
                starling_connect(&(struct starling_options){.runtime = world.socket_path, .arena_bytes = 64 << 10}, &other, NULL),
                0);
        cr_assert_not_null(starling_alloc(other, 3 << 20), "what the first gave back is another's to take");
        starling_close(other);
        starling_close(client);
        world_expect_footprint(&world, &before);
        world_stop(&world);
        world_free(&world);
}
