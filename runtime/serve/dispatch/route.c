/* SPDX-License-Identifier: Apache-2.0 */
#include "route.h"

#include "base/error.h"
#include "base/share.h"
#include "cancel.h"
#include "completion.h"
#include "dispatcher_state.h"
#include "event.h"
#include "message.h"
#include "refuse.h"
#include "request.h"
#include "shapes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void sl_route_end_loading(struct sl_dispatcher *d, struct sl_shape_slot *slot)
{
        if (slot->state != SL_SHAPE_LOADING)
                return;
        d->shapes_loading--;
        if (slot->asker)
                slot->asker->shapes_loading--;
        slot->asker = NULL;
}

/* What one user asks for keeps the records of loads from nobody. */
static int check_share(const struct sl_dispatcher *d, const struct sl_user *user, struct sl_reason *reason)
{
        if (sl_share_grants(SL_SHAPES_MAX, d->shapes_loading, user->shapes_loading))
                return 0;
        if (d->shapes_loading < SL_SHAPES_MAX)
                return sl_refuse(reason, -EDQUOT, SL_REASON_COMPILING_SHARE, user->shapes_loading, SL_SHAPES_MAX);
        return sl_refuse(reason, -EBUSY, SL_REASON_COMPILING, d->shapes_loading, SL_SHAPES_MAX);
}

static int find_room(
        struct sl_ensemble *open, const struct sl_user *user, struct sl_shape_slot **ret_slot, struct sl_reason *reason)
{
        int r = sl_shapes_room(open->shapes, user, ret_slot);

        return r == 0 ? 0
                      : sl_refuse(reason, r, r == -EBUSY ? SL_REASON_SIZES_FULL : SL_REASON_SIZES_SHARE, 0, open->shapes->n_slots);
}

/* What made room is unloaded; its slot is another's at once. */
static int ask(struct sl_dispatcher *d, struct sl_ensemble *open, const int64_t *sizes, struct sl_user *user,
        struct sl_shape_slot **ret_slot, struct sl_reason *reason)
{
        struct sl_shape_slot *slot;
        int r = check_share(d, user, reason);

        if (r == 0)
                r = find_room(open, user, &slot, reason);
        if (r == 0 && slot->state == SL_SHAPE_READY)
                r = sl_event_shape(d, SL_EVENT_SHAPE_UNWANTED, slot->ensemble, slot->sizes, user->uid);
        if (r < 0)
                return r;
        if (slot->state == SL_SHAPE_READY)
                slot->ensemble->attached = false;
        sl_shapes_clear(open->shapes, slot);
        if (sl_event_shape(d, SL_EVENT_SHAPE_WANTED, open, sizes, user->uid) < 0)
                return sl_refuse(reason, -EBUSY, SL_REASON_COMPILING, SL_SHAPES_MAX, SL_SHAPES_MAX);
        slot->state = SL_SHAPE_LOADING;
        slot->asker = user;
        user->shapes_loading++;
        d->shapes_loading++;
        memcpy(slot->sizes, sizes, sizeof(slot->sizes));
        *ret_slot = slot;
        return 0;
}

static int refuse_failed(const struct sl_shape_slot *slot, struct sl_refused *ret_refused)
{
        ret_refused->text = slot->why;
        return sl_refuse(&ret_refused->reason, slot->status, SL_REASON_TEXT, 0, 0);
}

/* Until it has a plan of its own, which is made meanwhile if it is worth it, and if there is room: nobody waits for that. */
static void compute_any(struct sl_dispatcher *d, struct sl_ensemble *open, const int64_t *sizes, struct sl_user *user, bool known)
{
        struct sl_shape_slot *slot;
        struct sl_reason unused;

        if (sl_shapes_count(open->shapes, sizes) && !known && ask(d, open, sizes, user, &slot, &unused) == 0)
                sl_shapes_touch(open->shapes, slot, user);
}

static bool goes_to_any(const struct sl_ensemble *open, const struct sl_shape_slot *slot, const struct sl_entry *entry)
{
        bool has_own = slot && (slot->state == SL_SHAPE_READY || slot->only_own);

        return open->shapes->any && !has_own && !sl_ensemble_is_given(open, entry->n_inputs);
}

int sl_route_own(struct sl_dispatcher *d, struct sl_user *user, const struct sl_entry *entry,
        const struct sl_descriptor *descriptors, struct sl_ensemble *open, struct sl_shape_slot **ret_slot,
        struct sl_refused *ret_refused)
{
        int64_t sizes[SL_SYMBOLS_MAX];
        struct sl_shape_slot *slot;
        int r = sl_shapes_sizes(open, entry, descriptors, sizes, &ret_refused->reason);

        if (r < 0)
                return r;
        slot = sl_shapes_find(open->shapes, sizes);
        if (slot && slot->state == SL_SHAPE_FAILED)
                return refuse_failed(slot, ret_refused);
        if (!slot)
                r = ask(d, open, sizes, user, &slot, &ret_refused->reason);
        if (r < 0)
                return r;
        slot->only_own = true;
        sl_shapes_touch(open->shapes, slot, user);
        *ret_slot = slot;
        return 0;
}

int sl_route(struct sl_dispatcher *d, struct sl_user *user, const struct sl_entry *entry, const struct sl_descriptor *descriptors,
        struct sl_ensemble **ensemble, struct sl_shape_slot **ret_slot, struct sl_refused *ret_refused)
{
        struct sl_ensemble *open = *ensemble;
        struct sl_shape_slot *slot;
        int64_t sizes[SL_SYMBOLS_MAX];
        int r = 0;

        if (open->rests) /* whatever their sizes */
                memset(sizes, 0, sizeof(sizes));
        else
                r = sl_shapes_sizes(open, entry, descriptors, sizes, &ret_refused->reason);
        if (r < 0)
                return r;
        slot = sl_shapes_find(open->shapes, sizes);
        if (goes_to_any(open, slot, entry)) {
                compute_any(d, open, sizes, user, slot != NULL);
                *ensemble = open->shapes->any;
                *ret_slot = NULL;
                return 0;
        }
        if (!slot)
                r = ask(d, open, sizes, user, &slot, &ret_refused->reason);
        else if (slot->state == SL_SHAPE_FAILED)
                r = refuse_failed(slot, ret_refused);
        if (r < 0)
                return r;
        sl_shapes_touch(open->shapes, slot, user);
        *ensemble = slot->state == SL_SHAPE_READY ? slot->ensemble : open;
        *ret_slot = slot->state == SL_SHAPE_READY ? NULL : slot;
        return 0;
}

/* NULL when what is served there has changed meanwhile. */
static struct sl_ensemble *open_at(const struct sl_dispatcher *d, uint32_t index)
{
        struct sl_ensemble *open = index < SL_CATALOGUE_MODELS ? d->served[index] : NULL;

        return open && open->shapes ? open : NULL;
}

static void end_parked(struct sl_dispatcher *d, struct sl_shape_slot *slot, int32_t status, const char *why)
{
        while (slot->first) {
                struct sl_queue *queue = slot->first->queue;

                sl_fault_tell(slot->first->fault, why);

                sl_give_up(d, slot->first, status);
                sl_completions_publish(d, queue);
        }
}

static bool lead_with_batch(const struct sl_served_port *ports, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++)
                if (ports[i].port.batch_axis != 0 || ports[i].port.fallback)
                        return false;
        return true;
}

/* Samples are computed apart from each other, and their requests leave nothing out. */
static bool has_batch(const struct sl_ensemble *open)
{
        return open->n_inputs && lead_with_batch(open->inputs, open->n_inputs) &&
               lead_with_batch(open->assembly.outputs, open->assembly.n_outputs);
}

struct sl_shape_slot *sl_route_attach(struct sl_dispatcher *d, struct sl_ensemble *ensemble)
{
        struct sl_ensemble *open = ensemble->is_shape ? open_at(d, ensemble->open_index) : NULL;
        struct sl_shape_slot *slot = open ? sl_shapes_find(open->shapes, ensemble->sizes) : NULL;

        if (open && ensemble->sizes[0] == SL_DIM_SIZE_ANY) {
                open->shapes->any = ensemble;
                ensemble->gathers = has_batch(open);
                ensemble->attached = true;
                return NULL;
        }
        if (!open || (!slot && sl_shapes_room(open->shapes, NULL, &slot) < 0))
                return NULL;
        if (slot->state == SL_SHAPE_READY && slot->ensemble != ensemble)
                return NULL; /* it can be asked for by its own name */
        sl_route_end_loading(d, slot);
        if (slot->state == SL_SHAPE_FAILED)
                sl_shapes_clear(open->shapes, slot);
        slot->state = SL_SHAPE_READY;
        slot->ensemble = ensemble;
        memcpy(slot->sizes, ensemble->sizes, sizeof(slot->sizes));
        sl_shapes_touch(open->shapes, slot, NULL);
        ensemble->attached = true;
        return slot;
}

void sl_route_detach(struct sl_dispatcher *d, struct sl_ensemble *ensemble)
{
        struct sl_ensemble *open = ensemble->attached ? open_at(d, ensemble->open_index) : NULL;
        struct sl_shape_slot *slot = open ? sl_shapes_find(open->shapes, ensemble->sizes) : NULL;

        if (slot && slot->ensemble == ensemble)
                sl_shapes_clear(open->shapes, slot);
        if (open && open->shapes->any == ensemble)
                open->shapes->any = NULL;
        ensemble->attached = false;
        for (uint32_t i = 0; ensemble->shapes && i < ensemble->shapes->n_slots; i++) {
                sl_route_end_loading(d, &ensemble->shapes->slots[i]);
                end_parked(d, &ensemble->shapes->slots[i], -ECANCELED,
                        "the model was unloaded or replaced while a plan for the request was being compiled");
        }
}

void sl_route_fail(
        struct sl_dispatcher *d, uint32_t index, const int64_t sizes[SL_SYMBOLS_MAX], int32_t status, bool keep, const char *why)
{
        struct sl_ensemble *open = open_at(d, index);
        struct sl_shape_slot *slot = open ? sl_shapes_find(open->shapes, sizes) : NULL;

        if (!slot || slot->state != SL_SHAPE_LOADING)
                return;
        sl_route_end_loading(d, slot);
        slot->state = SL_SHAPE_FAILED;
        slot->status = status;
        sl_error_fit(why, slot->why, sizeof(slot->why));
        end_parked(d, slot, status, why);
        if (!keep)
                sl_shapes_clear(open->shapes, slot);
}

void sl_route_forget(struct sl_dispatcher *d, struct sl_user *user)
{
        for (struct sl_ensemble *ensemble = d->ensembles; ensemble; ensemble = ensemble->next)
                if (ensemble->shapes)
                        sl_shapes_forget(ensemble->shapes, user);
        user->shapes_loading = 0;
}
