/* SPDX-License-Identifier: Apache-2.0 */
/* What is given and not answered, and the numbers of regions: what is left when somebody who computes is gone. */
#include "executor.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

static uint32_t given_slots[8], n_given_slots;

static void give(struct sl_executor *executor, uint32_t slot, struct sl_wait *from)
{
        (void)executor;
        (void)from;
        given_slots[n_given_slots++] = slot;
}

static void fill(struct sl_executor *executor, uint32_t pieces)
{
        struct sl_job *job = sl_executor_job(executor);

        cr_assert(job);
        cr_assert_eq(job->n_pieces, 0);
        job->n_pieces = pieces;
        sl_executor_give(executor, NULL);
}

Test(executor, jobs_are_gone_in_the_order_in_which_they_were_given_when_their_last_piece_is_answered)
{
        static const struct sl_executor_class class = {.name = "still", .give = give};
        struct sl_executor executor = {.class = &class};
        void *memory = calloc(SL_EXECUTOR_JOBS_MAX, sl_job_bytes(1, 1));

        sl_executor_init(&executor, memory, SL_EXECUTOR_JOBS_MAX, 1, 1);
        fill(&executor, 2);
        fill(&executor, SL_JOB_PIECES_MAX);
        cr_expect_eq(sl_executor_jobs(&executor), 2);
        cr_expect_null(sl_executor_job(&executor), "it has all that it can take");
        cr_expect_not(sl_executor_answered(&executor, executor.oldest, 1));
        cr_expect(sl_executor_answered(&executor, executor.oldest, 0));
        cr_expect_eq(sl_executor_jobs(&executor), 1);
        fill(&executor, 1);
        for (uint32_t piece = 0; piece < SL_JOB_PIECES_MAX; piece++)
                cr_expect_eq(
                        sl_executor_answered(&executor, executor.oldest, piece), piece == SL_JOB_PIECES_MAX - 1, "piece %u", piece);
        cr_expect(sl_executor_answered(&executor, executor.oldest, 0));
        cr_expect_eq(sl_executor_jobs(&executor), 0);
        cr_expect_eq(n_given_slots, 3);
        cr_expect_neq(given_slots[0], given_slots[1]);
        cr_expect_eq(given_slots[0], given_slots[2]);
        free(memory);
}

/* Of an executor whose answers name their jobs. */
Test(executor, jobs_that_end_in_any_order_leave_their_slots_to_those_that_come)
{
        static const struct sl_executor_class class = {.name = "still", .give = give, .names_the_job = true};
        struct sl_executor executor = {.class = &class};
        void *memory = calloc(SL_EXECUTOR_SLOTS_MAX, sl_job_bytes(1, 1));

        n_given_slots = 0;
        sl_executor_init(&executor, memory, SL_EXECUTOR_SLOTS_MAX, 1, 1);
        for (uint32_t i = 0; i < SL_EXECUTOR_SLOTS_MAX; i++)
                fill(&executor, 1 + i);
        cr_expect_null(sl_executor_job(&executor), "it has all that it can take");
        cr_expect_not(sl_executor_answered(&executor, given_slots[2], 2));
        cr_expect_not(sl_executor_answered(&executor, given_slots[1], 1));
        cr_expect(sl_executor_answered(&executor, given_slots[1], 0));
        fill(&executor, 1);
        cr_expect_eq(given_slots[SL_EXECUTOR_SLOTS_MAX], given_slots[1]);
        cr_expect_null(sl_executor_job(&executor));
        cr_expect(sl_executor_answered(&executor, given_slots[0], 0));
        cr_expect_eq(executor.oldest, given_slots[1]);
        cr_expect_eq(sl_executor_jobs(&executor), SL_EXECUTOR_SLOTS_MAX - 1);
        free(memory);
}

Test(executor, jobs_that_rest_are_not_those_that_it_computes)
{
        static const struct sl_executor_class class = {.name = "still", .give = give};
        struct sl_executor executor = {.class = &class};
        void *memory = calloc(SL_EXECUTOR_JOBS_MAX, sl_job_bytes(1, 1));

        n_given_slots = 0;
        sl_executor_init(&executor, memory, SL_EXECUTOR_JOBS_MAX, 1, 1);
        fill(&executor, 1);
        fill(&executor, 1);
        executor.resting = 1;
        cr_expect_eq(sl_executor_computing(&executor), 1);
        executor.resting = UINT32_MAX;
        cr_expect_eq(sl_executor_computing(&executor), 0, "whatever its process says");
        free(memory);
}

Test(executor, a_region_has_its_number_until_it_is_removed_and_then_another_gets_it)
{
        struct sl_regions *regions;
        char here[8];
        int first;

        cr_assert_eq(sl_regions_new(2, &regions), 0);
        first = sl_regions_add(regions, here, sizeof(here), -1);
        cr_assert_geq(first, 0);
        cr_expect_eq(sl_regions_at(regions, &(struct sl_place){.region = (uint32_t)first, .offset = 5}), here + 5);
        cr_expect_geq(sl_regions_add(regions, here, sizeof(here), -1), 0);
        cr_expect_eq(sl_regions_add(regions, here, sizeof(here), -1), -E2BIG);
        sl_regions_remove(regions, (uint32_t)first);
        cr_expect_eq(sl_regions_add(regions, here, sizeof(here), -1), first, "numbers are used again");
        sl_regions_free(regions);
}
