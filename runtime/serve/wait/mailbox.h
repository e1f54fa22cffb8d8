/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A single-producer single-consumer ring of fixed-size messages between two threads of the runtime. Holds no pointers into
 * itself, so that it can lie in shared memory.
 *
 *   (B1) producer: fill the slot, then store-seq_cst tail (seq_cst because a bell is looked at next: bell.h).
 *   (B2) consumer: load-acquire tail, then copy the slot.                              pairs with B1
 *   (G1) consumer: slot copied, then store-release head.
 *   (G2) producer: load-acquire head before reusing a slot.                            pairs with G1
 * Indices run freely, and what each side has seen of the other's is not ahead of it:
 *   (M1) producer: tail - head_seen <= mask + 1, as head_seen <= head <= tail <= head + mask + 1.
 *   (M2) consumer: tail_seen - head <= mask + 1.
 */
#pragma once

#include "base/bytes.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct sl_mailbox {
        uint32_t mask;
        uint32_t message_bytes;
        alignas(SL_LINE_PAIR_BYTES) _Atomic uint32_t tail;
        uint32_t head_seen; /* producer's copy of head */
        alignas(SL_LINE_PAIR_BYTES) _Atomic uint32_t head;
        uint32_t tail_seen; /* consumer's copy of tail */
        alignas(SL_LINE_PAIR_BYTES) unsigned char slots[];
};

/* At least @messages of @message_bytes each. Return: 0, -ENOMEM. */
int sl_mailbox_new(uint32_t messages, uint32_t message_bytes, struct sl_mailbox **ret_mailbox);
struct sl_mailbox *sl_mailbox_free(struct sl_mailbox *mailbox);

/* Producer. Return: 0, -EAGAIN when it is full. */
int sl_mailbox_put(struct sl_mailbox *mailbox, const void *message);

/* Producer: so many messages can be put. */
uint32_t sl_mailbox_room(struct sl_mailbox *mailbox);

/* Consumer. True when a message was copied. */
bool sl_mailbox_take(struct sl_mailbox *mailbox, void *ret_message);

/* Consumer: is there a message? seq_cst, for the last look before a sleep (bell.h). */
bool sl_mailbox_waiting(struct sl_mailbox *mailbox);
