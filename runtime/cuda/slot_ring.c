/* SPDX-License-Identifier: Apache-2.0 */
#include "slot_ring.h"

#include "base/assert.h"

#include <errno.h>
#include <stdlib.h>

int sl_slot_ring_init(struct sl_slot_ring *ring, uint32_t n_slots, bool mirrored)
{
        *ring = (struct sl_slot_ring){.n_slots = n_slots, .mirrored = mirrored};
        if (!n_slots)
                return -EINVAL;
        ring->ended = calloc(n_slots, sizeof(*ring->ended));
        return ring->ended ? 0 : -ENOMEM;
}

void sl_slot_ring_deinit(struct sl_slot_ring *ring)
{
        free(ring->ended);
        *ring = (struct sl_slot_ring){.n_slots = 0};
}

uint32_t sl_slot_ring_run(const struct sl_slot_ring *ring, uint64_t position, uint32_t n)
{
        uint32_t most = ring->mirrored ? ring->n_slots : ring->n_slots - sl_slot_ring_slot(ring, position);

        return n < most ? n : most;
}

int sl_slot_ring_fill(struct sl_slot_ring *ring, uint32_t n, uint64_t *ret_first)
{
        if (n > sl_slot_ring_room(ring))
                return -EAGAIN;
        *ret_first = ring->filled;
        ring->filled += n;
        return 0;
}

uint32_t sl_slot_ring_take(struct sl_slot_ring *ring, uint32_t most, uint64_t *ret_first)
{
        uint32_t waiting = sl_slot_ring_waiting(ring), n = sl_slot_ring_run(ring, ring->taken, most < waiting ? most : waiting);

        *ret_first = ring->taken;
        ring->taken += n;
        return n;
}

int sl_slot_ring_give_back(struct sl_slot_ring *ring, uint64_t first, uint32_t n)
{
        if (first < ring->freed || first > ring->taken || n > ring->taken - first)
                return -EINVAL;
        for (uint32_t i = 0; i < n; i++)
                if (ring->ended[sl_slot_ring_slot(ring, first + i)])
                        return -EINVAL;
        for (uint32_t i = 0; i < n; i++)
                ring->ended[sl_slot_ring_slot(ring, first + i)] = true;
        while (ring->freed < ring->taken && ring->ended[sl_slot_ring_slot(ring, ring->freed)])
                ring->ended[sl_slot_ring_slot(ring, ring->freed++)] = false;
        SL_ASSERT(ring->filled - ring->freed <= ring->n_slots);
        return 0;
}
