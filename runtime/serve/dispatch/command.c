/* SPDX-License-Identifier: Apache-2.0 */
#include "command.h"

#include "cancel.h"
#include "completion.h"
#include "decisions.h"
#include "dispatcher_state.h"
#include "enlist.h"
#include "event.h"
#include "intake.h"
#include "lines.h"
#include "record.h"
#include "refuse.h"
#include "route.h"
#include "settle.h"
#include "shapes.h"
#include "spin_advice.h"

#include <errno.h>

static void add_channel(struct sl_dispatcher *d, struct sl_channel *channel)
{
        channel->user->channels++;
        for (uint32_t i = 0; i < channel->shape.n_queues; i++)
                d->cold[d->n_cold++] = &channel->queues[i];
        if (sl_wait_watch(d->wait, channel->doorbell_fd, (uint64_t)(uintptr_t)channel) < 0) {
                channel->broken = true;
                sl_event_send(d, SL_EVENT_CHANNEL_BROKEN, channel, -ENOMEM, "its doorbell cannot be watched");
        }
}

/* Nobody is left to read completions; workers may still be reading the client's tensors. */
static void remove_channel(struct sl_dispatcher *d, struct sl_channel *channel)
{
        channel->broken = true;
        for (uint32_t i = 0; i < channel->shape.n_queues; i++)
                sl_give_up_queue(d, &channel->queues[i], -EPIPE);
        channel->next_leaving = d->leaving;
        d->leaving = channel;
        d->unsettled = true;
}

static bool is_named(const struct sl_request *request, uint32_t number)
{
        uint32_t n = request->ensemble->n_inputs + request->ensemble->assembly.n_outputs;

        for (uint32_t i = 0; i < n; i++)
                if (request->work.inputs[i].region == number)
                        return true;
        return false;
}

/* What is parked has no places yet: its tensors are looked at when its sizes are served. */
static bool is_in_use(const struct sl_channel *channel, uint32_t number)
{
        for (uint32_t i = 0; i < channel->shape.n_queues; i++) {
                const struct sl_queue *queue = &channel->queues[i];

                for (uint32_t tag = 0; queue->in_flight && tag < channel->shape.depth; tag++)
                        if (queue->requests[tag].state >= SL_REQUEST_WAITING && is_named(&queue->requests[tag], number))
                                return true;
        }
        return false;
}

static void release_region(struct sl_dispatcher *d, struct sl_channel *channel, uint32_t index)
{
        struct sl_region *region = &channel->regions[index];
        bool in_use = is_in_use(channel, region->number);

        if (!in_use)
                atomic_store_explicit(&region->live, 0, memory_order_relaxed); /* R3 */
        sl_event_send(d, SL_EVENT_REGION_RELEASED, channel, in_use ? -EBUSY : 0, NULL);
}

static void retire(struct sl_dispatcher *d, struct sl_ensemble *ensemble)
{
        sl_route_detach(d, ensemble);
        ensemble->retired = true;
        d->unsettled = true;
}

static void withdraw(struct sl_dispatcher *d, uint32_t index)
{
        struct sl_ensemble *ensemble = d->served[index];

        d->served[index] = NULL;
        if (ensemble)
                retire(d, ensemble);
}

/* What waited for just these sizes. */
static void readmit(struct sl_dispatcher *d, struct sl_shape_slot *slot, struct sl_ensemble *ensemble)
{
        while (slot && slot->first) {
                struct sl_request *request = slot->first;

                sl_shapes_unpark(request);
                sl_intake_again(d, request, ensemble);
        }
}

static void refuse_stale(struct sl_dispatcher *d, struct sl_request *request)
{
        struct sl_queue *queue = request->queue;
        struct sl_refused refused = {0};
        int r = sl_refuse(&refused.reason, -ESTALE, SL_REASON_GENERATION, 0, 0);

        sl_complete_refused(d, request, r, &refused);
        sl_completions_publish(d, queue);
}

static void move_parked(struct sl_dispatcher *d, struct sl_shape_slot *slot, struct sl_ensemble *ensemble)
{
        while (slot->first) {
                struct sl_request *request = slot->first;

                sl_shapes_unpark(request);
                if (request->entry.generation == ensemble->generation)
                        sl_intake_again(d, request, ensemble);
                else
                        refuse_stale(d, request);
        }
}

/* A model that is loaded on request comes, or goes: what waits goes on waiting, or is computed. */
static void move_all_parked(struct sl_dispatcher *d, struct sl_ensemble *old, struct sl_ensemble *ensemble)
{
        for (uint32_t i = 0; i < old->shapes->n_slots; i++) {
                struct sl_shape_slot *slot = &old->shapes->slots[i];

                if (slot->state != SL_SHAPE_LOADING)
                        continue;
                sl_route_end_loading(d, slot);
                move_parked(d, slot, ensemble);
                sl_shapes_clear(old->shapes, slot);
        }
}

static void attach_ensemble(struct sl_dispatcher *d, struct sl_ensemble *ensemble)
{
        struct sl_ensemble *old = d->served[ensemble->index];
        bool moves = old && old->shapes && (old->rests || ensemble->rests);

        if (old && !moves)
                retire(d, old);
        ensemble->next = d->ensembles;
        d->ensembles = ensemble;
        if (!ensemble->rests) {
                sl_decisions_ensemble(d, ensemble);
                sl_broadcast_ring_add(&d->broadcasts, &ensemble->broadcasts);
        }
        d->served[ensemble->index] = ensemble;
        readmit(d, sl_route_attach(d, ensemble), ensemble);
        if (!moves)
                return;
        move_all_parked(d, old, ensemble);
        retire(d, old);
}

static void remove_bundled(struct sl_dispatcher *d, const struct sl_model *model)
{
        struct sl_bundle **link = &d->bundles;

        sl_bundle_remove(model->bundle, model);
        sl_settle_blocks(d, model->bundle);
        if (model->bundle->n_models)
                return;
        while (*link != model->bundle)
                link = &(*link)->next;
        *link = model->bundle->next;
}

static void remove_model(struct sl_dispatcher *d, struct sl_model *model)
{
        struct sl_model **link = &d->models;

        for (uint32_t i = 0; i < sl_workers_all(&model->workers); i++)
                sl_worker_leaves(d, model, model->workers.list[i]);
        if (model->inliner && model->inliner->carrier)
                sl_carrier_forgets(model->inliner->carrier, model->inliner->lane);
        sl_decisions_end(d);
        while (*link != model)
                link = &(*link)->next;
        *link = model->next;
        sl_busy_remove(&d->busy, model);
        if (model->bundle)
                remove_bundled(d, model);
        sl_shared_core_note(d);
        sl_event_send(d, SL_EVENT_MODEL_GONE, model, 0, NULL);
}

static void add_bundled(struct sl_dispatcher *d, struct sl_model *model)
{
        if (model->bundle->n_models == 0) {
                model->bundle->next = d->bundles;
                d->bundles = model->bundle;
        }
        sl_bundle_add(model->bundle, model);
        sl_decisions_end(d);
}

static void add_inliner(struct sl_dispatcher *d, struct sl_model *model)
{
        model->inliner->model = model;
        if (model->inliner->carrier) {
                sl_carrier_knows(model->inliner->carrier, model->inliner->lane);
                model->bundle->inliner = model->inliner->carrier;
        }
        sl_record_worker(d, model->inliner);
}

static void add_model(struct sl_dispatcher *d, struct sl_model *model)
{
        model->next = d->models;
        model->number = ++d->n_added;
        d->models = model;
        sl_decisions_model(d, model);
        if (model->bundle)
                add_bundled(d, model);
        for (uint32_t i = 0; i < model->workers.n; i++)
                sl_worker_joins(d, model, model->workers.list[i]);
        if (model->inliner)
                add_inliner(d, model);
        sl_shared_core_note(d);
}

static void add_worker(struct sl_dispatcher *d, struct sl_model *model, struct sl_executor *worker)
{
        sl_decisions_end(d);
        sl_workers_add(&model->workers, worker);
        sl_fault_clear(&model->down);
        sl_worker_joins(d, model, worker);
        sl_shared_core_note(d);
}

static void remove_worker(struct sl_dispatcher *d, struct sl_model *model, const struct sl_executor *worker)
{
        sl_decisions_end(d);
        d->unsettled |= sl_workers_dismiss(&model->workers, worker);
}

/* What cannot be put away before launches are over is in the next passes. */
static void put_blocks(struct sl_dispatcher *d, struct sl_carrier *carrier, struct sl_block *blocks)
{
        if (blocks)
                sl_carrier_put_blocks(carrier, blocks);
        else
                sl_carrier_put_blocks_away(carrier);
        d->unsettled |= carrier->leaving != NULL;
}

static void cancel_all(struct sl_dispatcher *d)
{
        for (uint32_t i = 0; i < d->n_hot; i++)
                sl_give_up_queue(d, d->hot[i], -ECANCELED);
        for (uint32_t i = 0; i < d->n_cold; i++)
                sl_give_up_queue(d, d->cold[i], -ECANCELED);
        for (uint32_t i = 0; i < d->n_hot; i++)
                sl_completions_publish(d, d->hot[i]);
        for (uint32_t i = 0; i < d->n_cold; i++)
                sl_completions_publish(d, d->cold[i]);
}

static void obey(struct sl_dispatcher *d, const struct sl_command *command)
{
        switch ((enum sl_command_kind)command->kind) {
        case SL_COMMAND_ADD_CHANNEL:
                add_channel(d, command->pointer);
                break;
        case SL_COMMAND_REMOVE_CHANNEL:
                remove_channel(d, command->pointer);
                break;
        case SL_COMMAND_RELEASE_REGION:
                release_region(d, command->pointer, command->index);
                break;
        case SL_COMMAND_SERVE:
                attach_ensemble(d, command->pointer);
                break;
        case SL_COMMAND_ATTACH:
                readmit(d, sl_route_attach(d, command->pointer), command->pointer);
                break;
        case SL_COMMAND_WITHDRAW:
                withdraw(d, command->index);
                break;
        case SL_COMMAND_ADD_MODEL:
                add_model(d, command->pointer);
                break;
        case SL_COMMAND_REMOVE_MODEL:
                remove_model(d, command->pointer);
                break;
        case SL_COMMAND_ADD_WORKER:
                add_worker(d, command->pointer, command->worker);
                break;
        case SL_COMMAND_REMOVE_WORKER:
                remove_worker(d, command->pointer, command->worker);
                break;
        case SL_COMMAND_PUT_BLOCKS:
                put_blocks(d, command->carrier, command->pointer);
                break;
        case SL_COMMAND_MODEL_DOWN: {
                struct sl_model *model = command->pointer;

                sl_fault_clear(&model->down);
                sl_fault_tell(&model->down, command->why);
                break;
        }
        case SL_COMMAND_SHAPE_FAILED:
                sl_route_fail(d, command->index, command->sizes, command->status, command->keep, command->why);
                break;
        case SL_COMMAND_CLOSE:
                d->closing = true;
                d->unsettled = true;
                break;
        case SL_COMMAND_CANCEL_ALL:
                cancel_all(d);
                break;
        case SL_COMMAND_PROBE:
                sl_event_send(d, SL_EVENT_ALIVE, NULL, 0, "");
                break;
        case SL_COMMAND_WATCH:
                sl_lines_watch(d, command->index, command->pointer);
                break;
        case SL_COMMAND_MARK:
                sl_lines_show(d, sl_pass_now(&d->pass)); /* whoever is told of a model finds what it takes */
                sl_event_send(d, SL_EVENT_MARKED, NULL, 0, "");
                break;
        case SL_COMMAND_SAMPLE:
                d->recorder.sampling = command->index;
                break;
        case SL_COMMAND_QUIT:
                d->quit = true;
                break;
        }
}

uint32_t sl_commands(struct sl_dispatcher *d)
{
        struct sl_command command;
        uint32_t n = 0;

        while (sl_mailbox_take(d->commands, &command)) {
                obey(d, &command);
                n++;
        }
        return n;
}
