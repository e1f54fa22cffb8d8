/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A crowd of clients with short deadlines on two cores, in the default configuration. What the runtime advises, and what
 * libstarling makes of it, is read from the library's own record of a queue pair (client/src/queue.h). No figure here depends on
 * how fast it goes.
 */
#include "digits.h"
#include "queue.h"
#include "world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>

#define CLIENTS     20u
#define DEADLINE_NS 20000000ull
#define ANSWERS     20u /* that each client must get */
#define LOOK_US     2000u
#define LIMIT_NS    WORLD_PATIENCE_NS

struct member {
        struct starling_client *client;
        struct starling_model *model;
        struct starling_queue *queue;
        struct digits_job job;
        pthread_t thread;
        bool noops;
        _Atomic bool stop;
        _Atomic uint64_t waits, spins; /* copies of the queue pair's, which belong to the thread */
        _Atomic long slept;            /* how often a thread that polls has given its core away by itself */
        _Atomic uint64_t answered, refused;
        _Atomic int strange; /* a status that no client may get here */
};

/* Two cores for the test and all that it starts. */
static bool take_two_cores(void)
{
        cpu_set_t cores, two;

        CPU_ZERO(&two);
        if (sched_getaffinity(0, sizeof(cores), &cores) < 0)
                return false;
        for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&two) < 2; core++)
                if (CPU_ISSET(core, &cores))
                        CPU_SET(core, &two);
        return CPU_COUNT(&two) == 2 && sched_setaffinity(0, sizeof(two), &two) == 0;
}

/* A full queue is out of reach of so few requests: who is refused as busy is told how long it would wait. */
static bool has_cause(int status, const struct starling_completion *completion)
{
        return status == -ETIME || (status == -EBUSY && completion->queued_ns > 0);
}

static void note(struct member *member, int status, const struct starling_completion *completion)
{
        if (status == 0)
                atomic_fetch_add(&member->answered, 1);
        else if (has_cause(status, completion))
                atomic_fetch_add(&member->refused, 1);
        else
                atomic_store(&member->strange, status);
        atomic_store(&member->waits, member->queue->n_waits);
        atomic_store(&member->spins, member->queue->n_spins);
}

static void *infer_again_and_again(void *context)
{
        struct member *member = context;
        struct starling_request request = {.flags = STARLING_NOOP};
        struct starling_completion completion;
        uint32_t seed = 1;

        while (!atomic_load(&member->stop)) {
                if (!member->noops) {
                        request = digits_fill(&member->job, member->model, &seed);
                        request.deadline_ns = starling_clock_ns() + DEADLINE_NS;
                }
                note(member, starling_infer(member->queue, &request, &completion), &completion);
                if (starling_queue_in_flight(member->queue))
                        atomic_store(&member->strange, -EPROTO);
        }
        return NULL;
}

static long sleeps_of_this_thread(void)
{
        struct rusage usage;

        return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : 0;
}

/* As those do who do not care for advice. */
static void *poll_again_and_again(void *context)
{
        struct member *member = context;
        struct starling_completion completion;
        uint32_t seed = 1;

        while (!atomic_load(&member->stop)) {
                struct starling_request request = digits_fill(&member->job, member->model, &seed);
                int n = starling_submit(member->queue, &request, NULL);
                long before = sleeps_of_this_thread();

                while (n == 0)
                        n = starling_poll(member->queue, &completion, 1);
                atomic_fetch_add(&member->slept, sleeps_of_this_thread() - before);
                note(member, n < 0 ? n : completion.status, &completion);
        }
        return NULL;
}

static void join(struct member *member, const struct world *world, const struct digits_data *data)
{
        *member = (struct member){.client = world_connect(world, STARLING_ROLE_CLIENT)};
        cr_assert_eq(starling_model_open(member->client, "lenet", &member->model, NULL), 0);
        cr_assert_eq(starling_queue_open(member->client, &member->queue, NULL), 0);
        cr_assert_eq(digits_job_alloc(&member->job, data, member->client), 0);
}

static void start_with(struct member *member, void *(*run)(void *context))
{
        atomic_store(&member->stop, false);
        cr_assert_eq(pthread_create(&member->thread, NULL, run, member), 0);
}

static void start(struct member *member)
{
        start_with(member, infer_again_and_again);
}

static void stop(struct member *member)
{
        atomic_store(&member->stop, true);
        pthread_join(member->thread, NULL);
}

static uint32_t word(const _Atomic uint32_t *word)
{
        return atomic_load_explicit(word, memory_order_relaxed);
}

static void expect_advice(const struct sl_dispatcher_line *line, bool not_to_spin)
{
        uint64_t until_ns = starling_clock_ns() + LIMIT_NS;

        while (sl_cores_crowded(line) != not_to_spin) {
                cr_assert_lt(
                        starling_clock_ns(), until_ns, "advice: %u threads want %u cores", word(&line->wanted), word(&line->cores));
                world_pause_us(LOOK_US);
        }
}

static void expect_answers(const struct member *member, uint64_t n)
{
        uint64_t until_ns = starling_clock_ns() + LIMIT_NS, before = atomic_load(&member->answered);

        while (atomic_load(&member->answered) < before + n) {
                cr_assert_lt(starling_clock_ns(), until_ns, "a client starves: %llu answers, %llu refusals",
                        (unsigned long long)atomic_load(&member->answered), (unsigned long long)atomic_load(&member->refused));
                world_pause_us(LOOK_US);
        }
}

/* The dispatcher counts now and then who waits: a crowd that the system does not let run may look small for a moment. */
static void expect_sleepers(const struct member *members)
{
        uint64_t waits = 0, spins = 0;

        for (uint32_t i = 0; i < CLIENTS; i++) {
                waits -= atomic_load(&members[i].waits);
                spins -= atomic_load(&members[i].spins);
        }
        for (uint32_t i = 0; i < CLIENTS; i++)
                expect_answers(&members[i], ANSWERS);
        for (uint32_t i = 0; i < CLIENTS; i++) {
                waits += atomic_load(&members[i].waits);
                spins += atomic_load(&members[i].spins);
        }
        cr_expect_gt(waits, 0);
        cr_expect_lt(spins, waits / 4, "%llu of %llu waits spun", (unsigned long long)spins, (unsigned long long)waits);
}

/* Unless somebody else takes the dispatcher's core, which is advice too. */
static void expect_spinning(const struct member *member, const struct sl_dispatcher_line *line)
{
        uint64_t until_ns = starling_clock_ns() + LIMIT_NS, before = atomic_load(&member->spins);

        while (atomic_load(&member->spins) == before) {
                if (starling_clock_ns() > until_ns && word(&line->late_ns) > 0) {
                        printf("the dispatcher waits %u ns for a core: nobody is to spin\n", word(&line->late_ns));
                        return;
                }
                cr_assert_lt(starling_clock_ns(), until_ns + LIMIT_NS, "a client that is alone does not spin");
                world_pause_us(LOOK_US);
        }
}

Test(overload, clients_of_a_crowd_sleep_and_each_gets_answers_and_who_is_alone_spins, .timeout = 60)
{
        static struct member members[CLIENTS];
        struct digits_data data;
        struct world world;

        if (!take_two_cores())
                cr_skip_test("it needs two CPUs");
        cr_assert(digits_read(&data, "lenet"));
        world_init(&world);
        world_keep(&world, "lenet");
        world_start(&world);
        for (uint32_t i = 0; i < CLIENTS; i++)
                join(&members[i], &world, &data);
        const struct sl_dispatcher_line *line = members[0].queue->dispatcher;

        for (uint32_t i = 0; i < CLIENTS; i++)
                start(&members[i]);
        expect_advice(line, true);
        cr_expect_eq(word(&line->cores), 2);
        expect_sleepers(members);
        for (uint32_t i = 0; i < CLIENTS; i++)
                stop(&members[i]);

        members[0].noops = true;
        start(&members[0]);
        expect_advice(line, false);
        expect_spinning(&members[0], line);
        stop(&members[0]);
        for (uint32_t i = 0; i < CLIENTS; i++) {
                cr_expect_eq(atomic_load(&members[i].strange), 0, "client %u: %s", i,
                        starling_strerror(atomic_load(&members[i].strange)));
                starling_close(members[i].client);
        }
        digits_release(&data);
        world_stop(&world);
        world_free(&world);
}

/* Nobody can keep a process from computing on a core of its own; but the library does not help it to take the runtime's. */
Test(overload, clients_that_poll_in_a_row_give_their_cores_away_and_each_gets_answers, .timeout = 60)
{
        static struct member members[CLIENTS];
        struct digits_data data;
        struct world world;

        if (!take_two_cores())
                cr_skip_test("it needs two CPUs");
        cr_assert(digits_read(&data, "lenet"));
        world_init(&world);
        world_keep(&world, "lenet");
        world_start(&world);
        for (uint32_t i = 0; i < CLIENTS; i++)
                join(&members[i], &world, &data);
        for (uint32_t i = 0; i < CLIENTS; i++)
                start_with(&members[i], poll_again_and_again);
        expect_advice(members[0].queue->dispatcher, true);
        for (uint32_t i = 0; i < CLIENTS; i++) {
                uint64_t until_ns = starling_clock_ns() + LIMIT_NS;

                expect_answers(&members[i], ANSWERS);
                while (atomic_load(&members[i].slept) < (long)ANSWERS) {
                        cr_assert_lt(starling_clock_ns(), until_ns, "client %u spins on", i);
                        world_pause_us(LOOK_US);
                }
        }
        for (uint32_t i = 0; i < CLIENTS; i++)
                stop(&members[i]);
        for (uint32_t i = 0; i < CLIENTS; i++) {
                cr_expect_eq(atomic_load(&members[i].strange), 0, "client %u: %s", i,
                        starling_strerror(atomic_load(&members[i].strange)));
                starling_close(members[i].client);
        }
        digits_release(&data);
        world_stop(&world);
        world_free(&world);
}
