/* SPDX-License-Identifier: Apache-2.0 */
/* When a thread's answers wake whoever has given it its jobs, which threads a light job wakes, and when a thread's team sleeps. */
#include "base/clock.h"
#include "job.h"
#include "let.h"
#include "stand.h"
#include "thread_state.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Samples [first, first + 2) of a segment of four, and their answer. */
static void compute_half(struct stand *s, struct sl_executor *thread, uint32_t segment, uint32_t first)
{
        uint64_t end_ns = sl_clock_ns() + STAND_LIMIT_NS;
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
        uint64_t end_ns = sl_clock_ns() + STAND_LIMIT_NS;

        while (atomic_load(&s->bell.sleeping) != SL_BELL_AWAKE && sl_clock_ns() < end_ns)
                usleep(1000);
        return atomic_load(&s->bell.sleeping) == SL_BELL_AWAKE;
}

/* It has rung that it is ready, and rings for answers alone. */
static struct sl_executor *start_thread(struct stand *s)
{
        struct sl_executor *thread;

        sl_bell_sleep(&s->bell);
        thread = stand_thread(s, 8);
        cr_assert_eq(stand_wait(s, thread), SL_EXECUTOR_READY);
        cr_assert(is_rung(s), "it does not say that it is ready");
        return thread;
}

static void expect_rings(void (*sleep)(struct sl_bell *bell), bool first_half_rings)
{
        struct stand *s = stand_new();
        struct sl_executor *thread = start_thread(s);
        int segment = sl_accumulator_open(s->accumulator, &s->work, 0, 4);

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
        struct sl_executor *thread = start_thread(s);
        int segment = sl_accumulator_open(s->accumulator, &s->work, 0, 4);

        sl_bell_sleep_for_ends(&s->bell);
        compute_half(s, thread, (uint32_t)segment, 0);
        sl_executor_free(thread); /* which joins it: it rings nobody any more */
        cr_expect_eq(atomic_load(&s->bell.sleeping), SL_BELL_FOR_ENDS);
        sl_accumulator_close(s->accumulator, (uint32_t)segment);
        stand_free(s);
}

#define EXECUTORS 4u
#define ROUNDS    300u

/* Until it is warm and sleeps. */
static void await_sleep(const struct sl_executor *executor)
{
        const struct thread_executor *thread = (const struct thread_executor *)executor;
        uint64_t end_ns = sl_clock_ns() + STAND_LIMIT_NS;

        for (; atomic_load(&thread->bell.sleeping) == SL_BELL_AWAKE; usleep(1000))
                cr_assert_lt(sl_clock_ns(), end_ns, "it does not fall asleep");
}

static void start_all(struct stand *s, struct sl_executor **ret_threads)
{
        for (uint32_t i = 0; i < EXECUTORS; i++) {
                ret_threads[i] = stand_thread(s, 8);
                cr_assert_eq(stand_wait(s, ret_threads[i]), SL_EXECUTOR_READY);
        }
        for (uint32_t i = 0; i < EXECUTORS; i++)
                await_sleep(ret_threads[i]);
}

static void give(struct stand *s, struct sl_executor *thread, uint32_t first, uint32_t samples, bool is_light)
{
        struct sl_job *job = sl_executor_job(thread);
        int segment = sl_accumulator_open(s->accumulator, &s->work, first, samples);

        cr_assert_geq(segment, 0);
        sl_accumulator_add_piece(s->accumulator, job, (uint32_t)segment, 0, 0, samples);
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
                give(s, threads[i], i, 1, true);
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
                        give(s, threads[i], i, 1, (round * 5 + i) % 7 != 0);
                for (uint32_t i = 0; i < EXECUTORS; i += 2)
                        give(s, threads[i], i, 1, round % 3 != 0);
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

/* ---- two workers on a let, one of which has always something to do ---- */

#define HOG_JOBS 50u /* none of the other one waits for so many */

/* Samples of a job: the meek one has the first half, the hog the other, as both may compute at once. */
#define PAIR_SAMPLES (STAND_SAMPLES / 2)

struct pair {
        struct stand *stand;
        struct sl_executor *meek, *hog;
        uint32_t n_hog; /* jobs that have ended */
        bool hog_is_light;
};

static void give_hog(struct pair *pair)
{
        give(pair->stand, pair->hog, PAIR_SAMPLES, PAIR_SAMPLES, pair->hog_is_light);
}

static bool has_answer(struct pair *pair, struct sl_executor *thread)
{
        struct sl_prediction answer;
        struct sl_job *job;

        if (!sl_executor_poll(thread, &job, &answer))
                return false;
        cr_assert_eq(answer.status, 0);
        stand_finish(pair->stand, thread, &answer);
        return true;
}

/* It has a job behind the one that it computes. */
static void feed_hog(struct pair *pair)
{
        usleep(100);
        for (; has_answer(pair, pair->hog); pair->n_hog++)
                give_hog(pair);
}

static void pair_init(struct pair *pair, uint32_t cores)
{
        *pair = (struct pair){.stand = stand_new(), .hog_is_light = true};
        pair->stand->let.turns.at_once = cores;
        pair->meek = stand_thread(pair->stand, 8);
        cr_assert_eq(stand_wait(pair->stand, pair->meek), SL_EXECUTOR_READY);
        pair->hog = stand_thread(pair->stand, 1); /* sample by sample: some milliseconds for each job */
        cr_assert_eq(stand_wait(pair->stand, pair->hog), SL_EXECUTOR_READY);
        await_sleep(pair->meek);
        await_sleep(pair->hog);
}

static void end_hog(struct pair *pair)
{
        expect_answer(pair->stand, pair->hog);
        expect_answer(pair->stand, pair->hog);
}

static void pair_deinit(struct pair *pair)
{
        end_hog(pair);
        sl_executor_free(pair->meek);
        sl_executor_free(pair->hog);
        stand_free(pair->stand);
}

/* The hog's first light job is taken by the meek one's thread, which alone is awake; more come before it has ended. */
static void let_meek_take_hog(struct pair *pair)
{
        uint32_t left = 2;

        pair->stand->let.turns.at_once = 1;
        give(pair->stand, pair->meek, 0, PAIR_SAMPLES, true);
        give(pair->stand, pair->meek, 0, PAIR_SAMPLES, true);
        give(pair->stand, pair->hog, PAIR_SAMPLES, PAIR_SAMPLES, true);
        pair->stand->let.turns.at_once = 2;
        for (give_hog(pair); left || pair->n_hog < 2; feed_hog(pair))
                while (left && has_answer(pair, pair->meek))
                        left--;
}

/* Before so many jobs of the other one, where one thread computes both; two have their shares of a busy machine. */
static void expect_meek_is_answered(struct pair *pair, bool is_light, uint32_t jobs)
{
        uint32_t before = pair->n_hog;
        uint64_t end_ns = sl_clock_ns() + STAND_LIMIT_NS;

        give(pair->stand, pair->meek, 0, 1, is_light);
        for (; !has_answer(pair, pair->meek); feed_hog(pair))
                cr_assert(sl_clock_ns() < end_ns && pair->n_hog - before < jobs,
                        "%u of the other one's jobs are computed, and this one is not", pair->n_hog - before);
}

Test(thread, a_light_job_of_another_one_does_not_bind_a_thread_to_what_follows, .timeout = 60)
{
        for (uint32_t form = 0; form < 4; form++) {
                struct pair pair;

                pair_init(&pair, 2);
                pair.hog_is_light = form & 1;
                let_meek_take_hog(&pair);
                for (uint32_t i = 0; i < 3; i++)
                        expect_meek_is_answered(&pair, form & 2, UINT32_MAX);
                pair_deinit(&pair);
        }
}

Test(thread, on_one_core_who_never_ends_takes_turns_with_light_jobs, .timeout = 60)
{
        struct pair pair;

        pair_init(&pair, 1);
        give_hog(&pair);
        give_hog(&pair);
        while (pair.n_hog < 2)
                feed_hog(&pair);
        for (uint32_t i = 0; i < 3; i++)
                expect_meek_is_answered(&pair, true, HOG_JOBS);
        pair_deinit(&pair);
}

static _Atomic bool freed;

static void *free_executor(void *executor)
{
        sl_executor_free(executor);
        atomic_store(&freed, true);
        return NULL;
}

Test(thread, who_is_freed_leaves_the_jobs_of_others_to_them, .timeout = 60)
{
        struct pair pair;
        pthread_t thread;
        uint64_t end_ns;

        pair_init(&pair, 2);
        let_meek_take_hog(&pair);
        cr_assert_eq(pthread_create(&thread, NULL, free_executor, pair.meek), 0);
        for (end_ns = sl_clock_ns() + STAND_LIMIT_NS; !atomic_load(&freed) && sl_clock_ns() < end_ns;)
                feed_hog(&pair);
        cr_expect(atomic_load(&freed), "it is freed when the other one has nothing to do");
        end_hog(&pair);
        cr_assert_eq(pthread_join(thread, NULL), 0);
        sl_executor_free(pair.hog);
        stand_free(pair.stand);
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
#define LONG_SPIN_NS (3600 * SL_NS_PER_SECOND)

Test(thread, the_team_sleeps_when_its_thread_does, .timeout = 60)
{
        struct stand *s = stand_new();
        struct sl_executor *thread;
        uint64_t end_ns = sl_clock_ns() + STAND_LIMIT_NS;
        uint32_t n_members;

        s->threads = 2;
        s->team_spin_ns = LONG_SPIN_NS;
        thread = stand_thread(s, 8);
        cr_assert_eq(stand_wait(s, thread), SL_EXECUTOR_READY);
        for (uint32_t round = 0; round < 3; round++) {
                stand_give(s, thread, 0, 8);
                expect_answer(s, thread);
        }
        for (; count_running_members(&n_members); usleep(1000))
                cr_assert_lt(sl_clock_ns(), end_ns, "a member looks for steps while no request is there");
        sl_executor_free(thread);
        stand_free(s);
        if (!n_members)
                cr_skip_test("one core: there is no team");
}

/* Where the thread of the stand's only executor may run. */
static cpu_set_t cores_of_thread(void)
{
        DIR *tasks = opendir("/proc/self/task");
        cpu_set_t cores;

        CPU_ZERO(&cores);
        cr_assert_not_null(tasks);
        for (const struct dirent *task; (task = readdir(tasks));) {
                char path[300], name[20] = "";
                snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task->d_name);
                FILE *file = fopen(path, "r");

                if (file && fgets(name, sizeof(name), file) && strcmp(name, "sl-stand\n") == 0)
                        cr_assert_eq(sched_getaffinity(atoi(task->d_name), sizeof(cores), &cores), 0);
                if (file)
                        fclose(file);
        }
        closedir(tasks);
        return cores;
}

Test(thread, wherever_it_has_started_it_runs_on_the_cores_of_its_let, .timeout = 60)
{
        struct stand *s = stand_new();
        cpu_set_t mine, first;
        int core = 0;

        cr_assert_eq(sched_getaffinity(0, sizeof(mine), &mine), 0);
        while (!CPU_ISSET(core, &mine))
                core++;
        CPU_ZERO(&first);
        CPU_SET(core, &first);
        if (CPU_COUNT(&mine) == 1)
                cr_skip_test("there is one core");
        s->let.cpus = first;
        CPU_XOR(&s->start_cores, &mine, &first);
        struct sl_executor *executor = stand_thread(s, 4);

        cr_assert_eq(stand_wait(s, executor), SL_EXECUTOR_READY);
        cpu_set_t cores = cores_of_thread();
        cr_expect(CPU_EQUAL(&cores, &first));
        sl_executor_free(executor);
        stand_free(s);
}

/* ---- in the background ---- */

/* A let that is wanted holds a job in the background before its first step, however slow the machine is. */
static struct sl_executor *hold_in_background(struct stand *s)
{
        struct sl_executor *thread = stand_thread(s, 8);
        int segment = sl_accumulator_open(s->accumulator, &s->work, 0, 8);
        struct sl_job *job;

        cr_assert_eq(stand_wait(s, thread), SL_EXECUTOR_READY);
        atomic_store(&s->let.is_wanted, true);
        job = sl_executor_job(thread);
        sl_accumulator_add_piece(s->accumulator, job, (uint32_t)segment, 0, 0, 8);
        job->priority = SL_BACKGROUND;
        sl_executor_give(thread, NULL);
        return thread;
}

Test(thread, what_is_in_the_background_pauses_while_its_let_is_wanted_and_then_goes_on, .timeout = 60)
{
        struct stand *s = stand_new();
        struct sl_executor *thread = hold_in_background(s);
        struct sl_prediction answer;
        float expected[8 * STAND_CLASSES];

        usleep(5000); /* which lets it come as far as it can */
        cr_expect(!sl_executor_waiting(thread), "it has computed");
        atomic_store(&s->let.is_wanted, false);
        cr_assert(stand_poll(s, thread, &answer));
        cr_expect_eq(answer.status, 0);
        cr_expect_eq(answer.lost, 0);
        memcpy(expected, s->outputs, sizeof(expected));
        give(s, thread, 0, 8, false);
        expect_answer(s, thread);
        cr_expect_arr_eq(s->outputs, expected, sizeof(expected), "as if it had not paused");
        sl_executor_free(thread);
        stand_free(s);
}

/* Whether it has begun, pauses, or was not looked at yet. */
Test(thread, what_is_in_the_background_leaves_for_another_job_and_begins_anew, .timeout = 60)
{
        struct stand *s = stand_new();

        for (uint32_t i = 0; i < 20; i++) {
                struct sl_executor *thread = hold_in_background(s);
                struct sl_prediction answer;

                usleep(i * 100);
                give(s, thread, 8, 8, false);
                cr_assert(stand_poll(s, thread, &answer), "it does not leave");
                cr_expect_eq(answer.lost, SL_LOST_YIELDED);
                cr_expect_eq(thread->n_background, 0);
                expect_answer(s, thread);
                sl_executor_free(thread);
                atomic_store(&s->let.is_wanted, false);
        }
        stand_free(s);
}

Test(thread, what_is_in_the_background_and_given_up_ends_though_it_pauses, .timeout = 60)
{
        struct stand *s = stand_new();
        struct sl_executor *thread = hold_in_background(s);
        struct sl_prediction answer;

        usleep(2000);
        sl_accumulator_give_up(s->accumulator, &s->work, -ECANCELED);
        cr_assert(stand_poll(s, thread, &answer), "it pauses for ever");
        cr_expect_lt(answer.status, 0);
        sl_executor_free(thread);
        stand_free(s);
}
