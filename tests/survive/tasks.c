/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks in a runtime of its own, `starling serve` with the digits networks: a query says how accurate, fast and cheap an answer has
 * to be, the answer is that of the variant which is told, and what cannot be met is refused with the need, its value, and the best.
 */
#include "builder.h"
#include "tasks_scene.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* As client/examples/digits/README.md has them. */
#define TASK                                                                                                                       \
        "task:\n"                                                                                                                  \
        "  variants: [mlp, lenet, densenet, digits]\n"                                                                             \
        "  accuracy: [0.9783, 0.9866, 0.9967, 1]\n"                                                                                \
        "  cost: [1, 3, 20, 50]\n"

/* The text has all of these. */
static void expect_refusal(struct scene *s, struct starling_query query, int status, const char *const *words)
{
        struct starling_model *model;
        struct starling_error error = {""};

        cr_assert_eq(starling_query_open(s->client, "read", &query, &model, &error), status, "%s", error.text);
        for (; *words; words++)
                cr_expect(strstr(error.text, *words), "\"%s\" is not in: %s", *words, error.text);
}

#define WORDS(...)                                                                                                                 \
        (const char *const[])                                                                                                      \
        {                                                                                                                          \
                __VA_ARGS__, NULL                                                                                                  \
        }

Test(tasks, the_cheapest_variant_that_is_accurate_enough_answers_and_is_told)
{
        struct scene s;
        struct starling_model *model;
        struct starling_answer answer;

        tasks_begin(&s, TASK);
        tasks_start(&s);
        tasks_expect_variant(&s, (struct starling_query){.accuracy = 0.9}, "mlp", STARLING_MET_ALL);
        tasks_expect_variant(&s, (struct starling_query){.accuracy = 0.98}, "lenet", STARLING_MET_ALL);
        tasks_expect_variant(&s, (struct starling_query){.accuracy = 0.99}, "densenet", STARLING_MET_ALL);
        tasks_expect_variant(&s, (struct starling_query){.accuracy = 0.999}, "digits", STARLING_MET_ALL);
        tasks_expect_variant(&s, (struct starling_query){.accuracy = 0}, "digits", STARLING_MET_ALL);
        tasks_expect_variant(&s, (struct starling_query){.cost = 20}, "densenet", STARLING_MET_ALL);
        tasks_expect_variant(
                &s, (struct starling_query){.accuracy = 0.999, .accuracy_least = 0.9, .cost = 10}, "lenet", STARLING_MET_LEAST);
        tasks_expect_variant(&s, (struct starling_query){.accuracy = 0.98, .latency_ns = 5000000000ull}, "lenet", STARLING_MET_ALL);
        tasks_expect_variant(&s, (struct starling_query){.accuracy = 0.99, .cost = 19, .flags = STARLING_QUERY_CLOSEST}, "lenet",
                STARLING_MET_CLOSEST);

        /* By its name alone a task is the most accurate; a model stays a model. */
        cr_assert_eq(starling_model_open(s.client, "read", &model, NULL), 0);
        cr_expect_str_eq(starling_model_describe(model)->name, "read");
        cr_expect_eq(tasks_expect_answer(&s, model, 2, &answer), 3);
        cr_expect_eq(starling_model_changed(model), 0);
        starling_model_close(model);
        cr_assert_eq(starling_model_open(s.client, "lenet", &model, NULL), 0);
        struct starling_request request = digits_ask(&s.job, model, 0, 1);
        struct starling_completion done;
        cr_assert_eq(starling_infer(s.queue, &request, &done), 0);
        cr_expect_eq(starling_completion_variant(s.queue, &done, &answer), -ENOENT);
        tasks_end(&s);
}

Test(tasks, what_cannot_be_met_is_refused_with_the_need_its_value_and_the_best)
{
        struct scene s;
        struct starling_model *model;

        tasks_begin(&s, "task:\n  variants: [mlp, lenet]\n  accuracy: [0.9783, 0.9866]\n  cost: [1, 3]\n  load: all\n");
        tasks_start(&s);
        expect_refusal(&s, (struct starling_query){.accuracy = 0.99}, -EDOM,
                WORDS("task \"read\"", "accuracy", "0.99", "\"lenet\"", "0.9866"));
        expect_refusal(&s, (struct starling_query){.accuracy = 0.98, .cost = 2.5}, -EDOM,
                WORDS("task \"read\"", "cost", "2.5", "\"lenet\"", "for 3"));
        expect_refusal(&s, (struct starling_query){.accuracy = 0.98, .latency_ns = 50}, -EDOM,
                WORDS("task \"read\"", "latency", "0.1 us", "\"lenet\"", "takes"));
        expect_refusal(&s, (struct starling_query){.accuracy = 98.5}, -EINVAL, WORDS("accuracy 98.5", "0 to 1"));
        expect_refusal(&s, (struct starling_query){.accuracy = 0.5, .accuracy_least = 0.6}, -EINVAL, WORDS("0.6", "0.5"));
        expect_refusal(&s, (struct starling_query){.accuracy = 0.0 / 0.0}, -EINVAL, WORDS("accuracy"));
        expect_refusal(&s, (struct starling_query){.flags = STARLING_QUERY_DEADLINE}, -EINVAL, WORDS("latency"));

        struct starling_error error;
        cr_assert_eq(starling_query_open(s.client, "lenet", NULL, &model, &error), -ENOENT);
        cr_expect(strstr(error.text, "\"lenet\"") && strstr(error.text, "model"), "%s", error.text);
        cr_assert_eq(starling_query_open(s.client, "write", NULL, &model, &error), -ENOENT);

        /* A deadline is a latency; what is refused leaves the queue pair as it was. */
        model = tasks_query(&s, (struct starling_query){.accuracy = 0.98});
        struct starling_request request = digits_ask(&s.job, model, 0, 1);
        request.deadline_ns = 1;
        cr_expect_eq(starling_infer(s.queue, &request, NULL), -EDOM);
        cr_expect(strstr(starling_queue_error(s.queue), "latency"), "%s", starling_queue_error(s.queue));
        cr_expect_eq(starling_queue_in_flight(s.queue), 0);
        struct starling_answer answer;
        cr_expect_eq(tasks_expect_answer(&s, model, 5, &answer), 1);
        tasks_end(&s);
}

Test(tasks, a_list_says_how_each_variant_stands)
{
        struct starling_task_entry entry;
        struct starling_variant list[VARIANTS];
        struct starling_client *reader;
        struct scene s;

        tasks_begin(&s, "task:\n  variants: [lenet, mlp, nowhere]\n  accuracy: [0.9866, 0.9783, 0.5]\n  load: all\n");
        tasks_start(&s);
        reader = world_connect(&s.world, STARLING_ROLE_READER);
        cr_assert_eq(starling_task_list(reader, &entry, 1), 1);
        cr_expect_str_eq(entry.name, "read");
        cr_expect(entry.variants == 3 && entry.serving == 2, "%u %u", entry.variants, entry.serving);
        cr_assert_eq(starling_task_variants(reader, "read", list, VARIANTS), 3);
        cr_expect_str_eq(list[1].name, "mlp");
        cr_expect_eq(list[1].accuracy, 0.9783);
        for (uint32_t i = 0; i < 2; i++) {
                cr_expect_eq(list[i].state, STARLING_VARIANT_SERVES);
                cr_expect(list[i].latency_ns && list[i].memory_bytes && list[i].batch_samples && list[i].batch_ns);
                cr_expect_eq(list[i].cost, (double)list[i].latency_ns, "without costs it is the time");
        }
        cr_expect_eq(list[2].state, STARLING_VARIANT_ABSENT);
        cr_expect_neq(list[2].reason[0], 0);
        cr_expect_eq(starling_task_variants(reader, "write", list, VARIANTS), -ENOENT);
        world_expect_log(&s.world, "nowhere");
        starling_close(reader);
        tasks_end(&s);
}

/* y [N,10] = x [N,width] times zeros. */
static void add_network(const struct world *world, const char *name, int64_t width)
{
        struct builder *b = builder_new(13);
        float *weights = builder_alloc(b, (size_t)width * 10 * sizeof(float));
        size_t bytes;
        const uint8_t *file;

        memset(weights, 0, (size_t)width * 10 * sizeof(float));
        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, width));
        builder_floats(b, "w", DIMS(width, 10), weights);
        builder_node(b, "MatMul", "x,w", "y");
        builder_declare_output(b, "y", SL_DTYPE_F32, DIMS(-1, 10));
        file = builder_pack(b, &bytes);
        world_add_model(world, name, file, bytes);
        builder_free(b);
}

Test(tasks, a_variant_with_other_inputs_is_left_out_with_the_reason)
{
        struct starling_variant list[3];
        struct scene s;

        tasks_begin(&s, "task:\n  variants: [mlp, other]\n  accuracy: [0.9783, 1]\n  load: all\n");
        add_network(&s.world, "other", 65);
        tasks_start(&s);
        cr_assert_eq(starling_task_variants(s.client, "read", list, 3), 2);
        cr_expect_eq(list[1].state, STARLING_VARIANT_DIFFERS);
        cr_expect(strstr(list[1].reason, "input \"x\"") && strstr(list[1].reason, "[N,65]") && strstr(list[1].reason, "[N,1,8,8]"),
                "%s", list[1].reason);
        world_expect_log(&s.world, "variant-differs");
        tasks_expect_variant(&s, (struct starling_query){.accuracy = 0}, "mlp", STARLING_MET_ALL);
        expect_refusal(&s, (struct starling_query){.accuracy = 0.99}, -EDOM, WORDS("\"mlp\"", "0.9783"));
        tasks_end(&s);
}

Test(tasks, a_variant_on_request_is_loaded_where_none_else_is_accurate_enough)
{
        struct starling_variant list[2];
        struct scene s;

        tasks_begin(&s, "task:\n  variants: [mlp, slow]\n  accuracy: [0.9783, 0.9866]\n  load: all\n");
        world_copy_model(&s.world, "lenet", "slow", "load: on_request\n");
        tasks_start(&s);
        starling_model_close(tasks_query(&s, (struct starling_query){.accuracy = 0.9}));
        cr_assert_eq(starling_task_variants(s.client, "read", list, 2), 2);
        cr_expect_eq(list[1].state, STARLING_VARIANT_UNLOADED, "nobody has needed it");
        struct starling_model *model = tasks_query(&s, (struct starling_query){.accuracy = 0.98});
        struct starling_request request = digits_ask(&s.job, model, 0, 4);
        struct starling_completion done;
        struct starling_answer answer;
        char wrong[128];

        cr_assert_eq(starling_infer(s.queue, &request, &done), 0, "%s", starling_queue_error(s.queue));
        cr_assert_eq(starling_completion_variant(s.queue, &done, &answer), 0);
        cr_expect_str_eq(answer.variant, "slow");
        cr_expect(digits_right(&s.job, &s.data[1], wrong, sizeof(wrong)), "%s", wrong);
        tasks_end(&s);
}

/* ---- variants that come and go ---- */

struct changes {
        struct world *world;
        atomic_bool stop;
        atomic_uint n;
};

/* Unloads the variant that all queries want, and loads it again. */
static void *change(void *context)
{
        struct changes *changes = context;
        struct starling_client *admin = world_connect(changes->world, STARLING_ROLE_ADMIN);

        while (!atomic_load(&changes->stop)) {
                cr_assert_eq(starling_admin_unload(admin, "first", NULL), 0);
                cr_assert_eq(starling_admin_load(admin, "first", NULL), 0);
                atomic_fetch_add(&changes->n, 1);
        }
        starling_close(admin);
        return NULL;
}

#define CHANGES (WORLD_SLOW ? 2u : 6u)

Test(tasks, no_query_is_lost_while_its_variants_come_and_go)
{
        uint32_t answered[2] = {0}, refused = 0, again = 0;
        struct starling_completion done[8];
        struct starling_model *model;
        struct changes changes = {0};
        pthread_t thread;
        struct scene s;

        tasks_begin(&s, "task:\n  variants: [first, second]\n  accuracy: [0.9783, 0.9783]\n  cost: [1, 2]\n  load: all\n");
        world_copy_model(&s.world, "mlp", "first", "{}\n");
        world_copy_model(&s.world, "mlp", "second", "{}\n");
        tasks_start(&s);
        changes.world = &s.world;
        model = tasks_query(&s, (struct starling_query){.accuracy = 0.9});
        cr_assert_eq(pthread_create(&thread, NULL, change, &changes), 0);
        while (atomic_load(&changes.n) < CHANGES || !answered[0] || !answered[1]) {
                struct starling_request request = digits_ask(&s.job, model, 0, 1);
                struct starling_answer answer;
                int n;

                for (uint32_t i = 0; i < 8; i++)
                        cr_assert_eq(starling_submit(s.queue, &request, NULL), 0, "%s", starling_queue_error(s.queue));
                while (starling_queue_in_flight(s.queue) > 0) {
                        n = starling_wait(s.queue, done, 8, 60000000000ull);
                        cr_assert_gt(n, 0, "%d", n);
                        for (int i = 0; i < n; i++) {
                                cr_assert_eq(starling_completion_variant(s.queue, &done[i], &answer), 0);
                                again += answer.tries > 1;
                                refused += done[i].status < 0;
                                answered[strcmp(answer.variant, "first") ? 1 : 0] += done[i].status == 0;
                        }
                }
        }
        atomic_store(&changes.stop, true);
        pthread_join(thread, NULL);
        cr_expect_eq(refused, 0, "%u refused, %u and %u answered, %u at the second try", refused, answered[0], answered[1], again);
        tasks_end(&s);
}

Test(tasks, a_task_comes_and_goes_with_the_repository)
{
        struct starling_task_entry entry;
        struct starling_model *model;
        struct scene s;

        tasks_begin(&s, NULL);
        tasks_start(&s);
        cr_assert_eq(starling_task_list(s.client, &entry, 1), 0);
        world_add_model_config(&s.world, "read", TASK);
        kill(s.world.pid, SIGHUP);
        WORLD_AWAIT(starling_task_list(s.client, &entry, 1) > 0);
        /* Of models that have served for a while: at once, whether the dispatcher has heard of the task or not. */
        tasks_expect_variant(&s, (struct starling_query){.accuracy = 0.98}, "lenet", STARLING_MET_ALL);
        model = tasks_query(&s, (struct starling_query){.accuracy = 0.98});
        world_remove_model(&s.world, "read");
        kill(s.world.pid, SIGHUP);
        WORLD_AWAIT(starling_model_changed(model));
        struct starling_request request = digits_ask(&s.job, model, 0, 1);
        cr_expect_eq(starling_infer(s.queue, &request, NULL), -ENOENT);
        tasks_end(&s);
}

Test(tasks, a_reconnect_finds_tasks_as_they_are_then)
{
        struct scene s;
        struct starling_model *model;
        struct starling_answer answer;
        struct starling_error error;

        tasks_begin(&s, TASK);
        tasks_start(&s);
        model = tasks_query(&s, (struct starling_query){.accuracy = 0.98});
        cr_expect_eq(tasks_expect_answer(&s, model, 1, &answer), 1);
        world_kill(&s.world);
        world_start(&s.world);
        cr_assert_eq(starling_reconnect(s.client, 60000000000ull, &error), 0, "%s", error.text);
        cr_expect_eq(tasks_expect_answer(&s, model, 1, &answer), 1);
        cr_expect_eq(starling_model_changed(model), 0);
        world_kill(&s.world);
        world_remove_model(&s.world, "read");
        world_start(&s.world);
        cr_assert_eq(starling_reconnect(s.client, 60000000000ull, &error), 0, "%s", error.text);
        struct starling_request request = digits_ask(&s.job, model, 0, 1);
        cr_expect_eq(starling_infer(s.queue, &request, NULL), -ENOENT);
        cr_expect_eq(starling_model_changed(model), 1);
        tasks_end(&s);
}
