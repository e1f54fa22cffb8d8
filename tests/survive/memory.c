/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that clients claim: whatever they say and however they touch what they got, the runtime takes no more than its bound, and
 * whoever behaves is served on. The runtime lives in a control group that kills what takes more; where none can be made, it is told
 * the bound by its configuration and its resident memory is looked at.
 */
#include "builder.h"
#include "catalogue.h"
#include "cgroup.h"
#include "honest.h"
#include "raw.h"
#include "stats.h"
#include "world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB         (1ull << 20)
#define LIMIT_BYTES ((WORLD_SLOW ? 1024 : 600) * MIB) /* a sanitizer wants its part */
#define ROW         65536u

static const struct sl_channel_shape shape = {.n_queues = 1, .depth = 2, .tensors = 2};

struct scene {
        struct world world;
        struct cgroup cgroup;
        struct honest *honest;
};

/* y = max(x, 0) of [N, M]: any size will do. */
static void add_open_model(const struct world *world)
{
        struct builder *b = builder_new(13);
        size_t bytes;

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, -2));
        builder_node(b, "Relu", "x", "y");
        builder_declare_output(b, "y", SL_DTYPE_F32, DIMS(-1, -2));
        const uint8_t *file = builder_pack(b, &bytes);
        world_add_model(world, "open", file, bytes);
        builder_free(b);
}

/* y [N, 1] = the largest of x [N, ROW]: reads much and computes little. */
static void add_reader(const struct world *world)
{
        struct builder *b = builder_new(13);
        size_t bytes;

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, ROW));
        builder_attr_ints(b, builder_node(b, "ReduceMax", "x", "y"), "axes", 1, (int64_t[]){1});
        builder_declare_output(b, "y", SL_DTYPE_F32, DIMS(-1, 1));
        const uint8_t *file = builder_pack(b, &bytes);
        world_add_model(world, "reader", file, bytes);
        builder_free(b);
}

static void begin(struct scene *s, void (*add_model)(const struct world *world))
{
        memset(s, 0, sizeof(*s));
        world_init_compiling(&s->world);
        add_model(&s->world);
        if (cgroup_make(&s->cgroup, LIMIT_BYTES)) {
                s->world.before_exec = cgroup_join;
                s->world.context = &s->cgroup;
        } else {
                char yaml[64];

                snprintf(yaml, sizeof(yaml), "limits: {memory_max: %llu}\n", LIMIT_BYTES / 8 * 7);
                world_configure(&s->world, yaml);
        }
        world_configure(&s->world, add_model == add_reader ? "models: [mlp, reader]\n" : "models: [mlp, open]\n");
        world_start(&s->world);
        s->honest = honest_start(&s->world, "mlp");
        honest_expect_progress(s->honest, 10);
}

static uint64_t resident_peak(const struct world *world)
{
        char path[64], line[256];
        uint64_t kib = 0;

        snprintf(path, sizeof(path), "/proc/%d/status", world->pid);
        FILE *file = fopen(path, "re");
        while (file && fgets(line, sizeof(line), file))
                if (strncmp(line, "VmHWM:", 6) == 0)
                        kib = strtoull(line + 6, NULL, 10);
        if (file)
                fclose(file);
        return kib * 1024;
}

/* Nobody was killed, nothing was taken beyond the limit, and the honest client goes on. */
static void end(struct scene *s)
{
        honest_expect_progress(s->honest, 20);
        if (s->cgroup.folder[0])
                cr_expect_eq(cgroup_kills(&s->cgroup), 0, "%s", world_log(&s->world));
        else
                cr_expect_leq(resident_peak(&s->world), LIMIT_BYTES);
        honest_stop(s->honest);
        world_stop(&s->world);
        world_free(&s->world);
        cgroup_remove(&s->cgroup);
}

static void expect_logged(struct scene *s, const char *text)
{
        world_expect_log(&s->world, text);
}

static uint64_t promised(const struct world *world)
{
        struct sl_stats_header header;
        struct sl_stats_view *view;

        cr_assert_eq(sl_stats_open(world->name, NULL, &view, NULL), 0);
        sl_stats_read_header(view, &header);
        sl_stats_close(view);
        return sl_counter_read(&header.memory_bytes);
}

/* What has ended is given back within moments. */
static void expect_promised(struct world *world, uint64_t bytes)
{
        WORLD_AWAIT(promised(world) == bytes);
        cr_expect_eq(promised(world), bytes, "%llu bytes are promised, %llu were\n%s", (unsigned long long)promised(world),
                (unsigned long long)bytes, world_log(world));
}

static struct sl_entry entry_for(const struct raw *raw, const char *model, uint32_t samples)
{
        struct sl_catalogue_model found;
        uint32_t index;

        cr_assert_eq(sl_catalogue_find(raw->catalogue.base, model, &index, &found), 0, "%s", model);
        return (struct sl_entry){.model = index, .generation = found.generation, .samples = samples, .n_inputs = 1, .n_outputs = 1};
}

static struct sl_descriptor matrix(uint32_t rows, uint32_t columns, uint64_t offset)
{
        return (struct sl_descriptor){
                .offset = offset, .bytes = 4ull * rows * columns, .dtype = SL_DTYPE_F32, .rank = 2, .dims = {rows, columns}};
}

/* ---- claims ---- */

Test(memory, sizes_whose_tensors_are_not_there_are_refused_without_effect, .timeout = 60)
{
        struct scene s;
        struct raw raw;

        begin(&s, add_open_model);
        cr_assert_eq(raw_attach(&raw, s.world.socket_path, &shape, 4096), 0);
        uint64_t before = promised(&s.world);
        struct sl_entry entry = entry_for(&raw, "open", 1);
        struct sl_descriptor there = matrix(1, 16, 0), claim[2] = {matrix(1, (1u << 31) - 1, 0), there};
        cr_expect_eq(raw_request(&raw, &entry, claim), -EFAULT, "beyond its region");
        claim[0].bytes = 64;
        cr_expect_eq(raw_request(&raw, &entry, claim), -EINVAL, "other bytes than its dimensions say");
        claim[0] = matrix(1, 1 << 20, UINT64_MAX - 63);
        cr_expect_eq(raw_request(&raw, &entry, claim), -EFAULT, "an offset that wraps");
        claim[0] = matrix(1, 16, 0);
        claim[0].region = 1;
        cr_expect_eq(raw_request(&raw, &entry, claim), -EFAULT, "a region that there is not");
        claim[0] = claim[1] = there;
        claim[1].bytes = UINT64_MAX;
        cr_expect_eq(raw_request(&raw, &entry, claim), -EFAULT, "an output beyond its region");
        expect_promised(&s.world, before);
        cr_expect_eq(world_count_log(&s.world, "open["), world_count_log(&s.world, "open[any]"), "%s", world_log(&s.world));
        cr_expect_eq(raw_request(&raw, &entry, (struct sl_descriptor[]){there, there}), 0, "and what is there is served");
        raw_detach(&raw);
        end(&s);
}

/* The tensors are there, and the pool of a worker would not be: known before the compilation, or by its plan. */
Test(memory, sizes_that_would_pass_the_bound_are_refused_with_the_numbers, .timeout = 60)
{
        uint64_t arena = LIMIT_BYTES / 100 * 42 / 4096 * 4096; /* more than it leaves, and less than the share of a user */
        uint32_t columns = (uint32_t)(arena / 4);
        struct scene s;
        struct raw raw;

        begin(&s, add_open_model);
        cr_assert_eq(raw_attach(&raw, s.world.socket_path, &shape, arena), 0, "%s", raw.welcome.text);
        uint64_t before = promised(&s.world);
        struct sl_entry entry = entry_for(&raw, "open", 1);
        struct sl_descriptor all = matrix(1, columns, 0);
        cr_expect_eq(raw_request(&raw, &entry, (struct sl_descriptor[]){all, all}), -ENOMEM);
        expect_logged(&s, "event=shape-not-loaded");
        expect_logged(&s, "the inputs of one sample for each of 1 workers");
        expect_logged(&s, "of memory_max");
        cr_expect_eq(world_count_log(&s.world, "model=\"open["), world_count_log(&s.world, "model=\"open[any]"),
                "nothing was made for them: %s", world_log(&s.world));
        struct sl_descriptor part = matrix(1, columns / 8, 0);
        int r = raw_request(&raw, &entry, (struct sl_descriptor[]){part, part});
        cr_expect(r == 0 || r == -ENOMEM, "%d: %s", r, world_log(&s.world));
        if (r == -ENOMEM) {
                expect_logged(&s, "event=model-failed");
                cr_expect(strstr(world_log(&s.world), "1 workers of batch") || strstr(world_log(&s.world), "bytes of staging"),
                        "no number of what it wants: %s", world_log(&s.world));
                expect_promised(&s.world, before);
        }
        raw_detach(&raw);
        end(&s);
}

/* ---- arenas ---- */

/* Has the runtime read the whole arena, some rows at a time. */
static void have_it_read(const struct raw *raw)
{
        uint64_t row_bytes = 4ull * ROW, rows = raw->arena.bytes / row_bytes - 1;
        uint32_t samples = 128;

        for (uint64_t row = 0; row + samples <= rows; row += samples) {
                struct sl_entry entry = entry_for(raw, "reader", samples);
                struct sl_descriptor tensors[] = {matrix(samples, ROW, row * row_bytes), matrix(samples, 1, rows * row_bytes)};
                int r = raw_request(raw, &entry, tensors);

                cr_assert_eq(r, 0, "row %llu: %d", (unsigned long long)row, r);
        }
}

/* As many arenas as there are. @ret_refusal: why there is no further one. Return: how many. */
static uint32_t attach_all(const struct world *world, uint64_t arena_bytes, struct raw *raws, uint32_t n, char *ret_refusal)
{
        uint32_t attached = 0;
        int r = 0;

        while (attached < n && (r = raw_attach(&raws[attached], world->socket_path, &shape, arena_bytes)) == 0)
                attached++;
        cr_assert_lt(attached, n, "there is no end of arenas");
        cr_expect(r == -ENOMEM || r == -EDQUOT, "%d", r);
        strcpy(ret_refusal, raws[attached].welcome.text);
        raw_detach(&raws[attached]);
        return attached;
}

enum order { RUNTIME_FIRST, CLIENT_FIRST, HOLES };

static void touch_all(enum order order)
{
        struct raw raws[16];
        char refusal[512];
        struct scene s;

        begin(&s, add_reader);
        uint64_t before = promised(&s.world);
        uint32_t n = attach_all(&s.world, 64 * MIB, raws, 16, refusal);
        cr_expect_geq(n, 2, "%s", refusal);
        cr_expect_not_null(strstr(refusal, "67108864"), "%s", refusal);
        cr_expect_not_null(strstr(refusal, "memory_max"), "%s", refusal);
        world_expect_log(&s.world, "event=attach-refused");
        for (uint32_t i = 0; i < n; i++) {
                if (order == CLIENT_FIRST)
                        memset(raws[i].arena.base, 1, raws[i].arena.bytes);
                have_it_read(&raws[i]);
                for (int round = 0; order == HOLES && round < 2; round++) {
                        cr_assert_eq(madvise(raws[i].arena.base, raws[i].arena.bytes, MADV_REMOVE), 0);
                        have_it_read(&raws[i]);
                }
        }
        for (uint32_t i = 0; i < n; i++)
                raw_detach(&raws[i]);
        expect_promised(&s.world, before);
        end(&s);
}

Test(memory, arenas_that_the_runtime_touches_first_stay_within_the_bound, .timeout = 60)
{
        touch_all(RUNTIME_FIRST);
}

Test(memory, arenas_that_the_client_touches_first_stay_within_the_bound, .timeout = 60)
{
        touch_all(CLIENT_FIRST);
}

Test(memory, arenas_with_holes_stay_within_the_bound, .timeout = 60)
{
        touch_all(HOLES);
}

/* An arena nearly as large as the group: refused at once, and one that fits costs nothing before it is used. */
Test(memory, an_arena_that_nobody_touches_takes_no_memory, .timeout = 60)
{
        struct scene s;
        struct raw raw;

        begin(&s, add_reader);
        cr_expect_eq(raw_attach(&raw, s.world.socket_path, &shape, LIMIT_BYTES), -ENOMEM);
        cr_expect_not_null(strstr(raw.welcome.text, "memory_max"), "%s", raw.welcome.text);
        raw_detach(&raw);
        uint64_t used = s.cgroup.folder[0] ? cgroup_used(&s.cgroup) : 0;
        cr_assert_eq(raw_attach(&raw, s.world.socket_path, &shape, LIMIT_BYTES / 3 / 4096 * 4096), 0, "%s", raw.welcome.text);
        honest_expect_progress(s.honest, 100);
        if (s.cgroup.folder[0])
                cr_expect_lt(cgroup_used(&s.cgroup), used + LIMIT_BYTES / 4);
        raw_detach(&raw);
        end(&s);
}

/* Nobody has to let go of what was once granted to it: three times as much as there is, if it stayed the runtime's. */
Test(memory, arenas_of_clients_that_left_and_keep_them_open_make_room, .timeout = 60)
{
        struct raw raws[3][16];
        uint32_t n[3];
        char refusal[512];
        struct scene s;

        begin(&s, add_reader);
        uint64_t before = promised(&s.world);
        for (int round = 0; round < 3; round++) {
                n[round] = attach_all(&s.world, 64 * MIB, raws[round], 16, refusal);
                cr_assert_eq(n[round], n[0], "%u arenas, %u the first time: %s", n[round], n[0], refusal);
                for (uint32_t i = 0; i < n[round]; i++) {
                        have_it_read(&raws[round][i]);
                        *(uint64_t *)raws[round][i].arena.base = 42;
                }
                for (uint32_t i = 0; i < n[round]; i++)
                        raw_leave(&raws[round][i]);
                expect_promised(&s.world, before);
        }
        cr_expect_eq(*(uint64_t *)raws[0][0].arena.base, 0, "it made room");
        cr_expect_eq(*(uint64_t *)raws[2][n[2] - 1].arena.base, 42, "nobody needed it");
        for (int round = 0; round < 3; round++)
                for (uint32_t i = 0; i < n[round]; i++)
                        raw_detach(&raws[round][i]);
        end(&s);
}

/* The largest that one user may have, so that there is no room for it twice. A runtime that gives no answer is no refusal. */
static uint64_t *alloc_most(struct scene *s, struct starling_client *client)
{
        uint64_t *data = NULL;

        for (uint64_t bytes = LIMIT_BYTES / 4 * 3; !data && bytes > MIB; bytes -= 16 * MIB) {
                data = starling_alloc(client, bytes);
                cr_assert(data || errno == ENOMEM || errno == EDQUOT, "%llu bytes: %s\n%s", (unsigned long long)bytes,
                        strerror(errno), world_log(&s->world));
        }
        return data;
}

Test(memory, an_arena_is_handed_back_with_its_contents_while_the_runtime_lives, .timeout = 60)
{
        struct footprint before;
        struct scene s;

        begin(&s, add_reader);
        before = world_footprint(&s.world);
        uint64_t promised_before = promised(&s.world);
        struct starling_client *client = world_connect(&s.world, STARLING_ROLE_CLIENT);
        uint64_t *data = alloc_most(&s, client);
        cr_assert_not_null(data);
        data[1000] = 42;
        starling_disconnect(client);
        world_expect_log(&s.world, "event=client-detached");
        expect_promised(&s.world, promised_before); /* what can be taken back is left */
        cr_expect_eq(data[1000], 42);
        cr_assert_eq(starling_reconnect(client, 60000000000ull, NULL), 0);
        cr_expect_eq(data[1000], 42);
        cr_expect_gt(promised(&s.world), promised_before);
        starling_close(client);
        world_expect_footprint(&s.world, &before);
        expect_promised(&s.world, promised_before);
        end(&s);
}

/* Nor is it lost: it is mapped when there is address space again. */
Test(memory, a_region_for_which_a_client_has_no_address_space_costs_it_no_connection, .timeout = 60)
{
        struct rlimit limit, most;
        struct scene s;

        if (WORLD_SLOW)
                cr_skip_test("a sanitizer's own address space has no limit");
        begin(&s, add_reader);
        struct starling_client *client = world_connect(&s.world, STARLING_ROLE_CLIENT);
        cr_assert_not_null(starling_alloc(client, MIB));
        cr_assert_eq(getrlimit(RLIMIT_AS, &most), 0);
        limit = (struct rlimit){.rlim_cur = 1, .rlim_max = most.rlim_max};
        cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
        for (int i = 0; i < 3; i++) {
                cr_expect_null(starling_alloc(client, 40 * MIB));
                cr_expect_eq(errno, ENOMEM);
        }
        cr_assert_eq(setrlimit(RLIMIT_AS, &most), 0);
        uint64_t granted = promised(&s.world);
        cr_assert_not_null(starling_alloc(client, 40 * MIB));
        cr_expect_eq(promised(&s.world), granted, "it was there already");
        cr_assert_not_null(starling_alloc(client, 60 * MIB));
        starling_close(client);
        end(&s);
}

/* The region was promised to the earlier connection: it is nobody's behind the next one, nor is its descriptor. */
Test(memory, a_region_that_was_not_mapped_goes_with_its_connection, .timeout = 60)
{
        struct rlimit limit, most;
        struct scene s;
        int others[16];

        if (WORLD_SLOW)
                cr_skip_test("a sanitizer's own address space has no limit");
        begin(&s, add_reader);
        struct starling_client *client = world_connect(&s.world, STARLING_ROLE_CLIENT);
        cr_assert_eq(getrlimit(RLIMIT_AS, &most), 0);
        limit = (struct rlimit){.rlim_cur = 1, .rlim_max = most.rlim_max};
        cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
        cr_expect_null(starling_alloc(client, 40 * MIB));
        cr_assert_eq(setrlimit(RLIMIT_AS, &most), 0);
        cr_assert_eq(starling_reconnect(client, WORLD_PATIENCE_NS, NULL), 0);
        for (int i = 0; i < 16; i++)
                cr_assert_geq(others[i] = open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
        cr_expect_not_null(starling_alloc(client, 40 * MIB), "%s", strerror(errno));
        starling_close(client);
        for (int i = 0; i < 16; i++)
                cr_expect_eq(close(others[i]), 0, "the client has closed what is not its own");
        end(&s);
}

/* libstarling touches what it hands out, so that it is the client's. */
Test(memory, tensors_of_the_library_are_charged_to_the_client, .timeout = 60)
{
        struct starling_tensor tensor;
        unsigned char present[4096];
        struct scene s;

        begin(&s, add_reader);
        struct starling_client *client = world_connect(&s.world, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_tensor_alloc(client, STARLING_F32, 1, (uint32_t[]){1 << 20}, &tensor), 0);
        cr_assert_eq(mincore((void *)((uintptr_t)tensor.data & ~4095ul), 4 * MIB, present), 0);
        for (uint32_t page = 0; page < 4 * MIB / 4096; page++)
                cr_assert(present[page] & 1, "page %u is not there", page);
        starling_close(client);
        end(&s);
}

/* ---- what was promised comes back ---- */

Test(memory, the_ledger_returns_to_its_start_when_clients_and_models_go, .timeout = 60)
{
        struct starling_tensor x, y;
        struct starling_completion done;
        struct starling_queue *queue;
        struct starling_model *model;
        struct scene s;

        memset(&s, 0, sizeof(s));
        world_init_compiling(&s.world);
        for (int i = 0; i < 5; i++)
                world_remove_model(&s.world, ((const char *[]){"lenet", "resnet", "densenet", "mobilenet", "digits"})[i]);
        world_start(&s.world);
        uint64_t before = promised(&s.world);
        add_open_model(&s.world);
        kill(s.world.pid, SIGHUP);
        world_expect_log(&s.world, "event=model-ready model=open ");
        struct starling_client *client = world_connect(&s.world, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_model_open(client, "open", &model, NULL), 0);
        cr_assert_eq(starling_queue_open(client, &queue, NULL), 0);
        for (uint32_t columns = 8; columns < 11; columns++) {
                cr_assert_eq(starling_tensor_alloc(client, STARLING_F32, 2, (uint32_t[]){2, columns}, &x), 0);
                cr_assert_eq(starling_tensor_alloc(client, STARLING_F32, 2, (uint32_t[]){2, columns}, &y), 0);
                struct starling_request request = {.model = model, .inputs = &x, .n_inputs = 1, .outputs = &y, .n_outputs = 1};
                cr_assert_eq(starling_infer(queue, &request, &done), 0, "%s", world_log(&s.world));
        }
        cr_expect_gt(promised(&s.world), before);
        starling_close(client);
        world_remove_model(&s.world, "open");
        kill(s.world.pid, SIGHUP);
        world_expect_log(&s.world, "event=model-unloaded model=open ");
        expect_promised(&s.world, before);
        world_stop(&s.world);
        world_free(&s.world);
}

/* ---- the bound ---- */

Test(memory, the_bound_is_what_the_group_leaves_and_the_log_says_so, .timeout = 60)
{
        struct scene s;

        begin(&s, add_reader);
        if (s.cgroup.folder[0]) {
                const char *at = strstr(world_log(&s.world), "memory_max_bytes=");

                cr_assert_not_null(at);
                uint64_t bound = strtoull(at + strlen("memory_max_bytes="), NULL, 10);
                cr_expect_leq(bound, LIMIT_BYTES / 8 * 7);
                cr_expect_geq(bound, LIMIT_BYTES / 2);
                expect_logged(&s, "starling-test-");
        } else {
                expect_logged(&s, "source=configuration");
        }
        end(&s);
}

Test(memory, a_bound_that_the_fixed_parts_pass_ends_the_start_with_one_error, .timeout = 60)
{
        struct world world;

        world_init_compiling(&world);
        world_configure(&world, "limits: {memory_max: 64 MiB, staging_bytes: 60 MiB}\n");
        world_launch(&world);
        int status = world_wait(&world);
        cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 1, "wait status %#x: %s", status, world_log(&world));
        cr_expect_not_null(strstr(world_log(&world), "of memory_max 67108864 are in use"), "%s", world_log(&world));
        world_expect_nothing_left(&world, false);
        world_free(&world);
}

/* Memory that a model's workers would take is known from its plan, before they start. */
Test(memory, a_model_that_would_pass_the_bound_is_refused_with_the_numbers_and_others_serve, .timeout = 60)
{
        struct honest *honest;
        struct world world;

        world_init_compiling(&world);
        add_reader(&world);
        world_add_model_config(&world, "reader", "batch_max: 1024\nsegment_samples: 1024\n"); /* 256 MiB of pool */
        world_configure(&world, "models: [mlp, reader]\nlimits: {memory_max: 256 MiB}\n");
        world_start(&world);
        cr_expect_eq(world_count_log(&world, "event=model-failed model=reader"), 1, "%s", world_log(&world));
        cr_expect_not_null(strstr(world_log(&world), "1 workers of batch 1024"), "%s", world_log(&world));
        cr_expect_not_null(strstr(world_log(&world), "of memory_max 268435456 are in use"), "%s", world_log(&world));
        honest = honest_start(&world, "mlp");
        honest_expect_progress(honest, 20);
        honest_stop(honest);
        world_stop(&world);
        world_free(&world);
}
