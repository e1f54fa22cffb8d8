/* SPDX-License-Identifier: Apache-2.0 */
/* A worker process behind executor.h, without a dispatcher: what it computes, what it may see, and what is left when it is gone. */
#include "base/clock.h"
#include "base/error.h"
#include "freeze.h"
#include "gpu_let.h"
#include "stand.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static struct sl_executor *start_process(struct stand *s, uint32_t batch_max)
{
        struct sl_executor *executor = stand_process(s, batch_max, NULL);

        cr_assert_eq(stand_wait(s, executor), SL_EXECUTOR_READY, "%s", s->error.text);
        return executor;
}

/* What /proc says of a process's memory: lines with @name, and of them those with @rights. */
static uint32_t count_mappings(int pid, const char *name, const char *rights)
{
        char path[64], line[512];
        uint32_t n = 0;
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%d/maps", pid);
        file = fopen(path, "r");
        cr_assert(file);
        while (fgets(line, sizeof(line), file))
                n += strstr(line, name) && strstr(line, rights);
        fclose(file);
        return n;
}

Test(process, computes_what_a_thread_computes_to_the_bit, .timeout = 60)
{
        struct stand *s = stand_new();
        struct sl_executor *thread = stand_thread(s, 32), *process = start_process(s, 32);
        float *wanted = malloc(STAND_SAMPLES * STAND_CLASSES * sizeof(float));
        struct sl_prediction answer;

        cr_assert_eq(stand_wait(s, thread), SL_EXECUTOR_READY);
        for (uint32_t samples = 1; samples <= 70; samples += 23) {
                stand_give(s, thread, 0, samples);
                cr_assert(stand_poll(s, thread, &answer));
                cr_assert_eq(answer.status, 0);
                memcpy(wanted, s->outputs, samples * STAND_CLASSES * sizeof(float));
                memset(s->outputs, 0, samples * STAND_CLASSES * sizeof(float));
                stand_give(s, process, 0, samples);
                cr_assert(stand_poll(s, process, &answer));
                cr_expect_eq(answer.status, 0);
                cr_expect_eq(answer.job_samples, samples);
                cr_expect_eq(memcmp(wanted, s->outputs, samples * STAND_CLASSES * sizeof(float)), 0, "%u samples", samples);
        }
        free(wanted);
        sl_executor_free(thread);
        sl_executor_free(process);
        stand_free(s);
}

Test(process, pieces_of_one_job_come_back_to_their_own_places, .timeout = 60)
{
        struct stand *s = stand_new();
        struct sl_executor *process = start_process(s, 8);
        float *wanted = malloc(STAND_SAMPLES * STAND_CLASSES * sizeof(float));
        struct sl_prediction answer;

        stand_give(s, process, 0, 6);
        cr_assert(stand_poll(s, process, &answer));
        memcpy(wanted, s->outputs, 6 * STAND_CLASSES * sizeof(float));
        memset(s->outputs, 0, 6 * STAND_CLASSES * sizeof(float));
        stand_give_pieces(s, process, (uint32_t[]){4, 0, 3}, (uint32_t[]){2, 3, 1}, 3);
        for (uint32_t i = 0; i < 3; i++)
                cr_assert(stand_poll(s, process, &answer));
        for (uint32_t i = 0; i < 6 * STAND_CLASSES; i++)
                cr_expect_float_eq(
                        s->outputs[i], wanted[i], 1e-5f, "element %u: %g, wanted %g", i, (double)s->outputs[i], (double)wanted[i]);
        free(wanted);
        sl_executor_free(process);
        stand_free(s);
}

Test(process, maps_the_regions_that_its_jobs_name_read_only_and_forgets_them, .timeout = 60)
{
        struct stand *s = stand_new();
        struct sl_executor *process = start_process(s, 8);
        int pid = stand_child();
        struct sl_prediction answer;

        cr_expect_eq(count_mappings(pid, "starling-arena", ""), 0, "no job has named it");
        stand_give(s, process, 0, 1);
        cr_assert(stand_poll(s, process, &answer));
        cr_expect_eq(count_mappings(pid, "starling-arena", ""), 1);
        cr_expect_eq(count_mappings(pid, "starling-arena", "rw"), 0, "it can be written to");
        cr_expect_eq(count_mappings(pid, "starling-order", "rw"), 0, "it can be written to");
        cr_expect_eq(count_mappings(pid, "starling-verdicts", "rw"), 0, "it can be written to");
        cr_expect_eq(count_mappings(pid, "starling-staging", ""), 0, "others' predictions are in it");
        stand_remove_arena(s);
        for (uint64_t end_ns = sl_clock_ns() + STAND_LIMIT_NS; count_mappings(pid, "starling-arena", ""); usleep(10000))
                cr_assert_lt(sl_clock_ns(), end_ns, "it holds memory of who is gone");
        stand_add_arena(s);
        stand_give(s, process, 0, 1);
        cr_assert(stand_poll(s, process, &answer));
        cr_expect_eq(answer.status, 0, "another region has the number");
        sl_executor_free(process);
        stand_free(s);
}

/* As a GPU's process does where it is told to: nobody has taken the answer yet. */
Test(process, that_may_write_to_the_arena_puts_predictions_there_and_nothing_beside, .timeout = 60)
{
        struct stand *s = stand_new();
        struct sl_executor *process = start_process(s, 8);
        float wanted[6 * STAND_CLASSES];
        struct sl_prediction answer;

        stand_give(s, process, 0, 6);
        cr_assert(stand_poll(s, process, &answer));
        memcpy(wanted, s->outputs, sizeof(wanted));
        memset(s->outputs, 0, 10 * STAND_CLASSES * sizeof(float));
        sl_executor_free(process);
        s->direct = true;
        process = start_process(s, 8);
        stand_give_pieces(s, process, (uint32_t[]){4, 1}, (uint32_t[]){2, 3}, 2);
        for (uint64_t end_ns = sl_clock_ns() + STAND_LIMIT_NS; !sl_executor_waiting(process); usleep(10000))
                cr_assert_lt(sl_clock_ns(), end_ns);
        cr_expect_eq(count_mappings(stand_child(), "starling-arena", "rw-s"), 1);
        for (uint32_t i = 0; i < 2; i++) {
                cr_assert(stand_poll(s, process, &answer));
                cr_expect_eq(answer.status, 0);
        }
        for (uint32_t i = STAND_CLASSES; i < 6 * STAND_CLASSES; i++)
                cr_expect_float_eq(s->outputs[i], wanted[i], 1e-5f, "element %u", i);
        for (uint32_t i = 0; i < STAND_CLASSES; i++)
                cr_expect(s->outputs[i] == 0 && s->outputs[6 * STAND_CLASSES + i] == 0, "element %u", i);
        sl_executor_free(process);
        stand_free(s);
}

Test(process, what_a_dead_process_has_not_answered_is_lost_and_says_why, .timeout = 60)
{
        struct stand *s = stand_new();
        struct sl_executor *process = start_process(s, 8);
        int pid = stand_child();
        struct sl_prediction answer;
        struct sl_job *job;
        uint32_t n = 0;

        cr_assert(freeze(pid));
        stand_give_pieces(s, process, (uint32_t[]){0, 4, 6}, (uint32_t[]){4, 2, 1}, 3);
        stand_give(s, process, 0, 1);
        usleep(20000);
        cr_expect_not(sl_executor_poll(process, &job, &answer), "its process lives");
        cr_assert_eq(kill(pid, SIGKILL), 0);
        cr_assert_eq(stand_wait(s, process), -ECHILD);
        cr_expect_str_eq(s->error.text, "its process was killed by signal 9 (Killed)");
        cr_expect_eq(kill(pid, 0), -1, "it has not been reaped");
        while (sl_executor_poll(process, &job, &answer)) {
                cr_expect_eq(answer.status, -EIO);
                cr_expect_eq(answer.lost, SL_LOST_WAITING);
                cr_expect_str_eq(job->faults[answer.piece].text, s->error.text);
                sl_executor_answered(process, answer.slot, answer.piece);
                n++;
        }
        cr_expect_eq(n, 4);
        cr_expect_eq(sl_executor_jobs(process), 0);
        cr_expect_not(sl_executor_waiting(process));
        sl_executor_free(process);
        stand_free(s);
}

Test(process, a_giver_that_sleeps_is_woken_by_an_answer, .timeout = 60)
{
        struct stand *s = stand_new();
        struct sl_executor *process = start_process(s, 8);
        struct sl_prediction answer;
        struct sl_job *job;
        uint64_t rings;

        for (uint32_t i = 0; i < 200; i++) {
                stand_give(s, process, 0, 1);
                sl_executor_listen(process, true);
                if (!sl_executor_waiting(process))
                        cr_assert(stand_readable(process->wake_fd, 60000), "round %u: nobody has rung", i);
                sl_executor_listen(process, false);
                (void)!read(process->wake_fd, &rings, sizeof(rings));
                while (!sl_executor_poll(process, &job, &answer))
                        ; /* it has rung behind its answer, or answered before it was listened to */
                stand_finish(s, process, &answer);
        }
        sl_executor_free(process);
        stand_free(s);
}

/* The arena under @n further numbers, as if each were another client's. */
static void add_regions(struct stand *s, uint32_t *ret_regions, uint32_t n)
{
        int fd = memfd_create("starling-further", MFD_CLOEXEC);

        cr_assert_eq(ftruncate(fd, (off_t)s->arena.bytes), 0);
        cr_assert_eq(pwrite(fd, s->arena.base, s->arena.bytes, 0), (ssize_t)s->arena.bytes);
        for (uint32_t i = 0; i < n; i++) {
                int region = sl_regions_add(s->regions, s->arena.base, s->arena.bytes, fd);

                cr_assert_geq(region, 0);
                ret_regions[i] = (uint32_t)region;
        }
        close(fd);
}

/* One sample of each. */
static void give_regions(struct stand *s, struct sl_executor *process, const uint32_t *regions, uint32_t n)
{
        const uint32_t own = s->input.region;
        struct sl_job *job = sl_executor_job(process);

        cr_assert(job);
        for (uint32_t i = 0; i < n; i++) {
                int segment = sl_accumulator_open(s->accumulator, &s->work, i, 1);

                cr_assert_geq(segment, 0);
                s->input.region = regions[i];
                sl_accumulator_add_piece(s->accumulator, job, (uint32_t)segment, 0, 0, 1);
        }
        s->input.region = own;
        sl_executor_give(process, NULL);
}

/* A worker that computes hears of no regions, for as long as it takes. */
static void expect_patience(struct stand *s, struct sl_executor *process, const uint32_t *regions, const float *wanted)
{
        struct sl_prediction answer;
        struct sl_job *job;
        uint32_t n = 0;

        memset(s->outputs, 0, 16 * STAND_CLASSES * sizeof(float));
        cr_assert(freeze(stand_child()));
        give_regions(s, process, regions, 8);
        give_regions(s, process, regions + 8, 8);
        for (uint32_t i = 0; i < 100; i++) {
                cr_assert_not(sl_executor_poll(process, &job, &answer));
                usleep(1000);
        }
        cr_assert_eq(kill(stand_child(), SIGCONT), 0);
        for (; sl_executor_jobs(process); n++) {
                sl_executor_listen(process, true);
                if (!sl_executor_waiting(process))
                        cr_assert(stand_readable(process->wake_fd, 60000), "nobody has rung after %u answers", n);
                sl_executor_listen(process, false);
                (void)!read(process->wake_fd, &(uint64_t){0}, sizeof(uint64_t));
                while (sl_executor_poll(process, &job, &answer)) {
                        cr_assert_eq(answer.status, 0);
                        stand_finish(s, process, &answer);
                }
        }
        for (uint32_t i = 0; i < 8 * STAND_CLASSES; i++)
                cr_expect_float_eq(s->outputs[i], wanted[i], 1e-5f, "element %u", i);
}

Test(process, a_worker_that_hears_nothing_for_a_while_has_its_jobs_wait_and_nobody_else, .timeout = 60)
{
        struct stand *s = stand_new();
        struct sl_executor *process = start_process(s, 8);
        float *wanted = malloc(8 * STAND_CLASSES * sizeof(float));
        uint32_t regions[32];
        struct sl_prediction answer;

        /* The least that the kernel gives: a few packets. */
        cr_assert_eq(setsockopt(sl_process_executor_fd(process), SOL_SOCKET, SO_SNDBUF, &(int){1}, sizeof(int)), 0);
        add_regions(s, regions, 32);
        stand_give(s, process, 0, 8);
        cr_assert(stand_poll(s, process, &answer));
        memcpy(wanted, s->outputs, 8 * STAND_CLASSES * sizeof(float));
        expect_patience(s, process, regions, wanted);
        expect_patience(s, process, regions + 16, wanted);
        free(wanted);
        sl_executor_free(process);
        for (uint32_t i = 0; i < 32; i++)
                sl_regions_remove(s->regions, regions[i]);
        stand_free(s);
}

/* What it has answered before it is found out stands: nobody can tell it from the truth. */
static void expect_killed_for(const char *lie, uint32_t believed)
{
        struct stand *s = stand_new();
        struct sl_executor *process;
        struct sl_prediction answer;
        uint32_t lost = 0, n = 0;

        setenv("STARLING_LIE", lie, 1);
        process = stand_process(s, 8, LYING_WORKER);
        cr_assert_eq(stand_wait(s, process), SL_EXECUTOR_READY, "%s: %s", lie, s->error.text);
        stand_give_pieces(s, process, (uint32_t[]){0, 4, 6}, (uint32_t[]){4, 2, 1}, 3);
        while (sl_executor_started(process) == SL_EXECUTOR_READY || sl_executor_jobs(process)) {
                struct sl_error warning;
                struct sl_job *job;

                sl_process_executor_hear(process, &warning, &s->error);
                if (!sl_executor_poll(process, &job, &answer))
                        continue;
                lost += answer.lost == SL_LOST_COMPUTING;
                n++;
                stand_finish(s, process, &answer);
        }
        cr_expect_str_eq(s->error.text, "its process was killed by signal 9 (Killed)");
        cr_expect_eq(n, 3, "%s: %u answers", lie, n);
        cr_expect_eq(lost, 3 - believed, "%s: %u lost", lie, lost);
        sl_executor_free(process);
        stand_free(s);
}

Test(process, one_that_answers_what_cannot_be_is_killed, .timeout = 60)
{
        expect_killed_for("piece", 0);
        expect_killed_for("status", 0);
        expect_killed_for("twice", 1);
        expect_killed_for("count", 0);
        expect_killed_for("slot", 0);
        expect_killed_for("combined", 0);
}

Test(process, no_more_samples_are_accounted_for_than_it_was_given, .timeout = 60)
{
        struct stand *s = stand_new();
        struct sl_executor *process;
        uint64_t samples = 0, batches = 0;
        struct sl_prediction answer;

        setenv("STARLING_LIE", "figures", 1);
        process = stand_process(s, 8, LYING_WORKER);
        cr_assert_eq(stand_wait(s, process), SL_EXECUTOR_READY, "%s", s->error.text);
        stand_give_pieces(s, process, (uint32_t[]){0, 4, 6}, (uint32_t[]){4, 2, 1}, 3);
        for (uint32_t i = 0; i < 3; i++) {
                cr_assert(stand_poll(s, process, &answer));
                samples += answer.job_samples;
                batches += answer.batches;
                cr_expect_leq(answer.computing_ns, answer.busy_ns);
        }
        cr_expect_eq(samples, 7);
        cr_expect_leq(batches, 7);
        sl_executor_free(process);
        stand_free(s);
}

/* Of a GPU, whose process goes on: nothing has ended that could tell why. */
Test(process, one_that_refuses_a_worker_without_a_word_is_told_of, .timeout = 60)
{
        const struct sl_gpu_let let = sl_gpu_let_of(0, 100);
        struct stand *s = stand_new();
        struct sl_executor *process;

        s->gpu = &let;
        process = stand_process(s, 8, LYING_WORKER);
        cr_expect_eq(stand_wait(s, process), -ECHILD);
        cr_expect_str_eq(s->error.text, "its process refuses it, and does not say why");
        sl_executor_free(process);
        stand_free(s);
}

#define HANG_NS (80 * SL_NS_PER_MS)
#define STEP_NS (HANG_NS / 8)

/* Looks as control does, at times of the test's. Return: whether it was found to hang. */
static bool look_often(struct stand *s, struct sl_executor *process, uint64_t *now_ns, uint32_t looks)
{
        for (uint32_t i = 0; i < looks; i++)
                *now_ns = sl_process_executor_look(process, HANG_NS, *now_ns);
        return sl_process_executor_why(process)[0] && stand_wait(s, process) == -ECHILD;
}

Test(process, one_that_has_a_job_and_answers_nothing_is_killed, .timeout = 60)
{
        struct stand *s = stand_new();
        struct sl_executor *process = start_process(s, 8);
        uint64_t now_ns = 1;

        cr_assert(freeze(stand_child()));
        cr_expect_not(look_often(s, process, &now_ns, 20), "it has nothing to do");
        stand_give(s, process, 0, 1);
        cr_expect_not(look_often(s, process, &now_ns, 8));
        now_ns += 1000 * SL_NS_PER_SECOND;
        sl_process_executor_look(process, HANG_NS, now_ns);
        cr_expect_eq(sl_executor_started(process), SL_EXECUTOR_READY, "the machine has slept for a while, and nobody has looked");
        cr_expect(look_often(s, process, &now_ns, 2));
        cr_expect_str_eq(s->error.text, "its process was killed, as it answered nothing for 0.1 s (hang_ms)");
        sl_executor_free(process);
        stand_free(s);
}

Test(process, one_that_does_not_become_ready_is_killed, .timeout = 60)
{
        struct stand *s = stand_new();
        struct sl_executor *process;
        uint64_t now_ns = 1;

        setenv("STARLING_LIE", "silence", 1);
        process = stand_process(s, 8, LYING_WORKER);
        cr_expect_not(look_often(s, process, &now_ns, 80));
        cr_expect(look_often(s, process, &now_ns, 2));
        cr_expect_str_eq(s->error.text, "its process was killed, as it was not ready for 0.8 s (hang_ms)");
        sl_executor_free(process);
        stand_free(s);
}

Test(process, one_that_has_been_slow_before_has_more_time, .timeout = 60)
{
        struct stand *s = stand_new();
        struct sl_executor *process = start_process(s, 8);
        struct sl_prediction answer;
        uint64_t now_ns = 1;

        cr_assert(freeze(stand_child()));
        stand_give(s, process, 0, 1);
        usleep(100000);
        kill(stand_child(), SIGCONT);
        cr_assert(stand_poll(s, process, &answer));
        cr_assert(freeze(stand_child()));
        stand_give(s, process, 0, 1);
        cr_expect_not(look_often(s, process, &now_ns, 100), "it once took a tenth of that");
        for (uint32_t i = 0; i < 1000000 && !sl_process_executor_why(process)[0]; i++)
                now_ns = sl_process_executor_look(process, HANG_NS, now_ns);
        cr_expect_eq(stand_wait(s, process), -ECHILD);
        sl_executor_free(process);
        stand_free(s);
}

Test(process, one_that_cannot_start_says_why, .timeout = 60)
{
        struct stand *s = stand_new();
        struct sl_executor *process = stand_process(s, 8, "/bin/true");

        cr_expect_eq(stand_wait(s, process), -ECHILD);
        cr_expect_str_eq(s->error.text, "its process ended with status 0");
        sl_executor_free(process);
        stand_free(s);
}
