/* SPDX-License-Identifier: Apache-2.0 */
/* The words for a failure: of several that fail at once one writes, and the dispatcher reads what that one wrote. */
#include "fault.h"
#include "mailbox.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define TELLERS 3
#define ROUNDS  2000

Test(fault, is_told_once_until_it_is_cleared)
{
        struct sl_fault fault = {0};

        cr_expect_null(sl_fault_text(&fault));
        sl_fault_tell(&fault, "first");
        sl_fault_tell(&fault, "second");
        cr_expect_str_eq(sl_fault_text(&fault), "first");
        sl_fault_clear(&fault);
        cr_expect_null(sl_fault_text(&fault));
        sl_fault_tell(&fault, "third");
        cr_expect_str_eq(sl_fault_text(&fault), "third");
}

Test(fault, words_that_are_too_long_are_cut)
{
        struct sl_fault fault = {0};
        char text[2 * SL_FAULT_BYTES];

        memset(text, 'x', sizeof(text) - 1);
        text[sizeof(text) - 1] = 0;
        sl_fault_tell(&fault, text);
        cr_expect_eq(strlen(sl_fault_text(&fault)), SL_FAULT_BYTES - 1);
}

/* As a worker: tells, then puts its message. The next round begins when the dispatcher has answered. */
struct teller {
        struct sl_fault *fault;
        struct sl_mailbox *inbox, *outbox;
        uint64_t number;
};

static void *teller_run(void *argument)
{
        struct teller *teller = argument;
        uint64_t round;
        char text[32];

        for (uint64_t i = 0; i < ROUNDS; i++) {
                while (!sl_mailbox_take(teller->inbox, &round))
                        sched_yield();
                snprintf(text, sizeof(text), "teller %u round %u", (unsigned)teller->number, (unsigned)round);
                sl_fault_tell(teller->fault, text);
                cr_assert_eq(sl_mailbox_put(teller->outbox, &round), 0);
        }
        return NULL;
}

static void await(struct sl_mailbox *outbox, uint64_t round)
{
        uint64_t answer;

        while (!sl_mailbox_take(outbox, &answer))
                sched_yield();
        cr_assert_eq(answer, round);
}

/* Under ThreadSanitizer a read that is not ordered behind the write shows. */
Test(fault, several_tell_at_once_and_one_is_read)
{
        struct sl_fault fault = {0};
        struct teller tellers[TELLERS];
        pthread_t threads[TELLERS];
        char text[32];

        for (uint32_t i = 0; i < TELLERS; i++) {
                tellers[i] = (struct teller){.fault = &fault, .number = i};
                cr_assert_eq(sl_mailbox_new(2, sizeof(uint64_t), &tellers[i].inbox), 0);
                cr_assert_eq(sl_mailbox_new(2, sizeof(uint64_t), &tellers[i].outbox), 0);
                cr_assert_eq(pthread_create(&threads[i], NULL, teller_run, &tellers[i]), 0);
        }
        for (uint64_t round = 0; round < ROUNDS; round++) {
                bool found = false;

                for (uint32_t i = 0; i < TELLERS; i++)
                        cr_assert_eq(sl_mailbox_put(tellers[i].inbox, &round), 0);
                for (uint32_t i = 0; i < TELLERS; i++)
                        await(tellers[i].outbox, round);
                for (uint32_t i = 0; i < TELLERS; i++) {
                        snprintf(text, sizeof(text), "teller %u round %u", i, (unsigned)round);
                        found |= strcmp(sl_fault_text(&fault), text) == 0;
                }
                cr_assert(found, "%s", sl_fault_text(&fault));
                sl_fault_clear(&fault);
        }
        for (uint32_t i = 0; i < TELLERS; i++) {
                pthread_join(threads[i], NULL);
                sl_mailbox_free(tellers[i].inbox);
                sl_mailbox_free(tellers[i].outbox);
        }
}
