/* SPDX-License-Identifier: Apache-2.0 */
/* Lets that workers on a GPU share, and what becomes of them when models change theirs. 16 groups of multiprocessors. */
#include "gpu_lets.h"

#include "base/error.h"
#include "base/split_mix.h"
#include "fake_driver.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

static struct sl_cuda_driver driver;
static struct sl_cuda_device device;
static struct sl_gpu_lets lets;

static void setup(void)
{
        struct fake_cuda_options options = fake_cuda_defaults();
        struct sl_error error = {""};

        fake_cuda_begin(&options, &driver);
        cr_assert_eq(sl_cuda_device_open(&driver, 0, &device, &error), 0, "%s", error.text);
        cr_assert_eq(sl_gpu_lets_init(&lets, &device, &error), 0, "%s", error.text);
}

static void teardown(void)
{
        cr_expect_eq(lets.greens.map.taken, 0);
        cr_expect_eq(lets.greens.map.percent, 0);
        cr_expect_null(lets.newest);
        sl_cuda_device_close(&device);
        cr_expect_eq(fake_cuda_held(), 0);
}

TestSuite(lets, .init = setup, .fini = teardown);

/* A worker, with a stream on its let. */
struct worker {
        struct sl_gpu_claim *claim;
        CUstream stream;
        uint32_t groups;
};

static struct sl_gpu_claim *claim(uint64_t crew, uint32_t percent, uint64_t replaced_crew, uint32_t replaced_percent)
{
        struct sl_gpu_part part = {.crew = crew, .percent = percent, .replaced_crew = replaced_crew};
        struct sl_gpu_claim *made;

        if (replaced_percent)
                sl_gpu_percents_add(&part.replaced_percents, replaced_percent);
        made = sl_gpu_lets_claim(&lets, &part);
        cr_assert_not_null(made);
        return made;
}

static struct worker begin(struct sl_gpu_claim *claimed)
{
        struct worker worker = {.claim = claimed};
        struct sl_error error = {""};

        cr_assert_eq(sl_gpu_lets_take(&lets, claimed, &error), 0, "%s", error.text);
        cr_assert_eq(
                sl_green_stream(&lets.greens, sl_gpu_lets_green(&lets, claimed), 0, &worker.stream, &error), 0, "%s", error.text);
        worker.groups = (uint32_t)__builtin_popcountll(fake_cuda_stream_groups(worker.stream));
        return worker;
}

static struct worker come(uint64_t crew, uint32_t percent, uint64_t replaced_crew, uint32_t replaced_percent)
{
        return begin(claim(crew, percent, replaced_crew, replaced_percent));
}

static void leave(struct worker *worker)
{
        sl_green_end_stream(&lets.greens, sl_gpu_lets_green(&lets, worker->claim), worker->stream);
        worker->claim = sl_gpu_lets_release(&lets, worker->claim);
}

static void expect_busy(struct sl_gpu_claim *claimed)
{
        struct sl_error error = {""};

        cr_expect_eq(sl_gpu_lets_take(&lets, claimed, &error), -EBUSY, "%s", error.text);
}

Test(lets, of_the_same_size_are_one)
{
        struct worker one = come(1, 50, 0, 0), other = come(2, 50, 0, 0), whole = come(3, 100, 0, 0);
        struct sl_gpu_claim *third = claim(4, 75, 0, 0);
        struct sl_error error = {""};

        cr_expect_eq(sl_gpu_lets_green(&lets, one.claim), sl_gpu_lets_green(&lets, other.claim));
        cr_expect_null(sl_gpu_lets_green(&lets, whole.claim));
        cr_expect_eq(sl_gpu_lets_take(&lets, third, &error), -EBUSY);
        cr_expect_not_null(strstr(error.text, "75% of the device are 96 multiprocessors"), "%s", error.text);
        sl_gpu_lets_release(&lets, third);
        leave(&one);
        leave(&other);
        leave(&whole);
}

Test(lets, that_become_larger_or_smaller_have_what_the_old_one_had)
{
        struct worker other = come(9, 30, 0, 0), a = come(1, 60, 0, 0), b = come(1, 60, 0, 0), c, d, e;

        c = come(1, 70, 1, 60);
        cr_expect_eq(c.groups, 11);
        d = come(1, 70, 1, 60);
        cr_expect_eq(sl_gpu_lets_green(&lets, c.claim), sl_gpu_lets_green(&lets, d.claim));
        leave(&a);
        leave(&b);
        leave(&c);
        e = come(1, 40, 1, 70);
        leave(&d);
        cr_expect_eq(__builtin_popcountll(lets.greens.map.taken), 5 + 6, "30 and 40 %");
        leave(&e);
        leave(&other);
}

/* A new crew takes the place of all of the old one. */
Test(lets, of_a_model_that_is_loaded_again_make_room_for_it)
{
        struct worker a = come(1, 40, 0, 0), b = come(1, 30, 0, 0), c = come(2, 90, 1, 0);

        cr_expect_eq(c.groups, 14);
        leave(&a);
        leave(&b);
        leave(&c);
}

Test(lets, on_which_somebody_stays_make_no_room)
{
        struct worker a = come(1, 60, 0, 0), b = come(2, 60, 0, 0), c;
        struct sl_gpu_claim *larger = claim(1, 70, 1, 60);

        expect_busy(larger);
        cr_expect_eq(__builtin_popcountll(lets.greens.map.taken), 10, "what was tried is undone");
        leave(&b);
        c = begin(larger);
        cr_expect_eq(c.groups, 11);
        leave(&a);
        leave(&c);
}

/* In whatever order they come: who has no room waits for the others. */
Test(lets, of_models_that_change_together_all_find_room)
{
        struct worker a = come(1, 50, 0, 0), b = come(2, 50, 0, 0), c, d;
        struct sl_gpu_claim *larger = claim(1, 70, 1, 50);

        expect_busy(larger);
        d = come(2, 30, 2, 50);
        c = begin(larger);
        cr_expect_eq(c.groups, 11);
        cr_expect_eq(d.groups, 5);
        leave(&a);
        leave(&b);
        leave(&c);
        leave(&d);
}

/* As after the end of their process, from which a model, the one whose place it was about to take, and a third one come again. */
Test(lets, that_come_again_find_room_in_any_order)
{
        static const uint32_t crews[6][3] = {{1, 2, 3}, {1, 3, 2}, {2, 1, 3}, {2, 3, 1}, {3, 1, 2}, {3, 2, 1}},
                              percents[] = {0, 75, 50, 25};

        for (uint32_t order = 0; order < 6; order++) {
                struct worker workers[4] = {{NULL}};

                for (uint32_t i = 0; i < 3; i++) {
                        uint32_t crew = crews[order][i];

                        workers[crew] = come(crew, percents[crew], crew == 2 ? 1 : 0, 0);
                }
                cr_expect_eq(workers[2].groups, 8, "of what it is to have, in order %u", order);
                leave(&workers[1]);
                cr_expect_eq(
                        fake_cuda_stream_groups(workers[2].stream) & fake_cuda_stream_groups(workers[3].stream), 0, "%u", order);
                leave(&workers[2]);
                leave(&workers[3]);
        }
}

/* What others took meanwhile stays shared. */
Test(lets, have_what_they_had_when_nothing_comes_of_a_change)
{
        struct worker a = come(1, 50, 0, 0), larger = come(1, 90, 1, 50), other, joins;
        struct sl_gpu_claim *refused;

        leave(&larger);
        cr_expect_eq(__builtin_popcountll(lets.greens.map.taken), 8);
        refused = claim(3, 60, 0, 0);
        expect_busy(refused);
        sl_gpu_lets_release(&lets, refused);
        joins = come(4, 50, 0, 0);
        cr_expect_eq(sl_gpu_lets_green(&lets, a.claim), sl_gpu_lets_green(&lets, joins.claim));
        leave(&joins);
        larger = come(1, 20, 1, 50);
        other = come(3, 80, 0, 0);
        cr_expect_eq(other.groups, 13);
        leave(&larger);
        cr_expect_eq(__builtin_popcountll(lets.greens.map.taken), 13);
        leave(&a);
        leave(&other);
}

/* ... and is its own again when those are gone, even where it makes room once more meanwhile. */
Test(lets, have_again_what_others_took_when_those_are_gone)
{
        struct worker a = come(1, 50, 0, 0), changed = come(1, 20, 1, 50), other = come(3, 80, 0, 0), next;
        struct sl_gpu_claim *refused;

        cr_expect_eq(other.groups, 13);
        leave(&changed); /* the change has come to nothing */
        changed = come(1, 10, 1, 50);
        leave(&changed);
        leave(&other);
        cr_expect_eq(__builtin_popcountll(lets.greens.map.taken), 8, "who has stayed has its 50 %%");
        refused = claim(4, 80, 0, 0);
        expect_busy(refused);
        sl_gpu_lets_release(&lets, refused);
        next = come(4, 40, 0, 0);
        cr_expect_eq(fake_cuda_stream_groups(next.stream) & fake_cuda_stream_groups(a.stream), 0);
        leave(&next);
        leave(&a);
}

/* Models come, change their lets one by one or at once, change their mind, and go: in the end nothing is taken. */
Test(lets, come_and_go)
{
        struct worker now[6] = {{NULL}};
        uint32_t percents[6] = {0}, n_changes = 0;
        uint64_t random = 1;

        for (uint32_t round = 0; round < 20000; round++) {
                uint64_t chance = sl_split_mix_next(&random);
                uint32_t crew = (uint32_t)chance % 6, percent = 5 + (uint32_t)(chance >> 8) % 60;
                struct sl_gpu_claim *claimed;
                struct worker next;
                struct sl_error error;

                if (now[crew].claim && chance >> 62 == 0) {
                        leave(&now[crew]);
                        continue;
                }
                claimed = claim(crew + 1, percent, now[crew].claim ? crew + 1 : 0, percents[crew]);
                if (percent == percents[crew] || sl_gpu_lets_take(&lets, claimed, &error) < 0) {
                        sl_gpu_lets_release(&lets, claimed);
                        continue;
                }
                next = (struct worker){.claim = claimed};
                cr_assert_eq(sl_green_stream(&lets.greens, sl_gpu_lets_green(&lets, claimed), 0, &next.stream, &error), 0);
                if (now[crew].claim && chance >> 60 & 1) {
                        leave(&next);
                        continue;
                }
                if (now[crew].claim)
                        leave(&now[crew]);
                now[crew] = next;
                percents[crew] = percent;
                n_changes++;
        }
        cr_expect_geq(n_changes, 1000);
        for (uint32_t crew = 0; crew < 6; crew++)
                if (now[crew].claim)
                        leave(&now[crew]);
}

/* The driver refuses: the old let is as it was. */
Test(lets, that_cannot_be_made_leave_the_old_ones)
{
        struct worker a = come(1, 60, 0, 0);
        struct sl_gpu_claim *larger = claim(1, 70, 1, 60);
        struct sl_error error = {""};

        fake_cuda_fail(FAKE_CUDA_green_ctx_create, 1, CUDA_ERROR_OUT_OF_MEMORY);
        cr_expect_eq(sl_gpu_lets_take(&lets, larger, &error), -ENOMEM, "%s", error.text);
        cr_expect_eq(__builtin_popcountll(lets.greens.map.taken), 10);
        sl_gpu_lets_release(&lets, larger);
        leave(&a);
}
