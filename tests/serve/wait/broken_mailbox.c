/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mailbox whose indices have passed each other is noticed by whoever uses it next. For builds with assertions.
 */
#include "mailbox.h"

#include <criterion/criterion.h>
#include <signal.h>

/* Four slots, of which one is in use. */
static struct sl_mailbox *make_mailbox(void)
{
        struct sl_mailbox *mailbox;
        uint32_t message = 7;

        cr_assert_eq(sl_mailbox_new(4, sizeof(message), &mailbox), 0);
        cr_assert_eq(sl_mailbox_put(mailbox, &message), 0);
        return mailbox;
}

Test(broken_mailbox, m1_the_reader_is_ahead_of_the_writer, .signal = SIGABRT)
{
        struct sl_mailbox *mailbox = make_mailbox();

        atomic_store(&mailbox->head, 2);
        mailbox->head_seen = UINT32_MAX - 4; /* as full: it looks again */
        sl_mailbox_put(mailbox, &(uint32_t){0});
}

Test(broken_mailbox, m2_the_writer_is_more_than_all_slots_ahead, .signal = SIGABRT)
{
        struct sl_mailbox *mailbox = make_mailbox();
        uint32_t message;

        atomic_store(&mailbox->tail, 5);
        sl_mailbox_take(mailbox, &message);
}
