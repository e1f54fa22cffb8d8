/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pieces of a job: what a decision takes of the tasks that wait. Several of them fit one batch, whatever waits at the head now:
 * a decision was made for tasks of which an earlier one of its run may have taken more or fewer. What a process has died with
 * shares its job with none, as it may kill the next one. On the stack of whoever fills a job.
 */
#pragma once

#include "policy.h"
#include "size_line.h"

struct sl_taking {
        struct sl_task_queue *queue;
        uint32_t first_max, batch_max; /* samples of the first piece, and of all where there are several */
        uint32_t taken, pieces;
        bool alone;
        uint32_t rows;        /* of tasks of a kind */
        uint64_t units;       /* of them */
        uint64_t deadline_ns; /* the earliest that is met, as far as is known; 0: none */
        uint32_t passed;      /* tasks at the head of the queue that are of other kinds, or do not fit */
};

/* @samples: at least 1, of tasks that wait. */
void sl_taking_begin(struct sl_taking *taking, struct sl_task_queue *queue, uint32_t samples, uint32_t batch_max);

/*
 * Of a model that has one plan for many sizes each job begins with the oldest task, and takes along those of its kind that wait
 * behind: at most what one run may have, none that would make one late which is in time without, and not what other decisions of
 * the same run were made for.
 */
struct sl_alike {
        uint32_t rows_max, pieces_max; /* of the job */
        uint32_t spared;               /* tasks that are to be left */
        bool in_order;                 /* none is passed by */
        const struct sl_size_line *line;
        uint64_t now_ns, ns_max; /* that the job may be expected to take */
        /* Has @b the first one's shapes, but for its rows, and its outputs room in the job? */
        bool (*goes_along)(void *context, const struct sl_task *first, const struct sl_task *b);
        void *context;
};

/* Tasks behind the oldest that are looked at. */
#define SL_ALIKE_LOOKED_AT 256u

/* The next of them, which is out of the queue then. @first: the one with which the job began. False: there is no more. */
bool sl_taking_next_alike(
        struct sl_taking *taking, const struct sl_alike *alike, const struct sl_task *first, struct sl_task *ret_piece);

/* The next piece, which is out of the queue then; the rest of its task stays the oldest. False: there is no more. */
bool sl_taking_next(struct sl_taking *taking, struct sl_task *ret_piece);
