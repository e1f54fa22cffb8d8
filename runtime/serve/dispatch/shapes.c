/* SPDX-License-Identifier: Apache-2.0 */
#include "shapes.h"

#include "admission.h"
#include "base/share.h"
#include "ensemble.h"
#include "layout.h"
#include "refuse.h"
#include "request.h"
#include "user.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int sl_shapes_new(uint32_t n_symbols, uint32_t n_slots, uint32_t n_users, struct sl_shapes **ret_shapes)
{
        struct sl_shapes *shapes = calloc(1, sizeof(*shapes) + n_slots * sizeof(shapes->slots[0]));

        if (!shapes)
                return -ENOMEM;
        shapes->uses = calloc((size_t)n_users * n_slots, sizeof(*shapes->uses));
        shapes->used = calloc(n_users, sizeof(*shapes->used));
        if (!shapes->uses || !shapes->used) {
                sl_shapes_free(shapes);
                return -ENOMEM;
        }
        shapes->n_symbols = n_symbols;
        shapes->n_slots = n_slots;
        shapes->n_users = n_users;
        *ret_shapes = shapes;
        return 0;
}

struct sl_shapes *sl_shapes_free(struct sl_shapes *shapes)
{
        if (shapes) {
                free(shapes->uses);
                free(shapes->used);
        }
        free(shapes);
        return NULL;
}

/* One dimension of an input: the batch, a number that the model says, or the size of a symbol, the same wherever it stands. */
static int read_dim(
        const struct sl_port *port, uint32_t axis, uint32_t dim, uint32_t samples, int64_t *sizes, struct sl_reason *reason)
{
        uint8_t symbol = port->symbols[axis];
        uint64_t fixed = axis == port->batch_axis ? samples : (uint64_t)port->shape.dims[axis];

        if (axis == port->batch_axis || symbol == SL_PORT_NO_SYMBOL)
                return dim == fixed ? 0 : sl_refuse(reason, -EINVAL, SL_REASON_DIMENSION, dim, fixed);
        if (sizes[symbol] != SL_DIM_SIZE_NONE && sizes[symbol] != dim)
                return sl_refuse(reason, -EINVAL, SL_REASON_SYMBOL, dim, (uint64_t)sizes[symbol]);
        sizes[symbol] = dim;
        return 0;
}

static int read_input(const struct sl_port *port, const struct sl_descriptor *descriptor, uint32_t samples, int64_t *sizes,
        struct sl_reason *reason)
{
        int r = 0;

        if (sl_input_is_left_out(port, descriptor))
                return 0;
        if (descriptor->dtype != port->dtype)
                return sl_refuse(reason, -EINVAL, SL_REASON_TYPE, descriptor->dtype, (uint64_t)port->dtype);
        if (descriptor->rank != port->shape.rank)
                return sl_refuse(reason, -EINVAL, SL_REASON_RANK, descriptor->rank, port->shape.rank);
        for (uint32_t i = 0; i < port->shape.rank && r == 0; i++) {
                r = read_dim(port, i, descriptor->dims[i], samples, sizes, reason);
                if (r < 0)
                        reason->axis = (uint8_t)i;
        }
        return r;
}

int sl_shapes_sizes(const struct sl_ensemble *open, const struct sl_entry *entry, const struct sl_descriptor *descriptors,
        int64_t ret_sizes[SL_SYMBOLS_MAX], struct sl_reason *ret_reason)
{
        int r = 0;

        for (uint32_t i = 0; i < SL_SYMBOLS_MAX; i++)
                ret_sizes[i] = i < open->shapes->n_symbols ? SL_DIM_SIZE_NONE : 0;
        for (uint32_t i = 0; i < open->n_inputs && r == 0; i++) {
                r = read_input(&open->inputs[i].port, &descriptors[i], entry->samples, ret_sizes, ret_reason);
                if (r < 0)
                        ret_reason->tensor = (uint16_t)i;
        }
        if (sl_ensemble_is_given(open, entry->n_inputs))
                ret_sizes[open->shapes->n_symbols] = 1;
        return r;
}

struct sl_shape_slot *sl_shapes_find(struct sl_shapes *shapes, const int64_t sizes[SL_SYMBOLS_MAX])
{
        for (uint32_t i = 0; i < shapes->n_slots; i++) {
                struct sl_shape_slot *slot = &shapes->slots[i];

                if (slot->state != SL_SHAPE_FREE && memcmp(slot->sizes, sizes, sizeof(slot->sizes)) == 0)
                        return slot;
        }
        return NULL;
}

static bool is_idle(const struct sl_shape_slot *slot)
{
        return slot->state == SL_SHAPE_FAILED || (slot->state == SL_SHAPE_READY && slot->ensemble->in_flight == 0);
}

static uint64_t *uses_of(const struct sl_shapes *shapes, uint32_t user)
{
        return shapes->uses + (size_t)user * shapes->n_slots;
}

/* How many slots the user has used. */
static uint32_t count_uses(const struct sl_shapes *shapes, const struct sl_user *user)
{
        return user ? shapes->used[user->number] : 0;
}

/* The turn of the user's last request for the slot is this. */
static void set_use(struct sl_shapes *shapes, uint32_t user, uint32_t slot, uint64_t turn)
{
        uint64_t *use = &uses_of(shapes, user)[slot];
        uint32_t *used = &shapes->used[user];

        shapes->active -= *used > 0;
        *used += (turn != 0) - (*use != 0);
        shapes->active += *used > 0;
        *use = turn;
}

/* The share of each that uses some, the user included. */
static uint64_t share(const struct sl_shapes *shapes, const struct sl_user *user)
{
        return sl_share_each(shapes->n_slots, shapes->active + (user && !count_uses(shapes, user)));
}

/* It is one of the @each slots that the user has used last. */
static bool keeps(const struct sl_shapes *shapes, uint32_t user, uint32_t slot, uint64_t each)
{
        const uint64_t *uses = uses_of(shapes, user);
        uint32_t later = 0;

        for (uint32_t i = 0; i < shapes->n_slots && uses[slot]; i++)
                later += uses[i] > uses[slot];
        return uses[slot] && later < each;
}

/* Sizes that the model cannot have are nobody's to keep. */
static bool is_kept(const struct sl_shapes *shapes, uint32_t slot, uint32_t user, uint64_t each)
{
        for (uint32_t i = 0; i < shapes->n_users && shapes->slots[slot].state == SL_SHAPE_READY; i++)
                if (i != user && shapes->used[i] && keeps(shapes, i, slot, each))
                        return true;
        return false;
}

/* FREE, or used longest ago and nobody else's to keep; NULL. */
static struct sl_shape_slot *find_room(struct sl_shapes *shapes, uint32_t user, uint64_t each)
{
        struct sl_shape_slot *oldest = NULL;

        for (uint32_t i = 0; i < shapes->n_slots; i++) {
                struct sl_shape_slot *slot = &shapes->slots[i];

                if (slot->state == SL_SHAPE_FREE)
                        return slot;
                if (is_idle(slot) && (!oldest || slot->used < oldest->used) && !is_kept(shapes, i, user, each))
                        oldest = slot;
        }
        return oldest;
}

int sl_shapes_room(struct sl_shapes *shapes, const struct sl_user *user, struct sl_shape_slot **ret_slot)
{
        uint32_t number = user ? user->number : SL_USER_NONE, busy = 0, loading = 0;
        uint64_t each = share(shapes, user);

        for (uint32_t i = 0; i < shapes->n_slots; i++) {
                const struct sl_shape_slot *slot = &shapes->slots[i];

                busy += slot->state != SL_SHAPE_FREE && !is_idle(slot);
                loading += slot->state == SL_SHAPE_LOADING && slot->asker == user;
        }
        if (busy == shapes->n_slots)
                return -EBUSY;
        if (user && (loading >= each || !sl_share_grants(shapes->n_slots, busy, loading)))
                return -EDQUOT;
        *ret_slot = find_room(shapes, number, each);
        if (*ret_slot)
                return 0;
        return user && count_uses(shapes, user) >= each ? -EDQUOT : -EBUSY;
}

void sl_shapes_touch(struct sl_shapes *shapes, struct sl_shape_slot *slot, const struct sl_user *user)
{
        slot->used = ++shapes->turn;
        if (user)
                set_use(shapes, user->number, (uint32_t)(slot - shapes->slots), shapes->turn);
}

/*
 * Frequent elements of a stream: a size without a count takes one away from all when there is no free one, so that a size is never
 * counted too often, and at most one in SL_SIZE_COUNTS + 1 requests too seldom. Sources: Misra, Gries, Finding repeated elements
 * (1982), section 3.
 */
static struct sl_size_count *count_of(struct sl_shapes *shapes, const int64_t *sizes)
{
        struct sl_size_count *room = NULL;

        for (uint32_t i = 0; i < SL_SIZE_COUNTS; i++) {
                if (!shapes->counts[i].requests)
                        room = &shapes->counts[i];
                else if (memcmp(shapes->counts[i].sizes, sizes, sizeof(shapes->counts[i].sizes)) == 0)
                        return &shapes->counts[i];
        }
        if (room)
                memcpy(room->sizes, sizes, sizeof(room->sizes));
        for (uint32_t i = 0; i < SL_SIZE_COUNTS && !room; i++)
                shapes->counts[i].requests--;
        return room;
}

/* One is free, or was used before the last requests; the one that was used longest ago is so, if any. */
static bool has_spare(const struct sl_shapes *shapes)
{
        for (uint32_t i = 0; i < shapes->n_slots; i++) {
                const struct sl_shape_slot *slot = &shapes->slots[i];

                if (slot->state == SL_SHAPE_FREE || (is_idle(slot) && shapes->turn - slot->used > SL_SIZE_WINDOW))
                        return true;
        }
        return false;
}

static void note_asked(struct sl_sizes_asked *asked, const int64_t *sizes)
{
        uint32_t n = atomic_load_explicit(&asked->n, memory_order_relaxed);

        if (n == SL_SIZES_ASKED)
                return;
        for (uint32_t i = 0; i < n; i++)
                if (memcmp(asked->sizes[i], sizes, sizeof(asked->sizes[i])) == 0)
                        return;
        memcpy(asked->sizes[n], sizes, sizeof(asked->sizes[n]));
        atomic_store_explicit(&asked->n, n + 1, memory_order_release);
}

bool sl_shapes_count(struct sl_shapes *shapes, const int64_t sizes[SL_SYMBOLS_MAX])
{
        struct sl_size_count *count;

        note_asked(&shapes->asked, sizes);
        shapes->turn++;
        if (shapes->counted++ == SL_SIZE_WINDOW) {
                shapes->counted = 0;
                memset(shapes->counts, 0, sizeof(shapes->counts));
        }
        count = count_of(shapes, sizes);
        return count && ++count->requests >= SL_SIZE_OFTEN && has_spare(shapes);
}

void sl_shapes_clear(struct sl_shapes *shapes, struct sl_shape_slot *slot)
{
        for (uint32_t i = 0; i < shapes->n_users; i++)
                set_use(shapes, i, (uint32_t)(slot - shapes->slots), 0);
        *slot = (struct sl_shape_slot){.state = SL_SHAPE_FREE};
}

void sl_shapes_forget(struct sl_shapes *shapes, const struct sl_user *user)
{
        for (uint32_t i = 0; i < shapes->n_slots; i++) {
                set_use(shapes, user->number, i, 0);
                if (shapes->slots[i].asker == user)
                        shapes->slots[i].asker = NULL;
        }
}

void sl_shapes_park(struct sl_shape_slot *slot, struct sl_request *request)
{
        request->state = SL_REQUEST_PARKED;
        request->slot = slot;
        request->next = NULL;
        request->previous = slot->last;
        if (slot->last)
                slot->last->next = request;
        else
                slot->first = request;
        slot->last = request;
}

void sl_shapes_unpark(struct sl_request *request)
{
        struct sl_shape_slot *slot = request->slot;

        if (request->previous)
                request->previous->next = request->next;
        else
                slot->first = request->next;
        if (request->next)
                request->next->previous = request->previous;
        else
                slot->last = request->previous;
        request->slot = NULL;
        request->next = request->previous = NULL;
}
