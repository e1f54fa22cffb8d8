/* SPDX-License-Identifier: Apache-2.0 */
#include "task_view.h"

#include "base/error.h"
#include "choice.h"
#include "client.h"
#include "layout.h"
#include "task_page.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>

struct sl_task_page *sl_task_page_of(const struct starling_client *client)
{
        return client->connection.has_tasks ? sl_task_page_in(&client->connection.catalogue) : NULL;
}

/* ---- candidates ---- */

static enum sl_candidate_state state_of(const struct sl_variant_row *row, uint32_t word, uint32_t samples)
{
        if (samples > row->samples_max)
                return SL_CANDIDATE_OUT;
        if (row->state == SL_VARIANT_AVAILABLE)
                return SL_CANDIDATE_UNLOADED;
        if (row->state != SL_VARIANT_SERVES)
                return SL_CANDIDATE_OUT;
        return sl_variant_word_full(word) ? SL_CANDIDATE_FULL : SL_CANDIDATE_SERVES;
}

/* The next power of two. */
static inline uint32_t size_of(uint32_t samples)
{
        uint32_t i = 0;

        while (i < SL_VARIANT_SIZES - 1 && 1u << i < samples)
                i++;
        return i;
}

/* As a job of the next power of two, 1 << @size, by its share of that; jobs larger than any that is known take as long a sample. */
static inline uint64_t learned_ns(const struct sl_variant_line *line, uint32_t samples, uint32_t size)
{
        uint64_t ns = (uint64_t)atomic_load_explicit(&line->jobs[size], memory_order_relaxed) * SL_VARIANT_UNIT_NS;

        return samples && samples != 1u << size ? (uint64_t)((double)ns * samples / (1u << size) + 0.5) : ns;
}

uint64_t sl_task_service_ns(const struct sl_variant_line *line, uint32_t samples)
{
        return learned_ns(line, samples, size_of(samples));
}

double sl_task_measured_cost(const struct sl_variant_line *line, uint64_t service)
{
        return (double)service * atomic_load_explicit(&line->work, memory_order_relaxed) / SL_VARIANT_WORK_ONE;
}

/* As its task says: of the next batch that is told by its share of that, else as the largest of those. */
static uint64_t told_ns(const struct sl_variant_row *row, uint32_t samples)
{
        uint64_t ns = row->service_ns;
        uint32_t batch = 1;

        for (uint32_t i = 0; i < SL_VARIANT_BATCHES && batch < samples && row->batch_units[i]; i++) {
                ns = (uint64_t)row->batch_units[i] * SL_VARIANT_UNIT_NS;
                batch = 2u << i;
        }
        return (uint64_t)((double)ns * samples / batch + 0.5);
}

uint64_t sl_task_variant_ns(const struct sl_variant_line *line, const struct sl_variant_row *row, uint32_t samples)
{
        uint64_t measured_ns = sl_task_service_ns(line, samples);

        return measured_ns ? measured_ns : told_ns(row, samples);
}

/* Field by field: a client does it for each variant at each submit. */
static inline void set_candidate(const struct sl_variant_line *line, const struct sl_variant_row *row, bool has_costs,
        uint32_t samples, uint32_t size, struct sl_candidate *ret_candidate)
{
        uint32_t word = atomic_load_explicit(&line->word, memory_order_relaxed);
        uint32_t workers = atomic_load_explicit(&line->workers, memory_order_relaxed);
        uint64_t learned = learned_ns(line, samples, size), service_ns = learned ? learned : told_ns(row, samples);

        ret_candidate->state = state_of(row, word, samples);
        ret_candidate->accuracy = row->accuracy;
        ret_candidate->doubt = learned ? sl_variant_workers_doubt(workers) : 0;
        ret_candidate->cost = has_costs ? row->cost : sl_task_measured_cost(line, service_ns);
        ret_candidate->service_ns = service_ns;
        ret_candidate->wait_ns = sl_variant_word_wait_ns(word);
        ret_candidate->load_ns = row->load_ns;
        ret_candidate->is_interfered = sl_variant_workers_condition(workers) == STARLING_CONDITION_INTERFERED;
}

/* Of a row that is to serve: the dispatcher, which knows first, has withdrawn its model. */
static bool is_withdrawn(const struct sl_task_page *page, const struct sl_variant_row *row)
{
        return row->state == SL_VARIANT_SERVES &&
               atomic_load_explicit(&page->lines[row->index].word, memory_order_relaxed) == SL_VARIANT_WITHDRAWN;
}

/* Such ones are out. */
static void drop_withdrawn(const struct sl_task_page *page, const struct sl_task_copy *copy, struct sl_candidate *candidates)
{
        for (uint32_t i = 0; i < copy->task.n; i++)
                if (candidates[i].state == SL_CANDIDATE_SERVES && is_withdrawn(page, &copy->rows[i]))
                        candidates[i].state = SL_CANDIDATE_OUT;
}

void sl_task_candidates(
        const struct sl_task_page *page, const struct sl_task_copy *copy, uint32_t samples, struct sl_candidate *candidates)
{
        const struct sl_variant_row *row = copy->rows, *end = row + copy->task.n;
        bool has_costs = copy->task.has_costs, any_serves = false, any_withdrawn = false;
        uint32_t size = size_of(samples);

        for (struct sl_candidate *candidate = candidates; row < end; row++, candidate++) {
                if (row->index >= SL_CATALOGUE_MODELS) {
                        *candidate = (struct sl_candidate){.state = SL_CANDIDATE_OUT, .accuracy = row->accuracy};
                        continue;
                }
                set_candidate(&page->lines[row->index], row, has_costs, samples, size, candidate);
                if (candidate->state != SL_CANDIDATE_SERVES)
                        continue;
                if (is_withdrawn(page, row))
                        any_withdrawn = true;
                else
                        any_serves = true;
        }
        if (any_serves && any_withdrawn)
                drop_withdrawn(page, copy, candidates);
}

enum sl_choice_policy sl_task_policy(const struct sl_task_copy *copy)
{
        return copy->task.policy < SL_CHOICE_POLICY_COUNT ? (enum sl_choice_policy)copy->task.policy : SL_CHOICE_starling;
}

/* ---- why there is none ---- */

const char *sl_task_variant_name(const struct sl_task_copy *copy, uint32_t number)
{
        return copy->texts + copy->rows[number].name;
}

static double microseconds(uint64_t ns)
{
        return (double)ns / 1000;
}

/* Of the first that may come to, else of the first. */
int sl_task_refuse_all(const struct sl_task_copy *copy, const char *task, struct sl_error *error)
{
        for (uint32_t i = 0; i < copy->task.n; i++)
                if (copy->rows[i].state == SL_VARIANT_LOADING)
                        return sl_error_set(error, EBUSY, "task \"%s\": variant \"%s\" is still loading, and no other serves", task,
                                sl_task_variant_name(copy, i));
        for (uint32_t i = 0; i < copy->task.n; i++)
                if (copy->rows[i].state == SL_VARIANT_SERVES)
                        return sl_error_set(error, EDOM,
                                "task \"%s\": more samples in one request than any variant takes: \"%s\" takes %" PRIu32, task,
                                sl_task_variant_name(copy, i), copy->rows[i].samples_max);
        return sl_error_set(error, EIO, "task \"%s\": none of its %" PRIu32 " variants serves: \"%s\": %s", task, copy->task.n,
                sl_task_variant_name(copy, 0), copy->texts + copy->rows[0].reason);
}

int sl_task_refuse(const struct sl_task_copy *copy, const char *task, const struct sl_needs *needs,
        const struct sl_candidate *candidates, const struct sl_choice *choice, struct sl_error *error)
{
        const struct sl_candidate *nearest = choice->number < copy->task.n ? &candidates[choice->number] : NULL;
        const char *name = nearest ? sl_task_variant_name(copy, choice->number) : "";
        double least = needs->accuracy_least > 0 ? needs->accuracy_least : needs->accuracy;

        switch (choice->lack) {
        case SL_LACK_ACCURACY:
                return sl_error_set(error, EDOM,
                        "task \"%s\": accuracy of at least %g: the most accurate variant that serves is \"%s\", with %g", task,
                        least, name, nearest->accuracy);
        case SL_LACK_COST:
                return sl_error_set(error, EDOM,
                        "task \"%s\": cost of at most %g: the cheapest variant with an accuracy of at least %g is \"%s\", for %g",
                        task, needs->cost, least, name, nearest->cost);
        case SL_LACK_LATENCY:
                if (!nearest->service_ns)
                        return sl_error_set(error, EDOM,
                                "task \"%s\": latency of at most %.1f us: it is not known yet what variant \"%s\" takes", task,
                                microseconds(needs->latency_ns), name);
                return sl_error_set(error, EDOM,
                        "task \"%s\": latency of at most %.1f us: the fastest variant with an accuracy of at least %g is \"%s\", "
                        "and takes %.1f us",
                        task, microseconds(needs->latency_ns), least, name, microseconds(nearest->service_ns));
        case SL_LACK_ROOM:
                if (nearest->state == SL_CANDIDATE_FULL)
                        return sl_error_set(
                                error, EBUSY, "task \"%s\": the queue of variant \"%s\" is full, and no other will do", task, name);
                return sl_error_set(error, EBUSY,
                        "task \"%s\": latency of at most %.1f us: variant \"%s\" would answer first, in %.1f us, of which it waits "
                        "%.1f",
                        task, microseconds(needs->latency_ns), name, microseconds(nearest->wait_ns + nearest->service_ns),
                        microseconds(nearest->wait_ns));
        case SL_LACK_LOAD:
                return sl_error_set(error, EBUSY,
                        "task \"%s\": latency of at most %.1f us: variant \"%s\" would do, and has to be loaded first", task,
                        microseconds(needs->latency_ns), name);
        case SL_LACK_VARIANTS:
        case SL_LACK_NOTHING:
                break;
        }
        return sl_task_refuse_all(copy, task, error);
}

int sl_task_refuse_copy(int r, const char *task, struct sl_error *error)
{
        if (r == -ENOENT)
                return sl_error_set(error, ENOENT, "no task \"%s\" any more", task);
        if (r == -ENOMEM)
                return sl_error_set(error, ENOMEM, "task \"%s\": no memory for a copy of its variants", task);
        if (r == -EAGAIN)
                return sl_error_set(error, EBUSY, "task \"%s\": its variants are changing", task);
        return sl_error_set(error, EPROTO, "task \"%s\" has impossible variants", task);
}
