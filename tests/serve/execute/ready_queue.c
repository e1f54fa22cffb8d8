/* SPDX-License-Identifier: Apache-2.0 */
/* Who runs which executor, among the threads of a let: each entry is one thread's, and each executor has one runner at a time. */
#include "ready_queue.h"
#include "base/relax.h"
#include "claim.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define THREADS   3u
#define EXECUTORS 5u
#define JOBS      20000u

/* Its jobs are numbers, which its runner adds up without a lock: the claim is one. */
struct executor {
        struct sl_claim claim;
        _Atomic uint32_t given;
        uint32_t taken, runs;
};

struct let {
        struct sl_ready_queue ready;
        struct executor executors[EXECUTORS];
        _Atomic bool ends;
};

static struct let *let_new(void)
{
        struct let *let = aligned_alloc(alignof(struct let), sizeof(*let));

        cr_assert_not_null(let);
        memset(let, 0, sizeof(*let));
        return let;
}

static void run(struct executor *executor)
{
        sl_claim_take(&executor->claim);
        do {
                executor->runs++;
                executor->taken = atomic_load_explicit(&executor->given, memory_order_relaxed);
        } while (!sl_claim_end(&executor->claim));
}

/* The end is looked at before the queue: what was put before it is still taken. */
static void *serve(void *argument)
{
        struct let *let = argument;
        bool ends;

        do {
                struct executor *executor;

                ends = atomic_load(&let->ends);
                while ((executor = sl_ready_take(&let->ready)))
                        run(executor);
                sl_relax();
        } while (!ends);
        return NULL;
}

/* relaxed: it is the claim that shows a runner what was given before. */
static void give(struct let *let, struct executor *executor)
{
        atomic_fetch_add_explicit(&executor->given, 1, memory_order_relaxed);
        if (sl_claim_give(&executor->claim))
                cr_assert(sl_ready_put(&let->ready, executor));
}

Test(ready_queue, each_executor_has_one_runner_at_a_time_and_none_is_forgotten, .timeout = 60)
{
        struct let *let = let_new();
        pthread_t threads[THREADS];

        for (uint32_t i = 0; i < THREADS; i++)
                cr_assert_eq(pthread_create(&threads[i], NULL, serve, let), 0);
        for (uint32_t i = 0; i < JOBS; i++)
                give(let, &let->executors[i * 7 % EXECUTORS]);
        atomic_store(&let->ends, true);
        for (uint32_t i = 0; i < THREADS; i++)
                pthread_join(threads[i], NULL);
        for (uint32_t i = 0; i < EXECUTORS; i++) {
                cr_expect_eq(let->executors[i].taken, JOBS / EXECUTORS);
                cr_expect_leq(let->executors[i].runs, JOBS / EXECUTORS + 1);
                cr_expect(sl_claim_is_free(&let->executors[i].claim));
        }
        free(let);
}

Test(ready_queue, is_in_order_and_has_an_end)
{
        struct let *let = let_new();
        char entries[SL_READY_MAX + 1];

        for (uint32_t round = 0; round < 3; round++) {
                for (uint32_t i = 0; i < SL_READY_MAX; i++)
                        cr_assert(sl_ready_put(&let->ready, &entries[i]));
                cr_expect_not(sl_ready_put(&let->ready, &entries[SL_READY_MAX]), "it is full");
                for (uint32_t i = 0; i < SL_READY_MAX; i++)
                        cr_assert_eq(sl_ready_take(&let->ready), &entries[i]);
                cr_expect_null(sl_ready_take(&let->ready));
                cr_expect_not(sl_ready_waiting(&let->ready));
        }
        free(let);
}

Test(ready_queue, a_claim_is_somebodys_as_long_as_anything_was_given)
{
        struct sl_claim claim = {0};

        cr_expect(sl_claim_give(&claim), "somebody has to be told");
        cr_expect_not(sl_claim_give(&claim), "who is told looks at all");
        cr_expect_not(sl_claim_try(&claim), "it is his");
        sl_claim_take(&claim);
        cr_expect_not(sl_claim_give(&claim));
        cr_expect_not(sl_claim_end(&claim), "it goes on");
        cr_expect_not(sl_claim_is_free(&claim));
        cr_expect(sl_claim_end(&claim));
        cr_expect(sl_claim_is_free(&claim));
        cr_expect(sl_claim_try(&claim));
        cr_expect_not(sl_claim_give(&claim));
        cr_expect_not(sl_claim_end(&claim));
        cr_expect(sl_claim_end(&claim));
}
