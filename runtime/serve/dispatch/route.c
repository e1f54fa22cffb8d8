/* SPDX-License-Identifier: Apache-2.0 */
#include "route.h"

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

static void end_loading(struct sl_dispatcher *d, struct sl_shape_slot *slot)
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

int sl_route(struct sl_dispatcher *d, struct sl_user *user, const struct sl_entry *entry, const struct sl_descriptor *descriptors,
        struct sl_ensemble **ensemble, struct sl_shape_slot **ret_slot, struct sl_refused *ret_refused)
{
        struct sl_ensemble *open = *ensemble;
        struct sl_shape_slot *slot;
        int64_t sizes[SL_SYMBOLS_MAX];
        int r = sl_shapes_sizes(open, entry, descriptors, sizes, &ret_refused->reason);

        if (r < 0)
                return r;
        slot = sl_shapes_find(open->shapes, sizes);
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

struct sl_shape_slot *sl_route_attach(struct sl_dispatcher *d, struct sl_ensemble *ensemble)
{
        struct sl_ensemble *open = ensemble->is_shape ? open_at(d, ensemble->open_index) : NULL;
        struct sl_shape_slot *slot = open ? sl_shapes_find(open->shapes, ensemble->sizes) : NULL;

        if (!open || (!slot && sl_shapes_room(open->shapes, NULL, &slot) < 0))
                return NULL;
        if (slot->state == SL_SHAPE_READY && slot->ensemble != ensemble)
                return NULL; /* it can be asked for by its own name */
        end_loading(d, slot);
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
        ensemble->attached = false;
        for (uint32_t i = 0; ensemble->shapes && i < ensemble->shapes->n_slots; i++) {
                end_loading(d, &ensemble->shapes->slots[i]);
                end_parked(d, &ensemble->shapes->slots[i], -ECANCELED,
                        "the model was unloaded or replaced while these sizes were being compiled");
        }
}

void sl_route_fail(
        struct sl_dispatcher *d, uint32_t index, const int64_t sizes[SL_SYMBOLS_MAX], int32_t status, bool keep, const char *why)
{
        struct sl_ensemble *open = open_at(d, index);
        struct sl_shape_slot *slot = open ? sl_shapes_find(open->shapes, sizes) : NULL;

        if (!slot || slot->state != SL_SHAPE_LOADING)
                return;
        end_loading(d, slot);
        slot->state = SL_SHAPE_FAILED;
        slot->status = status;
        snprintf(slot->why, sizeof(slot->why), "%s", why);
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
