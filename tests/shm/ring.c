/* SPDX-License-Identifier: Apache-2.0 */
#include "ring.h"

#include "pair.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>

#define DEPTH 64u
#ifdef __SANITIZE_THREAD__
#define MILLIONS 300000u /* in about the same time */
#else
#define MILLIONS 3000000u
#endif

static uint64_t mark(uint32_t index)
{
        return (index + 1) * 0x9e3779b97f4a7c15ull;
}

static void fill(struct sl_entry *entry, uint32_t index)
{
        entry->user_data = mark(index);
        entry->deadline_ns = ~mark(index);
        entry->samples = index;
        entry->session = entry->reserved2 = mark(index) ^ index;
}

static bool is_whole(const struct sl_entry *entry, uint32_t index)
{
        return entry->user_data == mark(index) && entry->deadline_ns == ~mark(index) && entry->samples == index &&
               entry->session == (mark(index) ^ index) && entry->reserved2 == entry->session;
}

struct run {
        struct pair pair;
        uint32_t first, n, batch;
        uint32_t broken; /* the client's count of wrong completions */
};

/* Answers every entry; completions of a pass are published together. */
static void *dispatch(void *context)
{
        struct run *run = context;
        const struct sl_queue_map *q = &run->pair.map;
        struct sl_completer completer = {.next = run->first, .published = run->first};
        uint32_t head = run->first;
        uintptr_t broken = 0;

        while (head - run->first < run->n) {
                struct sl_entry entry;

                for (uint32_t i = 0; i < run->batch && sl_entry_take(head, q, &entry); i++, head++) {
                        broken += !is_whole(&entry, head);
                        sl_completer_put(&completer, q,
                                &(struct sl_completion){
                                        .user_data = entry.user_data, .index = head, .bytes_needed = ~entry.user_data});
                }
                sl_consumed_publish(head, q);
                if (!sl_completer_publish(&completer, q))
                        sched_yield();
                broken += completer.published - sl_completer_taken(&completer, q) > q->depth;
        }
        return (void *)broken;
}

static uint32_t reap(struct sl_reaper *reaper, struct run *run)
{
        const struct sl_queue_map *q = &run->pair.map;
        const struct sl_completion *completion;
        uint32_t n;

        for (n = 0; (completion = sl_reaper_peek(reaper, q)); n++) {
                run->broken += completion->index != reaper->head || completion->user_data != mark(reaper->head) ||
                               completion->bytes_needed != ~mark(reaper->head);
                sl_reaper_advance(reaper);
        }
        if (n)
                sl_reaper_publish(reaper, q);
        return n;
}

/* At most depth requests are in flight, as the client library's table of tags has it. */
static void submit_and_reap_all(struct run *run)
{
        const struct sl_queue_map *q = &run->pair.map;
        struct sl_submitter submitter = {.tail = run->first, .consumed = run->first};
        struct sl_reaper reaper = {.head = run->first};

        while (reaper.head - run->first < run->n) {
                while (submitter.tail - run->first < run->n && submitter.tail - reaper.head < q->depth &&
                        sl_submitter_room(&submitter, q)) {
                        fill(sl_submitter_slot(&submitter, q), submitter.tail);
                        sl_submitter_publish(&submitter, q);
                }
                if (reap(&reaper, run) == 0)
                        sched_yield();
        }
}

static void expect_integrity(uint32_t depth, uint32_t first, uint32_t n, uint32_t batch)
{
        struct run run = {.pair = pair_new(depth, 2), .first = first, .n = n, .batch = batch};
        pthread_t thread;
        void *broken;

        pair_start_at(&run.pair, first);
        cr_assert_eq(pthread_create(&thread, NULL, dispatch, &run), 0);
        submit_and_reap_all(&run);
        pthread_join(thread, &broken);
        cr_expect_null(broken, "entries as they were published, none lost or doubled");
        cr_expect_eq(run.broken, 0, "completions as they were published, none lost or doubled");
        pair_free(&run.pair);
}

Test(ring, millions_pass_in_order_and_whole)
{
        expect_integrity(DEPTH, 0, MILLIONS, 32);
}

Test(ring, indices_wrap_at_2_to_the_32)
{
        expect_integrity(DEPTH, UINT32_MAX - 50000, 100000, 32);
        expect_integrity(2, UINT32_MAX - 1000, 2000, 1);
        expect_integrity(1024, UINT32_MAX - 5000, 100000, 64);
}

Test(ring, an_entry_is_not_seen_before_it_is_published)
{
        struct pair pair = pair_new(DEPTH, 2);
        struct sl_submitter submitter = {0};
        struct sl_entry entry;

        fill(sl_submitter_slot(&submitter, &pair.map), 0);
        cr_expect_eq(sl_entry_take(0, &pair.map, &entry), 0);
        sl_submitter_publish(&submitter, &pair.map);
        cr_expect_eq(sl_entry_take(0, &pair.map, &entry), 1);
        cr_expect(is_whole(&entry, 0));
        cr_expect_eq(sl_entry_take(1, &pair.map, &entry), 0);
        pair_free(&pair);
}

Test(ring, a_slot_has_room_again_only_when_it_was_consumed)
{
        struct pair pair = pair_new(4, 1);
        struct sl_submitter submitter = {0};

        for (uint32_t i = 0; i < 4; i++) {
                cr_expect_eq(sl_submitter_room(&submitter, &pair.map), 4 - i);
                sl_submitter_publish(&submitter, &pair.map);
        }
        cr_expect_eq(sl_submitter_room(&submitter, &pair.map), 0);
        sl_consumed_publish(3, &pair.map);
        cr_expect_eq(sl_submitter_room(&submitter, &pair.map), 3);
        pair_free(&pair);
}

Test(ring, an_entry_of_the_previous_lap_is_not_taken_again)
{
        struct pair pair = pair_new(4, 1);
        struct sl_submitter submitter = {0};
        struct sl_entry entry;

        for (uint32_t i = 0; i < 4; i++)
                sl_submitter_publish(&submitter, &pair.map);
        for (uint32_t head = 0; head < 4; head++)
                cr_expect_eq(sl_entry_take(head, &pair.map, &entry), 1);
        cr_expect_eq(sl_entry_take(4, &pair.map, &entry), 0);
        pair_free(&pair);
}

static void complete(struct sl_completer *completer, const struct sl_queue_map *q, uint64_t user_data)
{
        sl_completer_put(completer, q, &(struct sl_completion){.user_data = user_data});
}

Test(ring, completions_appear_as_a_batch)
{
        struct pair pair = pair_new(DEPTH, 1);
        struct sl_completer completer = {0};
        struct sl_reaper reaper = {0};

        for (uint64_t i = 0; i < 5; i++)
                complete(&completer, &pair.map, i);
        cr_expect_null(sl_reaper_peek(&reaper, &pair.map));
        cr_expect_eq(atomic_load(&pair.map.response->tail), 0);
        cr_expect_eq(sl_completer_publish(&completer, &pair.map), 1);
        cr_expect_eq(sl_completer_publish(&completer, &pair.map), 0, "nothing new");
        cr_expect_eq(atomic_load(&pair.map.response->tail), 5, "what a sleeper looks at");
        for (uint64_t i = 0; i < 5; i++, sl_reaper_advance(&reaper)) {
                const struct sl_completion *completion = sl_reaper_peek(&reaper, &pair.map);

                cr_assert_not_null(completion);
                cr_expect_eq(completion->user_data, i);
        }
        cr_expect_null(sl_reaper_peek(&reaper, &pair.map));
        cr_expect_eq(sl_completer_taken(&completer, &pair.map), 0, "taken is what was given back");
        sl_reaper_publish(&reaper, &pair.map);
        cr_expect_eq(sl_completer_taken(&completer, &pair.map), 5);
        pair_free(&pair);
}

Test(ring, a_completion_of_the_previous_lap_is_not_reaped_again)
{
        struct pair pair = pair_new(4, 1);
        struct sl_completer completer = {0};
        struct sl_reaper reaper = {0};

        for (uint32_t lap = 0; lap < 3; lap++) {
                for (uint64_t i = 0; i < 4; i++)
                        complete(&completer, &pair.map, 10 * lap + i);
                cr_expect_null(sl_reaper_peek(&reaper, &pair.map), "written, not published");
                sl_completer_publish(&completer, &pair.map);
                for (uint64_t i = 0; i < 4; i++, sl_reaper_advance(&reaper))
                        cr_expect_eq(sl_reaper_peek(&reaper, &pair.map)->user_data, 10 * lap + i);
                cr_expect_null(sl_reaper_peek(&reaper, &pair.map));
        }
        pair_free(&pair);
}

Test(ring, a_hostile_head_is_clamped)
{
        struct pair pair = pair_new(DEPTH, 1);
        struct sl_completer completer = {.next = 1000, .published = 1000};
        const uint32_t heads[] = {0, 1, 935, 936, 937, 999, 1000, 1001, 1000 + DEPTH, UINT32_MAX, 0x80000000u};

        for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
                bool possible = heads[i] >= 1000 - DEPTH && heads[i] <= 1000;

                atomic_store(&pair.map.request->head, heads[i]);
                cr_expect_eq(sl_completer_taken(&completer, &pair.map), possible ? heads[i] : 1000 - DEPTH);
        }
        pair_free(&pair);
}
