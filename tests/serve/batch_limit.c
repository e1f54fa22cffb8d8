/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The largest batch of a worker where nobody has asked for one, and what a worker takes.
 */
#include "builder.h"
#include "service.h"

#include "stats.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PIXELS     512
#define SAMPLE     (3ull * PIXELS * PIXELS * sizeof(float))
#define BOUND      (64ull << 20)
#define BATCH_LAST 32u

struct scene {
        struct service service;
        char model[96];
        struct sl_stats_view *stats;
};

/* y = a function of x that needs a tensor between them; 3 MiB a sample in, and out. */
static void write_large_model(struct scene *s)
{
        struct builder *b = builder_new(13);
        const uint8_t *bytes;
        size_t n_bytes;
        FILE *file;

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, 3, PIXELS, PIXELS));
        builder_attr_ints(b, builder_node(b, "Transpose", "x", "turned"), "perm", 4, (int64_t[]){0, 1, 3, 2});
        builder_node(b, "Softmax", "turned", "weighed");
        builder_node(b, "Add", "weighed,x", "y");
        builder_declare_output(b, "y", SL_DTYPE_F32, DIMS(-1, 3, PIXELS, PIXELS));
        bytes = builder_pack(b, &n_bytes);
        file = fopen(s->model, "wb");
        cr_assert(file && fwrite(bytes, 1, n_bytes, file) == n_bytes);
        fclose(file);
        builder_free(b);
}

/* The large model is the second spec; it is not served before the service is told of it. */
static void begin(struct scene *s, uint64_t bytes_max)
{
        memset(s, 0, sizeof(*s));
        service_init(&s->service);
        snprintf(s->model, sizeof(s->model), "%s/model.onnx", s->service.directory);
        write_large_model(s);
        s->service.specs[1].name = "large";
        s->service.specs[1].path = s->model;
        s->service.specs[1].batch_bytes_max = bytes_max;
        s->service.n_specs = 2;
}

static bool has_worker(const struct scene *s, const char *model, struct sl_worker_stats *ret_worker)
{
        for (uint32_t i = 0; i < sl_stats_count(s->stats, SL_STATS_WORKERS); i++)
                if (sl_stats_read_worker(s->stats, i, ret_worker) == 0 && !strcmp(ret_worker->model, model))
                        return true;
        return false;
}

static struct sl_worker_stats worker_of(const struct scene *s, const char *model)
{
        struct sl_worker_stats worker;

        cr_assert(has_worker(s, model, &worker), "no worker of %s", model);
        return worker;
}

static void start(struct scene *s)
{
        service_start(&s->service);
        starling_close(service_connect(&s->service, STARLING_ROLE_CLIENT));
        cr_assert_eq(sl_stats_open(s->service.options.name, NULL, &s->stats, NULL), 0);
}

static void end(struct scene *s)
{
        sl_stats_close(s->stats);
        unlink(s->model);
        service_stop(&s->service);
}

static uint64_t bytes_of(const struct sl_worker_stats *worker)
{
        return sl_counter_read(&worker->workspace_bytes) + sl_counter_read(&worker->pool_bytes);
}

Test(batch_limit, a_batch_that_nobody_asked_for_keeps_workspace_and_pool_below_the_bound, .timeout = 60)
{
        struct scene s;

        begin(&s, BOUND);
        start(&s);
        struct sl_worker_stats large = worker_of(&s, "large"), lenet = worker_of(&s, "lenet");
        cr_assert_leq(bytes_of(&large), BOUND);
        cr_assert_gt(2 * bytes_of(&large), BOUND, "the next size would have fitted");
        cr_assert_eq(sl_counter_read(&large.batch_reason), SL_BATCH_BYTES);
        cr_assert_geq(sl_counter_read(&large.pool_bytes), 2 * SAMPLE * large.batch_max);
        cr_assert_eq(lenet.batch_max, BATCH_LAST);
        end(&s);
}

Test(batch_limit, one_sample_is_served_whatever_it_takes, .timeout = 60)
{
        struct scene s;

        begin(&s, 1);
        start(&s);
        struct sl_worker_stats large = worker_of(&s, "large");
        cr_assert_eq(large.batch_max, 1);
        cr_assert_eq(sl_counter_read(&large.batch_reason), SL_BATCH_BYTES);
        end(&s);
}

Test(batch_limit, a_batch_that_was_asked_for_is_obeyed, .timeout = 60)
{
        struct scene s;

        begin(&s, 0);
        s.service.specs[1].lowering.batch_max = 16;
        start(&s);
        struct sl_worker_stats large = worker_of(&s, "large");
        cr_assert_eq(large.batch_max, 16);
        cr_assert_gt(bytes_of(&large), BOUND);
        cr_assert_eq(sl_counter_read(&large.batch_reason), SL_BATCH_CONFIGURED);
        end(&s);
}

static uint64_t anonymous_bytes(void)
{
        FILE *file = fopen("/proc/self/smaps_rollup", "r");
        uint64_t kibibytes = 0;
        char line[128];

        cr_assert_not_null(file);
        while (fgets(line, sizeof(line), file))
                if (sscanf(line, "Anonymous: %" SCNu64, &kibibytes) == 1)
                        break;
        fclose(file);
        return kibibytes << 10;
}

/* Memory is faulted in idle time: what is there after a while counts, not when it came. */
Test(batch_limit, a_worker_takes_what_it_says, .timeout = 60)
{
        struct scene s;
        uint64_t before, taken, said;
        struct sl_worker_stats large;

        begin(&s, BOUND);
        s.service.n_specs = 1;
        start(&s);
        before = anonymous_bytes();
        s.service.n_specs = 2;
        service_reload(&s.service);
        service_expect_log(&s.service, "model-ready model=large");
        SERVICE_AWAIT(&s.service, has_worker(&s, "large", &large)); /* the log goes before the page */
        said = bytes_of(&large);
        SERVICE_AWAIT(&s.service, anonymous_bytes() - before >= said / 10 * 9);
        usleep(100000);
        taken = anonymous_bytes() - before;
        cr_assert_leq(taken, said / 10 * 12, "%" PRIu64 " bytes said, %" PRIu64 " taken", said, taken);
        end(&s);
}
