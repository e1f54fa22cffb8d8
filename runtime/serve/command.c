#include "dispatcher_state.h"

#include "worker.h"

#include <errno.h>
#include <string.h>

void sl_event_send(struct sl_dispatcher *d, enum sl_event_kind kind, void *pointer, int32_t status, const char *text)
{
        struct sl_event event = {.kind = kind, .status = status, .pointer = pointer};

        if (text)
                strncpy(event.text, text, sizeof(event.text) - 1);
        /* There is room: control gives every channel, ensemble and model at most two events, and made the mailbox for all. */
        sl_mailbox_put(d->events, &event);
        sl_bell_ring(d->options.control, d->wait);
}

static void report_drained(struct sl_dispatcher *d)
{
        if (!d->closing || d->in_flight || d->drain_reported)
                return;
        d->drain_reported = true;
        sl_event_send(d, SL_EVENT_DRAINED, NULL, 0, NULL);
}

static void unlink_ensemble(struct sl_dispatcher *d, struct sl_ensemble *ensemble)
{
        struct sl_ensemble **link = &d->ensembles;

        while (*link != ensemble)
                link = &(*link)->next;
        *link = ensemble->next;
}

void sl_ensemble_settle(struct sl_dispatcher *d, struct sl_ensemble *ensemble)
{
        report_drained(d);
        if (!ensemble->retired || ensemble->in_flight)
                return;
        unlink_ensemble(d, ensemble);
        sl_event_send(d, SL_EVENT_ENSEMBLE_RETIRED, ensemble, 0, NULL);
}

static void remove_queue(struct sl_queue **queues, uint32_t *n, const struct sl_queue *queue)
{
        for (uint32_t i = 0; i < *n; i++)
                if (queues[i] == queue) {
                        queues[i] = queues[--*n];
                        return;
                }
}

void sl_channel_settle(struct sl_dispatcher *d, struct sl_channel *channel)
{
        if (!channel->leaving || channel->in_flight)
                return;
        for (uint32_t i = 0; i < channel->shape.n_queues; i++) {
                remove_queue(d->hot, &d->n_hot, &channel->queues[i]);
                remove_queue(d->cold, &d->n_cold, &channel->queues[i]);
        }
        channel->leaving = false;
        sl_wait_unwatch(d->wait, (uint64_t)(uintptr_t)channel);
        sl_event_send(d, SL_EVENT_CHANNEL_GONE, channel, 0, NULL);
}

static void add_channel(struct sl_dispatcher *d, struct sl_channel *channel)
{
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
        channel->leaving = true;
        sl_channel_settle(d, channel);
}

static void retire(struct sl_dispatcher *d, uint32_t index)
{
        struct sl_ensemble *ensemble = d->served[index];

        d->served[index] = NULL;
        if (!ensemble)
                return;
        ensemble->retired = true;
        sl_ensemble_settle(d, ensemble);
}

static void serve(struct sl_dispatcher *d, struct sl_ensemble *ensemble)
{
        retire(d, ensemble->index);
        ensemble->next = d->ensembles;
        d->ensembles = ensemble;
        d->served[ensemble->index] = ensemble;
}

static void remove_model(struct sl_dispatcher *d, struct sl_model *model)
{
        struct sl_model **link = &d->models;

        while (*link != model)
                link = &(*link)->next;
        *link = model->next;
        sl_event_send(d, SL_EVENT_MODEL_GONE, model, 0, NULL);
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
        case SL_COMMAND_SERVE:
                serve(d, command->pointer);
                break;
        case SL_COMMAND_WITHDRAW:
                retire(d, command->index);
                break;
        case SL_COMMAND_ADD_MODEL: {
                struct sl_model *model = command->pointer;

                model->next = d->models;
                d->models = model;
                break;
        }
        case SL_COMMAND_REMOVE_MODEL:
                remove_model(d, command->pointer);
                break;
        case SL_COMMAND_CLOSE:
                d->closing = true;
                report_drained(d);
                break;
        case SL_COMMAND_CANCEL_ALL:
                cancel_all(d);
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
