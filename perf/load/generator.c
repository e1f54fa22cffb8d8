/* SPDX-License-Identifier: Apache-2.0 */
#include "generator.h"

#include <errno.h>
#include <stdlib.h>

#define REAP           64u
#define ANSWER_WAIT_NS 60000000000ull

struct generator {
        const struct sl_generator_options *options;
        const struct sl_load_target *target;
        struct sl_tally *tally;
        struct sl_schedule schedule;
        struct sl_load_request next; /* the one that is due next */
        bool next_blocked;
        uint64_t begun; /* requests that were due */
        struct sl_tally_entry *places;
        uint32_t *free_places, n_free;
};

static uint64_t clock_of(const struct generator *generator)
{
        return generator->target->now_ns(generator->target->of);
}

static uint32_t in_flight(const struct generator *generator)
{
        return generator->options->in_flight - generator->n_free;
}

/* A closed loop says itself when it is due. */
static void prepare_next(struct generator *generator)
{
        sl_schedule_next(&generator->schedule, &generator->next);
        generator->next.due_ns = generator->options->closed ? 0 : generator->options->start_ns + generator->next.due_ns;
        generator->next_blocked = false;
}

static bool has_next(const struct generator *generator)
{
        return (!generator->options->requests || generator->begun < generator->options->requests) &&
               generator->next.due_ns < generator->options->until_ns;
}

static void take_answer(struct generator *generator, const struct sl_load_answer *answer, uint64_t now_ns)
{
        struct sl_tally_entry *entry = &generator->places[answer->place];

        entry->answered_ns = now_ns;
        entry->status = answer->status;
        entry->queued_ns = answer->queued_ns;
        entry->batched_ns = answer->batched_ns;
        entry->computing_ns = answer->computing_ns;
        entry->combining_ns = answer->combining_ns;
        sl_tally_answer(generator->tally, entry);
        generator->free_places[generator->n_free++] = answer->place;
}

/* Return: answers taken; -errno. */
static int reap(struct generator *generator, uint64_t until_ns)
{
        struct sl_load_answer answers[REAP];
        int n = generator->target->reap(generator->target->of, answers, REAP, until_ns);
        uint64_t now_ns = n > 0 ? clock_of(generator) : 0;

        for (int i = 0; i < n; i++)
                take_answer(generator, &answers[i], now_ns);
        return n;
}

/* Return: 1 it was sent, or failed and is counted; 0 there was no place; -errno the loop ends. */
static int send_next(struct generator *generator)
{
        uint32_t place = generator->free_places[generator->n_free - 1];
        struct sl_tally_entry *entry = &generator->places[place];
        const struct sl_load_request *request = &generator->next;

        *entry = (struct sl_tally_entry){.due_ns = request->due_ns,
                .sent_ns = clock_of(generator),
                .model = request->model,
                .samples = request->samples,
                .blocked = generator->next_blocked};
        int r = generator->target->submit(generator->target->of, request, place);
        if (r == -EAGAIN || r == -EPIPE)
                return r == -EAGAIN ? 0 : r;
        sl_tally_due(generator->tally, request->model, request->due_ns);
        generator->begun++;
        if (r == 0)
                generator->n_free--;
        else {
                entry->status = r;
                entry->answered_ns = entry->sent_ns;
                sl_tally_answer(generator->tally, entry);
        }
        prepare_next(generator);
        return 1;
}

/* What is due now finds no place: it goes when there is one. */
static int await_place(struct generator *generator)
{
        generator->next_blocked = true;
        return reap(generator, generator->options->give_up_ns);
}

static int open_step(struct generator *generator, uint64_t now_ns)
{
        int r = 0;

        if (now_ns < generator->next.due_ns)
                return reap(generator, generator->next.due_ns);
        if (generator->n_free)
                r = send_next(generator);
        return r == 0 ? await_place(generator) : r;
}

static int closed_step(struct generator *generator)
{
        int r = 1;

        while (r == 1 && generator->n_free && has_next(generator)) {
                generator->next.due_ns = clock_of(generator);
                r = generator->next.due_ns < generator->options->until_ns ? send_next(generator) : 0;
        }
        return r < 0 ? r : reap(generator, generator->options->until_ns);
}

static int put_load(struct generator *generator)
{
        const struct sl_generator_options *options = generator->options;
        uint64_t now_ns;
        int r = 0;

        while (r >= 0 && has_next(generator) && (now_ns = clock_of(generator)) < options->give_up_ns) {
                if (generator->target->is_interrupted(generator->target->of))
                        return -EINTR;
                if (options->closed && now_ns >= options->until_ns)
                        break;
                if (now_ns < options->start_ns)
                        r = reap(generator, options->start_ns);
                else
                        r = options->closed ? closed_step(generator) : open_step(generator, now_ns);
        }
        return r < 0 ? r : 0;
}

/* What was due, and is given up. */
static void count_unsent(struct generator *generator)
{
        const struct sl_load_target *target = generator->target;

        for (; !generator->options->closed && has_next(generator) && !target->is_interrupted(target->of); prepare_next(generator)) {
                sl_tally_due(generator->tally, generator->next.model, generator->next.due_ns);
                sl_tally_unsent(generator->tally, generator->next.due_ns);
                generator->begun++;
        }
}

static int await_answers(struct generator *generator)
{
        uint64_t last_ns = clock_of(generator);
        int r = 0;

        while (r >= 0 && in_flight(generator)) {
                r = reap(generator, last_ns + ANSWER_WAIT_NS);
                if (r > 0)
                        last_ns = clock_of(generator);
                else if (r == 0 && clock_of(generator) >= last_ns + ANSWER_WAIT_NS)
                        return -ETIMEDOUT;
        }
        return r < 0 ? r : 0;
}

int sl_generator_run(const struct sl_generator_options *options, const struct sl_load_target *target, struct sl_tally *tally)
{
        struct generator generator = {.options = options, .target = target, .tally = tally};
        int r = -ENOMEM;

        generator.places = calloc(options->in_flight, sizeof(*generator.places));
        generator.free_places = calloc(options->in_flight, sizeof(*generator.free_places));
        if (generator.places && generator.free_places) {
                for (; generator.n_free < options->in_flight; generator.n_free++)
                        generator.free_places[generator.n_free] = options->in_flight - 1 - generator.n_free;
                sl_schedule_init(&generator.schedule, &options->schedule);
                prepare_next(&generator);
                r = put_load(&generator);
                if (r == 0)
                        count_unsent(&generator);
                int ended = await_answers(&generator);
                r = r < 0 ? r : ended;
        }
        free(generator.places);
        free(generator.free_places);
        return r;
}
