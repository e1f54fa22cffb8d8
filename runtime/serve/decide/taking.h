/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pieces of a job: what a decision takes of the tasks that wait. Several of them fit one batch, whatever waits at the head now:
 * a decision was made for tasks of which an earlier one of its run may have taken more or fewer. What a process has died with
 * shares its job with none, as it may kill the next one. On the stack of whoever fills a job.
 */
#pragma once

#include "policy.h"

struct sl_taking {
        struct sl_task_queue *queue;
        uint32_t first_max, batch_max; /* samples of the first piece, and of all where there are several */
        uint32_t taken, pieces;
        bool alone;
};

/* @samples: at least 1, of tasks that wait. */
void sl_taking_begin(struct sl_taking *taking, struct sl_task_queue *queue, uint32_t samples, uint32_t batch_max);

/* The next piece, which is out of the queue then; the rest of its task stays the oldest. False: there is no more. */
bool sl_taking_next(struct sl_taking *taking, struct sl_task *ret_piece);
