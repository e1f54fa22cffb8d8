/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of a backend that completes later, next to `ref`, which does not; and the blobs that it keeps in the plan file. */
#include "backend_table.h"
#include "base/error.h"
#include "format.h"
#include "late_backend.h"
#include "network.h"
#include "plan.h"
#include "stop.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define WIDTH  32
#define LAYERS 4
#define BATCH  2

static struct network net;
static float x[BATCH * WIDTH], y[BATCH * WIDTH], wanted[BATCH * WIDTH];
static const void *inputs[] = {x};
static void *outputs[] = {y};

/* Products on the one backend; a Sigmoid between them is on the other. */
static void build_network(bool mixed)
{
        uint32_t value;

        late_reset();
        network_init(&net);
        value = network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, WIDTH));
        for (int i = 0; i < LAYERS; i++) {
                value = network_node(&net, SL_OP_MATMUL, VALUES(value, network_weights(&net, DIMS(WIDTH, WIDTH))), 0, NULL);
                value = network_apply(&net, SL_OP_RELU, value);
                if (mixed && i % 2 == 0)
                        value = network_apply(&net, SL_OP_SIGMOID, value);
        }
        network_output(&net, value);
        network_finish(&net);
        for (int i = 0; i < BATCH * WIDTH; i++)
                x[i] = network_random(&net);
}

/* Each reads what the other has made. */
static void setup(void)
{
        build_network(true);
}

static void teardown(void)
{
        network_deinit(&net);
        cr_expect_eq(late.n_memory, 0, "%u pieces of its memory are left", late.n_memory);
        cr_expect_eq(late.n_kernels, 0, "%u kernels are left", late.n_kernels);
        cr_expect_eq(late.n_sessions, 0, "%u sessions are left", late.n_sessions);
}

TestSuite(late, .init = setup, .fini = teardown);

static struct sl_plan *open_plan(const char *backend)
{
        struct sl_error error = {0};
        struct sl_plan *plan;
        int fd = network_plan_fd(&net, backend, BATCH);

        cr_assert_eq(sl_plan_open(fd, &plan, &error), 0, "%s", error.text);
        close(fd);
        return plan;
}

static struct sl_instance *instance_of(const struct sl_plan *plan)
{
        struct sl_error error = {0};
        struct sl_instance *instance;

        cr_assert_eq(sl_instance_new(plan, BATCH, &instance, &error), 0, "%s", error.text);
        return instance;
}

/* What `ref` makes of the input, in wanted. */
static void compute_wanted(void)
{
        void *there[] = {wanted};
        struct sl_plan *plan = open_plan("ref");
        struct sl_instance *instance = instance_of(plan);

        cr_assert_eq(sl_instance_run(instance, BATCH, inputs, there), 0);
        sl_instance_free(instance);
        sl_plan_free(plan);
}

Test(late, each_step_reads_what_those_before_it_have_made_on_whatever_backend)
{
        struct sl_plan *plan = open_plan("cpu");
        struct sl_instance *instance = instance_of(plan);

        compute_wanted();
        late_say(&late.delay_us, 2000);
        for (int run = 0; run < 5; run++) {
                memset(y, 0, sizeof(y));
                cr_assert_eq(sl_instance_run(instance, BATCH, inputs, outputs), 0);
                cr_expect_arr_eq(y, wanted, sizeof(y));
        }
        sl_instance_free(instance);
        sl_plan_free(plan);
}

Test(late, the_time_of_a_step_is_that_until_it_has_ended)
{
        struct sl_plan *plan = open_plan("cpu");
        struct sl_instance *instance = instance_of(plan);
        uint64_t *step_ns = calloc(sl_plan_steps(plan, BATCH), sizeof(*step_ns)), first = 0;

        late_say(&late.delay_us, 3000);
        cr_assert_eq(sl_instance_run_timed(instance, BATCH, inputs, outputs, step_ns), 0);
        first = step_ns[0];
        cr_expect_geq(first, 3000000);
        free(step_ns);
        sl_instance_free(instance);
        sl_plan_free(plan);
}

Test(late, one_thread_drives_several_instances)
{
        enum { N = 3 };
        struct sl_plan *plan = open_plan("cpu");
        struct sl_instance *instances[N];
        float results[N][BATCH * WIDTH] = {{0}};
        void *there[N][1];
        uint32_t n_over = 0;
        int status[N];

        compute_wanted();
        late_close();
        for (int i = 0; i < N; i++) {
                instances[i] = instance_of(plan);
                there[i][0] = results[i];
                status[i] = sl_instance_start(instances[i], BATCH, inputs, there[i]);
                cr_assert_eq(status[i], -EINPROGRESS);
                cr_assert_eq(sl_instance_start(instances[i], BATCH, inputs, there[i]), -EBUSY);
        }
        cr_assert_eq(late_ask(&late.n_computed), 0);
        late_open();
        while (n_over < N)
                for (int i = 0; i < N; i++)
                        if (status[i] == -EINPROGRESS && (status[i] = sl_instance_poll(instances[i])) != -EINPROGRESS)
                                n_over++;
        for (int i = 0; i < N; i++) {
                cr_expect_eq(status[i], 0);
                cr_expect_arr_eq(results[i], wanted, sizeof(wanted));
                sl_instance_free(instances[i]);
        }
        sl_plan_free(plan);
}

Test(late, who_waits_gets_what_was_started)
{
        struct sl_plan *plan = open_plan("cpu");
        struct sl_instance *instance = instance_of(plan);

        compute_wanted();
        late_say(&late.delay_us, 1000);
        cr_assert_eq(sl_instance_start(instance, BATCH, inputs, outputs), -EINPROGRESS);
        cr_assert_eq(sl_instance_wait(instance), 0);
        cr_assert_eq(sl_instance_wait(instance), 0);
        cr_expect_arr_eq(y, wanted, sizeof(y));
        sl_instance_free(instance);
        sl_plan_free(plan);
}

Test(late, a_verdict_launches_nothing_more_and_is_told_when_what_is_in_flight_has_ended)
{
        struct sl_plan *plan = open_plan("cpu");
        struct sl_instance *instance = instance_of(plan);
        atomic_int verdict = 0;
        struct sl_stop stop = {.verdict = &verdict};
        uint32_t n_launched;
        int r;

        sl_instance_watch(instance, &stop);
        late_close();
        cr_assert_eq(sl_instance_start(instance, BATCH, inputs, outputs), -EINPROGRESS);
        n_launched = late_ask(&late.n_launched);
        cr_assert_gt(n_launched, 0);
        atomic_store(&verdict, -ECANCELED);
        cr_assert_eq(sl_instance_poll(instance), -EINPROGRESS, "somebody still writes");
        late_open();
        while ((r = sl_instance_poll(instance)) == -EINPROGRESS)
                usleep(100);
        cr_expect_eq(r, -ECANCELED);
        cr_expect_eq(late_ask(&late.n_launched), n_launched);
        cr_expect_eq(late_ask(&late.n_computed), n_launched);
        atomic_store(&verdict, 0);
        cr_expect_eq(sl_instance_run(instance, BATCH, inputs, outputs), 0, "the instance is as good as before");
        sl_instance_free(instance);
        sl_plan_free(plan);
}

Test(late, a_failure_that_shows_later_is_that_of_the_run_and_of_no_other)
{
        struct sl_plan *plan = open_plan("cpu");
        struct sl_instance *instance = instance_of(plan);

        compute_wanted();
        for (uint32_t at = 1; at <= 3; at++) {
                late_say(&late.n_computed, 0);
                late_say(&late.fails_at, at);
                cr_expect_eq(sl_instance_run(instance, BATCH, inputs, outputs), -ERANGE, "launch %u", at);
                late_say(&late.fails_at, 0);
                cr_expect_eq(sl_instance_run(instance, BATCH, inputs, outputs), 0, "after launch %u", at);
                cr_expect_arr_eq(y, wanted, sizeof(y));
        }
        sl_instance_free(instance);
        sl_plan_free(plan);
}

static void *open_soon(void *context)
{
        (void)context;
        usleep(20000);
        late_open();
        return NULL;
}

Test(late, who_frees_an_instance_waits_for_what_is_in_flight)
{
        struct sl_plan *plan = open_plan("cpu");
        struct sl_instance *instance = instance_of(plan);
        pthread_t thread;
        uint32_t n_launched;

        late_close();
        cr_assert_eq(sl_instance_start(instance, BATCH, inputs, outputs), -EINPROGRESS);
        n_launched = late_ask(&late.n_launched);
        pthread_create(&thread, NULL, open_soon, NULL);
        sl_instance_free(instance);
        cr_expect_eq(late_ask(&late.n_computed), n_launched);
        pthread_join(thread, NULL);
        sl_plan_free(plan);
}

/* Two operators at two batch sizes: equal blobs are kept once. */
Test(late, a_blob_of_any_size_comes_back_with_its_node)
{
        static const uint32_t sizes[] = {1, 63, 64, 4097, (3 << 20) + 1};

        compute_wanted();
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
                struct sl_instance *instance;
                struct sl_plan *plan;

                late_say(&late.blob_bytes, sizes[i]);
                plan = open_plan("cpu");
                instance = instance_of(plan);
                cr_expect_eq(late_ask(&late.n_blobs), 2, "%u blobs", late.n_blobs);
                cr_expect_eq(sl_instance_run(instance, BATCH, inputs, outputs), 0);
                cr_expect_arr_eq(y, wanted, sizeof(y));
                sl_instance_free(instance);
                sl_plan_free(plan);
        }
}

Test(late, blobs_lie_beyond_four_gibibytes_where_they_must)
{
        uint64_t large = (4ull << 30) + 5;
        struct sl_backend_table table = {.n_backends = 0};
        void *zeros = mmap(NULL, large, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        uint32_t backends[2], numbers[3];

        cr_assert_neq(zeros, MAP_FAILED);
        (void)madvise(zeros, large, MADV_HUGEPAGE); /* what is kept is hashed: a page fault for 2 MiB, not for 4 KiB */
        cr_assert_eq(sl_backend_table_find(&table, &sl_backend_ref, NULL, &backends[0]), 0);
        cr_assert_eq(sl_backend_table_find(&table, sl_backend_find("cpu"), NULL, &backends[1]), 0);
        cr_assert_eq(sl_backend_table_keep(&table, backends[1], &(struct sl_blob){zeros, large}, &numbers[0]), 0);
        cr_assert_eq(sl_backend_table_keep(&table, backends[0], &(struct sl_blob){"small", 5}, &numbers[1]), 0);
        cr_assert_eq(sl_backend_table_keep(&table, backends[1], &(struct sl_blob){"smaller", 3}, &numbers[2]), 0);
        cr_assert_eq(sl_backend_table_settle(&table), 0);
        cr_expect_eq(table.rows[backends[0]].n_blobs, 1);
        cr_expect_eq(table.rows[backends[1]].first_blob, 1);
        cr_expect_eq(numbers[2], 1);
        cr_expect_eq(table.places[0].offset, (4ull << 30) + 64);
        cr_expect_eq(table.places[2].offset, (4ull << 30) + 128);
        cr_expect_eq(table.data_bytes, (4ull << 30) + 192);
        sl_backend_table_deinit(&table);
        munmap(zeros, large);
}

static uint8_t *read_plan(int fd, size_t *ret_bytes)
{
        struct stat status;
        uint8_t *bytes;

        cr_assert_eq(fstat(fd, &status), 0);
        *ret_bytes = (size_t)status.st_size;
        bytes = malloc(*ret_bytes);
        cr_assert_eq(pread(fd, bytes, *ret_bytes, 0), status.st_size);
        return bytes;
}

/* Under a checksum that is right. */
static int open_bytes(uint8_t *bytes, size_t n_bytes, struct sl_plan **ret_plan, struct sl_error *error)
{
        int fd = memfd_create("forged", MFD_CLOEXEC), r;

        ((struct sl_plan_header *)bytes)->checksum = XXH3_64bits(bytes + SL_PLAN_CHECKED_FROM, n_bytes - SL_PLAN_CHECKED_FROM);
        cr_assert_eq(write(fd, bytes, n_bytes), (ssize_t)n_bytes);
        r = sl_plan_open(fd, ret_plan, error);
        close(fd);
        return r;
}

/* Opens a copy of a plan file after @forge had it. */
static int open_forged(int fd, void (*forge)(struct sl_plan_header *header, uint8_t *bytes), struct sl_error *error)
{
        struct sl_plan *plan = NULL;
        size_t n_bytes;
        uint8_t *bytes = read_plan(fd, &n_bytes);
        int r;

        forge((void *)bytes, bytes);
        r = open_bytes(bytes, n_bytes, &plan, error);
        sl_plan_free(plan);
        free(bytes);
        return r;
}

#define FORGE(name, section, type, change)                                                                                         \
        static void name(struct sl_plan_header *header, uint8_t *bytes)                                                            \
        {                                                                                                                          \
                type *row = (void *)(bytes + header->sections[SL_PLAN_SECTION_##section].offset);                                  \
                                                                                                                                   \
                change;                                                                                                            \
        }

FORGE(blob_unaligned, BLOBS, struct sl_plan_blob, row->offset += 8)
FORGE(blob_too_long, BLOBS, struct sl_plan_blob, row->bytes += 1 << 20)
FORGE(blob_wrapping, BLOBS, struct sl_plan_blob, row->bytes = UINT64_MAX - 32)
FORGE(blob_far_away, BLOBS, struct sl_plan_blob, row->offset = 1ull << 40)
FORGE(blobs_of_nobody, BACKENDS, struct sl_plan_backend, row->n_blobs--)
FORGE(blobs_of_others, BACKENDS, struct sl_plan_backend, row->first_blob++)
FORGE(blobs_too_many, BACKENDS, struct sl_plan_backend, row->n_blobs = UINT64_MAX)
FORGE(step_without_blob, STEPS, struct sl_plan_step, row->blob = 1000)
FORGE(step_without_backend, STEPS, struct sl_plan_step, row->backend = 7)
FORGE(key_without_end, BACKENDS, struct sl_plan_backend, memset(row->key, 'x', sizeof(row->key)))
FORGE(backends_too_many, BACKENDS, struct sl_plan_backend, header->sections[SL_PLAN_SECTION_BACKENDS].count = 17; (void)row)

Test(late, a_file_that_lies_about_blobs_or_backends_is_refused)
{
        void (*const forgeries[])(struct sl_plan_header *, uint8_t *) = {blob_unaligned, blob_too_long, blob_wrapping,
                blob_far_away, blobs_of_nobody, blobs_of_others, blobs_too_many, step_without_blob, step_without_backend,
                key_without_end, backends_too_many};
        int fd;

        late_say(&late.blob_bytes, 100);
        fd = network_plan_fd(&net, "cpu", BATCH);
        for (size_t i = 0; i < sizeof(forgeries) / sizeof(forgeries[0]); i++) {
                struct sl_error error = {0};

                cr_expect_eq(open_forged(fd, forgeries[i], &error), -EBADMSG, "forgery %zu: %s", i, error.text);
                cr_expect(error.text[0]);
        }
        close(fd);
}

FORGE(other_key, BACKENDS, struct sl_plan_backend, strcpy(row->key, "later 2"))
FORGE(other_backend, BACKENDS, struct sl_plan_backend, strcpy(row->name, "abacus"))

Test(late, a_plan_for_another_library_or_backend_says_which)
{
        struct sl_error error = {0};
        int fd = network_plan_fd(&net, "cpu", BATCH);

        cr_expect_eq(open_forged(fd, other_key, &error), -EPROTONOSUPPORT);
        cr_expect(strstr(error.text, "later 2") && strstr(error.text, "later 1"), "%s", error.text);
        cr_expect_eq(open_forged(fd, other_backend, &error), -EPROTONOSUPPORT);
        cr_expect(strstr(error.text, "abacus"), "%s", error.text);
        close(fd);
}

/* What is opened all the same is run. */
static bool use_damaged(uint8_t *bytes, size_t n_bytes)
{
        struct sl_instance *instance;
        struct sl_plan *plan;
        bool made;

        if (open_bytes(bytes, n_bytes, &plan, NULL) < 0)
                return false;
        made = sl_instance_new(plan, BATCH, &instance, NULL) == 0;
        if (made) {
                cr_expect_eq(sl_instance_run(instance, BATCH, inputs, outputs), 0);
                sl_instance_free(instance);
        }
        sl_plan_free(plan);
        return made;
}

Test(late, no_damage_to_backends_and_blobs_harms_anybody)
{
        static const enum sl_plan_section_id sections[] = {
                SL_PLAN_SECTION_BACKENDS, SL_PLAN_SECTION_BLOBS, SL_PLAN_SECTION_BLOB_DATA};
        uint32_t n = 0, n_used = 0;
        size_t n_bytes;
        uint8_t *bytes;
        int fd;

        late_say(&late.blob_bytes, 70);
        fd = network_plan_fd(&net, "cpu", BATCH);
        bytes = read_plan(fd, &n_bytes);
        for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
                const struct sl_plan_section section = ((struct sl_plan_header *)bytes)->sections[sections[i]];

                for (uint64_t at = 0; at < section.count * sl_plan_section_bytes(sections[i]); at++)
                        for (int bit = 0; bit < 8; bit += 3) {
                                bytes[section.offset + at] ^= (uint8_t)(1 << bit);
                                n++;
                                n_used += use_damaged(bytes, n_bytes);
                                bytes[section.offset + at] ^= (uint8_t)(1 << bit);
                        }
        }
        cr_expect_gt(n, 1000);
        cr_expect_lt(n_used, n);
        free(bytes);
        close(fd);
}

/* ---- memory of its own ---- */

static void setup_there(void)
{
        build_network(false);
        late_use_memory();
}

TestSuite(late_memory, .init = setup_there, .fini = teardown);

Test(late_memory, a_run_copies_its_ports_and_touches_nothing_else_of_the_host)
{
        struct sl_plan *plan = open_plan("cpu");
        struct sl_instance *instance = instance_of(plan);

        compute_wanted();
        for (uint32_t run = 1; run <= 3; run++) {
                memset(y, 0, sizeof(y));
                late_say(&late.n_uploads, 0);
                cr_assert_eq(sl_instance_run(instance, BATCH, inputs, outputs), 0);
                cr_expect_arr_eq(y, wanted, sizeof(y));
                cr_expect_eq(late.n_uploads, 1);
                cr_expect_eq(late.n_downloads, run);
        }
        sl_instance_free(instance);
        sl_plan_free(plan);
}

Test(late_memory, an_instance_that_is_driven_fetches_its_outputs_once)
{
        struct sl_plan *plan = open_plan("cpu");
        struct sl_instance *instance = instance_of(plan);
        int r;

        compute_wanted();
        late_close();
        cr_assert_eq(sl_instance_start(instance, BATCH, inputs, outputs), -EINPROGRESS);
        for (int i = 0; i < 3; i++)
                cr_assert_eq(sl_instance_poll(instance), -EINPROGRESS);
        late_open();
        while ((r = sl_instance_poll(instance)) == -EINPROGRESS)
                usleep(100);
        cr_expect_eq(r, 0);
        cr_expect_eq(late.n_downloads, 1);
        cr_expect_arr_eq(y, wanted, sizeof(y));
        sl_instance_free(instance);
        sl_plan_free(plan);
}

/* Its buffers are where the backend computes, its constants those of all. */
Test(late_memory, instances_on_one_ground_share_the_constants_and_copy_nothing)
{
        enum { N = 3 };
        struct sl_plan *plan = open_plan("cpu");
        struct sl_device *device = (struct sl_device *)&net;
        struct sl_instance *instances[N];
        struct sl_residence *constants;
        struct sl_instance_ground ground = {.device = device, .ports_there = true};
        float there_x[BATCH * WIDTH], there_y[BATCH * WIDTH];
        const void *there_in[] = {late_address(there_x)};
        void *there_out[] = {late_address(there_y)};

        compute_wanted();
        memcpy(there_x, x, sizeof(x));
        cr_assert_eq(sl_residence_new(plan, device, NULL, &constants, NULL), 0);
        cr_expect_eq(late.device, device);
        ground.constants = constants;
        for (int i = 0; i < N; i++) {
                cr_assert_eq(sl_instance_new_on(plan, BATCH, &ground, &instances[i], NULL), 0);
                memset(there_y, 0, sizeof(there_y));
                cr_assert_eq(sl_instance_run(instances[i], BATCH, there_in, there_out), 0);
                cr_expect_arr_eq(there_y, wanted, sizeof(wanted));
        }
        cr_expect_eq(late.n_memory, 1 + N, "the constants once, and a workspace each");
        cr_expect_eq(late.n_uploads, 1);
        cr_expect_eq(late.n_downloads, 0);
        for (int i = 0; i < N; i++)
                sl_instance_free(instances[i]);
        sl_residence_free(constants);
        sl_plan_free(plan);
}

/* The second run reads what the first has made: its owner waits for the last one only. */
Test(late_memory, runs_are_launched_behind_each_other_without_waiting)
{
        struct sl_plan *plan = open_plan("cpu");
        struct sl_instance *own = instance_of(plan), *instance;
        const struct sl_instance_ground ground = {.ports_there = true};
        float there_x[BATCH * WIDTH], there_y[BATCH * WIDTH], there_z[BATCH * WIDTH];
        const void *there_in[][1] = {{late_address(there_x)}, {late_address(there_y)}};
        void *there_out[][1] = {{late_address(there_y)}, {late_address(there_z)}};

        compute_wanted();
        memcpy(there_x, x, sizeof(x));
        cr_assert_eq(sl_instance_new_on(plan, BATCH, &ground, &instance, NULL), 0);
        cr_expect_eq(sl_instance_launch(own, BATCH, inputs, outputs), -ENOTSUP, "its ports are to be copied");
        cr_expect_eq(sl_instance_launch(instance, BATCH + 1, there_in[0], there_out[0]), -EINVAL);
        late_close();
        late_say(&late.n_computed, 0);
        for (int i = 0; i < 2; i++)
                cr_assert_eq(sl_instance_launch(instance, BATCH, there_in[i], there_out[i]), 0);
        cr_expect_eq(late_ask(&late.n_computed), 0);
        late_open();
        cr_assert_eq(sl_instance_run(own, BATCH, (const void *const[]){wanted}, outputs), 0);
        sl_instance_free(instance);
        cr_expect_arr_eq(there_y, wanted, sizeof(wanted));
        cr_expect_arr_eq(there_z, y, sizeof(y));
        sl_instance_free(own);
        sl_plan_free(plan);
}

Test(late_memory, a_failure_there_is_that_of_the_run_and_of_no_other)
{
        struct sl_plan *plan = open_plan("cpu");
        struct sl_instance *instance = instance_of(plan);

        compute_wanted();
        late_say(&late.n_computed, 0);
        late_say(&late.fails_at, 2);
        cr_expect_eq(sl_instance_run(instance, BATCH, inputs, outputs), -ERANGE);
        cr_expect_eq(sl_instance_run(instance, BATCH, inputs, outputs), 0);
        cr_expect_arr_eq(y, wanted, sizeof(y));
        sl_instance_free(instance);
        sl_plan_free(plan);
}

Test(late_memory, without_memory_there_no_instance_is_made_and_nothing_is_left)
{
        struct sl_plan *plan = open_plan("cpu");
        struct sl_instance *instance;
        struct sl_error error;
        int r = -ENOMEM;

        for (uint32_t room = 1; r == -ENOMEM; room++) {
                error = (struct sl_error){0};
                late_say(&late.n_memory_max, room);
                r = sl_instance_new(plan, BATCH, &instance, &error);
                if (r == 0)
                        break;
                cr_assert_eq(r, -ENOMEM, "%d: %s", r, error.text);
                cr_expect(strstr(error.text, "no memory"), "%s", error.text);
                cr_expect_eq(late.n_memory, 0);
                cr_assert_lt(room, 16);
        }
        sl_instance_free(instance);
        sl_plan_free(plan);
}

Test(late_memory, a_plan_with_steps_of_the_host_is_refused)
{
        struct sl_error error = {0};
        struct sl_instance *instance;
        struct sl_plan *plan;

        network_deinit(&net);
        build_network(true);
        late_use_memory();
        plan = open_plan("cpu");
        cr_expect_eq(sl_instance_new(plan, BATCH, &instance, &error), -ENOTSUP);
        cr_expect(strstr(error.text, "memory of its own"), "%s", error.text);
        sl_plan_free(plan);
}
