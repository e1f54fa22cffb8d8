/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the page of tasks (shm/task_page.h) says of a task's variants: as candidates of a choice (shm/choice.h), and why none of
 * them will do. Of a copy of the task, which is the caller's. Any thread.
 */
#pragma once

#include "choice.h"

#include <stdint.h>

struct sl_error;
struct sl_task_copy;
struct sl_task_page;
struct sl_variant_line;
struct sl_variant_row;
struct starling_client;

/* Of the connection of now; NULL: the runtime has none. */
struct sl_task_page *sl_task_page_of(const struct starling_client *client);

const char *sl_task_variant_name(const struct sl_task_copy *copy, uint32_t number);
enum sl_choice_policy sl_task_policy(const struct sl_task_copy *copy);

/* That a job of so many samples takes, as learned; 0: not known. */
uint64_t sl_task_service_ns(const struct sl_variant_line *line, uint32_t samples);

/* The same of a variant, of which its task says what a sample takes until it is measured. */
uint64_t sl_task_variant_ns(const struct sl_variant_line *line, const struct sl_variant_row *row, uint32_t samples);

/* What a variant costs that takes @service nanoseconds, where the configuration says no costs: what all members compute for it. */
double sl_task_measured_cost(const struct sl_variant_line *line, uint64_t service);

/*
 * All variants as they stand for a request of @samples: @candidates has room for as many. Where the dispatcher says of no row that
 * it serves, as before the first lines are written, the rows are believed.
 */
void sl_task_candidates(
        const struct sl_task_page *page, const struct sl_task_copy *copy, uint32_t samples, struct sl_candidate *candidates);

/* Why @choice is none. Return: -EDOM, -EBUSY, -EIO with text. */
int sl_task_refuse(const struct sl_task_copy *copy, const char *task, const struct sl_needs *needs,
        const struct sl_candidate *candidates, const struct sl_choice *choice, struct sl_error *error);

/* No variant takes requests. Return: -EBUSY, -EDOM, -EIO with text. */
int sl_task_refuse_all(const struct sl_task_copy *copy, const char *task, struct sl_error *error);

/* sl_task_page_copy() has returned @r. Return: -ENOENT, -ENOMEM, -EBUSY, -EPROTO with text. */
int sl_task_refuse_copy(int r, const char *task, struct sl_error *error);
