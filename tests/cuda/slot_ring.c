/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of slots against the plainest model of one: a state for each slot, and lists in order. */
#include "slot_ring.h"

#include "base/split_mix.h"
#include "pool_layout.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#define SLOTS_MAX 37
#define ROUNDS    20000

enum state { FREE, WAITS, READ, ENDED };

struct model {
        enum state states[SLOTS_MAX];
        uint64_t first[SLOTS_MAX]; /* of the batches that are out */
        uint32_t n[SLOTS_MAX], n_out;
};

static uint32_t count(const struct model *model, uint32_t n_slots, enum state state)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < n_slots; i++)
                n += model->states[i] == state;
        return n;
}

static void set_states(
        struct model *model, const struct sl_slot_ring *ring, uint64_t first, uint32_t n, enum state from, enum state to)
{
        for (uint32_t i = 0; i < n; i++) {
                cr_assert_eq(model->states[(first + i) % ring->n_slots], from);
                model->states[(first + i) % ring->n_slots] = to;
        }
}

static void fill(struct sl_slot_ring *ring, struct model *model, uint32_t n)
{
        uint32_t room = ring->n_slots - count(model, ring->n_slots, WAITS) - count(model, ring->n_slots, READ) -
                        count(model, ring->n_slots, ENDED);
        uint64_t before = ring->filled, first = 0;
        int r = sl_slot_ring_fill(ring, n, &first);

        cr_assert_eq(r, n <= room ? 0 : -EAGAIN);
        if (r < 0)
                return;
        cr_assert_eq(first, before);
        set_states(model, ring, first, n, FREE, WAITS);
}

static void take(struct sl_slot_ring *ring, struct model *model, uint32_t most)
{
        uint64_t first = 0;
        uint32_t waiting = count(model, ring->n_slots, WAITS), n = sl_slot_ring_take(ring, most, &first);

        cr_assert_leq(n, most);
        cr_assert_eq(n > 0, waiting > 0);
        if (ring->mirrored)
                cr_assert_eq(n, most < waiting ? most : waiting);
        else
                cr_assert_leq(first % ring->n_slots + n, ring->n_slots, "a batch goes over the end");
        set_states(model, ring, first, n, WAITS, READ);
        if (n) {
                model->first[model->n_out] = first;
                model->n[model->n_out++] = n;
        }
}

/* Any of the batches that are out; what is free afterwards has nothing before it that is not. */
static void give_back(struct sl_slot_ring *ring, struct model *model, uint64_t chance)
{
        uint32_t i = model->n_out ? (uint32_t)(chance % model->n_out) : 0;

        if (!model->n_out)
                return;
        cr_assert_eq(sl_slot_ring_give_back(ring, model->first[i], model->n[i]), 0);
        set_states(model, ring, model->first[i], model->n[i], READ, ENDED);
        cr_assert_eq(sl_slot_ring_give_back(ring, model->first[i], model->n[i]), -EINVAL, "twice");
        model->n_out--;
        model->first[i] = model->first[model->n_out];
        model->n[i] = model->n[model->n_out];
        for (uint64_t p = ring->freed; p-- > 0 && p + ring->n_slots >= ring->filled && model->states[p % ring->n_slots] == ENDED;)
                model->states[p % ring->n_slots] = FREE;
        if (ring->freed < ring->taken)
                cr_assert_eq(model->states[ring->freed % ring->n_slots], READ, "what has ended at the front is free");
}

static void check_ring(uint32_t n_slots, bool mirrored)
{
        struct sl_slot_ring ring;
        struct model model = {.n_out = 0};
        uint64_t random = n_slots;

        cr_assert_eq(sl_slot_ring_init(&ring, n_slots, mirrored), 0);
        for (uint32_t round = 0; round < ROUNDS; round++) {
                uint64_t chance = sl_split_mix_next(&random);
                uint32_t n = 1 + (uint32_t)(chance >> 8) % n_slots;

                if (chance % 3 == 0)
                        fill(&ring, &model, n);
                else if (chance % 3 == 1)
                        take(&ring, &model, n);
                else
                        give_back(&ring, &model, chance >> 20);
                cr_assert_eq(sl_slot_ring_waiting(&ring), count(&model, n_slots, WAITS));
                cr_assert_eq(sl_slot_ring_room(&ring), count(&model, n_slots, FREE));
        }
        cr_assert_gt(ring.filled, 10 * n_slots, "it has gone round");
        sl_slot_ring_deinit(&ring);
}

Test(slot_ring, does_what_the_model_does)
{
        const uint32_t sizes[] = {1, 2, 3, 8, 16, SLOTS_MAX};

        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
                check_ring(sizes[i], true);
                check_ring(sizes[i], false);
        }
}

Test(slot_ring, takes_back_only_what_is_out)
{
        struct sl_slot_ring ring;
        uint64_t first;

        cr_assert_eq(sl_slot_ring_init(&ring, 0, true), -EINVAL);
        cr_assert_eq(sl_slot_ring_init(&ring, 8, true), 0);
        cr_assert_eq(sl_slot_ring_fill(&ring, 4, &first), 0);
        cr_assert_eq(sl_slot_ring_give_back(&ring, 0, 1), -EINVAL, "nobody has it");
        cr_assert_eq(sl_slot_ring_take(&ring, 2, &first), 2);
        cr_assert_eq(sl_slot_ring_give_back(&ring, 1, 2), -EINVAL, "the second waits");
        cr_assert_eq(sl_slot_ring_give_back(&ring, UINT64_MAX, 2), -EINVAL);
        cr_assert_eq(sl_slot_ring_give_back(&ring, 0, 2), 0);
        cr_assert_eq(ring.freed, 2);
        sl_slot_ring_deinit(&ring);
}

static void check_layout(uint64_t slot_bytes, uint32_t wanted, uint32_t n_slots, bool mirrored)
{
        struct sl_pool_layout layout;
        const uint64_t bytes[] = {slot_bytes, 64};

        cr_assert_eq(sl_pool_layout(bytes, 1, wanted, 2 << 20, 1ull << 30, &layout), 0);
        cr_assert_eq(layout.n_slots, n_slots, "%u", layout.n_slots);
        cr_assert_eq(layout.mirrored, mirrored);
        cr_assert_eq(layout.bytes[0] % (2 << 20), 0);
        cr_assert_geq(layout.bytes[0], slot_bytes * n_slots);
        if (mirrored)
                cr_assert_eq(layout.bytes[0], slot_bytes * n_slots, "the mirror begins behind the last slot");
}

Test(layout, has_a_mirror_where_slots_fill_pages)
{
        check_layout(4ull << 20, 5, 5, true);
        check_layout(1ull << 20, 5, 6, true);
        check_layout(602112, 64, 512, true); /* 3x224x224 floats: 4096 times an odd number */
        check_layout(2ull << 16, 1, 16, true);
}

Test(layout, has_none_where_that_would_take_too_many_slots)
{
        check_layout(1ull << 16, 1, 1, false);
        check_layout(12, 64, 64, false); /* half a million, each with an event */
}

Test(layout, has_none_where_that_would_take_too_much)
{
        check_layout(1048577, 100, 100, false); /* two million slots, and a mirror */
}

Test(layout, refuses_what_does_not_fit)
{
        const uint64_t bytes[] = {1ull << 20, 0, UINT64_MAX / 4};
        struct sl_pool_layout layout;

        cr_assert_eq(sl_pool_layout(bytes, 1, 1025, 2 << 20, 1ull << 30, &layout), -E2BIG);
        cr_assert_eq(sl_pool_layout(bytes, 2, 1, 2 << 20, 1ull << 30, &layout), -EINVAL);
        cr_assert_eq(sl_pool_layout(bytes + 2, 1, 16, 2 << 20, 1ull << 30, &layout), -E2BIG);
        cr_assert_eq(sl_pool_layout(bytes, 1, 1, 3, 1ull << 30, &layout), -EINVAL);
}
