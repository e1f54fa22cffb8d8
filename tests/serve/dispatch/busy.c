/* SPDX-License-Identifier: Apache-2.0 */
#include "busy.h"
#include "fixture.h"

#include <criterion/criterion.h>

#define MODELS 4u

static void expect(const struct sl_busy *busy, const struct fixture *f, const uint32_t *members, uint32_t n)
{
        const struct sl_model *model = busy->first;

        for (uint32_t i = 0; i < n; i++, model = model->next_busy)
                cr_assert_eq(model, &f->models[members[i]], "place %u", i);
        cr_assert_null(model);
}

static struct fixture *numbered(void)
{
        struct fixture *f = fixture_new(MODELS, SL_RULE_MEAN, 4, 10, 16);

        for (uint32_t m = 0; m < MODELS; m++)
                f->models[m].number = m + 1;
        return f;
}

Test(busy, models_are_in_the_order_of_the_list_of_all_whoever_came_first)
{
        struct fixture *f = numbered();
        struct sl_busy busy = {NULL};

        sl_busy_add(&busy, &f->models[1]);
        sl_busy_add(&busy, &f->models[3]);
        sl_busy_add(&busy, &f->models[0]);
        sl_busy_add(&busy, &f->models[2]);
        sl_busy_add(&busy, &f->models[2]);
        expect(&busy, f, (const uint32_t[]){3, 2, 1, 0}, 4);
        sl_busy_remove(&busy, &f->models[1]);
        sl_busy_remove(&busy, &f->models[1]);
        sl_busy_remove(&busy, &f->models[3]);
        expect(&busy, f, (const uint32_t[]){2, 0}, 2);
        fixture_free(f);
}

Test(busy, who_comes_is_new_each_time)
{
        struct fixture *f = numbered();
        struct sl_busy busy = {NULL};

        sl_busy_add(&busy, &f->models[0]);
        cr_assert(busy.has_new && f->models[0].is_new);
        busy.has_new = f->models[0].is_new = false;
        sl_busy_add(&busy, &f->models[0]);
        cr_assert_not(busy.has_new || f->models[0].is_new);
        sl_busy_remove(&busy, &f->models[0]);
        sl_busy_add(&busy, &f->models[0]);
        cr_assert(busy.has_new && f->models[0].is_new);
        fixture_free(f);
}

Test(busy, a_model_is_idle_when_nothing_waits_and_nothing_is_given)
{
        struct fixture *f = numbered();
        struct sl_model *model = &f->models[0];

        cr_expect(sl_model_is_idle(model));
        model->samples_given = 1;
        cr_expect_not(sl_model_is_idle(model));
        model->samples_given = 0;
        sl_scheduler_push(&model->scheduler, &(struct sl_task){.samples = 1}, SL_PRIORITIES - 1);
        cr_expect_not(sl_model_is_idle(model));
        fixture_free(f);
}
