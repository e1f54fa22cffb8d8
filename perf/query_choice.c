/* SPDX-License-Identifier: Apache-2.0 */
#include "query_choice.h"

#include "base/clock.h"
#include "bench.h"
#include "choice.h"
#include "random.h"
#include "task_page.h"
#include "task_view.h"
#include "ticks.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TASK          "task"
#define REWRITE_NS    SL_NS_PER_MS
#define BRUTE_EVERY   64u
#define LOOK_EVERY    1024u
#define CHEAP         1.1 /* as the rule says (choice.h) */
#define SERVICE_UNITS 400u

/* The page, and what its writer has for it. */
struct stage {
        struct sl_task_page *page;
        uint32_t n, seed;
        atomic_bool stop;
        _Atomic uint64_t rewritten;
        struct sl_task_head task;
        struct sl_variant_row rows[SL_TASK_VARIANTS_MAX];
        char texts[16 * (SL_TASK_VARIANTS_MAX + 2)];
        struct sl_task_content content;
};

/* ---- the page ---- */

static uint32_t add_text(struct stage *s, const char *text)
{
        uint32_t at = s->content.texts_bytes;

        s->content.texts_bytes += (uint32_t)snprintf(s->texts + at, sizeof(s->texts) - at, "%s", text) + 1;
        return at;
}

/* In no order: the place of each among them is drawn. What costs more is more accurate. */
static void set_up(struct stage *s, uint32_t n, uint32_t seed)
{
        struct sl_random random;

        s->n = n;
        s->seed = seed;
        s->content = (struct sl_task_content){
                .tasks = &s->task, .rows = s->rows, .texts = s->texts, .n_tasks = 1, .n_rows = n, .texts_bytes = 1};
        s->task = (struct sl_task_head){.name = add_text(s, TASK), .n = n, .has_costs = 1, .signature = 1};
        sl_random_seed(&random, seed, 2);
        for (uint32_t i = 0; i < n; i++) {
                double place = sl_random_uniform(&random);
                char name[16];

                snprintf(name, sizeof(name), "v%u", i);
                s->rows[i] = (struct sl_variant_row){.state = SL_VARIANT_SERVES,
                        .index = i,
                        .generation = 1,
                        .samples_max = 1024,
                        .name = add_text(s, name),
                        .accuracy = 0.5 + 0.4 * place,
                        .cost = 1 + 10 * place};
                for (uint32_t k = 0; k < SL_VARIANT_SIZES; k++)
                        atomic_store_explicit(&s->page->lines[i].jobs[k], SERVICE_UNITS << k, memory_order_relaxed);
        }
}

/* Waits of now, and the rows once more as a whole. */
static void rewrite(struct stage *s, struct sl_random *random)
{
        for (uint32_t i = 0; i < s->n; i++)
                atomic_store_explicit(
                        &s->page->lines[i].word, sl_variant_word(false, sl_random_next(random) % 200000), memory_order_relaxed);
        s->rows[0].load_ns++;
        sl_task_page_write(s->page, &s->content);
        atomic_fetch_add_explicit(&s->rewritten, 1, memory_order_relaxed);
}

static void *rewrite_main(void *argument)
{
        const struct timespec pause = {.tv_nsec = (long)REWRITE_NS};
        struct stage *s = argument;
        struct sl_random random;

        sl_random_seed(&random, s->seed, 1);
        while (!atomic_load_explicit(&s->stop, memory_order_relaxed)) { /* it hands nothing over */
                rewrite(s, &random);
                clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
        }
        return NULL;
}

/* ---- the same by comparing each with each ---- */

static bool suits(const struct sl_needs *needs, const struct sl_candidate *c)
{
        return c->state == SL_CANDIDATE_SERVES && c->accuracy >= needs->accuracy && c->service_ns &&
               c->wait_ns + c->service_ns <= needs->latency_ns;
}

/* Is @a a better answer than @b? Both suit. @least: the cheapest costs that. */
static bool beats(const struct sl_candidate *a, const struct sl_candidate *b, double least)
{
        bool a_cheap = a->cost <= least * CHEAP, b_cheap = b->cost <= least * CHEAP;

        return a_cheap != b_cheap ? a_cheap : a_cheap && a->wait_ns / a->service_ns < b->wait_ns / b->service_ns;
}

/* Return: whether @number is one that no other beats. */
static bool is_best(const struct sl_needs *needs, const struct sl_candidate *candidates, uint32_t n, uint32_t number)
{
        bool found = false;

        for (uint32_t i = 0; i < n; i++) {
                double least = candidates[i].cost;
                bool beaten = !suits(needs, &candidates[i]);

                for (uint32_t k = 0; k < n && !beaten; k++)
                        if (suits(needs, &candidates[k]) && candidates[k].cost < least)
                                least = candidates[k].cost;
                for (uint32_t k = 0; k < n && !beaten; k++)
                        beaten = suits(needs, &candidates[k]) && beats(&candidates[k], &candidates[i], least);
                found |= !beaten && i == number;
        }
        return found;
}

/* ---- the client ---- */

struct client {
        const struct stage *stage;
        struct sl_needs needs;
        struct sl_task_copy *copy;
        struct sl_candidate *candidates;
};

static int renew(struct client *c)
{
        struct sl_task_copy *copy;
        struct sl_candidate *candidates;
        int r = sl_task_page_copy(c->stage->page, TASK, 0, &copy);

        if (r < 0)
                return r == -EAGAIN && c->copy ? 0 : r; /* the next one looks again */
        candidates = calloc(copy->task.n + 1u, sizeof(*candidates));
        if (!candidates) {
                free(copy);
                return -ENOMEM;
        }
        free(c->copy);
        free(c->candidates);
        c->copy = copy;
        c->candidates = candidates;
        return 0;
}

static int choose(struct client *c, uint64_t turn, double scale, struct sl_query_choice *result)
{
        uint64_t begun = sl_ticks(), ended;
        bool is_old = !c->copy || sl_task_copy_is_old(c->copy, c->stage->page);
        int r = is_old ? renew(c) : 0;
        struct sl_choice choice;

        if (r < 0)
                return r;
        sl_task_candidates(c->stage->page, c->copy, 1, c->candidates);
        if (!sl_choose(SL_CHOICE_starling, &c->needs, c->candidates, c->copy->task.n, turn, &choice))
                result->wrong++;
        ended = sl_ticks();
        sl_histogram_record(&result->choices, (uint64_t)((double)(ended - begun) * scale));
        if (is_old)
                sl_histogram_record(&result->renewals, (uint64_t)((double)(ended - begun) * scale));
        if (turn % BRUTE_EVERY)
                return 0;
        begun = sl_ticks();
        result->wrong += !is_best(&c->needs, c->candidates, c->copy->task.n, choice.number);
        sl_histogram_record(&result->brute, (uint64_t)((double)(sl_ticks() - begun) * scale));
        return 0;
}

static int run_client(struct stage *stage, uint64_t for_ns, struct sl_query_choice *result)
{
        struct client client = {.stage = stage, .needs = {.accuracy = 0.5, .latency_ns = SL_NS_PER_SECOND}};
        uint64_t until_ns = sl_clock_ns() + for_ns;
        double scale = sl_ticks_scale();
        int r = 0;

        for (uint64_t turn = 0; r == 0; turn++) {
                if (turn % LOOK_EVERY == 0 && turn && (sl_clock_ns() >= until_ns || sl_bench_interrupted()))
                        break;
                r = choose(&client, turn, scale, result);
        }
        free(client.copy);
        free(client.candidates);
        return r < 0 ? r : sl_bench_interrupted() ? -EINTR : 0;
}

int sl_query_choice_run(uint32_t variants, uint64_t for_ns, uint32_t seed, struct sl_query_choice *ret_choice)
{
        struct stage *stage = calloc(1, sizeof(*stage));
        struct sl_random random;
        pthread_t thread;
        int r = -ENOMEM;

        memset(ret_choice, 0, sizeof(*ret_choice));
        ret_choice->variants = variants;
        if (stage)
                stage->page = aligned_alloc(128, sl_align_up(sizeof(*stage->page), 128));
        if (stage && stage->page) {
                memset(stage->page, 0, sizeof(*stage->page));
                set_up(stage, variants, seed);
                sl_random_seed(&random, seed, 0);
                rewrite(stage, &random);
                r = -pthread_create(&thread, NULL, rewrite_main, stage);
        }
        if (r == 0) {
                r = run_client(stage, for_ns, ret_choice);
                atomic_store_explicit(&stage->stop, true, memory_order_relaxed);
                pthread_join(thread, NULL);
                ret_choice->rewritten = atomic_load_explicit(&stage->rewritten, memory_order_relaxed); /* the thread has ended */
        }
        if (stage)
                free(stage->page);
        free(stage);
        return r;
}
