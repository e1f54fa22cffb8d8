/* SPDX-License-Identifier: Apache-2.0 */
#include "tasks_scene.h"

#include <criterion/criterion.h>
#include <string.h>

const char *const tasks_variants[VARIANTS] = {"mlp", "lenet", "densenet", "digits"};

void tasks_begin(struct scene *s, const char *task)
{
        memset(s, 0, sizeof(*s));
        world_init(&s->world);
        if (task)
                world_add_model_config(&s->world, "read", task);
        for (uint32_t i = 0; i < VARIANTS; i++)
                cr_assert(digits_read(&s->data[i], tasks_variants[i]));
}

void tasks_start(struct scene *s)
{
        world_start(&s->world);
        s->client = world_connect(&s->world, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_queue_open(s->client, &s->queue, NULL), 0);
        cr_assert_eq(digits_job_alloc(&s->job, &s->data[0], s->client), 0);
}

void tasks_end(struct scene *s)
{
        starling_close(s->client);
        world_stop(&s->world);
        world_free(&s->world);
        for (uint32_t i = 0; i < VARIANTS; i++)
                digits_release(&s->data[i]);
}

struct starling_model *tasks_query(struct scene *s, struct starling_query query)
{
        struct starling_model *model;
        struct starling_error error = {""};

        cr_assert_eq(starling_query_open(s->client, "read", &query, &model, &error), 0, "%s", error.text);
        return model;
}

uint32_t tasks_expect_answer(struct scene *s, struct starling_model *model, uint32_t samples, struct starling_answer *answer)
{
        struct starling_request request = digits_ask(&s->job, model, 7, samples);
        struct starling_completion done;
        char wrong[128];

        cr_assert_eq(starling_infer(s->queue, &request, &done), 0, "%s", starling_queue_error(s->queue));
        cr_assert_eq(starling_completion_variant(s->queue, &done, answer), 0);
        for (uint32_t i = 0; i < VARIANTS; i++) {
                if (strcmp(answer->variant, tasks_variants[i]))
                        continue;
                cr_assert(digits_right(&s->job, &s->data[i], wrong, sizeof(wrong)), "%s: %s", tasks_variants[i], wrong);
                return i;
        }
        cr_assert_fail("no variant \"%s\"", answer->variant);
        return 0;
}

void tasks_expect_variant(struct scene *s, struct starling_query query, const char *variant, enum starling_met met)
{
        struct starling_model *model = tasks_query(s, query);
        struct starling_answer answer;
        uint32_t i = tasks_expect_answer(s, model, 3, &answer);

        cr_expect_str_eq(tasks_variants[i], variant);
        cr_expect_eq(answer.met, met, "of %s: %d", variant, (int)answer.met);
        cr_expect_eq(answer.tries, 1);
        starling_model_close(model);
}
