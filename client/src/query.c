/* SPDX-License-Identifier: Apache-2.0 */
#include "query.h"

#include "base/clock.h"
#include "base/split_mix.h"
#include "model.h"
#include "task_page.h"
#include "task_view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static_assert((int)STARLING_MET_LEAST == (int)SL_MET_LEAST && (int)STARLING_MET_CLOSEST == (int)SL_MET_CLOSEST,
        "what is met is the choice's");

#define CHOOSERS_MAX 16u /* queries that a queue pair keeps copies for */

/* Who had the last query with this tag, and all that a second try needs. */
struct sl_answer {
        uint64_t id; /* of the request; 0: none yet */
        uint64_t query, user_data, deadline_ns, expected_ns;
        double accuracy;
        uint32_t index;  /* in the catalogue */
        uint32_t second; /* submission index of the second try */
        uint32_t samples;
        uint16_t n_inputs, n_outputs;
        uint8_t priority, tries;
        enum sl_met met;
        char name[SL_MODEL_NAME_BYTES];
};

struct sl_chooser {
        struct sl_query query;
        char task[SL_MODEL_NAME_BYTES];
        uint16_t epoch; /* of the connection that the copy is of */
        struct sl_task_copy *copy;
        struct sl_candidate *candidates; /* [copy->task.n] */
        struct sl_chooser *next;         /* of the queue pair, the one used last first */
};

/* ---- choosers ---- */

static void chooser_free(struct sl_chooser *chooser)
{
        free(chooser->copy);
        free(chooser->candidates);
        free(chooser);
}

/* The one of this query goes to the front. NULL: there is none. */
static struct sl_chooser *chooser_find(struct starling_queue *queue, uint64_t number)
{
        for (struct sl_chooser **link = &queue->choosers; *link; link = &(*link)->next) {
                struct sl_chooser *chooser = *link;

                if (chooser->query.number != number)
                        continue;
                *link = chooser->next;
                chooser->next = queue->choosers;
                queue->choosers = chooser;
                return chooser;
        }
        return NULL;
}

/* Those that were used longest ago make room. */
static struct sl_chooser *chooser_new(struct starling_queue *queue, const struct starling_model *model)
{
        struct sl_chooser *chooser = calloc(1, sizeof(*chooser)), **link = &queue->choosers;

        if (!chooser)
                return NULL;
        for (uint32_t i = 1; i < CHOOSERS_MAX && *link; i++)
                link = &(*link)->next;
        while (*link) {
                struct sl_chooser *old = *link;

                *link = old->next;
                chooser_free(old);
        }
        chooser->query = *model->query;
        memcpy(chooser->task, model->info.name, sizeof(chooser->task));
        chooser->next = queue->choosers;
        queue->choosers = chooser;
        return chooser;
}

/* Makes the copy anew where it is old. */
static int chooser_renew(struct starling_queue *queue, struct sl_chooser *chooser, const struct sl_task_page *page)
{
        struct sl_task_copy *copy;
        struct sl_candidate *candidates;
        int r;

        if (__builtin_expect(chooser->copy && chooser->epoch == queue->epoch && !sl_task_copy_is_old(chooser->copy, page), 1))
                return 0;
        r = sl_task_page_copy(page, chooser->task, 0, &copy);
        if (r < 0)
                return sl_task_refuse_copy(r, chooser->task, &queue->error);
        candidates = calloc(copy->task.n + 1u, sizeof(*candidates));
        if (!candidates) {
                free(copy);
                return sl_task_refuse_copy(-ENOMEM, chooser->task, &queue->error);
        }
        free(chooser->copy);
        free(chooser->candidates);
        chooser->copy = copy;
        chooser->candidates = candidates;
        chooser->epoch = queue->epoch;
        return 0;
}

static int chooser_check(struct starling_queue *queue, const struct sl_chooser *chooser)
{
        uint64_t signature = chooser->copy->task.signature;

        if (!signature || signature == chooser->query.signature)
                return 0;
        return sl_error_set(&queue->error, ESTALE, "task \"%s\": its inputs or outputs have changed: open it again", chooser->task);
}

/* ---- a request ---- */

static int answers_new(struct starling_queue *queue)
{
        if (!queue->answers)
                queue->answers = calloc(queue->flights.depth, sizeof(*queue->answers));
        return queue->answers ? 0 : sl_error_set(&queue->error, ENOMEM, "no memory for the answers of queries");
}

/* A deadline that is nearer than the latency counts in its place. */
static struct sl_needs needs_until(const struct sl_query *query, uint64_t now_ns, uint64_t deadline_ns)
{
        struct sl_needs needs = query->needs;
        uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 1;

        if (deadline_ns && (!needs.latency_ns || left_ns < needs.latency_ns))
                needs.latency_ns = left_ns;
        return needs;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
        return !a || (b && b < a) ? b : a;
}

static uint64_t expected_ns(const struct sl_candidate *candidate)
{
        return candidate->service_ns ? candidate->service_ns +
                                               (candidate->state == SL_CANDIDATE_UNLOADED ? candidate->load_ns : candidate->wait_ns)
                                     : 0;
}

static void note(struct sl_answer *answer, const struct sl_chooser *chooser, const struct sl_choice *choice)
{
        const struct sl_variant_row *row = &chooser->copy->rows[choice->number];
        const char *name = sl_task_variant_name(chooser->copy, choice->number);
        size_t bytes = strnlen(name, sizeof(answer->name) - 1);

        answer->query = chooser->query.number;
        answer->accuracy = row->accuracy;
        answer->expected_ns = expected_ns(&chooser->candidates[choice->number]);
        answer->met = choice->met;
        answer->index = row->index;
        memcpy(answer->name, name, bytes);
        answer->name[bytes] = 0;
}

/* Return: 0 and the choice; -errno with the queue pair's text. @barred: a place in the catalogue that is not to be chosen. */
static int choose(struct starling_queue *queue, struct sl_chooser *chooser, uint32_t samples, const struct sl_needs *needs,
        uint32_t barred, struct sl_choice *ret_choice)
{
        const struct sl_task_page *page = sl_task_page_of(queue->client);
        int r;

        if (!page)
                return sl_error_set(&queue->error, ENOENT, "task \"%s\": the runtime of now has no tasks", chooser->task);
        r = chooser_renew(queue, chooser, page);
        if (r == 0)
                r = chooser_check(queue, chooser);
        if (r < 0)
                return r;
        sl_task_candidates(page, chooser->copy, samples, chooser->candidates);
        for (uint32_t i = 0; i < chooser->copy->task.n; i++)
                if (chooser->copy->rows[i].index == barred)
                        chooser->candidates[i].state = SL_CANDIDATE_OUT;
        if (sl_choose(sl_task_policy(chooser->copy), needs, chooser->candidates, chooser->copy->task.n,
                    sl_split_mix_next(&queue->turns), ret_choice))
                return 0;
        return sl_task_refuse(chooser->copy, chooser->task, needs, chooser->candidates, ret_choice, &queue->error);
}

int sl_query_choose(
        struct starling_queue *queue, const struct starling_request *request, uint16_t tag, uint32_t index, struct sl_entry *entry)
{
        const struct sl_query *query = request->model->query;
        struct sl_chooser *chooser = chooser_find(queue, query->number);
        bool is_timed = request->deadline_ns || query->wish.flags & STARLING_QUERY_DEADLINE;
        uint64_t now_ns = is_timed ? sl_clock_ns() : 0;
        struct sl_needs needs = needs_until(query, now_ns, request->deadline_ns);
        struct sl_choice choice;
        struct sl_answer *answer;
        int r = answers_new(queue);

        if (r == 0 && !chooser && !(chooser = chooser_new(queue, request->model)))
                r = sl_error_set(&queue->error, ENOMEM, "task \"%s\": no memory to choose", request->model->info.name);
        if (r == 0)
                r = choose(queue, chooser, entry->samples, &needs, SL_VARIANT_NOWHERE, &choice);
        if (r < 0)
                return r;
        if (query->wish.flags & STARLING_QUERY_DEADLINE && query->wish.latency_ns)
                entry->deadline_ns = earlier(request->deadline_ns, now_ns + query->wish.latency_ns);
        entry->model = chooser->copy->rows[choice.number].index;
        entry->generation = chooser->copy->rows[choice.number].generation;
        answer = &queue->answers[tag];
        note(answer, chooser, &choice);
        answer->id = sl_flight_id(queue->epoch, index, tag);
        answer->tries = 1;
        answer->samples = entry->samples;
        answer->n_inputs = entry->n_inputs;
        answer->n_outputs = entry->n_outputs;
        answer->priority = (uint8_t)request->priority;
        answer->user_data = request->user_data;
        answer->deadline_ns = entry->deadline_ns;
        return 0;
}

/* ---- the second try ---- */

static struct sl_answer *answer_of(const struct starling_queue *queue, uint64_t id)
{
        struct sl_answer *answer = queue->answers ? &queue->answers[sl_flight_tag(id) % queue->flights.depth] : NULL;

        return answer && answer->id == id ? answer : NULL;
}

/* All of it: the slot's last entry was another request's. Its descriptors are still those of the tag. */
static void submit_again(
        struct starling_queue *queue, uint16_t tag, struct sl_answer *answer, const struct sl_variant_row *row, uint32_t index)
{
        struct sl_entry *entry = &queue->map.entries[index & queue->map.mask];

        entry->flags = 0;
        entry->priority = answer->priority;
        entry->model = row->index;
        entry->generation = row->generation;
        entry->deadline_ns = answer->deadline_ns;
        entry->user_data = answer->user_data;
        entry->session = 0;
        entry->samples = answer->samples;
        entry->tag = tag;
        entry->n_inputs = answer->n_inputs;
        entry->n_outputs = answer->n_outputs;
        answer->second = index;
        answer->tries = 2;
        queue->second_tries++;
        sl_submitter_publish(&queue->submitter, &queue->map);
        if (sl_dispatcher_sleeps(queue->dispatcher))
                sl_doorbell_ring(queue->client->connection.doorbell);
}

/* Another variant for a request that was refused. Return: whether there is one; the queue pair's text stays what it was. */
static bool choose_again(
        struct starling_queue *queue, struct sl_chooser *chooser, const struct sl_answer *answer, struct sl_choice *ret_choice)
{
        struct sl_needs needs = needs_until(&chooser->query, answer->deadline_ns ? sl_clock_ns() : 0, answer->deadline_ns);
        struct sl_error before = queue->error;
        bool chosen = choose(queue, chooser, answer->samples, &needs, answer->index, ret_choice) == 0;

        queue->error = before;
        return chosen;
}

/* Nothing was computed, and another variant may: the model has gone, is full or late, or cannot be loaded now, for want of memory
 * among others. */
static bool is_refusal(int status)
{
        return status == -ESTALE || status == -EBUSY || status == -EDQUOT || status == -ENOMEM;
}

bool sl_query_again(struct starling_queue *queue, const struct sl_completion *wire)
{
        struct sl_answer *answer = answer_of(queue, queue->flights.by_tag[wire->tag].id);
        struct sl_chooser *chooser;
        struct sl_choice choice;

        if (!answer || answer->tries > 1 || !is_refusal(wire->status) || sl_client_gone(queue->client))
                return false;
        chooser = chooser_find(queue, answer->query);
        if (!chooser || !choose_again(queue, chooser, answer, &choice))
                return false;
        note(answer, chooser, &choice);
        submit_again(queue, wire->tag, answer, &chooser->copy->rows[choice.number], queue->submitter.tail);
        return true;
}

bool sl_query_is_second(const struct starling_queue *queue, uint16_t tag, uint32_t index)
{
        const struct sl_answer *answer = answer_of(queue, queue->flights.by_tag[tag].id);

        return answer && answer->tries == 2 && answer->second == index;
}

uint32_t sl_query_index(const struct starling_queue *queue, uint64_t id)
{
        const struct sl_answer *answer = answer_of(queue, id);

        return answer && answer->tries == 2 ? answer->second : sl_flight_index(id);
}

int starling_completion_variant(
        const struct starling_queue *queue, const struct starling_completion *completion, struct starling_answer *ret_answer)
{
        const struct sl_answer *answer = answer_of(queue, completion->id);

        if (!answer)
                return -ENOENT;
        *ret_answer = (struct starling_answer){
                .variant = answer->name,
                .accuracy = answer->accuracy,
                .met = (enum starling_met)answer->met,
                .tries = answer->tries,
                .expected_ns = answer->expected_ns,
        };
        return 0;
}

void sl_queries_free(struct starling_queue *queue)
{
        while (queue->choosers) {
                struct sl_chooser *chooser = queue->choosers;

                queue->choosers = chooser->next;
                chooser_free(chooser);
        }
        free(queue->answers);
        queue->answers = NULL;
}
