/* SPDX-License-Identifier: Apache-2.0 */
#include "mailbox.h"
#include "bell.h"
#include "wait.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define MESSAGES 200000u

struct message {
        uint64_t number, check;
};

Test(mailbox, refuses_when_full_and_loses_nothing)
{
        struct message message = {0};
        struct sl_mailbox *mailbox;

        cr_assert_eq(sl_mailbox_new(3, sizeof(message), &mailbox), 0);
        for (message.number = 0; message.number < 4; message.number++)
                cr_assert_eq(sl_mailbox_put(mailbox, &message), 0);
        cr_assert_eq(sl_mailbox_put(mailbox, &message), -EAGAIN);
        for (uint64_t i = 0; i < 4; i++) {
                cr_assert(sl_mailbox_take(mailbox, &message));
                cr_assert_eq(message.number, i);
        }
        cr_assert_not(sl_mailbox_take(mailbox, &message));
        sl_mailbox_free(mailbox);
}

Test(mailbox, goes_on_when_its_indices_wrap)
{
        struct message message = {0};
        struct sl_mailbox *mailbox;

        cr_assert_eq(sl_mailbox_new(4, sizeof(message), &mailbox), 0);
        atomic_store(&mailbox->tail, UINT32_MAX - 1);
        atomic_store(&mailbox->head, UINT32_MAX - 1);
        mailbox->head_seen = mailbox->tail_seen = UINT32_MAX - 1;
        for (uint64_t i = 0; i < 10; i++) {
                message.number = i;
                cr_assert_eq(sl_mailbox_put(mailbox, &message), 0);
                cr_assert(sl_mailbox_take(mailbox, &message));
                cr_assert_eq(message.number, i);
        }
        sl_mailbox_free(mailbox);
}

struct pair {
        struct sl_mailbox *mailbox;
        struct sl_bell bell;
};

static void *consume(void *argument)
{
        struct pair *pair = argument;
        struct sl_wait_event event;
        struct message message;

        cr_assert_eq(sl_wait_new(SL_WAIT_ANY, &pair->bell.wait, NULL), 0);
        for (uint64_t i = 0; i < MESSAGES;) {
                if (sl_mailbox_take(pair->mailbox, &message)) {
                        cr_assert_eq(message.number, i);
                        cr_assert_eq(message.check, i * 0x9e3779b97f4a7c15ull);
                        i++;
                        continue;
                }
                sl_bell_sleep(&pair->bell);
                if (!sl_mailbox_waiting(pair->mailbox))
                        cr_assert_gt(sl_wait_for(pair->bell.wait, &event, 1, 60000000000ull), 0, "a wake-up was lost");
                sl_bell_awake(&pair->bell);
        }
        return NULL;
}

/* The producer pauses now and then, so that the consumer falls asleep at all sorts of moments. */
Test(mailbox, wakes_a_sleeping_consumer_and_hands_over_whole_messages, .timeout = 60)
{
        struct pair *pair = aligned_alloc(128, sizeof(*pair));
        pthread_t thread;

        *pair = (struct pair){0};
        cr_assert_eq(sl_mailbox_new(16, sizeof(struct message), &pair->mailbox), 0);
        pthread_create(&thread, NULL, consume, pair);
        for (uint64_t i = 0; i < MESSAGES; i++) {
                struct message message = {.number = i, .check = i * 0x9e3779b97f4a7c15ull};

                while (sl_mailbox_put(pair->mailbox, &message) == -EAGAIN)
                        ;
                sl_bell_ring(&pair->bell, NULL);
                if (i % 97 == 0)
                        for (volatile uint64_t spin = 0; spin < i % 5000; spin++)
                                ;
        }
        pthread_join(thread, NULL);
        sl_wait_free(pair->bell.wait);
        sl_mailbox_free(pair->mailbox);
        free(pair);
}
