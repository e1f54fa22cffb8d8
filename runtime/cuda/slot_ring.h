/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which slots of a circular buffer hold samples that wait, which are read by batches, and which are free. A slot has room for one
 * sample. Slots are filled in order, taken by batches in that order, and given back in any; a slot is free again when all before it
 * are. Pure; one thread.
 *
 * Positions run freely, slot = position % n_slots:
 *
 *      freed <= taken <= filled <= freed + n_slots
 *      [freed, taken)   batches read them, or have ended (the slot's mark) behind one that has not
 *      [taken, filled)  they wait
 *
 * A buffer that is mapped twice in a row is *mirrored*: any n_slots positions are contiguous. In another, slots n_slots - 1 and 0
 * are not, and a batch ends there.
 *
 * Sources: E2bird (W. Cui et al., 2022), section 5.1, which has the buffer and not the mirror.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_slot_ring {
        uint32_t n_slots;
        bool mirrored;
        uint64_t freed, taken, filled;
        bool *ended; /* [n_slots] */
};

/* Return: 0; -ENOMEM; -EINVAL no slots. */
int sl_slot_ring_init(struct sl_slot_ring *ring, uint32_t n_slots, bool mirrored);
void sl_slot_ring_deinit(struct sl_slot_ring *ring);

/* How many of @n slots from @position on lie behind each other. */
uint32_t sl_slot_ring_run(const struct sl_slot_ring *ring, uint64_t position, uint32_t n);

/* Positions for @n samples, from *ret_first on. Return: 0; -EAGAIN there is no room for all of them now. */
int sl_slot_ring_fill(struct sl_slot_ring *ring, uint32_t n, uint64_t *ret_first);

/* The longest contiguous batch of at most @most samples that wait: how many, from *ret_first on. */
uint32_t sl_slot_ring_take(struct sl_slot_ring *ring, uint32_t most, uint64_t *ret_first);

/* A batch, as it was taken, is read no more. Return: 0; -EINVAL it is none that is out. */
int sl_slot_ring_give_back(struct sl_slot_ring *ring, uint64_t first, uint32_t n);

static inline uint32_t sl_slot_ring_slot(const struct sl_slot_ring *ring, uint64_t position)
{
        return (uint32_t)(position % ring->n_slots);
}

static inline uint32_t sl_slot_ring_waiting(const struct sl_slot_ring *ring)
{
        return (uint32_t)(ring->filled - ring->taken);
}

static inline uint32_t sl_slot_ring_room(const struct sl_slot_ring *ring)
{
        return (uint32_t)(ring->freed + ring->n_slots - ring->filled);
}
