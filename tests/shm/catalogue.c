/* SPDX-License-Identifier: Apache-2.0 */
#include "catalogue.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct sl_catalogue *new_catalogue(void)
{
        struct sl_catalogue *catalogue = aligned_alloc(128, sizeof(*catalogue));

        cr_assert_not_null(catalogue);
        memset(catalogue, 0, sizeof(*catalogue));
        return catalogue;
}

/* A model in which every field says the same number. */
static void fill(struct sl_catalogue_model *model, uint32_t number)
{
        memset(model, 0, sizeof(*model));
        model->state = SL_MODEL_READY;
        model->generation = number;
        model->version = number;
        model->segment_samples = number;
        snprintf(model->name, sizeof(model->name), "model-%u", number);
        for (uint32_t i = 0; i < SL_MODEL_OUTPUTS_MAX; i++)
                model->outputs[i].dims[7] = (int32_t)number;
}

static bool agrees(const struct sl_catalogue_model *model)
{
        char name[SL_MODEL_NAME_BYTES];
        uint32_t number = model->generation;

        snprintf(name, sizeof(name), "model-%u", number);
        return model->version == number && model->segment_samples == number && strcmp(name, model->name) == 0 &&
               model->outputs[0].dims[7] == (int32_t)number && model->outputs[SL_MODEL_OUTPUTS_MAX - 1].dims[7] == (int32_t)number;
}

Test(catalogue, what_was_written_is_read_and_found_by_name)
{
        struct sl_catalogue *catalogue = new_catalogue();
        struct sl_catalogue_model model, got;
        uint32_t index;

        fill(&model, 12);
        sl_catalogue_write(catalogue, 5, &model);
        cr_expect_eq(sl_catalogue_read(catalogue, 5, &got), 0);
        cr_expect(agrees(&got));
        cr_expect_eq(sl_catalogue_find(catalogue, "model-12", &index, NULL), 0);
        cr_expect_eq(index, 5);
        cr_expect_eq(atomic_load(&catalogue->changes), 1);
        free(catalogue);
}

Test(catalogue, what_is_not_there_is_enoent)
{
        struct sl_catalogue *catalogue = new_catalogue();
        struct sl_catalogue_model model, got;
        uint32_t index = 99;

        cr_expect_eq(sl_catalogue_read(catalogue, 0, &got), -ENOENT);
        cr_expect_eq(sl_catalogue_read(catalogue, SL_CATALOGUE_MODELS, &got), -ENOENT);
        fill(&model, 1);
        sl_catalogue_write(catalogue, 0, &model);
        cr_expect_eq(sl_catalogue_find(catalogue, "model", &index, NULL), -ENOENT, "a prefix is no name");
        model.state = SL_MODEL_ABSENT;
        sl_catalogue_write(catalogue, 0, &model);
        cr_expect_eq(
                sl_catalogue_find(catalogue, "model-1", &index, NULL), -ENOENT, "a removed model keeps its bytes, not its name");
        cr_expect_eq(index, 99);
        free(catalogue);
}

Test(catalogue, a_writer_that_died_inside_a_change_does_not_hang_readers)
{
        struct sl_catalogue *catalogue = new_catalogue();
        struct sl_catalogue_model model, got;
        uint32_t index;

        fill(&model, 3);
        sl_catalogue_write(catalogue, 3, &model);
        atomic_store(&catalogue->models[0].seq, 1);
        cr_expect_eq(sl_catalogue_read(catalogue, 0, &got), -EAGAIN);
        cr_expect_eq(sl_catalogue_find(catalogue, "model-3", &index, NULL), 0, "the others stay readable");
        cr_expect_eq(sl_catalogue_find(catalogue, "model-0", &index, NULL), -EAGAIN, "it may be the one that is being changed");
        free(catalogue);
}

#define WHOLE_COPIES 1000

struct writing {
        struct sl_catalogue *catalogue;
        atomic_bool stop;
};

static void *write_on(void *context)
{
        struct writing *writing = context;
        struct sl_catalogue_model model;

        for (uint32_t number = 1; !atomic_load(&writing->stop); number++) {
                fill(&model, number);
                sl_catalogue_write(writing->catalogue, 0, &model);
                for (int pause = 0; pause < 20; pause++)
                        sched_yield();
        }
        return NULL;
}

Test(catalogue, a_copy_is_whole_or_refused)
{
        struct writing writing = {.catalogue = new_catalogue()};
        struct sl_catalogue_model got;
        pthread_t thread;
        int whole = 0;

        cr_assert_eq(pthread_create(&thread, NULL, write_on, &writing), 0);
        while (whole < WHOLE_COPIES) {
                int r = sl_catalogue_read(writing.catalogue, 0, &got);

                cr_assert(r == 0 || r == -EAGAIN || (r == -ENOENT && whole == 0));
                if (r < 0)
                        continue;
                cr_assert(agrees(&got));
                whole++;
        }
        atomic_store(&writing.stop, true);
        pthread_join(thread, NULL);
        free(writing.catalogue);
}
