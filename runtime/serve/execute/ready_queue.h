/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The light jobs of a let: executors that have been given one, for whichever of the let's threads is awake. To wake a thread costs
 * more than such a job, so only as many threads are woken as the let has cores; each computes until nothing is left here,
 * and for one executor a turn only while others wait (thread_loop.c).
 *
 *   (Q1) dispatcher: slot stored, then store-seq_cst tail.
 *   (Q2) thread:     load-acquire tail, read the slot, then CAS-release head; who wins has it.     pairs with Q1
 *   (Q3) dispatcher: load-acquire head before it uses a slot again.                                pairs with Q2
 *
 * Nobody sleeps while something lies here and no thread is on its way, as in the protocol of wait/bell.h:
 *
 *   (A1) dispatcher: Q1, then load-seq_cst `awake`: wakes a thread where too few are.
 *   (A2) thread:     subtracts itself from `awake`, seq_cst, then looks once more at tail, seq_cst. pairs with A1
 *
 * Who wakes a thread counts it, so that those on their way are counted as well.
 */
#pragma once

#include "base/bytes.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Executors that can wait in one; a power of two. One that finds no room is told by itself. */
#define SL_READY_MAX 128u

struct sl_ready_queue {
        alignas(SL_LINE_PAIR_BYTES) _Atomic uint32_t tail;
        alignas(SL_LINE_PAIR_BYTES) _Atomic uint32_t head;
        alignas(SL_LINE_PAIR_BYTES) _Atomic int32_t awake; /* threads that will look here before they sleep */
        alignas(SL_LINE_PAIR_BYTES) void *_Atomic slots[SL_READY_MAX];
};

/* Dispatcher. False: it is full. */
bool sl_ready_put(struct sl_ready_queue *queue, void *executor);

/* Any thread of the let. The oldest; NULL: there is none. */
void *sl_ready_take(struct sl_ready_queue *queue);

/* seq_cst, for the last look before a sleep. */
static inline bool sl_ready_waiting(struct sl_ready_queue *queue)
{
        return atomic_load_explicit(&queue->tail, memory_order_seq_cst) != atomic_load_explicit(&queue->head, memory_order_seq_cst);
}

/* A1. */
static inline int32_t sl_ready_awake(struct sl_ready_queue *queue)
{
        return atomic_load_explicit(&queue->awake, memory_order_seq_cst);
}

static inline void sl_ready_count(struct sl_ready_queue *queue, int32_t threads)
{
        atomic_fetch_add_explicit(&queue->awake, threads, memory_order_seq_cst); /* A2, when fewer */
}
