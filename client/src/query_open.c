/* SPDX-License-Identifier: Apache-2.0 */
#include "query.h"

#include "base/error.h"
#include "catalogue.h"
#include "model.h"
#include "task_page.h"
#include "task_view.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOKS_MAX 1000u /* at the page, for a variant that the catalogue has already */
#define LOOK_NS   200000

static int check_share(const char *task, const char *what, double value, struct sl_error *error)
{
        if (value >= 0 && value <= 1)
                return 0;
        return sl_error_set(error, EINVAL, "task \"%s\": %s %g is not a share from 0 to 1", task, what, value);
}

static int check_wish(const char *task, const struct starling_query *wish, struct sl_error *error)
{
        int r = check_share(task, "accuracy", wish->accuracy, error);

        if (r == 0)
                r = check_share(task, "accuracy_least", wish->accuracy_least, error);
        if (r < 0)
                return r;
        if (wish->accuracy_least > wish->accuracy)
                return sl_error_set(error, EINVAL, "task \"%s\": accuracy_least %g is above accuracy, %g", task,
                        wish->accuracy_least, wish->accuracy);
        if (!(wish->cost >= 0) || isinf(wish->cost))
                return sl_error_set(error, EINVAL, "task \"%s\": cost %g is not a finite number of at least 0", task, wish->cost);
        if (wish->flags & ~(uint32_t)(STARLING_QUERY_CLOSEST | STARLING_QUERY_DEADLINE))
                return sl_error_set(error, EINVAL, "task \"%s\": flags %#" PRIx32 " are not known", task, wish->flags);
        if (wish->flags & STARLING_QUERY_DEADLINE && !wish->latency_ns)
                return sl_error_set(error, EINVAL, "task \"%s\": a latency that is the deadline has to be given", task);
        return 0;
}

static int copy_task(const struct starling_client *client, const char *task, struct sl_task_copy **ret_copy, struct sl_error *error)
{
        const struct sl_task_page *page = sl_task_page_of(client);
        uint32_t index;
        int r;

        if (!page)
                return sl_error_set(error, ENOTSUP, "task \"%s\": the runtime has no tasks: it is older than this library", task);
        r = sl_task_page_copy(page, task, 0, ret_copy);
        if (r == -ENOENT && sl_catalogue_find(client->connection.catalogue.base, task, &index, NULL) == 0)
                return sl_error_set(error, ENOENT,
                        "no task \"%s\": it is a model, which has no accuracy: starling_model_open() opens it", task);
        if (r == -ENOENT)
                return sl_error_set(error, ENOENT, "no task \"%s\"; the runtime has %" PRIu32, task, sl_task_page_count(page));
        return r < 0 ? sl_task_refuse_copy(r, task, error) : 0;
}

/* Does a variant that needs no load to be asked first do, if nothing waits? */
static bool is_met(const struct sl_task_copy *copy, const struct sl_needs *needs, bool unloaded, uint32_t *ret_number)
{
        double least = needs->accuracy_least > 0 ? needs->accuracy_least : needs->accuracy;
        uint32_t best = UINT32_MAX;

        for (uint32_t i = 0; i < copy->task.n; i++) {
                const struct sl_variant_row *row = &copy->rows[i];
                bool is_meant = unloaded ? row->state == SL_VARIANT_UNLOADED
                                         : row->state == SL_VARIANT_SERVES || row->state == SL_VARIANT_AVAILABLE;

                if (is_meant && row->accuracy >= least && (needs->cost <= 0 || !copy->task.has_costs || row->cost <= needs->cost) &&
                        (best == UINT32_MAX || row->accuracy > copy->rows[best].accuracy))
                        best = i;
        }
        *ret_number = best;
        return best != UINT32_MAX;
}

/* The page is written just behind the catalogue. */
static bool is_on_its_way(const struct sl_variant_row *row)
{
        return row->state == SL_VARIANT_UNLOADED || row->state == SL_VARIANT_LOADING;
}

/* Where none that has been loaded is accurate and cheap enough: the most accurate of those that have not been. */
static int load_one(struct starling_client *client, const char *task, const struct sl_needs *needs, struct sl_task_copy **copy,
        struct sl_error *error)
{
        uint32_t number;
        int r;

        if (is_met(*copy, needs, false, &number) || !is_met(*copy, needs, true, &number))
                return 0;
        r = sl_model_request_load(client, sl_task_variant_name(*copy, number), error);
        for (uint32_t i = 0; r == 0 && i < LOOKS_MAX && is_on_its_way(&(*copy)->rows[number]); i++) {
                if (i)
                        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
                free(*copy);
                *copy = NULL;
                r = copy_task(client, task, copy, error);
                if (r == 0 && number >= (*copy)->task.n)
                        return sl_task_refuse_copy(-EAGAIN, task, error);
        }
        return r;
}

/* What no variant can ever meet. */
static int check_needs(const struct starling_client *client, const struct sl_task_copy *copy, const char *task,
        const struct sl_needs *needs, struct sl_error *error)
{
        struct sl_candidate *candidates = calloc(copy->task.n + 1u, sizeof(*candidates));
        struct sl_choice choice;
        int r = 0;

        if (!candidates)
                return sl_error_set(error, ENOMEM, "task \"%s\": no memory to choose", task);
        sl_task_candidates(sl_task_page_of(client), copy, 1, candidates);
        for (uint32_t i = 0; i < copy->task.n; i++)
                candidates[i].wait_ns = 0;
        if (needs->cost > 0 && !copy->task.has_costs)
                r = sl_error_set(error, EDOM, "task \"%s\": cost of at most %g: the configuration says no costs of its variants",
                        task, needs->cost);
        else if (!sl_choose(sl_task_policy(copy), needs, candidates, copy->task.n, 0, &choice) && choice.lack != SL_LACK_ROOM &&
                 choice.lack != SL_LACK_LOAD)
                r = sl_task_refuse(copy, task, needs, candidates, &choice, error);
        free(candidates);
        return r;
}

static uint32_t samples_max(const struct sl_task_copy *copy)
{
        uint32_t most = 0;

        for (uint32_t i = 0; i < copy->task.n; i++)
                if ((copy->rows[i].state == SL_VARIANT_SERVES || copy->rows[i].state == SL_VARIANT_AVAILABLE) &&
                        copy->rows[i].samples_max > most)
                        most = copy->rows[i].samples_max;
        return most;
}

/* A handle with the inputs and outputs of the variant that gave the task its own. */
static int open_reference(struct starling_client *client, const char *task, const struct sl_task_copy *copy,
        struct starling_model **ret_model, struct sl_error *error)
{
        const struct sl_catalogue *catalogue = client->connection.catalogue.base;
        struct sl_catalogue_model from;
        struct sl_catalogue_part part;
        int r = copy->task.reference < copy->task.n
                        ? sl_catalogue_open(catalogue, copy->rows[copy->task.reference].index, &from, &part)
                        : -EPROTO;

        if (r == 0 && sl_task_signature(part.ports, from.n_inputs, from.n_outputs) != copy->task.signature) {
                free(part.ports);
                r = -EAGAIN;
        }
        if (r < 0)
                return sl_task_refuse_copy(r == -ENOENT ? -EAGAIN : r, task, error);
        snprintf(from.name, sizeof(from.name), "%s", task);
        from.version = 0;
        from.samples_max = samples_max(copy);
        return sl_model_new(client, copy->rows[copy->task.reference].index, &from, &part, ret_model, error);
}

static int open_copy(struct starling_client *client, const char *task, const struct starling_query *wish,
        const struct sl_task_copy *copy, struct starling_model **ret_model, struct sl_error *error)
{
        struct sl_query *query = calloc(1, sizeof(*query));
        struct starling_model *model;
        int r;

        if (!query)
                return sl_error_set(error, ENOMEM, "task \"%s\": no memory for its handle", task);
        query->wish = *wish;
        query->needs = (struct sl_needs){.accuracy = wish->accuracy,
                .accuracy_least = wish->accuracy_least,
                .cost = wish->cost,
                .latency_ns = wish->latency_ns,
                .closest = wish->flags & STARLING_QUERY_CLOSEST};
        query->signature = copy->task.signature;
        r = check_needs(client, copy, task, &query->needs, error);
        if (r == 0)
                r = open_reference(client, task, copy, &model, error);
        if (r < 0) {
                free(query);
                return r;
        }
        pthread_mutex_lock(&client->lock);
        query->number = ++client->n_queries;
        pthread_mutex_unlock(&client->lock);
        model->query = query;
        atomic_store_explicit(&model->changes, 1, memory_order_relaxed); /* which no page says */
        model->state = SL_HANDLE_QUERY;
        *ret_model = model;
        return 0;
}

int starling_query_open(struct starling_client *client, const char *task, const struct starling_query *query,
        struct starling_model **ret_model, struct starling_error *error)
{
        const struct starling_query wish = query ? *query : (struct starling_query){.accuracy = 0};
        const struct sl_needs needs = {.accuracy = wish.accuracy, .accuracy_least = wish.accuracy_least, .cost = wish.cost};
        struct sl_error *text = sl_error_of(error);
        struct sl_task_copy *copy = NULL;
        int r;

        if (!task)
                return sl_error_set(text, EINVAL, "a task without a name");
        if (sl_forked(&client->fork))
                return sl_error_set(text, ECHILD, "task \"%s\": %s", task, starling_strerror(-ECHILD));
        if (sl_client_gone(client))
                return sl_error_set(text, EPIPE, "task \"%s\": %s", task, starling_strerror(-EPIPE));
        r = check_wish(task, &wish, text);
        if (r == 0)
                r = copy_task(client, task, &copy, text);
        if (r == 0)
                r = load_one(client, task, &needs, &copy, text);
        if (r == 0 && !copy->task.signature)
                r = sl_task_refuse_all(copy, task, text);
        if (r == 0)
                r = open_copy(client, task, &wish, copy, ret_model, text);
        free(copy);
        return r;
}

int sl_query_look(const struct starling_client *client, const char *task, const struct sl_query *query)
{
        const struct sl_task_page *page = sl_task_page_of(client);
        struct sl_task_copy *copy;
        int r = page ? sl_task_page_copy(page, task, 0, &copy) : -ENOENT;

        if (r == -ENOENT)
                return r;
        if (r < 0)
                return 0; /* a later look will tell */
        r = copy->task.signature && copy->task.signature != query->signature ? -ESTALE : 0;
        free(copy);
        return r;
}

/* What is noted was read before the look, so that a change in between is looked at again. An odd number is never noted. */
bool sl_query_changed(struct starling_model *model)
{
        const struct sl_task_page *page = sl_task_page_of(model->client);
        uint32_t seq = page ? atomic_load_explicit(&page->seq, memory_order_acquire) : 1;

        if (seq == atomic_load_explicit(&model->changes, memory_order_relaxed) && !(seq & 1))
                return false;
        if (sl_query_look(model->client, model->info.name, model->query) < 0)
                return true;
        if (!(seq & 1))
                atomic_store_explicit(&model->changes, seq, memory_order_relaxed);
        return false;
}
