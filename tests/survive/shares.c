/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One user takes all it can get of what is finite; another one, who is honest, must not notice. The runtime and the greedy are
 * users that are nobody's, the honest one is root.
 */
#include "base/clock.h"
#include "base/error.h"
#include "builder.h"
#include "digits.h"
#include "honest.h"
#include "raw.h"
#include "stats.h"
#include "users.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
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

/* ---- descriptors of arena regions ---- */

#define FDS_MAX        128
#define REGION_CLIENTS 12u
#define BLOCK_BYTES    (1ull << 20)
#define BLOCKS_MAX     4096u

static void allow_few_descriptors(void *context)
{
        const struct rlimit limit = {FDS_MAX, FDS_MAX};

        (void)context;
        setrlimit(RLIMIT_NOFILE, &limit);
}

/* Return: true when the client was refused a region, and not for its own limit. */
static bool grow_until_refused(struct starling_client *client)
{
        for (uint32_t i = 0; i < BLOCKS_MAX; i++)
                if (!starling_alloc(client, BLOCK_BYTES))
                        return errno == EDQUOT;
        return false;
}

/* With many regions: each is as large as all before it, from a small first one on. NULL: refused. */
static struct starling_client *connect_small(const struct world *world)
{
        const struct starling_options options = {
                .runtime = world->socket_path, .arena_bytes = 1 << 20, .timeout_ns = 60000000000ull};
        struct starling_client *client = NULL;

        return starling_connect(&options, &client, NULL) == 0 ? client : NULL;
}

Test(shares, arena_regions_of_one_user_leave_descriptors_for_others, .timeout = 60)
{
        struct starling_client *clients[REGION_CLIENTS];
        struct world world;
        uint32_t refused = 0, n = 0;

        world_init(&world);
        world.before_exec = allow_few_descriptors;
        world_configure(&world, "models: [lenet]\nlimits: {client: {arena_bytes: 64 MiB}, uid: {arena_bytes: 4 GiB}}\n");
        world_start(&world);
        for (; n < REGION_CLIENTS && !refused; n++) {
                clients[n] = connect_small(&world);
                refused = (!clients[n] || grow_until_refused(clients[n])) && strstr(world_log(&world), "keeps a descriptor");
        }
        cr_expect(strstr(world_log(&world), "each of which keeps a descriptor"), "%s", world_log(&world));
        clients[n] = world_connect(&world, STARLING_ROLE_READER);
        starling_close(clients[n]);
        while (n-- > 0)
                starling_close(clients[n]);
        finish(&world);
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

/* ---- places in the queue of a model ---- */

#define GREEDY_CLIENTS 6
#define GREEDY_DEPTH   256

struct greedy {
        struct starling_queue *queue;
        struct starling_model *model;
        struct starling_tensor in, out;
};

static bool open_greedy(const struct world *world, struct greedy *greedy)
{
        struct starling_options options = {.runtime = world->socket_path,
                .queue_depth = GREEDY_DEPTH,
                .tensors_per_request = 2,
                .arena_bytes = 1 << 20,
                .timeout_ns = 60000000000ull};
        struct starling_client *client;

        return starling_connect(&options, &client, NULL) == 0 && starling_queue_open(client, &greedy->queue, NULL) == 0 &&
               starling_model_open(client, "lenet", &greedy->model, NULL) == 0 &&
               starling_tensor_alloc(client, STARLING_F32, 4, (uint32_t[]){128, 1, 8, 8}, &greedy->in) == 0 &&
               starling_tensor_alloc(client, STARLING_F32, 2, (uint32_t[]){128, DIGITS_OUT}, &greedy->out) == 0;
}

/* Return: true when the queue was full. */
static bool submit_all(struct greedy *greedy)
{
        const struct starling_request request = {
                .model = greedy->model, .inputs = &greedy->in, .n_inputs = 1, .outputs = &greedy->out, .n_outputs = 1};
        struct starling_completion completions[GREEDY_DEPTH];
        bool full = false;
        int n;

        while ((n = starling_poll(greedy->queue, completions, GREEDY_DEPTH)) > 0)
                while (n-- > 0)
                        full |= completions[n].status == -EBUSY;
        while (starling_submit(greedy->queue, &request, NULL) == 0)
                ;
        return full;
}

/* Together they ask for half as many places again as there are. */
static int fill_the_queue(const struct world *world)
{
        struct greedy greedy[GREEDY_CLIENTS];

        for (int i = 0; i < GREEDY_CLIENTS; i++)
                if (!open_greedy(world, &greedy[i]))
                        return BROKEN;
        for (bool full = false;;) {
                bool was_full = full;

                for (int i = 0; i < GREEDY_CLIENTS; i++)
                        full |= submit_all(&greedy[i]);
                if (full && !was_full)
                        users_ready();
                world_pause_us(500);
        }
}

static int infer_one_by_one(const struct world *world)
{
        struct greedy other;
        uint32_t n = WORLD_SLOW ? 20 : 200, busy = 0, refused = 0;

        if (!open_greedy(world, &other))
                return BROKEN;
        other.in.dims[0] = other.out.dims[0] = 1;
        for (uint32_t i = 0; i < n; i++) {
                const struct starling_request request = {
                        .model = other.model, .inputs = &other.in, .n_inputs = 1, .outputs = &other.out, .n_outputs = 1};
                int status = starling_infer(other.queue, &request, NULL);

                busy += status == -EBUSY;
                refused += status < 0;
        }
        return refused ? crossed("of %u requests %u were refused, %u with EBUSY", n, refused, busy) : HELD;
}

static uint64_t refusals(const struct world *world, enum sl_refusal cause)
{
        struct sl_dispatcher_stats dispatcher;
        struct sl_stats_view *view;

        /* Of another user's runtime, whose socket is in a folder of this test's: root believes no such page that it looks for. */
        cr_assert_eq(sl_stats_open(world->name, SL_STATS_DIRECTORY, &view, NULL), 0);
        cr_assert_eq(sl_stats_read_dispatcher(view, 0, &dispatcher), 0);
        sl_stats_close(view);
        return sl_counter_read(&dispatcher.refusals[cause]);
}

Test(shares, who_fills_the_queue_of_a_model_is_refused_before_anybody_else, .timeout = 60)
{
        struct world world;

        start(&world, "models: [lenet]\n");
        pid_t greedy = users_start(CLIENT_UID, fill_the_queue, &world);
        cr_expect_eq(refusals(&world, SL_REFUSAL_SHARE), 0, "the greedy one is alone so far");
        cr_expect_eq(users_try(OTHER_UID, infer_one_by_one, &world), HELD);
        struct honest *honest = honest_start(&world, "lenet");
        honest_expect_progress(honest, 50);
        WORLD_AWAIT(refusals(&world, SL_REFUSAL_SHARE) > 0); /* whoever comes may find it full or not */
        honest_stop(honest);
        cr_expect_gt(refusals(&world, SL_REFUSAL_SHARE), 0, "it has given up places");
        users_end(greedy);
        finish(&world);
}

/* ---- sizes of an open model ---- */

#define OWN_SIZES 4u

struct sizes {
        struct starling_queue *queue;
        struct starling_model *model;
        struct starling_tensor in, out;
};

static bool open_sizes(const struct world *world, uint32_t most, struct sizes *sizes)
{
        struct starling_options options = {.runtime = world->socket_path, .timeout_ns = 60000000000ull};
        struct starling_client *client;

        return starling_connect(&options, &client, NULL) == 0 && starling_queue_open(client, &sizes->queue, NULL) == 0 &&
               starling_model_open(client, "open", &sizes->model, NULL) == 0 &&
               starling_tensor_alloc(client, STARLING_F32, 3, (uint32_t[]){1, most, 3}, &sizes->in) == 0 &&
               starling_tensor_alloc(client, STARLING_F32, 3, (uint32_t[]){1, most, 3}, &sizes->out) == 0;
}

static struct starling_request request_of(struct sizes *sizes, uint32_t size)
{
        sizes->in.dims[1] = sizes->out.dims[1] = size;
        return (struct starling_request){
                .model = sizes->model, .inputs = &sizes->in, .n_inputs = 1, .outputs = &sizes->out, .n_outputs = 1};
}

/* As many of other sizes as there is room for in its queue pair, all the time. */
static int ask_for_sizes_without_end(const struct world *world)
{
        struct sizes sizes;
        uint32_t seed = 1;

        if (!open_sizes(world, 1100, &sizes))
                return BROKEN;
        users_ready();
        for (;;) {
                struct starling_completion completions[64];
                struct starling_request request = request_of(&sizes, 100 + digits_random(&seed, 1000));

                if (starling_submit(sizes.queue, &request, NULL) == -EAGAIN)
                        starling_wait(sizes.queue, completions, 64, 1000000000);
        }
}

static int infer_own_sizes(const struct world *world, uint32_t first, uint64_t ms)
{
        struct sizes sizes;
        uint32_t n = 0;

        if (!open_sizes(world, first + OWN_SIZES, &sizes))
                return BROKEN;
        for (uint64_t end = sl_clock_ns() + ms * SL_NS_PER_MS; n < 2 * OWN_SIZES || sl_clock_ns() < end; n++) {
                struct starling_request request = request_of(&sizes, first + n % OWN_SIZES);
                int status = starling_infer(sizes.queue, &request, NULL);

                if (status < 0)
                        return crossed("request %u, of size %u: %s", n, first + n % OWN_SIZES, starling_strerror(status));
                if (n == 2 * OWN_SIZES)
                        users_ready();
                if (n > 2 * OWN_SIZES)
                        world_pause_us(1000);
        }
        return HELD;
}

/* The one who was there first goes on with its sizes until it is told to end. */
static int go_on_with_own_sizes(const struct world *world)
{
        return infer_own_sizes(world, 1, 3600000);
}

static int come_with_new_sizes(const struct world *world)
{
        return infer_own_sizes(world, 21, world_rounds("STARLING_ATTACK_MS", 3000));
}

static void add_open_model(const struct world *world)
{
        struct builder *b = builder_new(13);
        const uint8_t *bytes;
        size_t n;

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, -2, 3));
        builder_node(b, "Neg", "x", "y");
        builder_declare_output(b, "y", SL_DTYPE_F32, DIMS(-1, -2, 3));
        bytes = builder_pack(b, &n);
        world_add_model(world, "open", bytes, n);
        builder_free(b);
}

/* What `starling cache ACTION` says of the world's cache. */
static const char *run_cache_command(const struct world *world, const char *action)
{
        static char text[1 << 16];
        char command[512];
        FILE *pipe;
        size_t n;

        snprintf(command, sizeof(command), "%s cache %s --config %s", STARLING, action, world->config_path);
        pipe = popen(command, "r");
        cr_assert_not_null(pipe);
        n = fread(text, 1, sizeof(text) - 1, pipe);
        text[n] = 0;
        cr_assert_eq(pclose(pipe), 0, "%s: %s", command, text);
        return text;
}

#define FILES_MAX 256u

struct files {
        uint32_t n;
        char names[FILES_MAX][NAME_MAX + 1];
};

static void list_files(const char *path, struct files *ret_files)
{
        DIR *folder = opendir(path);

        ret_files->n = 0;
        cr_assert_not_null(folder, "%s: %s", path, strerror(errno));
        for (const struct dirent *entry; (entry = readdir(folder));) {
                if (entry->d_name[0] == '.')
                        continue;
                cr_assert_lt(ret_files->n, FILES_MAX);
                snprintf(ret_files->names[ret_files->n++], sizeof(ret_files->names[0]), "%s", entry->d_name);
        }
        closedir(folder);
}

static uint32_t count_files(const char *path)
{
        static struct files files;

        list_files(path, &files);
        return files.n;
}

/* Whatever has been kept since. */
static void expect_removed(const char *path, const struct files *files)
{
        char name[NAME_MAX + 128];

        for (uint32_t i = 0; i < files->n; i++) {
                snprintf(name, sizeof(name), "%s/%s", path, files->names[i]);
                cr_expect_neq(access(name, F_OK), 0, "%s is left", name);
        }
}

static bool runs(pid_t pid)
{
        return waitpid(pid, NULL, WNOHANG) == 0;
}

/* @more: further configuration. */
static void start_open_model(struct world *world, const char *more)
{
        char config[320];

        world_init(world);
        add_open_model(world);
        snprintf(config, sizeof(config),
                "models: [open]\naccess: {allow: ['*']}\ncache: {directory: %s/cache}\nlimits: {uid: {shapes: 20, log_lines: "
                "30}}\n%s",
                world->folder, more);
        world_configure(world, config);
        world_start(world);
}

Test(shares, sizes_without_end_of_one_user_neither_evict_those_of_another_nor_fill_log_and_cache, .timeout = 60)
{
        static struct files files;
        char cache[80];
        struct world world;

        users_need_root();
        start_open_model(&world, "model_defaults: {any_size: false}\n");
        snprintf(cache, sizeof(cache), "%s/cache", world.folder);
        pid_t first = users_start(OTHER_UID, go_on_with_own_sizes, &world);
        pid_t greedy = users_start(CLIENT_UID, ask_for_sizes_without_end, &world);
        cr_expect_eq(users_try(STRANGER_UID, come_with_new_sizes, &world), HELD);
        cr_expect(runs(first) && runs(greedy));
        for (uint32_t size = 1; size <= OWN_SIZES; size++) {
                char text[64];

                snprintf(text, sizeof(text), "event=model-unloaded model=\"open[%u]\"", size);
                cr_expect_eq(world_count_log(&world, text), 0, "%s", text);
        }
        cr_expect_leq(world_count_log(&world, "model=\"open["), 120);
        cr_expect_leq(count_files(cache), 80);
        WORLD_AWAIT(refusals(&world, SL_REFUSAL_SHARE) > 0);
        cr_expect_gt(refusals(&world, SL_REFUSAL_SHARE), 0);
        cr_expect_not_null(strstr(run_cache_command(&world, "list"), "user 60002"));
        cr_expect_not_null(strstr(run_cache_command(&world, "list --json"), "\"uid\": 60002"));
        users_end(greedy);
        list_files(cache, &files);
        cr_expect_not_null(strstr(run_cache_command(&world, "clear"), "bytes removed from"));
        expect_removed(cache, &files);
        cr_expect(runs(first), "sizes that serve go on without their files");
        users_end(first);
        finish(&world);
}

/* Each answer of others is looked at where they ask. */
Test(shares, sizes_without_end_of_one_user_hold_nobody_up_where_a_plan_of_any_size_computes_them, .timeout = 60)
{
        char cache[80];
        struct world world;

        users_need_root();
        start_open_model(&world, "");
        snprintf(cache, sizeof(cache), "%s/cache", world.folder);
        pid_t first = users_start(OTHER_UID, go_on_with_own_sizes, &world);
        pid_t greedy = users_start(CLIENT_UID, ask_for_sizes_without_end, &world);
        cr_expect_eq(users_try(STRANGER_UID, come_with_new_sizes, &world), HELD);
        cr_expect(runs(first) && runs(greedy));
        cr_expect_leq(world_count_log(&world, "model=\"open["), 120);
        cr_expect_leq(count_files(cache), 80);
        users_end(greedy);
        users_end(first);
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
