/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What waits for a model: samples of segments, oldest first, in a ring for each class. One thread, its owner's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Samples [first, first + samples) of a segment, for one of its members. */
struct sl_task {
        uint32_t segment, member;
        uint32_t first, samples;
        uint32_t client;      /* whose: its slot */
        bool is_inline;       /* for the dispatcher itself, as long as it has time */
        uint8_t losses;       /* processes that have died while they had it */
        bool reruns;          /* a process has died with it: it is a job by itself, and fails with the next one */
        uint64_t arrival_ns;  /* of the request */
        uint64_t deadline_ns; /* 0: none */
        uint64_t kind;        /* those of one kind may share a batch, if their shapes are equal; 0: it shares none so */
        uint32_t rows;        /* of a kind: what it has of a batch, though it is one sample of the scheduler's */
        uint64_t units;       /* of its size (size_line.h); 0: samples alone say how long it takes */
};

struct sl_task_queue {
        struct sl_task *tasks; /* a power of two of them */
        uint32_t mask;
        uint32_t head, tail;
        uint64_t samples; /* of all of them */
};

/* Room for @tasks at least. Return: 0, -ENOMEM. */
int sl_task_queue_init(struct sl_task_queue *queue, uint32_t tasks);
void sl_task_queue_deinit(struct sl_task_queue *queue);

static inline uint32_t sl_task_queue_length(const struct sl_task_queue *queue)
{
        return queue->tail - queue->head;
}

/* The @i-th oldest. */
static inline struct sl_task *sl_task_queue_at(const struct sl_task_queue *queue, uint32_t i)
{
        return &queue->tasks[(queue->head + i) & queue->mask];
}

/* Behind all others. There is room. */
void sl_task_queue_push(struct sl_task_queue *queue, const struct sl_task *task);

/* Before what came later. False: there is no room. */
bool sl_task_queue_return(struct sl_task_queue *queue, const struct sl_task *task);

/* The first @samples of the oldest task, which has as many, are given out: the rest of it stays the oldest. */
void sl_task_queue_take(struct sl_task_queue *queue, uint32_t samples);

/* Takes out the @i-th oldest, whole. */
void sl_task_queue_remove(struct sl_task_queue *queue, uint32_t i);

/* Takes out what @ends says of. Return: how many. */
uint32_t sl_task_queue_drop(struct sl_task_queue *queue, bool (*ends)(void *context, const struct sl_task *task), void *context);
