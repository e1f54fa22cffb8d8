/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variants of a task that are loaded when queries choose them, or by load, in a runtime of its own: who waits, who is refused, and
 * what an administrator's word or a lack of memory changes about it.
 */
#include "tasks_scene.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#define TWO "task:\n  variants: [mlp, densenet]\n  accuracy: [0.9783, 0.9967]\n  cost: [1, 20]\n"

#define THREE                                                                                                                      \
        "task:\n"                                                                                                                  \
        "  variants: [mlp, lenet, densenet]\n"                                                                                     \
        "  accuracy: [0.9783, 0.9866, 0.9967]\n"                                                                                   \
        "  cost: [1, 3, 20]\n"

static struct starling_variant variant_of(struct scene *s, uint32_t i)
{
        struct starling_variant list[VARIANTS];
        int n = starling_task_variants(s->client, "read", list, VARIANTS);

        cr_assert(n > (int)i && n <= (int)VARIANTS, "%d", n);
        return list[i];
}

Test(tasks_loads, the_most_accurate_variant_alone_is_loaded_until_a_query_chooses_another)
{
        struct starling_model *model;
        struct starling_answer answer;
        struct scene s;

        tasks_begin(&s, TWO);
        world_configure(&s.world, "models: [read, mlp, densenet]\n");
        tasks_start(&s);
        cr_expect_eq(variant_of(&s, 1).state, STARLING_VARIANT_SERVES);
        cr_expect_eq(variant_of(&s, 0).state, STARLING_VARIANT_AVAILABLE);
        cr_expect_eq(variant_of(&s, 0).workers, 0u);
        tasks_expect_variant(&s, (struct starling_query){.accuracy = 0.9}, "densenet", STARLING_MET_ALL);
        cr_expect_eq(variant_of(&s, 0).state, STARLING_VARIANT_AVAILABLE, "densenet was as accurate");

        /* What costs so little is not loaded: the request waits for it. */
        model = tasks_query(&s, (struct starling_query){.accuracy = 0.9, .cost = 1});
        cr_expect_eq(tasks_expect_answer(&s, model, 3, &answer), 0);
        cr_expect_eq(answer.met, STARLING_MET_ALL);
        WORLD_AWAIT(variant_of(&s, 0).state == STARLING_VARIANT_SERVES);
        cr_expect_eq(variant_of(&s, 0).state, STARLING_VARIANT_SERVES);
        tasks_expect_variant(&s, (struct starling_query){.accuracy = 0.9}, "mlp", STARLING_MET_ALL);
        tasks_end(&s);
}

Test(tasks_loads, a_user_who_has_had_its_loads_of_a_minute_gets_the_closest_that_serves_or_the_limit)
{
        struct starling_model *refuse, *closest;
        struct starling_completion done;
        struct starling_request request;
        struct starling_answer answer;
        char wrong[128];
        struct scene s;

        tasks_begin(&s, "task:\n  variants: [one, two, densenet]\n  accuracy: [0.5, 0.9783, 0.9967]\n  cost: [1, 2, 20]\n");
        world_copy_model(&s.world, "mlp", "one", "batch_max: 2\nload: on_request\n");
        world_copy_model(&s.world, "mlp", "two", "batch_max: 4\nidle_unload_s: 1\n");
        world_configure(&s.world, "models: [read, one, two, densenet]\nlimits: {uid: {shapes: 1}}\ncache: {bytes: 0}\n");
        tasks_start(&s);
        world_expect_log(&s.world, "standby-ended model=two");
        /* The load of a minute, which begins with it. */
        cr_assert_eq(starling_model_open(s.client, "one", &refuse, NULL), 0);
        starling_model_close(refuse);
        refuse = tasks_query(&s, (struct starling_query){.accuracy = 0.98, .accuracy_least = 0.9, .cost = 2});
        refuse = tasks_query(&s, (struct starling_query){.accuracy = 0.9, .cost = 2});
        closest = tasks_query(&s, (struct starling_query){.accuracy = 0.9, .cost = 2, .flags = STARLING_QUERY_CLOSEST});
        request = digits_ask(&s.job, refuse, 0, 1);
        cr_expect_eq(starling_infer(s.queue, &request, NULL), -EDQUOT);
        cr_expect(strstr(starling_queue_error(s.queue), "limits.uid.shapes"), "%s", starling_queue_error(s.queue));
        request = digits_ask(&s.job, closest, 0, 1);
        cr_assert_eq(starling_infer(s.queue, &request, &done), 0, "%s", starling_queue_error(s.queue));
        cr_assert_eq(starling_completion_variant(s.queue, &done, &answer), 0);
        cr_expect_str_eq(answer.variant, "one");
        cr_expect(answer.met == STARLING_MET_CLOSEST && answer.tries == 2, "%d %u", (int)answer.met, answer.tries);
        cr_expect(digits_right(&s.job, &s.data[0], wrong, sizeof(wrong)), "%s", wrong);
        tasks_end(&s);
}

/* Autoscaling takes away what no query chooses, and workers that nobody needs: neither where an administrator has said what is to
 * be. */
Test(tasks_loads, a_variant_that_an_administrator_has_applied_stays_as_it_is_though_no_query_chooses_it)
{
        const struct starling_allotment two[] = {{"mlp", "cpu", 2}, {"mlp", "cpu", 2}};
        struct starling_query cheap = {.accuracy = 0.9, .cost = 1}, other = {.accuracy = 0.98, .cost = 3};
        struct starling_error error = {""};
        struct starling_client *admin;
        struct scene s;

        tasks_begin(&s, THREE);
        world_configure(&s.world, "models: [read, mlp, lenet, densenet]\nautoscale: on\nscaling: {idle_least_ms: 500}\n");
        tasks_start(&s);
        admin = world_connect(&s.world, STARLING_ROLE_ADMIN);
        tasks_expect_variant(&s, cheap, "mlp", STARLING_MET_ALL);
        WORLD_AWAIT(variant_of(&s, 0).state == STARLING_VARIANT_SERVES);
        cr_assert_eq(starling_admin_apply(admin, two, 2, &error), 0, "%s", error.text);
        for (uint32_t i = 0; i < 3; i++) { /* what was used later and that nobody has applied goes before */
                tasks_expect_variant(&s, other, "lenet", STARLING_MET_ALL);
                WORLD_AWAIT(variant_of(&s, 1).state == STARLING_VARIANT_AVAILABLE);
                cr_expect_eq(variant_of(&s, 1).state, STARLING_VARIANT_AVAILABLE);
                cr_expect_eq(variant_of(&s, 0).state, STARLING_VARIANT_SERVES);
                cr_expect_eq(variant_of(&s, 0).workers, 2u);
        }
        tasks_expect_variant(&s, cheap, "mlp", STARLING_MET_ALL);
        cr_assert_eq(starling_admin_apply(admin, NULL, 0, &error), 0, "%s", error.text);
        WORLD_AWAIT(variant_of(&s, 0).state == STARLING_VARIANT_AVAILABLE);
        cr_expect_eq(variant_of(&s, 0).state, STARLING_VARIANT_AVAILABLE, "the configuration counts again");
        starling_close(admin);
        tasks_end(&s);
}

static void expect_memory_refusal(struct scene *s, struct starling_model *model)
{
        struct starling_request request = digits_ask(&s->job, model, 0, 1);
        char text[STARLING_TEXT_BYTES] = "";
        struct starling_completion done;

        cr_expect_eq(starling_infer(s->queue, &request, &done), -ENOMEM);
        starling_reason_text(&done, text, sizeof(text));
        cr_expect(strstr(text, "40 workers of batch 1024") && strstr(text, "of memory_max"), "%s", text);
        cr_expect_eq(variant_of(s, 1).state, STARLING_VARIANT_AVAILABLE, "it may be loaded later");
}

/* 40 workers of either find room beside densenet, but not those of both. */
Test(tasks_loads, a_variant_for_which_memory_is_short_is_refused_with_the_numbers_and_answers_once_there_is_some)
{
        static const char large[] = "batch_max: 1024\nsegment_samples: 1024\ninstances: 40\n";
        struct starling_query query = {.accuracy = 0.98, .cost = 3};
        struct starling_model *refuse, *closest;
        struct starling_client *admin;
        struct starling_answer answer;
        struct scene s;

        tasks_begin(&s, THREE);
        world_remove_model(&s.world, "lenet");
        world_copy_model(&s.world, "lenet", "lenet", large);
        world_copy_model(&s.world, "lenet", "other", large);
        world_configure(&s.world, "models: [read, mlp, lenet, densenet, other]\nlimits: {memory_max: 384 MiB}\n");
        tasks_start(&s);
        refuse = tasks_query(&s, query);
        query.flags = STARLING_QUERY_CLOSEST;
        closest = tasks_query(&s, query);
        for (uint32_t i = 0; i < 3; i++)
                expect_memory_refusal(&s, refuse);
        cr_expect_eq(world_count_log(&s.world, "event=model-failed model=lenet"), 3, "each is tried: %s", world_log(&s.world));
        cr_expect_neq(tasks_expect_answer(&s, closest, 1, &answer), 1);
        cr_expect(answer.met == STARLING_MET_CLOSEST && answer.tries == 2, "%d %u", (int)answer.met, answer.tries);
        admin = world_connect(&s.world, STARLING_ROLE_ADMIN);
        cr_assert_eq(starling_admin_unload(admin, "other", NULL), 0);
        cr_expect_eq(tasks_expect_answer(&s, refuse, 1, &answer), 1);
        cr_expect_eq(answer.tries, 1);
        starling_close(admin);
        tasks_end(&s);
}

#define FLYING 64u /* of a queue pair */
#define LARGE  16u /* samples of one */

/* One client submits until it is refused, so that the accurate variant has as much to do as the latency allows. */
struct crowd {
        struct scene *s;
        struct starling_model *model;
        struct digits_job jobs[FLYING];
        uint32_t free[FLYING], n_free;
        uint64_t latency_ns, submitted, completed, answered[VARIANTS], least;
};

static void crowd_open(struct crowd *crowd)
{
        int r = -EDOM;

        starling_model_close(crowd->model);
        for (; r == -EDOM; crowd->latency_ns *= 2) { /* which no variant is fast enough for */
                const struct starling_query query = {.accuracy = 0.99, .accuracy_least = 0.97, .latency_ns = crowd->latency_ns};

                r = starling_query_open(crowd->s->client, "read", &query, &crowd->model, NULL);
        }
        crowd->latency_ns /= 2;
        cr_assert_eq(r, 0);
}

/* What a variant takes is learned, and other work on the machine changes it: the latency is one that some of what flies exceeds. */
static void crowd_adapt(struct crowd *crowd)
{
        if (!crowd->n_free)
                crowd->latency_ns /= 2;
        else if (!starling_queue_in_flight(crowd->s->queue))
                crowd->latency_ns *= 2;
        else
                return;
        crowd_open(crowd);
}

static void crowd_submit(struct crowd *crowd)
{
        while (crowd->n_free) {
                uint32_t job = crowd->free[crowd->n_free - 1];
                struct starling_request request = digits_ask(&crowd->jobs[job], crowd->model, job, LARGE);

                request.user_data = job;
                if (starling_submit(crowd->s->queue, &request, NULL) < 0)
                        break;
                crowd->n_free--;
                crowd->submitted++;
        }
        crowd_adapt(crowd);
}

static void crowd_reap(struct crowd *crowd)
{
        struct starling_completion done[16];
        int n = starling_wait(crowd->s->queue, done, 16, starling_queue_in_flight(crowd->s->queue) ? 60000000000ull : 0);

        for (int i = 0; i < n; i++) {
                struct starling_answer answer;
                uint32_t v = 0, job = (uint32_t)done[i].user_data;
                char wrong[128];

                cr_assert_eq(done[i].status, 0, "%s", starling_strerror(done[i].status));
                cr_assert_eq(starling_completion_variant(crowd->s->queue, &done[i], &answer), 0);
                while (strcmp(answer.variant, tasks_variants[v]))
                        v++;
                cr_assert(digits_right(&crowd->jobs[job], &crowd->s->data[v], wrong, sizeof(wrong)), "%s: %s", tasks_variants[v],
                        wrong);
                cr_assert_geq(answer.accuracy, 0.97);
                crowd->answered[v]++;
                crowd->least += answer.met == STARLING_MET_LEAST;
                crowd->completed++;
                crowd->free[crowd->n_free++] = job;
        }
}

static void crowd_begin(struct crowd *crowd, struct scene *s)
{
        memset(crowd, 0, sizeof(*crowd));
        crowd->s = s;
        crowd->latency_ns = 1000000000;
        crowd_open(crowd);
        for (uint32_t i = 0; i < FLYING; i++) {
                cr_assert_eq(digits_job_alloc(&crowd->jobs[i], &s->data[0], s->client), 0);
                crowd->free[crowd->n_free++] = i;
        }
}

/* As long as the load lasts, and as long as it is gone: no time has to be met. */
Test(tasks_loads, a_faster_variant_comes_with_a_load_and_the_accurate_one_answers_again_after_it)
{
        struct starling_query accurate = {.accuracy = 0.99, .accuracy_least = 0.97};
        static struct crowd crowd;
        struct scene s;
        cpu_set_t cores;

        cr_assert_eq(sched_getaffinity(0, sizeof(cores), &cores), 0);
        if (!CPU_ISSET(0, &cores))
                cr_skip_test("core 0 is wanted");
        tasks_begin(&s, TWO);
        world_configure(&s.world, "models: [read, mlp, densenet]\nautoscale: on\nscaling: {idle_least_ms: 500}\nthreads: "
                                  "{inline_us: 0, worker_cores: [0]}\n");
        tasks_start(&s);
        tasks_expect_variant(&s, accurate, "densenet", STARLING_MET_ALL);
        crowd_begin(&crowd, &s);
        for (uint32_t load = 0; load < 2; load++) {
                uint64_t before = crowd.answered[0];

                while (crowd.answered[0] < before + 100) {
                        crowd_submit(&crowd);
                        crowd_reap(&crowd);
                }
                while (starling_queue_in_flight(s.queue))
                        crowd_reap(&crowd);
                cr_expect_eq(crowd.submitted, crowd.completed);
                tasks_expect_variant(&s, accurate, "densenet", STARLING_MET_ALL);
                WORLD_AWAIT(variant_of(&s, 0).state == STARLING_VARIANT_AVAILABLE);
                cr_expect_eq(variant_of(&s, 0).state, STARLING_VARIANT_AVAILABLE, "no query has chosen it for longer than a load");
        }
        cr_expect(crowd.answered[2] && crowd.least >= 200);
        world_expect_log(&s.world, "task=read variant=mlp verdict=faster");
        tasks_end(&s);
}
