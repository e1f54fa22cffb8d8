/* SPDX-License-Identifier: Apache-2.0 */
#include "ready_queue.h"

_Static_assert((SL_READY_MAX & (SL_READY_MAX - 1)) == 0, "a power of two");

bool sl_ready_put(struct sl_ready_queue *queue, void *executor)
{
        uint32_t tail = atomic_load_explicit(&queue->tail, memory_order_relaxed);

        if (tail - atomic_load_explicit(&queue->head, memory_order_acquire) == SL_READY_MAX) /* Q3 */
                return false;
        atomic_store_explicit(&queue->slots[tail % SL_READY_MAX], executor, memory_order_relaxed);
        atomic_store_explicit(&queue->tail, tail + 1, memory_order_seq_cst); /* Q1 */
        return true;
}

void *sl_ready_take(struct sl_ready_queue *queue)
{
        uint32_t head = atomic_load_explicit(&queue->head, memory_order_relaxed);

        while (head != atomic_load_explicit(&queue->tail, memory_order_acquire)) { /* Q2 */
                void *executor = atomic_load_explicit(&queue->slots[head % SL_READY_MAX], memory_order_relaxed);

                if (atomic_compare_exchange_weak_explicit(
                            &queue->head, &head, head + 1, memory_order_release, memory_order_relaxed))
                        return executor;
        }
        return NULL;
}
