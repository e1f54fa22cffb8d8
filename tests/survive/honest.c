/* SPDX-License-Identifier: Apache-2.0 */
#include "honest.h"

#include "digits.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLYING 6u

/* Between answers, unless a test waits for them: who asked without a pause would have a core for all that a test does beside it. */
#define PAUSE_US (WORLD_SLOW ? 10000 : 1000)

struct honest {
        struct starling_client *client;
        struct starling_queue *queue;
        struct starling_model *model;
        struct digits_data data;
        struct digits_job jobs[FLYING];
        bool flying[FLYING];
        uint64_t ids[FLYING];
        pthread_t thread;
        atomic_bool stop, failed;
        _Atomic uint64_t done, wanted;
        char text[512];
};

__attribute__((format(printf, 2, 3))) static bool wrong(struct honest *honest, const char *format, ...)
{
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(honest->text, sizeof(honest->text), format, arguments);
        va_end(arguments);
        atomic_store(&honest->failed, true);
        return false;
}

static bool submit(struct honest *honest, uint32_t job, uint32_t *seed)
{
        struct starling_request request = digits_fill(&honest->jobs[job], honest->model, seed);

        request.user_data = job;
        int r = starling_submit(honest->queue, &request, &honest->ids[job]);
        if (r < 0)
                return wrong(honest, "submit: %s: %s", starling_strerror(r), starling_queue_error(honest->queue));
        honest->flying[job] = true;
        return true;
}

static bool check(struct honest *honest, const struct starling_completion *completion)
{
        uint64_t job = completion->user_data;
        char text[256];

        if (job >= FLYING || !honest->flying[job] || completion->id != honest->ids[job])
                return wrong(honest, "a completion of what does not fly: user data %llu", (unsigned long long)job);
        honest->flying[job] = false;
        if (completion->status < 0)
                return wrong(honest, "status: %s", starling_strerror(completion->status));
        if (!digits_right(&honest->jobs[job], &honest->data, text, sizeof(text)))
                return wrong(honest, "%s", text);
        atomic_fetch_add(&honest->done, 1);
        return true;
}

static bool reap(struct honest *honest, uint32_t *ret_n)
{
        struct starling_completion completions[FLYING];
        int n = starling_wait(honest->queue, completions, FLYING, 60000000000ull);

        if (n == -EINTR)
                n = 0;
        if (n < 0)
                return wrong(honest, "wait: %s", starling_strerror(n));
        for (int i = 0; i < n; i++)
                if (!check(honest, &completions[i]))
                        return false;
        *ret_n = (uint32_t)n;
        return true;
}

static void *work(void *argument)
{
        struct honest *honest = argument;
        uint32_t seed = 1, flying = 0, n = 0;
        bool good = true;

        while (good && !atomic_load(&honest->stop)) {
                for (uint32_t job = 0; job < FLYING && good; job++)
                        if (!honest->flying[job]) {
                                good = submit(honest, job, &seed);
                                flying++;
                        }
                good = good && reap(honest, &n);
                flying -= n;
                if (honest_done(honest) >= atomic_load(&honest->wanted) && !atomic_load(&honest->stop))
                        world_pause_us(PAUSE_US);
        }
        while (good && flying) {
                good = reap(honest, &n);
                flying -= n;
        }
        return NULL;
}

struct honest *honest_start(const struct world *world, const char *model)
{
        return honest_start_copy(world, model, model);
}

struct honest *honest_start_copy(const struct world *world, const char *model, const char *of)
{
        struct honest *honest = calloc(1, sizeof(*honest));

        honest->client = world_connect(world, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_queue_open(honest->client, &honest->queue, NULL), 0);
        cr_assert_eq(starling_model_open(honest->client, model, &honest->model, NULL), 0);
        cr_assert(digits_read(&honest->data, of));
        for (uint32_t i = 0; i < FLYING; i++)
                cr_assert_eq(digits_job_alloc(&honest->jobs[i], &honest->data, honest->client), 0);
        pthread_create(&honest->thread, NULL, work, honest);
        return honest;
}

uint64_t honest_done(const struct honest *honest)
{
        return atomic_load(&honest->done);
}

void honest_expect_progress(struct honest *honest, uint64_t n)
{
        uint64_t until;

        if (WORLD_SLOW && n > FLYING) /* what was under way, and one that came after it */
                n = FLYING + 1;
        until = honest_done(honest) + n;
        atomic_store(&honest->wanted, until);
        WORLD_AWAIT(honest_done(honest) >= until || atomic_load(&honest->failed));
        cr_assert(!atomic_load(&honest->failed), "%s", honest->text);
        cr_assert_geq(honest_done(honest), until, "the honest client stands still");
}

void honest_stop(struct honest *honest)
{
        atomic_store(&honest->stop, true);
        pthread_join(honest->thread, NULL);
        cr_assert(!atomic_load(&honest->failed), "after %llu requests: %s", (unsigned long long)honest_done(honest), honest->text);
        cr_assert_gt(honest_done(honest), 0);
        starling_close(honest->client);
        digits_release(&honest->data);
        free(honest);
}
