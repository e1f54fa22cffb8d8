/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rings between two threads over one mapping, for ThreadSanitizer: it must find nothing here, and must find a race in the
 * mutants, in which the order of one kind of access is weakened: -DSL_MUTANT_RELEASE   S1, F1, C1 and D1 publish without release
 *   -DSL_MUTANT_ACQUIRE   S2, F2, C2 and D2 look without acquire
 * Exit code 1 when an entry or a completion was not whole.
 */
#include "layout.h"

#ifdef SL_MUTANT_RELEASE
#define memory_order_release memory_order_relaxed
#endif
#ifdef SL_MUTANT_ACQUIRE
#define memory_order_acquire memory_order_relaxed
#endif
#include "ring.h"
#undef memory_order_release
#undef memory_order_acquire

#include "pair.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#define N     30000u
#define DEPTH 16u
#define FIRST (UINT32_MAX - N / 2)

static uint64_t mark(uint32_t index)
{
        return (index + 1) * 0x9e3779b97f4a7c15ull;
}

/* The dispatcher: answers each entry with what it and its descriptor said. */
static void *answer(void *context)
{
        const struct sl_queue_map *q = context;
        struct sl_completer completer = {.next = FIRST, .published = FIRST};
        uint32_t head = FIRST;

        while (head - FIRST < N) {
                struct sl_entry entry = {0};
                struct sl_descriptor descriptor = {0};

                while (sl_entry_take(head, q, &entry)) {
                        sl_line_copy(&descriptor, &q->descriptors[entry.tag & q->mask]);
                        q->outputs[entry.tag & q->mask].bytes = descriptor.bytes;
                        sl_completer_put(&completer, q, &(struct sl_completion){.user_data = entry.user_data, .index = head++});
                }
                sl_consumed_publish(head, q);
                sl_completer_taken(&completer, q);
                if (!sl_completer_publish(&completer, q))
                        sched_yield();
        }
        return NULL;
}

static void submit(struct sl_submitter *submitter, const struct sl_queue_map *q)
{
        struct sl_entry *entry = sl_submitter_slot(submitter, q);

        entry->user_data = mark(submitter->tail);
        entry->tag = (uint16_t)(submitter->tail & q->mask);
        q->descriptors[entry->tag].bytes = ~mark(submitter->tail);
        sl_submitter_publish(submitter, q);
}

static int is_wrong(const struct sl_completion *completion, const struct sl_reaper *reaper, const struct sl_queue_map *q)
{
        return completion->index != reaper->head || completion->user_data != mark(reaper->head) ||
               q->outputs[reaper->head & q->mask].bytes != ~mark(reaper->head);
}

static uint32_t ask(const struct sl_queue_map *q)
{
        struct sl_submitter submitter = {.tail = FIRST, .consumed = FIRST};
        struct sl_reaper reaper = {.head = FIRST};
        uint32_t wrong = 0;

        while (reaper.head - FIRST < N) {
                while (submitter.tail - FIRST < N && submitter.tail - reaper.head < q->depth && sl_submitter_room(&submitter, q))
                        submit(&submitter, q);
                const struct sl_completion *completion;
                uint32_t n;
                for (n = 0; (completion = sl_reaper_peek(&reaper, q)); n++, sl_reaper_advance(&reaper))
                        wrong += is_wrong(completion, &reaper, q);
                if (n)
                        sl_reaper_publish(&reaper, q);
                else
                        sched_yield();
        }
        return wrong;
}

int main(void)
{
        struct pair pair = pair_new(DEPTH, 1);
        pthread_t thread;

        pair_start_at(&pair, FIRST);
        if (pthread_create(&thread, NULL, answer, &pair.map))
                return 2;
        uint32_t wrong = ask(&pair.map);
        pthread_join(thread, NULL);
        printf("%u requests, %u wrong\n", N, wrong);
        pair_free(&pair);
        return wrong > 0;
}
