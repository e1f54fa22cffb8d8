/* SPDX-License-Identifier: Apache-2.0 */
/* When a thread's answers wake whoever has given it its jobs, which threads a light job wakes, and when a thread's team sleeps. */
#include "base/clock.h"
#include "job.h"
#include "let.h"
#include "stand.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Samples [first, first + 2) of a segment of four, and their answer. */
static void compute_half(struct stand *s, struct sl_executor *thread, uint32_t segment, uint32_t first)
{
        uint64_t end_ns = sl_clock_ns() + 10 * SL_NS_PER_SECOND;
        struct sl_job *job = sl_executor_job(thread);
        struct sl_prediction answer;

        sl_accumulator_add_piece(s->accumulator, job, segment, 0, first, 2);
        sl_executor_give(thread, NULL);
        while (!sl_executor_poll(thread, &job, &answer))
                cr_assert_lt(sl_clock_ns(), end_ns);
        cr_assert_eq(answer.status, 0);
        sl_executor_answered(thread, answer.slot, answer.piece);
}

/* The ring comes behind the answer. */
static bool is_rung(const struct stand *s)
{
        for (uint32_t i = 0; i < 2000; i++) {
                if (atomic_load(&s->bell.sleeping) == SL_BELL_AWAKE)
                        return true;
                usleep(1000);
        }
        return false;
}

static void expect_rings(void (*sleep)(struct sl_bell *bell), bool first_half_rings)
{
        struct stand *s = stand_new();
        struct sl_executor *thread = stand_thread(s, 8);
        int segment;

        cr_assert_eq(stand_wait(s, thread), SL_EXECUTOR_READY);
        usleep(20000); /* "ready" has been rung */
        segment = sl_accumulator_open(s->accumulator, &s->work, 0, 4);
        sleep(&s->bell);
        compute_half(s, thread, (uint32_t)segment, 0);
        if (first_half_rings)
                cr_expect(is_rung(s));
        sleep(&s->bell);
        compute_half(s, thread, (uint32_t)segment, 2);
        cr_expect(is_rung(s), "the segment is complete");
        sl_accumulator_close(s->accumulator, (uint32_t)segment);
        sl_executor_free(thread);
        stand_free(s);
}

static void sleep_for_all(struct sl_bell *bell)
{
        sl_bell_sleep(bell);
}

static void sleep_for_ends(struct sl_bell *bell)
{
        sl_bell_sleep_for_ends(bell);
}

Test(thread, each_job_rings_who_sleeps_for_all, .timeout = 60)
{
        expect_rings(sleep_for_all, true);
}

Test(thread, the_end_of_a_segment_rings_who_sleeps_for_ends, .timeout = 60)
{
        expect_rings(sleep_for_ends, false);
}

Test(thread, a_part_of_a_segment_does_not_ring_who_sleeps_for_ends, .timeout = 60)
{
        struct stand *s = stand_new();
        struct sl_executor *thread = stand_thread(s, 8);
        int segment;

        cr_assert_eq(stand_wait(s, thread), SL_EXECUTOR_READY);
        usleep(20000);
        segment = sl_accumulator_open(s->accumulator, &s->work, 0, 4);
        sl_bell_sleep_for_ends(&s->bell);
        compute_half(s, thread, (uint32_t)segment, 0);
        sl_executor_free(thread); /* which joins it: it rings nobody any more */
        cr_expect_eq(atomic_load(&s->bell.sleeping), SL_BELL_FOR_ENDS);
        sl_accumulator_close(s->accumulator, (uint32_t)segment);
        stand_free(s);
}

#define EXECUTORS 4u
#define ROUNDS    300u

static void start_all(struct stand *s, struct sl_executor **ret_threads)
{
        for (uint32_t i = 0; i < EXECUTORS; i++) {
                ret_threads[i] = stand_thread(s, 8);
                cr_assert_eq(stand_wait(s, ret_threads[i]), SL_EXECUTOR_READY);
        }
        usleep(100000); /* all are warm and sleep */
}

static void give(struct stand *s, struct sl_executor *thread, uint32_t first, bool is_light)
{
        struct sl_job *job = sl_executor_job(thread);
        int segment = sl_accumulator_open(s->accumulator, &s->work, first, 1);

        cr_assert_geq(segment, 0);
        sl_accumulator_add_piece(s->accumulator, job, (uint32_t)segment, 0, 0, 1);
        job->is_light = is_light;
        sl_executor_give(thread, NULL);
}

static void expect_answer(struct stand *s, struct sl_executor *thread)
{
        struct sl_prediction answer;

        cr_assert(stand_poll(s, thread, &answer), "a job is forgotten");
        cr_assert_eq(answer.status, 0);
}

/* The let says how many threads are awake for light jobs: who is woken is counted by who wakes it. */
static int32_t awake_after_light_jobs(void)
{
        struct stand *s = stand_new();
        struct sl_executor *threads[EXECUTORS];
        int32_t most = 0;

        s->let.turns.at_once = 1;
        start_all(s, threads);
        for (uint32_t i = 0; i < EXECUTORS; i++) {
                give(s, threads[i], i, true);
                int32_t awake = sl_ready_awake(&s->let.ready);
                most = awake > most ? awake : most;
        }
        for (uint32_t i = 0; i < EXECUTORS; i++) {
                expect_answer(s, threads[i]);
                sl_executor_free(threads[i]);
        }
        cr_expect_eq(sl_ready_awake(&s->let.ready), 0, "all have gone");
        stand_free(s);
        return most;
}

Test(thread, light_jobs_wake_one_thread_for_each_core_of_their_let, .timeout = 60)
{
        cr_expect_leq(awake_after_light_jobs(), 1);
}

/* Light ones and others, one executor's behind another's, with and without a moment to fall asleep. */
Test(thread, no_light_job_is_forgotten_whoever_is_awake, .timeout = 60)
{
        struct stand *s = stand_new();
        struct sl_executor *threads[EXECUTORS];

        s->let.turns.at_once = 2;
        start_all(s, threads);
        for (uint32_t round = 0; round < ROUNDS; round++) {
                for (uint32_t i = 0; i < EXECUTORS; i++)
                        give(s, threads[i], i, (round * 5 + i) % 7 != 0);
                for (uint32_t i = 0; i < EXECUTORS; i += 2)
                        give(s, threads[i], i, round % 3 != 0);
                for (uint32_t i = 0; i < EXECUTORS; i++)
                        expect_answer(s, threads[i]);
                for (uint32_t i = 0; i < EXECUTORS; i += 2)
                        expect_answer(s, threads[i]);
                if (round % 8 == 0)
                        usleep(round % 500);
        }
        for (uint32_t i = 0; i < EXECUTORS; i++)
                sl_executor_free(threads[i]);
        cr_expect_eq(sl_ready_awake(&s->let.ready), 0);
        stand_free(s);
}

/* Members of teams in this process that run, by what the system says of them; @ret_n: all members. */
static uint32_t count_running_members(uint32_t *ret_n)
{
        DIR *tasks = opendir("/proc/self/task");
        uint32_t n_running = 0;

        cr_assert(tasks);
        *ret_n = 0;
        for (struct dirent *task; (task = readdir(tasks));) {
                char path[300], name[32], state = 0;
                FILE *file;

                snprintf(path, sizeof(path), "/proc/self/task/%s/stat", task->d_name);
                file = fopen(path, "r");
                if (file && fscanf(file, "%*d (%31[^)]) %c", name, &state) == 2 && !strcmp(name, "sl-team")) {
                        n_running += state == 'R';
                        ++*ret_n;
                }
                if (file)
                        fclose(file);
        }
        closedir(tasks);
        return n_running;
}

/* Far longer than the test waits for them to sleep. */
#define LONG_SPIN_NS (50 * SL_NS_PER_SECOND)

Test(thread, the_team_sleeps_when_its_thread_does, .timeout = 60)
{
        struct stand *s = stand_new();
        struct sl_executor *thread;
        uint32_t n_members, n_running = 1;

        s->threads = 2;
        s->team_spin_ns = LONG_SPIN_NS;
        thread = stand_thread(s, 8);
        cr_assert_eq(stand_wait(s, thread), SL_EXECUTOR_READY);
        for (uint32_t round = 0; round < 3; round++) {
                stand_give(s, thread, 0, 8);
                expect_answer(s, thread);
        }
        for (uint32_t i = 0; i < 5000 && n_running; i++) {
                usleep(1000);
                n_running = count_running_members(&n_members);
        }
        cr_expect_eq(n_running, 0, "a member looks for steps while no request is there");
        sl_executor_free(thread);
        stand_free(s);
        if (!n_members)
                cr_skip_test("one core: there is no team");
}
