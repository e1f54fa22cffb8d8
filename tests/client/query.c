/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries against a page that the test writes: what is chosen follows it at once, a refusal is tried once more, and exactly one
 * completion comes.
 */
#include "task_page.h"
#include "world.h"

#include <stdatomic.h>

/* y [N,4] = x [N,4] of f32, as the fake runtime lists "first" and "second". */
static uint64_t signature(void)
{
        struct sl_catalogue_port ports[2] = {
                {.dtype = STARLING_F32, .rank = 2, .dims = {-1, 4}}, {.dtype = STARLING_F32, .rank = 2, .dims = {-1, 4}}};

        return sl_task_signature(ports, 1, 1);
}

/* Task "t" of "first", 0.9 for 1, and "second", 0.8 for 2. */
static void write_task(struct world *w, uint64_t its_signature, const char *name)
{
        struct sl_task_head task = {.name = 1, .n = 2, .has_costs = 1, .signature = its_signature};
        struct sl_variant_row rows[2] = {
                {.state = SL_VARIANT_SERVES, .index = FAKE_FIRST, .samples_max = 1024, .accuracy = 0.9, .cost = 1, .name = 3},
                {.state = SL_VARIANT_SERVES, .index = FAKE_SECOND, .samples_max = 1024, .accuracy = 0.8, .cost = 2, .name = 9}};
        char texts[] = "\0t\0first\0second";

        texts[1] = name[0];
        sl_task_page_write(fake_runtime_tasks(w->runtime),
                &(struct sl_task_content){
                        .tasks = &task, .rows = rows, .texts = texts, .n_tasks = 1, .n_rows = 2, .texts_bytes = sizeof(texts)});
}

/* A job of one sample takes 10 us. */
static void write_line(struct world *w, uint32_t index, uint32_t word)
{
        struct sl_variant_line *line = &fake_runtime_tasks(w->runtime)->lines[index];

        atomic_store(&line->word, word);
        for (uint32_t i = 0; i < SL_VARIANT_SIZES; i++)
                atomic_store(&line->jobs[i], (10000u << i) / SL_VARIANT_UNIT_NS);
}

struct scene {
        struct world world;
        struct echo echo;
};

static void begin(struct scene *s)
{
        world_enter(&s->world);
        write_task(&s->world, signature(), "t");
        write_line(&s->world, FAKE_FIRST, sl_variant_word(false, 0));
        write_line(&s->world, FAKE_SECOND, sl_variant_word(false, 0));
        echo_prepare(&s->world, 2, &s->echo);
}

static void open_query(struct scene *s, struct starling_query query)
{
        cr_assert_eq(
                starling_query_open(s->world.client, "t", &query, &s->echo.model, &s->world.error), 0, "%s", s->world.error.text);
        s->echo.request.model = s->echo.model;
}

static void expect_answer(struct scene *s, const char *variant, uint32_t tries)
{
        struct starling_completion done;
        struct starling_answer answer;

        cr_assert_eq(starling_infer(s->world.queue, &s->echo.request, &done), 0, "%s", starling_queue_error(s->world.queue));
        cr_assert_eq(starling_completion_variant(s->world.queue, &done, &answer), 0);
        cr_expect_str_eq(answer.variant, variant);
        cr_expect_eq(answer.tries, tries, "%u", answer.tries);
        cr_expect_eq(starling_queue_in_flight(s->world.queue), 0);
}

static void write_condition(struct world *w, uint32_t index, uint32_t condition)
{
        atomic_store(&fake_runtime_tasks(w->runtime)->lines[index].workers, sl_variant_workers(1, condition, 0));
}

static void write_doubt(struct world *w, uint32_t doubt)
{
        atomic_store(&fake_runtime_tasks(w->runtime)->lines[FAKE_FIRST].workers,
                sl_variant_workers(1, STARLING_CONDITION_ACTIVE, doubt));
}

Test(query, one_that_is_interfered_with_is_passed_over_by_queries_with_a_latency)
{
        const struct starling_query in_time = {.accuracy = 0.5, .latency_ns = 1000000000}, any_time = {.accuracy = 0.5};
        struct scene s;

        begin(&s);
        open_query(&s, in_time);
        expect_answer(&s, "first", 1);
        write_condition(&s.world, FAKE_FIRST, STARLING_CONDITION_INTERFERED);
        expect_answer(&s, "second", 1);
        write_condition(&s.world, FAKE_SECOND, STARLING_CONDITION_INTERFERED);
        expect_answer(&s, "first", 1); /* none is calm */
        write_condition(&s.world, FAKE_SECOND, STARLING_CONDITION_OVERLOADED);
        expect_answer(&s, "second", 1);
        open_query(&s, any_time);
        expect_answer(&s, "first", 1);
        write_condition(&s.world, FAKE_FIRST, STARLING_CONDITION_ACTIVE);
        open_query(&s, in_time);
        expect_answer(&s, "first", 1);
        world_leave(&s.world);
}

/* Nothing has been learned of "first": its task says 10 us for one sample, 15 us for two. */
static void write_told(struct world *w)
{
        struct sl_task_head task = {.name = 1, .n = 1, .has_costs = 1, .signature = signature()};
        struct sl_variant_row row = {.state = SL_VARIANT_SERVES,
                .index = FAKE_FIRST,
                .samples_max = 1024,
                .accuracy = 0.9,
                .cost = 1,
                .name = 3,
                .service_ns = 10000,
                .batch_units = {15000 / SL_VARIANT_UNIT_NS + 1}};
        char texts[] = "\0t\0first";

        sl_task_page_write(fake_runtime_tasks(w->runtime),
                &(struct sl_task_content){
                        .tasks = &task, .rows = &row, .texts = texts, .n_tasks = 1, .n_rows = 1, .texts_bytes = sizeof(texts)});
        for (uint32_t i = 0; i < SL_VARIANT_SIZES; i++)
                atomic_store(&fake_runtime_tasks(w->runtime)->lines[FAKE_FIRST].jobs[i], 0);
}

Test(query, what_a_task_says_of_batches_counts_until_they_have_been_measured)
{
        struct starling_completion done;
        struct scene s;

        begin(&s); /* requests of two samples */
        write_told(&s.world);
        open_query(&s, (struct starling_query){.accuracy = 0.5, .latency_ns = 17000});
        expect_answer(&s, "first", 1);
        open_query(&s, (struct starling_query){.accuracy = 0.5, .latency_ns = 13000});
        cr_expect_eq(starling_infer(s.world.queue, &s.echo.request, &done), -EDOM);
        cr_expect(strstr(starling_queue_error(s.world.queue), "takes 15.0 us"), "%s", starling_queue_error(s.world.queue));
        write_line(&s.world, FAKE_FIRST, sl_variant_word(false, 0)); /* 20 us, as was measured */
        open_query(&s, (struct starling_query){.accuracy = 0.5, .latency_ns = 17000});
        cr_expect_eq(starling_infer(s.world.queue, &s.echo.request, &done), -EDOM);
        world_leave(&s.world);
}

/* Two samples take 20 us as learned, 15 us as told. */
Test(query, what_was_learned_long_ago_and_is_doubted_keeps_nobody_away)
{
        struct starling_completion done;
        struct scene s;

        begin(&s);
        write_told(&s.world);
        write_line(&s.world, FAKE_FIRST, sl_variant_word(false, 0));
        open_query(&s, (struct starling_query){.accuracy = 0.5, .latency_ns = 11000});
        cr_expect_eq(starling_infer(s.world.queue, &s.echo.request, &done), -EDOM);
        write_doubt(&s.world, 1);
        expect_answer(&s, "first", 1);
        write_line(&s.world, FAKE_FIRST, sl_variant_word(false, 5000)); /* its wait is what it is */
        cr_expect_eq(starling_infer(s.world.queue, &s.echo.request, &done), -EBUSY);
        write_line(&s.world, FAKE_FIRST, sl_variant_word(false, 0));
        write_told(&s.world); /* what is told is not doubted */
        cr_expect_eq(starling_infer(s.world.queue, &s.echo.request, &done), -EDOM);
        world_leave(&s.world);
}

Test(query, what_the_dispatcher_has_withdrawn_or_filled_is_not_chosen)
{
        struct scene s;

        begin(&s);
        open_query(&s, (struct starling_query){.accuracy = 0.5});
        expect_answer(&s, "first", 1);
        write_line(&s.world, FAKE_FIRST, SL_VARIANT_WITHDRAWN);
        expect_answer(&s, "second", 1);
        write_line(&s.world, FAKE_FIRST, sl_variant_word(true, 0));
        expect_answer(&s, "second", 1);
        write_line(&s.world, FAKE_FIRST, SL_VARIANT_WITHDRAWN);
        write_line(&s.world, FAKE_SECOND, SL_VARIANT_WITHDRAWN);
        expect_answer(&s, "first", 1); /* which says why it cannot */
        write_line(&s.world, FAKE_FIRST, 0);
        expect_answer(&s, "first", 1); /* before any line is written */
        write_line(&s.world, FAKE_SECOND, sl_variant_word(false, 0));
        expect_answer(&s, "first", 1); /* and between them */
        world_leave(&s.world);
}

Test(query, a_wait_counts_for_the_latency)
{
        struct scene s;

        begin(&s);
        open_query(&s, (struct starling_query){.accuracy = 0.5, .latency_ns = 50000});
        expect_answer(&s, "first", 1);
        write_line(&s.world, FAKE_FIRST, sl_variant_word(false, 40000));
        expect_answer(&s, "second", 1);
        write_line(&s.world, FAKE_SECOND, sl_variant_word(false, 100000));
        cr_expect_eq(starling_infer(s.world.queue, &s.echo.request, NULL), -EBUSY);
        cr_expect(strstr(starling_queue_error(s.world.queue), "\"first\" would answer first, in 6"), "%s",
                starling_queue_error(s.world.queue));
        world_leave(&s.world);
}

Test(query, a_refusal_is_tried_once_more_with_another_variant)
{
        struct scene s;
        int statuses[] = {-ESTALE, -EBUSY};

        begin(&s);
        open_query(&s, (struct starling_query){.accuracy = 0.5});
        for (int i = 0; i < 2; i++) {
                fake_runtime_refuse(s.world.runtime, FAKE_FIRST, statuses[i]);
                for (int k = 0; k < 100; k++)
                        expect_answer(&s, "second", 2);
        }
        fake_runtime_refuse(s.world.runtime, FAKE_FIRST, 0);
        expect_answer(&s, "first", 1);
        world_leave(&s.world);
}

/* By submit and wait, many at once, and both refuse: each comes back once, with the second refusal. */
Test(query, each_comes_back_once_where_the_second_try_is_refused_too)
{
        struct starling_completion done[16];
        struct starling_answer answer;
        struct scene s;
        uint64_t seen = 0;

        begin(&s);
        open_query(&s, (struct starling_query){.accuracy = 0.5});
        fake_runtime_refuse(s.world.runtime, FAKE_FIRST, -ESTALE);
        fake_runtime_refuse(s.world.runtime, FAKE_SECOND, -EBUSY);
        for (uint64_t i = 0; i < 16; i++) {
                s.echo.request.user_data = i;
                cr_assert_eq(starling_submit(s.world.queue, &s.echo.request, NULL), 0);
        }
        for (uint32_t n = 0; n < 16;) {
                int r = starling_wait(s.world.queue, done, 16, LIMIT_NS);

                cr_assert_gt(r, 0, "%d", r);
                for (int i = 0; i < r; i++) {
                        cr_expect_eq(done[i].status, -EBUSY, "%d", done[i].status);
                        cr_assert_eq(starling_completion_variant(s.world.queue, &done[i], &answer), 0);
                        cr_expect(answer.tries == 2 && strcmp(answer.variant, "second") == 0);
                        seen |= 1ull << done[i].user_data;
                }
                n += (uint32_t)r;
        }
        cr_expect_eq(seen, 0xffff);
        cr_expect_eq(starling_wait(s.world.queue, done, 16, SECOND_NS), -ENODATA);
        world_leave(&s.world);
}

Test(query, a_second_try_keeps_the_identifier)
{
        struct starling_completion done;
        struct scene s;
        uint64_t id;

        begin(&s);
        open_query(&s, (struct starling_query){.accuracy = 0.5});
        fake_runtime_refuse(s.world.runtime, FAKE_FIRST, -ESTALE);
        cr_assert_eq(starling_submit(s.world.queue, &s.echo.request, &id), 0);
        cr_assert_eq(starling_wait(s.world.queue, &done, 1, LIMIT_NS), 1);
        cr_expect_eq(done.id, id);
        cr_expect_eq(done.status, 0);
        cr_expect_eq(starling_cancel(s.world.queue, id), -ENOENT);
        world_leave(&s.world);
}

Test(query, a_task_that_changes_or_goes_is_told)
{
        struct scene s;

        begin(&s);
        open_query(&s, (struct starling_query){.accuracy = 0.5});
        cr_expect_eq(starling_model_changed(s.echo.model), 0);
        write_task(&s.world, signature() + 2, "t");
        cr_expect_eq(starling_model_changed(s.echo.model), 1);
        cr_expect_eq(starling_infer(s.world.queue, &s.echo.request, NULL), -ESTALE);
        write_task(&s.world, signature(), "t");
        cr_expect_eq(starling_model_changed(s.echo.model), 0);
        expect_answer(&s, "first", 1);
        write_task(&s.world, signature(), "u");
        cr_expect_eq(starling_model_changed(s.echo.model), 1);
        cr_expect_eq(starling_infer(s.world.queue, &s.echo.request, NULL), -ENOENT);
        world_leave(&s.world);
}

Test(query, an_older_runtime_has_no_tasks)
{
        struct starling_task_entry entry;
        struct starling_model *model;
        struct world w;

        world_place(&w);
        w.fake.without_tasks = true;
        world_start(&w);
        world_join(&w);
        cr_expect_eq(starling_task_list(w.client, &entry, 1), -ENOTSUP);
        cr_expect_eq(starling_query_open(w.client, "t", NULL, &model, &w.error), -ENOTSUP);
        cr_expect(strstr(w.error.text, "older"), "%s", w.error.text);
        cr_expect_eq(starling_model_open(w.client, "t", &model, &w.error), -ENOENT);
        world_leave(&w);
}
