/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One side is killed at any moment; what the other one sees stays whole. The memory is one memfd that both processes have mapped.
 */
#include "ring.h"
#include "segment.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 200
#define DEPTH  16u

static const struct sl_channel_shape shape = {.n_queues = 1, .depth = DEPTH, .tensors = 2};

struct channel {
        struct sl_mapping request, response;
        int request_fd, response_fd;
        struct sl_queue_map map;
};

static struct channel new_channel(void)
{
        struct sl_channel_offsets offsets;
        struct channel c;

        cr_assert_eq(sl_channel_offsets(&shape, &offsets), 0);
        cr_assert_eq(sl_segment_create("request", offsets.request_bytes, SL_SEAL_SHARED, &c.request_fd, &c.request, NULL), 0);
        cr_assert_eq(sl_segment_create("response", offsets.response_bytes, SL_SEAL_RESPONSE, &c.response_fd, &c.response, NULL), 0);
        sl_queue_map(&c.map, &shape, &offsets, 0, c.request.base, c.response.base);
        return c;
}

static void free_channel(struct channel *c)
{
        sl_mapping_free(&c->request);
        sl_mapping_free(&c->response);
        close(c->request_fd);
        close(c->response_fd);
}

static uint64_t mark(uint32_t index, uint32_t field)
{
        return (index * 8ull + field + 1) * 0x9e3779b97f4a7c15ull;
}

static void fill(const struct sl_submitter *s, const struct sl_queue_map *q)
{
        struct sl_entry *entry = sl_submitter_slot(s, q);
        struct sl_descriptor *descriptors = &q->descriptors[(s->tail & q->mask) * q->tensors];

        entry->user_data = mark(s->tail, 0);
        entry->deadline_ns = mark(s->tail, 1);
        entry->tag = (uint16_t)(s->tail & q->mask);
        entry->reserved2 = mark(s->tail, 2);
        descriptors[0].offset = mark(s->tail, 3);
        descriptors[1].reserved1 = mark(s->tail, 4);
}

static bool is_whole(uint32_t index, const struct sl_entry *entry, const struct sl_queue_map *q)
{
        struct sl_descriptor descriptors[2];

        sl_line_copy(&descriptors[0], &q->descriptors[entry->tag * q->tensors]);
        sl_line_copy(&descriptors[1], &q->descriptors[entry->tag * q->tensors + 1]);
        return entry->user_data == mark(index, 0) && entry->deadline_ns == mark(index, 1) && entry->reserved2 == mark(index, 2) &&
               entry->tag == (index & q->mask) && descriptors[0].offset == mark(index, 3) &&
               descriptors[1].reserved1 == mark(index, 4);
}

/* The client: submits for ever. */
static void produce(const struct sl_queue_map *q)
{
        struct sl_submitter submitter = {0};

        for (;;) {
                while (!sl_submitter_room(&submitter, q))
                        sched_yield();
                fill(&submitter, q);
                sl_submitter_publish(&submitter, q);
        }
}

/* Takes all that is there. Return: how many were broken. */
static uint32_t take_all(uint32_t *head, const struct sl_queue_map *q)
{
        uint32_t broken = 0;
        struct sl_entry entry;

        for (uint32_t i = 0; i < DEPTH && sl_entry_take(*head, q, &entry); i++, (*head)++)
                broken += !is_whole(*head, &entry, q);
        sl_consumed_publish(*head, q);
        return broken;
}

/* Works until the other side has done a random number of steps; it is in the middle of a further one then. */
static uint32_t work_for_a_while(
        unsigned *seed, uint32_t *head, const struct sl_queue_map *q, uint32_t (*work)(uint32_t *, const struct sl_queue_map *))
{
        uint32_t target = (uint32_t)rand_r(seed) % 3000, broken = 0;

        while (*head < target) {
                uint32_t before = *head;

                broken += work(head, q);
                if (*head == before)
                        sched_yield();
        }
        return broken;
}

Test(kill, entries_of_a_client_that_was_killed_are_whole)
{
        unsigned seed = 7;
        uint64_t taken = 0;

        for (int round = 0; round < ROUNDS; round++) {
                struct channel c = new_channel();
                uint32_t head = 0, broken = 0;
                pid_t client = fork();

                if (client == 0)
                        produce(&c.map);
                broken += work_for_a_while(&seed, &head, &c.map, take_all);
                kill(client, SIGKILL);
                waitpid(client, NULL, 0);
                for (int i = 0; i < 4; i++)
                        broken += take_all(&head, &c.map);
                cr_assert_eq(broken, 0, "round %d", round);
                struct sl_entry entry;
                cr_assert_eq(sl_entry_take(head, &c.map, &entry), 0, "nothing comes after the last one");
                taken += head;
                free_channel(&c);
        }
        cr_expect_gt(taken, ROUNDS);
}

/* The runtime: completes for ever what was never asked, as fast as the client takes it. */
static void complete_on(const struct sl_queue_map *q)
{
        struct sl_completer completer = {0};

        for (;;) {
                while (completer.next - sl_completer_taken(&completer, q) < q->depth) {
                        uint32_t index = completer.next;

                        sl_completer_put(&completer, q,
                                &(struct sl_completion){
                                        .user_data = mark(index, 0), .index = index, .combining_ns = mark(index, 1)});
                        if (index % 3 == 0)
                                break;
                }
                if (!sl_completer_publish(&completer, q))
                        sched_yield();
        }
}

static uint32_t reap_all(uint32_t *head, const struct sl_queue_map *q)
{
        struct sl_reaper reaper = {.head = *head};
        const struct sl_completion *completion;
        uint32_t broken = 0;

        for (uint32_t n = 0; n < q->depth && (completion = sl_reaper_peek(&reaper, q)); n++, sl_reaper_advance(&reaper)) {
                broken += completion->index != reaper.head || completion->user_data != mark(reaper.head, 0) ||
                          completion->combining_ns != mark(reaper.head, 1);
        }
        sl_reaper_publish(&reaper, q);
        *head = reaper.head;
        return broken;
}

Test(kill, completions_of_a_runtime_that_was_killed_are_whole)
{
        unsigned seed = 8;
        uint64_t reaped = 0;

        for (int round = 0; round < ROUNDS; round++) {
                struct channel c = new_channel();
                uint32_t head = 0, broken = 0;
                pid_t runtime = fork();

                if (runtime == 0)
                        complete_on(&c.map);
                broken += work_for_a_while(&seed, &head, &c.map, reap_all);
                kill(runtime, SIGKILL);
                waitpid(runtime, NULL, 0);
                broken += reap_all(&head, &c.map);
                cr_assert_eq(broken, 0, "round %d", round);
                cr_assert(!sl_tail_is_beyond(atomic_load(&c.map.response->tail), head), "all that a sleeper was told of");
                reaped += head;
                free_channel(&c);
        }
        cr_expect_gt(reaped, ROUNDS);
}
