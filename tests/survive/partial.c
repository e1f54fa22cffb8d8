/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ensembles that answer by a part of their members, while these die: each request completes once, and what it says is made of the
 * predictions of the members that its completion names.
 */
#include "base/clock.h"
#include "digits.h"
#include "world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define MEMBERS 5u
#define JOBS    12u
#define BACK_NS (120 * SL_NS_PER_SECOND)

static const char *const names[MEMBERS] = {"mlp", "lenet", "mobilenet", "resnet", "densenet"};
static struct digits_data data[MEMBERS];
static struct world world;

struct guest {
        struct starling_client *client;
        struct starling_queue *queue;
        struct starling_model *model;
        struct digits_job jobs[JOBS];
        bool flying[JOBS];
        uint32_t n_flying, seed;
        uint64_t done, failed, partly;
        bool (*right)(const struct digits_job *job, uint32_t sample, const struct starling_members *members);
};

static void set_up(void)
{
        world_init(&world);
        for (uint32_t m = 0; m < MEMBERS; m++)
                cr_assert(digits_read(&data[m], names[m]));
}

static void tear_down(void)
{
        for (uint32_t m = 0; m < MEMBERS; m++)
                digits_release(&data[m]);
        world_free(&world);
}

TestSuite(partial, .init = set_up, .fini = tear_down, .timeout = 180);

static const float *row_of(uint32_t member, uint32_t sample)
{
        return data[member].expected + (size_t)sample * DIGITS_OUT;
}

static bool is_mean(const float *got, uint32_t sample, uint64_t members)
{
        for (uint32_t c = 0; c < DIGITS_OUT; c++) {
                double sum = 0;

                for (uint32_t m = 0; m < MEMBERS; m++)
                        sum += members >> m & 1 ? (double)row_of(m, sample)[c] : 0;
                if (!(fabs((double)got[c] - sum / __builtin_popcountll(members)) <= 1e-5))
                        return false;
        }
        return true;
}

/* Of two or more members: at least those of every sample, and no others than those of any. */
static bool is_of_a_quorum(const struct digits_job *job, uint32_t sample, const struct starling_members *members)
{
        const float *got = (const float *)job->output.data + (size_t)sample * DIGITS_OUT;

        for (uint64_t set = 1; set < 1u << MEMBERS; set++)
                if ((set & members->all) == members->all && (set & ~members->any) == 0 && __builtin_popcountll(set) >= 2 &&
                        is_mean(got, job->start + sample, set))
                        return true;
        return false;
}

static uint32_t vote_of(uint32_t member, uint32_t sample)
{
        const float *row = row_of(member, sample);
        uint32_t best = 0;

        for (uint32_t c = 1; c < DIGITS_OUT; c++)
                best = row[c] > row[best] ? c : best;
        return best;
}

/* Of as many as it takes for two to agree; all, where none do. */
static uint32_t asked_of(uint32_t sample)
{
        for (uint32_t asked = 2; asked < MEMBERS; asked++)
                for (uint32_t m = 0; m + 1 < asked; m++)
                        if (vote_of(m, sample) == vote_of(asked - 1, sample))
                                return asked;
        return MEMBERS;
}

static bool is_of_those_that_agree(const struct digits_job *job, uint32_t sample, const struct starling_members *members)
{
        uint64_t asked = (1u << asked_of(job->start + sample)) - 1;

        return (asked & members->all) == members->all && (asked & ~members->any) == 0 &&
               is_mean((const float *)job->output.data + (size_t)sample * DIGITS_OUT, job->start + sample, asked);
}

static void guest_enter(struct guest *guest, const char *model)
{
        guest->client = world_connect(&world, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_queue_open(guest->client, &guest->queue, NULL), 0);
        cr_assert_eq(starling_model_open(guest->client, model, &guest->model, NULL), 0, "%s", world_log(&world));
        for (uint32_t i = 0; i < JOBS; i++)
                cr_assert_eq(digits_job_alloc(&guest->jobs[i], &data[0], guest->client), 0);
}

static void guest_take(struct guest *guest, const struct starling_completion *completion)
{
        const struct digits_job *job = &guest->jobs[completion->user_data];
        struct starling_members members;

        cr_assert(guest->flying[completion->user_data], "request %llu completed twice", (unsigned long long)completion->user_data);
        guest->flying[completion->user_data] = false;
        guest->n_flying--;
        if (completion->status < 0) {
                cr_assert_eq(completion->status, -EIO, "%s", starling_strerror(completion->status));
                cr_expect_eq(starling_completion_members(guest->queue, completion, &members), -ENODATA);
                guest->failed++;
                return;
        }
        cr_assert_eq(starling_completion_members(guest->queue, completion, &members), 0);
        for (uint32_t i = 0; i < job->samples; i++)
                cr_assert(guest->right(job, i, &members), "sample %u of %u from %u: members %llx, %llx of all", i, job->samples,
                        job->start, (unsigned long long)members.any, (unsigned long long)members.all);
        guest->done++;
        guest->partly += members.all != (1u << MEMBERS) - 1;
}

/* At least @requests, and until one was answered by some members only: a member that is killed may have nothing in hand. */
static void guest_fly(struct guest *guest, uint32_t requests, void (*disturb)(uint32_t round))
{
        struct starling_completion completions[JOBS];
        uint64_t end_ns = sl_clock_ns() + BACK_NS;

        for (uint32_t sent = 0, round = 0; sent < requests || !guest->partly || guest->n_flying; round++) {
                int n;

                for (uint32_t i = 0; i < JOBS && (sent < requests || !guest->partly); i++) {
                        struct starling_request request;

                        if (guest->flying[i])
                                continue;
                        request = digits_fill(&guest->jobs[i], guest->model, &guest->seed);
                        request.user_data = i;
                        cr_assert_eq(starling_submit(guest->queue, &request, NULL), 0, "%s", starling_queue_error(guest->queue));
                        guest->flying[i] = true;
                        guest->n_flying++;
                        sent++;
                }
                if (disturb)
                        disturb(round);
                n = starling_wait(guest->queue, completions, JOBS, SL_NS_PER_SECOND);
                for (int i = 0; i < n; i++)
                        guest_take(guest, &completions[i]);
                cr_assert_lt(sl_clock_ns(), end_ns, "%u requests have no completion, %llu were answered in part:\n%s",
                        guest->n_flying, (unsigned long long)guest->partly, world_log(&world));
        }
}

static void kill_one(uint32_t round)
{
        static uint32_t seed = 11;
        struct world_child workers[16];
        uint32_t n = round % 8 == 7 ? world_find_children(&world, "worker", workers, 16) : 0;

        if (n)
                kill(workers[digits_random(&seed, n)].pid, SIGKILL);
}

static void add_members(const char *of, const char *options, const char *lines)
{
        char yaml[512], name[32];

        for (uint32_t m = 0; m < MEMBERS; m++) {
                snprintf(name, sizeof(name), "%s-%s", of, names[m]);
                world_copy_model(&world, names[m], name, options);
        }
        snprintf(yaml, sizeof(yaml), "ensemble:\n  members: [%s-%s, %s-%s, %s-%s, %s-%s, %s-%s]\n  %s\n", of, names[0], of,
                names[1], of, names[2], of, names[3], of, names[4], lines);
        world_add_model_config(&world, of, yaml);
}

Test(partial, a_quorum_answers_while_processes_of_members_die)
{
        struct guest guest = {.seed = 3, .right = is_of_a_quorum};

        add_members("quorum", "isolation: process\ninstances: 2\n", "quorum: 2");
        world_start(&world);
        guest_enter(&guest, "quorum");
        guest_fly(&guest, WORLD_SLOW ? 60 : 300, kill_one);
        cr_expect_gt(guest.done, guest.failed, "%llu done, %llu failed", (unsigned long long)guest.done,
                (unsigned long long)guest.failed);
        starling_close(guest.client);
        world_stop(&world);
}

Test(partial, members_are_asked_until_two_agree_while_their_processes_die)
{
        struct guest guest = {.seed = 5, .right = is_of_those_that_agree};

        add_members("cascade", "isolation: process\ninstances: 2\non_crash: rerun\n", "until: {agree: 2}");
        world_start(&world);
        guest_enter(&guest, "cascade");
        guest_fly(&guest, WORLD_SLOW ? 60 : 300, kill_one);
        cr_expect_gt(guest.done, guest.failed);
        starling_close(guest.client);
        world_stop(&world);
}

/* In threads, and in the dispatcher itself: the default. */
Test(partial, members_are_asked_until_two_agree)
{
        struct guest guest = {.seed = 9, .right = is_of_those_that_agree};

        world_add_model_config(
                &world, "cascade", "ensemble:\n  members: [mlp, lenet, mobilenet, resnet, densenet]\n  until: {agree: 2}\n");
        world_start(&world);
        guest_enter(&guest, "cascade");
        guest_fly(&guest, WORLD_SLOW ? 100 : 400, NULL);
        cr_expect_eq(guest.failed, 0);
        starling_close(guest.client);
        world_stop(&world);
}
