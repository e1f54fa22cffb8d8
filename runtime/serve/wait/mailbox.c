/* SPDX-License-Identifier: Apache-2.0 */
#include "mailbox.h"

#include "base/assert.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t round_up_to_power_of_two(uint32_t value)
{
        uint32_t power = 1;

        while (power < value)
                power <<= 1;
        return power;
}

int sl_mailbox_new(uint32_t messages, uint32_t message_bytes, struct sl_mailbox **ret_mailbox)
{
        uint32_t slots = round_up_to_power_of_two(messages);
        size_t bytes = sl_align_up(sizeof(struct sl_mailbox) + (size_t)slots * message_bytes, SL_LINE_PAIR_BYTES);
        struct sl_mailbox *mailbox = aligned_alloc(SL_LINE_PAIR_BYTES, bytes);

        if (!mailbox)
                return -ENOMEM;
        memset(mailbox, 0, sizeof(*mailbox)); /* a slot is written before it is read, and takes no memory until then */
        mailbox->mask = slots - 1;
        mailbox->message_bytes = message_bytes;
        *ret_mailbox = mailbox;
        return 0;
}

struct sl_mailbox *sl_mailbox_free(struct sl_mailbox *mailbox)
{
        free(mailbox);
        return NULL;
}

static unsigned char *slot_of(struct sl_mailbox *mailbox, uint32_t index)
{
        return mailbox->slots + (size_t)(index & mailbox->mask) * mailbox->message_bytes;
}

int sl_mailbox_put(struct sl_mailbox *mailbox, const void *message)
{
        uint32_t tail = atomic_load_explicit(&mailbox->tail, memory_order_relaxed);

        if (tail - mailbox->head_seen > mailbox->mask) {
                mailbox->head_seen = atomic_load_explicit(&mailbox->head, memory_order_acquire); /* G2 */
                SL_ASSERT(tail - mailbox->head_seen <= mailbox->mask + 1);                       /* M1 */
                if (tail - mailbox->head_seen > mailbox->mask)
                        return -EAGAIN;
        }
        memcpy(slot_of(mailbox, tail), message, mailbox->message_bytes);
        atomic_store_explicit(&mailbox->tail, tail + 1, memory_order_seq_cst); /* B1 */
        return 0;
}

uint32_t sl_mailbox_room(struct sl_mailbox *mailbox)
{
        mailbox->head_seen = atomic_load_explicit(&mailbox->head, memory_order_acquire); /* G2 */
        return mailbox->mask + 1 - (atomic_load_explicit(&mailbox->tail, memory_order_relaxed) - mailbox->head_seen);
}

bool sl_mailbox_take(struct sl_mailbox *mailbox, void *ret_message)
{
        uint32_t head = atomic_load_explicit(&mailbox->head, memory_order_relaxed);

        if (head == mailbox->tail_seen) {
                mailbox->tail_seen = atomic_load_explicit(&mailbox->tail, memory_order_acquire); /* B2 */
                if (head == mailbox->tail_seen)
                        return false;
        }
        SL_ASSERT(mailbox->tail_seen - head <= mailbox->mask + 1); /* M2 */
        memcpy(ret_message, slot_of(mailbox, head), mailbox->message_bytes);
        atomic_store_explicit(&mailbox->head, head + 1, memory_order_release); /* G1 */
        return true;
}

bool sl_mailbox_waiting(struct sl_mailbox *mailbox)
{
        return atomic_load_explicit(&mailbox->tail, memory_order_seq_cst) !=
               atomic_load_explicit(&mailbox->head, memory_order_relaxed);
}
