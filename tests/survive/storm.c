/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A storm: several administrators load, unload, reload and apply at random, at the same time, while clients ask all the time and
 * others look at the catalogue. Models answer with the number of their file. Each request completes once; what is answered was
 * served then; when the storm is over what is wanted serves, and the runtime holds no more than before.
 *
 *     SL_STORM_ACTIONS=10000 build/release/bin/test-survive-storm        for the long run; SL_STORM_SEED for another one
 */
#include "builder.h"
#include "digits.h"
#include "stats.h"
#include "world.h"

#include "base/clock.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Numbers go round, so that plans come from the cache; a model is never so many files ahead of what was answered that halves meet.
 */
#define NUMBERS    32u
#define AHEAD_MAX  (NUMBERS / 2 - 2)
#define MODELS     4u
#define ENSEMBLES  2u
#define NAMES      (MODELS + ENSEMBLES)
#define ADMINS     4u
#define CLIENTS    2u
#define FLYING     4u
#define WIDTH      4u
#define HIDDEN     8u
#define FILE_BYTES 4096u
#define RESULTS    12u
#define LISTS_MAX  100000u
#define LOST_NS    (120 * SL_NS_PER_SECOND) /* so long nothing takes on any machine */

/* Ensembles share a member. "d" is of none. */
static const char *const names[NAMES] = {"a", "b", "c", "d", "ab", "bc"};
static const uint32_t members[ENSEMBLES][2] = {{0, 1}, {1, 2}};

static struct world world;
static struct file {
        uint8_t bytes[FILE_BYTES];
        size_t size;
} files[NUMBERS];

/* A model as administrators and clients know it. Rounds are those of its file. */
static struct model {
        pthread_mutex_t lock;      /* of the file, and of what follows */
        _Atomic uint32_t written;  /* the round of the file */
        uint32_t under_way;        /* loads and reloads, also of an ensemble of it, that have not been answered */
        _Atomic uint32_t answered; /* the highest round that a load or reload has been answered with */
        _Atomic uint32_t begun;    /* loads and reloads that were ever sent */
        _Atomic uint32_t gone;     /* 1 + begun, when it was unloaded and nothing has been sent since; 0: not */
} models[MODELS];

static atomic_bool over, failed;
static _Atomic uint32_t n_actions;
static uint32_t actions_max, seed_of_all;
static char wrong_text[512];

/* The first thing that is wrong ends the storm. Any thread. */
__attribute__((format(printf, 1, 2))) static void wrong(const char *format, ...)
{
        va_list arguments;

        if (atomic_exchange(&failed, true))
                return;
        va_start(arguments, format);
        vsnprintf(wrong_text, sizeof(wrong_text), format, arguments);
        va_end(arguments);
        atomic_store(&over, true);
}

static bool is_over(void)
{
        return atomic_load(&over);
}

/* ---- files ---- */

/* y = relu(x A) B + number: of zeros, the number. */
static void make_file(uint32_t number)
{
        struct builder *b = builder_new(17);
        float numbers[WIDTH];
        const uint8_t *packed;

        for (uint32_t i = 0; i < WIDTH; i++)
                numbers[i] = (float)number;
        builder_input(b, "x", 1, DIMS(-1, WIDTH));
        builder_random(b, "A", DIMS(WIDTH, HIDDEN));
        builder_random(b, "B", DIMS(HIDDEN, WIDTH));
        builder_floats(b, "number", DIMS(WIDTH), numbers);
        builder_node(b, "MatMul", "x,A", "h");
        builder_node(b, "Relu", "h", "r");
        builder_node(b, "MatMul", "r,B", "s");
        builder_node(b, "Add", "s,number", "y");
        builder_output(b, "y");
        packed = builder_pack(b, &files[number].size);
        cr_assert_leq(files[number].size, FILE_BYTES);
        memcpy(files[number].bytes, packed, files[number].size);
        builder_free(b);
}

/* At once, as whoever updates a repository that is served has to. */
static void put_file(uint32_t which, uint32_t round)
{
        const struct file *file = &files[round % NUMBERS];
        char path[256], beside[256];
        FILE *stream;

        snprintf(path, sizeof(path), "%s/%s/1/model.onnx", world.repository, names[which]);
        snprintf(beside, sizeof(beside), "%s/new-%s", world.folder, names[which]);
        stream = fopen(beside, "we");
        if (!stream || fwrite(file->bytes, 1, file->size, stream) != file->size || fclose(stream) != 0 || rename(beside, path) < 0)
                wrong("%s: %s", path, strerror(errno));
}

/* ---- administrators ---- */

enum action { LOAD, UNLOAD, RELOAD, APPLY, CONFIGURE, ACTIONS };

static const char *const action_names[ACTIONS] = {"load", "unload", "reload", "apply", "apply --configured"};

struct admin {
        struct starling_client *client;
        pthread_t thread;
        uint32_t seed;
        struct tally {
                int result;
                uint32_t n;
        } tallies[ACTIONS][RESULTS];
};

static void count_result(struct admin *admin, enum action action, int result)
{
        for (uint32_t i = 0; i < RESULTS; i++) {
                struct tally *tally = &admin->tallies[action][i];

                if (tally->n && tally->result != result)
                        continue;
                tally->result = result;
                tally->n++;
                return;
        }
        wrong("%s: ever other results, now %s", action_names[action], strerror(-result));
}

/* What each may be told, beside 0. */
static bool is_expected(enum action action, uint32_t name, int result)
{
        switch (result) {
        case 0:
        case -ECANCELED: /* somebody wants something else */
                return true;
        case -EEXIST:
                return action == LOAD || action == RELOAD;
        case -ENOENT: /* of what is not loaded, or a member is not */
                return action == UNLOAD || (action <= RELOAD && name >= MODELS);
        case -EINVAL: /* the same */
                return action == APPLY;
        case -EBUSY: /* a member of an ensemble; a model that does not serve; another allocation is being applied */
                return action == UNLOAD || action == APPLY || action == CONFIGURE;
        default:
                return false;
        }
}

#define ALL NAMES /* instead of a name: the repository is read again, and what was unloaded comes back */

/* The models that a load of this name may load. */
static uint32_t models_of(uint32_t name, uint32_t ret_models[MODELS])
{
        if (name == ALL) {
                for (uint32_t i = 0; i < MODELS; i++)
                        ret_models[i] = i;
                return MODELS;
        }
        if (name < MODELS) {
                ret_models[0] = name;
                return 1;
        }
        memcpy(ret_models, members[name - MODELS], sizeof(members[0]));
        return 2;
}

static void note_begin(uint32_t name)
{
        uint32_t of[MODELS], n = models_of(name, of);

        for (uint32_t i = 0; i < n; i++) {
                struct model *model = &models[of[i]];

                pthread_mutex_lock(&model->lock);
                model->under_way++;
                atomic_fetch_add(&model->begun, 1);
                atomic_store(&model->gone, 0);
                pthread_mutex_unlock(&model->lock);
        }
}

static void note_end(uint32_t name)
{
        uint32_t of[MODELS], n = models_of(name, of);

        for (uint32_t i = 0; i < n; i++) {
                pthread_mutex_lock(&models[of[i]].lock);
                models[of[i]].under_way--;
                pthread_mutex_unlock(&models[of[i]].lock);
        }
}

/* The next file, unless clients could no longer tell it from an old one. Return: its round. */
static uint32_t write_next(uint32_t which)
{
        struct model *model = &models[which];
        uint32_t round;

        pthread_mutex_lock(&model->lock);
        round = atomic_load(&model->written);
        if (round - atomic_load(&model->answered) < AHEAD_MAX) {
                atomic_store(&model->written, ++round); /* first: another administrator may load it at once */
                put_file(which, round);
        }
        pthread_mutex_unlock(&model->lock);
        return round;
}

static void note_answer(uint32_t which, uint32_t round)
{
        uint32_t before = atomic_load(&models[which].answered);

        while (before < round && !atomic_compare_exchange_weak(&models[which].answered, &before, round))
                ;
}

static int load(struct admin *admin, uint32_t name, enum action action, struct starling_error *error)
{
        uint32_t round = 0;
        int r;

        note_begin(name);
        if (name < MODELS)
                round = write_next(name);
        r = action == LOAD ? starling_admin_load(admin->client, names[name], error)
                           : starling_admin_reload(admin->client, names[name], error);
        if (r == 0 && name < MODELS)
                note_answer(name, round);
        note_end(name);
        return r;
}

/* Loads and reloads that were ever sent, while none is under way; UINT32_MAX: some are. */
static uint32_t quiet_since(struct model *model)
{
        uint32_t begun;

        pthread_mutex_lock(&model->lock);
        begun = model->under_way ? UINT32_MAX : atomic_load(&model->begun);
        pthread_mutex_unlock(&model->lock);
        return begun;
}

/* No load was under way when it was sent, and none was sent since: whatever is answered from now on was not served then. */
static int unload(struct admin *admin, uint32_t name, struct starling_error *error)
{
        uint32_t begun = name < MODELS ? quiet_since(&models[name]) : UINT32_MAX;
        int r = starling_admin_unload(admin->client, names[name], error);

        if (r < 0 || begun == UINT32_MAX)
                return r;
        pthread_mutex_lock(&models[name].lock);
        if (atomic_load(&models[name].begun) == begun)
                atomic_store(&models[name].gone, 1 + begun);
        pthread_mutex_unlock(&models[name].lock);
        return r;
}

static int apply(struct admin *admin, struct starling_error *error)
{
        struct starling_allotment workers[4];
        uint32_t n = 0, first = digits_random(&admin->seed, MODELS);

        for (uint32_t m = 0; m < 2; m++)
                for (uint32_t i = 1 + digits_random(&admin->seed, 2); i; i--)
                        workers[n++] = (struct starling_allotment){
                                names[(first + m) % MODELS], "cpu", 1u << digits_random(&admin->seed, 3)};
        return starling_admin_apply(admin->client, workers, n, error);
}

static int configure(struct admin *admin, struct starling_error *error)
{
        int r;

        note_begin(ALL);
        r = starling_admin_apply(admin->client, NULL, 0, error);
        note_end(ALL);
        return r;
}

/* Most are reloads: under them requests go on. */
static enum action choose(struct admin *admin)
{
        static const enum action weights[] = {RELOAD, RELOAD, RELOAD, RELOAD, LOAD, LOAD, UNLOAD, UNLOAD, APPLY, CONFIGURE};

        return weights[digits_random(&admin->seed, sizeof(weights) / sizeof(weights[0]))];
}

static void act(struct admin *admin)
{
        struct starling_error error = {""};
        enum action action = choose(admin);
        uint32_t name = digits_random(&admin->seed, NAMES);
        int r = 0;

        if (action == LOAD || action == RELOAD)
                r = load(admin, name, action, &error);
        else if (action == UNLOAD)
                r = unload(admin, name, &error);
        else if (action == APPLY)
                r = apply(admin, &error);
        else
                r = configure(admin, &error);
        count_result(admin, action, r);
        if (!is_expected(action, name, r))
                wrong("%s %s: %s: %s", action_names[action], action < APPLY ? names[name] : "", strerror(-r), error.text);
}

static void *admin_main(void *argument)
{
        while (!is_over() && atomic_fetch_add(&n_actions, 1) < actions_max)
                act(argument);
        return NULL;
}

/* ---- clients ---- */

struct flight {
        bool flies;
        uint32_t name;
        uint64_t id;
        uint32_t answered[2], gone[2]; /* of each model of the name, when it was submitted */
        struct starling_tensor input, outputs[2];
};

struct client {
        struct starling_client *client;
        struct starling_queue *queue;
        struct starling_model *handles[NAMES]; /* NULL: to be opened */
        struct flight flights[FLYING];
        pthread_t thread;
        uint32_t seed, n_flying;
        uint64_t done, refused, unopened;
        struct tally refusals[RESULTS];
};

static void client_open(struct client *client, uint32_t number)
{
        const uint32_t dims[] = {1, WIDTH};

        memset(client, 0, sizeof(*client));
        client->seed = seed_of_all + 100 + number;
        client->client = world_connect(&world, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_queue_open(client->client, &client->queue, NULL), 0);
        for (uint32_t i = 0; i < FLYING; i++) {
                struct flight *flight = &client->flights[i];

                cr_assert_eq(starling_tensor_alloc(client->client, STARLING_F32, 2, dims, &flight->input), 0);
                memset(flight->input.data, 0, flight->input.bytes);
                for (uint32_t k = 0; k < 2; k++)
                        cr_assert_eq(starling_tensor_alloc(client->client, STARLING_F32, 2, dims, &flight->outputs[k]), 0);
        }
}

/* What a client is told of a name that is not there, or that goes while it asks. */
static bool is_absence(int result)
{
        return result == -ENOENT || result == -EAGAIN || result == -EIO || result == -ESTALE || result == -ESHUTDOWN;
}

/* Whoever is told that the runtime has not answered yet asks again: on a busy machine it may take longer than the library waits. */
static bool is_late(int result, uint64_t begun_ns)
{
        return result == -ETIMEDOUT && sl_clock_ns() - begun_ns < LOST_NS;
}

static bool open_handle(struct client *client, uint32_t name)
{
        struct starling_error error = {""};
        uint64_t begun_ns = sl_clock_ns();
        int r = 0;

        do {
                if (!client->handles[name])
                        r = starling_model_open(client->client, names[name], &client->handles[name], &error);
        } while (is_late(r, begun_ns));
        if (r < 0 && !is_absence(r))
                wrong("%s cannot be opened: %s", names[name], error.text);
        client->unopened += r < 0;
        return r == 0;
}

static void submit(struct client *client, uint32_t place)
{
        struct flight *flight = &client->flights[place];
        uint32_t of[MODELS], n;
        int r;

        flight->name = digits_random(&client->seed, NAMES);
        if (!open_handle(client, flight->name))
                return;
        n = models_of(flight->name, of);
        for (uint32_t i = 0; i < n; i++) {
                flight->answered[i] = atomic_load(&models[of[i]].answered);
                flight->gone[i] = atomic_load(&models[of[i]].gone);
                ((float *)flight->outputs[i].data)[0] = -1;
        }
        r = starling_submit(client->queue,
                &(struct starling_request){.model = client->handles[flight->name],
                        .inputs = &flight->input,
                        .n_inputs = 1,
                        .outputs = flight->outputs,
                        .n_outputs = n,
                        .user_data = place},
                &flight->id);
        if (r < 0) {
                wrong("%s: submit: %s", names[flight->name], starling_queue_error(client->queue));
                return;
        }
        flight->flies = true;
        client->n_flying++;
}

/* Neither older than what was answered before, nor newer than there is, nor of a model that was gone all the time. */
static void check_output(const struct flight *flight, uint32_t i, uint32_t which)
{
        float value = *(const float *)flight->outputs[i].data;
        uint32_t written = atomic_load(&models[which].written); /* at most: a file is written before it is asked for */
        uint32_t ahead = ((uint32_t)value - flight->answered[i]) % NUMBERS;

        if (value < 0 || value >= NUMBERS || value != (float)(uint32_t)value)
                wrong("%s: output %u is %g", names[flight->name], i, (double)value);
        else if (ahead > written - flight->answered[i])
                wrong("%s: %s answered as file %g; answered before: %u, written: %u", names[flight->name], names[which],
                        (double)value, flight->answered[i] % NUMBERS, written % NUMBERS);
        else if (flight->gone[i] && atomic_load(&models[which].begun) == flight->gone[i] - 1)
                wrong("%s: %s answered, which was unloaded before, and nobody has loaded it since", names[flight->name],
                        names[which]);
}

static void check(struct client *client, const struct starling_completion *completion)
{
        struct flight *flight = &client->flights[completion->user_data % FLYING];
        uint32_t of[MODELS], n;

        if (completion->user_data >= FLYING || !flight->flies || completion->id != flight->id) {
                wrong("a completion of what does not fly: user data %llu", (unsigned long long)completion->user_data);
                return;
        }
        flight->flies = false;
        client->n_flying--;
        if (completion->status < 0) {
                client->refused++;
                if (!is_absence(completion->status))
                        wrong("%s: %s", names[flight->name], starling_strerror(completion->status));
                client->handles[flight->name] = starling_model_close(client->handles[flight->name]);
                return;
        }
        n = models_of(flight->name, of);
        for (uint32_t i = 0; i < n; i++)
                check_output(flight, i, of[i]);
        client->done++;
}

static void reap(struct client *client)
{
        struct starling_completion completions[FLYING];
        int n = starling_wait(client->queue, completions, FLYING, LOST_NS);

        if (n < 0 && n != -EINTR)
                wrong("%u requests in flight: %s", client->n_flying, starling_strerror(n));
        for (int i = 0; i < n; i++)
                check(client, &completions[i]);
}

static void *client_main(void *argument)
{
        struct client *client = argument;

        while (!is_over()) {
                for (uint32_t i = 0; i < FLYING && !is_over(); i++)
                        if (!client->flights[i].flies)
                                submit(client, i);
                if (client->n_flying)
                        reap(client);
                else
                        world_pause_us(100); /* nothing is there that could be opened */
        }
        while (client->n_flying && !atomic_load(&failed))
                reap(client);
        return NULL;
}

/* ---- who looks ---- */

struct reader {
        pthread_t thread;
        uint32_t n;
        uint64_t times_ns[LISTS_MAX]; /* from the connection to the list, as `starling models` takes it */
};

static void *reader_main(void *argument)
{
        struct starling_options options = {.runtime = world.socket_path, .role = STARLING_ROLE_READER, .timeout_ns = LOST_NS};
        struct starling_model_entry entries[2 * NAMES];
        struct reader *reader = argument;

        while (!is_over() && reader->n < LISTS_MAX) {
                struct starling_client *client;
                struct starling_error error;
                uint64_t begun_ns = sl_clock_ns();
                int r;

                if (starling_connect(&options, &client, &error) < 0) {
                        wrong("a reader cannot connect: %s", error.text);
                        return NULL;
                }
                do
                        r = starling_model_list(client, entries, 2 * NAMES);
                while (is_late(r, begun_ns));
                if (r < 0)
                        wrong("a reader has no list: %s", strerror(-r));
                reader->times_ns[reader->n++] = sl_clock_ns() - begun_ns;
                starling_close(client);
                world_pause_us(1000);
        }
        return NULL;
}

/* ---- before and after ---- */

/* All is loaded, with the newest file and the configured workers. */
static void make_calm(struct starling_client *client)
{
        struct starling_error error = {""};

        note_begin(ALL);
        cr_assert_eq(starling_admin_apply(client, NULL, 0, &error), 0, "%s", error.text);
        for (uint32_t i = 0; i < NAMES; i++) {
                int r = starling_admin_reload(client, names[i], &error);

                cr_assert(r == 0 || r == -EEXIST, "%s: %s", names[i], error.text);
        }
        note_end(ALL);
}

/* Every name answers with the file that lies there. */
static void expect_newest(void)
{
        static struct client client;

        client_open(&client, CLIENTS);
        for (uint32_t i = 0; i < MODELS; i++)
                atomic_store(&models[i].answered, atomic_load(&models[i].written));
        for (uint32_t i = 0; i < 20 * NAMES && !atomic_load(&failed); i++) {
                submit(&client, 0);
                cr_assert(client.n_flying, "it can be opened: %s", wrong_text);
                reap(&client);
        }
        cr_expect_eq(client.refused, 0);
        starling_close(client.client);
}

/* Bytes that are promised for @use. */
static uint64_t read_promised(const char *use)
{
        struct sl_memory_stats memory;
        struct sl_stats_view *view;
        uint64_t bytes = 0;

        cr_assert_eq(sl_stats_open(world.name, NULL, &view, NULL), 0);
        for (uint32_t i = 0; i < sl_stats_count(view, SL_STATS_MEMORY); i++)
                if (sl_stats_read_memory(view, i, &memory) == 0 && !strcmp(memory.name, use))
                        bytes = sl_counter_read(&memory.bytes);
        sl_stats_close(view);
        return bytes;
}

/* What was cancelled, and what served before, has its memory until it is gone. */
static void expect_given_back(const char *use)
{
        uint64_t begun_ns = sl_clock_ns(), bytes;

        while ((bytes = read_promised(use)) && sl_clock_ns() - begun_ns < LOST_NS)
                world_pause_us(1000);
        cr_assert_eq(bytes, 0, "%s: %llu bytes are promised", use, (unsigned long long)bytes);
}

/* How much models take while they serve is also a matter of how fast they were when they were loaded (threads.inline_us). */
static void expect_nothing_promised_without_models(struct starling_client *client)
{
        struct starling_error error = {""};

        cr_assert(read_promised("plans") && read_promised("workers"));
        for (uint32_t i = NAMES; i--;)
                cr_assert_eq(starling_admin_unload(client, names[i], &error), 0, "%s: %s", names[i], error.text);
        expect_given_back("compilers");
        expect_given_back("plans");
        expect_given_back("workers");
}

static uint64_t read_resident_kib(void)
{
        char path[64], line[256];
        unsigned long long kib = 0;
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%d/status", world.pid);
        file = fopen(path, "re");
        cr_assert_not_null(file);
        while (fgets(line, sizeof(line), file))
                if (sscanf(line, "VmRSS: %llu kB", &kib) == 1)
                        break;
        fclose(file);
        return kib;
}

/* ---- the storm ---- */

static struct admin admins[ADMINS];
static struct client clients[CLIENTS];
static struct reader reader;

/* @n actions. */
static void blow(uint32_t n)
{
        atomic_store(&over, false);
        atomic_store(&n_actions, 0);
        actions_max = n;
        for (uint32_t i = 0; i < CLIENTS; i++)
                cr_assert_eq(pthread_create(&clients[i].thread, NULL, client_main, &clients[i]), 0);
        cr_assert_eq(pthread_create(&reader.thread, NULL, reader_main, &reader), 0);
        for (uint32_t i = 0; i < ADMINS; i++)
                cr_assert_eq(pthread_create(&admins[i].thread, NULL, admin_main, &admins[i]), 0);
        for (uint32_t i = 0; i < ADMINS; i++)
                pthread_join(admins[i].thread, NULL);
        atomic_store(&over, true);
        for (uint32_t i = 0; i < CLIENTS; i++)
                pthread_join(clients[i].thread, NULL);
        pthread_join(reader.thread, NULL);
        cr_assert_not(atomic_load(&failed), "seed %u: %s", seed_of_all, wrong_text);
}

static int compare_times(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return (x > y) - (x < y);
}

static void report_results(void)
{
        for (uint32_t action = 0; action < ACTIONS; action++)
                for (uint32_t i = 0; i < ADMINS; i++)
                        for (uint32_t k = 0; k < RESULTS && admins[i].tallies[action][k].n; k++)
                                if (i)
                                        for (uint32_t n = admins[i].tallies[action][k].n; n; n--)
                                                count_result(&admins[0], action, admins[i].tallies[action][k].result);
        for (uint32_t action = 0; action < ACTIONS; action++)
                for (uint32_t k = 0; k < RESULTS && admins[0].tallies[action][k].n; k++)
                        cr_log_info("%s: %u %s", action_names[action], admins[0].tallies[action][k].n,
                                admins[0].tallies[action][k].result ? strerror(-admins[0].tallies[action][k].result) : "done");
}

static void report(uint32_t n, uint64_t took_ns)
{
        uint64_t done = 0, refused = 0, unopened = 0;

        for (uint32_t i = 0; i < CLIENTS; i++) {
                done += clients[i].done;
                refused += clients[i].refused;
                unopened += clients[i].unopened;
        }
        qsort(reader.times_ns, reader.n, sizeof(reader.times_ns[0]), compare_times);
        report_results();
        cr_log_info(
                "%u actions in %.1f s, seed %u; requests: %llu right, %llu refused, %llu times nothing to open; %u lists, p50 %.2f "
                "ms, p99 %.2f ms",
                n, (double)took_ns / 1e9, seed_of_all, (unsigned long long)done, (unsigned long long)refused,
                (unsigned long long)unopened, reader.n, (double)reader.times_ns[reader.n / 2] / 1e6,
                (double)reader.times_ns[reader.n - 1 - reader.n / 100] / 1e6);
        cr_expect_gt(done, 0);
        cr_expect_gt(reader.n, 0);
}

static void start(void)
{
        for (uint32_t i = 0; i < NUMBERS; i++)
                make_file(i);
        for (uint32_t i = 0; i < MODELS; i++) {
                pthread_mutex_init(&models[i].lock, NULL);
                world_add_model(&world, names[i], files[0].bytes, files[0].size);
                world_add_model_config(&world, names[i], "instances: 1\n");
        }
        for (uint32_t i = 0; i < ENSEMBLES; i++) {
                char yaml[128];

                snprintf(yaml, sizeof(yaml), "ensemble:\n  members: [%s, %s]\n  rule: none\n", names[members[i][0]],
                        names[members[i][1]]);
                world_add_model_config(&world, names[MODELS + i], yaml);
        }
        world_configure(&world, "models: [a, b, c, d, ab, bc]\n");
        world_start(&world);
        for (uint32_t i = 0; i < ADMINS; i++) {
                admins[i].client = world_connect(&world, STARLING_ROLE_ADMIN);
                admins[i].seed = seed_of_all + i;
        }
        for (uint32_t i = 0; i < CLIENTS; i++)
                client_open(&clients[i], i);
}

static void set_up(void)
{
        world_init(&world);
        seed_of_all = getenv("SL_STORM_SEED") ? (uint32_t)strtoul(getenv("SL_STORM_SEED"), NULL, 10) : 1;
}

static void tear_down(void)
{
        for (uint32_t i = 0; i < ADMINS; i++)
                starling_close(admins[i].client);
        for (uint32_t i = 0; i < CLIENTS; i++)
                starling_close(clients[i].client);
        world_stop(&world);
        world_free(&world);
}

TestSuite(storm, .init = set_up, .fini = tear_down, .timeout = 24 * 3600);

/* A part of it warms up: caches, arenas of threads. */
#define WARM_UP 60u

/* Mappings and memory that threads which came and went have left with the allocator, whatever their number. */
#define MAPPINGS_MORE 48u
#define RESIDENT_MORE (32u << 10) /* KiB */

Test(storm, what_is_asked_in_a_storm_is_answered_once_by_what_was_served)
{
        uint32_t n = world_rounds("SL_STORM_ACTIONS", 400);
        uint64_t resident, begun_ns;
        struct footprint before;

        start();
        blow(WARM_UP);
        make_calm(admins[0].client);
        before = world_footprint(&world);
        before.mappings += MAPPINGS_MORE;
        resident = read_resident_kib();
        begun_ns = sl_clock_ns();
        blow(n);
        report(n, sl_clock_ns() - begun_ns);
        make_calm(admins[0].client);
        expect_newest();
        cr_assert_not(atomic_load(&failed), "%s", wrong_text);
        world_expect_footprint(&world, &before);
        cr_log_info(
                "resident %llu KiB before, %llu KiB after", (unsigned long long)resident, (unsigned long long)read_resident_kib());
        if (!WORLD_SLOW)
                cr_expect_lt(read_resident_kib(), resident + RESIDENT_MORE);
        expect_nothing_promised_without_models(admins[0].client);
}
