/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries: handles of tasks, whose requests each choose a variant (shm/choice.h) from the page of tasks (shm/task_page.h).
 *
 *     struct sl_query     of a handle; never changes. Any thread
 *     struct sl_chooser   of a queue pair, one for each query that it has had of late: a copy of the task, made anew where the page
 *                         has changed, and room for its candidates. The queue pair's owner thread
 *     struct sl_answer    of a tag: who had its last query. The same thread
 *
 * Requests to models that were opened by their own names come to none of this.
 */
#pragma once

#include "choice.h"
#include "queue.h"
#include "starling.h"

struct sl_answer;
struct sl_chooser;
struct sl_completion;
struct sl_entry;

struct sl_query {
        uint64_t number; /* of no other query of this client */
        struct starling_query wish;
        struct sl_needs needs;
        uint64_t signature; /* of the task's inputs and outputs */
};

/*
 * Chooses for a request that was checked, of entry->samples, and fills model, generation and deadline of @entry, which is to go out
 * with @tag as submission @index. Return: 0; -EDOM, -EBUSY, -EIO, -ESTALE, -ENOENT, -ENOMEM with the queue pair's text.
 */
int sl_query_choose(
        struct starling_queue *queue, const struct starling_request *request, uint16_t tag, uint32_t index, struct sl_entry *entry);

/*
 * A completion says that its request was refused. Where that was a query, another variant will do and this is its first try: it is
 * submitted again under the same tag. Return: whether it was.
 */
bool sl_query_again(struct starling_queue *queue, const struct sl_completion *wire);

/* Is submission @index the second try of the query that flies with this tag? */
bool sl_query_is_second(const struct starling_queue *queue, uint16_t tag, uint32_t index);

/* The submission index of a request that flies: of its last try. */
uint32_t sl_query_index(const struct starling_queue *queue, uint64_t id);

/* Whether the task's inputs and outputs have changed, or it is gone. Return: 0, -ESTALE, -ENOENT. */
int sl_query_look(const struct starling_client *client, const char *task, const struct sl_query *query);

/* The same of a handle, and only where the page has changed since the last look. Any thread. */
bool sl_query_changed(struct starling_model *model);

void sl_queries_free(struct starling_queue *queue);
