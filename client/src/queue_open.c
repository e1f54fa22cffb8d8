/* SPDX-License-Identifier: Apache-2.0 */
#include "query.h"

#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define SPIN_NS        3000u                  /* of the first wait */
#define CLOSE_LIMIT_NS (5 * SL_NS_PER_SECOND) /* for a runtime that lives but does not answer */
#define CLOSE_SLICE_NS (100 * SL_NS_PER_MS)

/*
 * Who answers needs a core as well. A thread that is kept to one core may spin: where that is the dispatcher's own, the runtime says so
 * (sl_spin_helps).
 */
static bool has_cpus_to_spin(void)
{
        return sysconf(_SC_NPROCESSORS_ONLN) > 1;
}

void sl_queue_bind(struct starling_queue *queue)
{
        const struct sl_connection *connection = &queue->client->connection;
        const struct sl_catalogue *catalogue = connection->catalogue.base;

        sl_queue_map(&queue->map, &connection->shape, &connection->offsets, queue->number, connection->request.base,
                connection->response.base);
        queue->dispatcher = &catalogue->dispatchers[connection->dispatcher_of_queue[queue->number]];
        queue->submitter = (struct sl_submitter){0};
        queue->reaper = (struct sl_reaper){0};
        queue->epoch = queue->client->epoch;
        queue->armed = false;
}

void sl_queue_free(struct starling_queue *queue)
{
        if (!queue)
                return;
        sl_cleanup_fd(&queue->event_fd);
        sl_flights_deinit(&queue->flights);
        sl_queries_free(queue);
        free(queue);
}

static struct starling_queue *queue_new(struct starling_client *client, uint32_t number)
{
        struct starling_queue *queue = calloc(1, sizeof(*queue));

        if (!queue)
                return NULL;
        queue->client = client;
        queue->number = number;
        queue->event_fd = -1;
        queue->turns = sl_clock_ns() ^ (uint64_t)(uintptr_t)queue; /* of no other queue pair's */
        if (sl_flights_init(&queue->flights, client->connection.shape.depth, client->connection.shape.tensors) < 0) {
                sl_queue_free(queue);
                return NULL;
        }
        sl_queue_bind(queue);
        return queue;
}

/* The first queue pair that is closed, made if it never was open. */
static int take_slot(struct starling_client *client, struct starling_queue **ret_queue, struct sl_error *error)
{
        uint32_t n = client->connection.shape.n_queues;

        for (uint32_t i = 0; i < n; i++) {
                if (!client->queues[i])
                        client->queues[i] = queue_new(client, i);
                if (!client->queues[i])
                        return sl_error_set(error, ENOMEM, "no memory for queue pair %u", i);
                if (client->queues[i]->open)
                        continue;
                client->queues[i]->open = true;
                *ret_queue = client->queues[i];
                return 0;
        }
        return sl_error_set(error, EMFILE, "all %u queue pairs of this client are open", n);
}

int starling_queue_open(struct starling_client *client, struct starling_queue **ret_queue, struct starling_error *error)
{
        struct sl_error *text = sl_error_of(error);
        struct starling_queue *queue = NULL;

        if (sl_forked(&client->fork))
                return sl_error_set(text, ECHILD, "%s", starling_strerror(-ECHILD));
        if (client->connection.role != SL_ROLE_CLIENT)
                return sl_error_set(text, EPERM, "readers and administrators have no queue pairs");
        if (sl_client_gone(client))
                return sl_error_set(text, EPIPE, "%s", starling_strerror(-EPIPE));
        pthread_mutex_lock(&client->lock);
        int r = take_slot(client, &queue, text);
        pthread_mutex_unlock(&client->lock);
        if (r < 0)
                return r;
        queue->may_spin = has_cpus_to_spin();
        queue->spin_ns = SPIN_NS;
        queue->error.text[0] = '\0';
        *ret_queue = queue;
        return 0;
}

static void cancel_flying(struct starling_queue *queue)
{
        for (uint32_t tag = 0; tag < queue->flights.depth; tag++)
                if (queue->flights.by_tag[tag].state == SL_FLIGHT_FLYING)
                        starling_cancel(queue, queue->flights.by_tag[tag].id);
}

static void drain(struct starling_queue *queue)
{
        struct starling_completion completion;
        uint64_t start_ns = sl_clock_ns();

        while (sl_flights_flying(&queue->flights) > 0 && sl_clock_ns() - start_ns < CLOSE_LIMIT_NS) {
                sl_flights_drop_stash(&queue->flights);
                starling_wait(queue, &completion, 1, CLOSE_SLICE_NS);
        }
        sl_flights_drop_stash(&queue->flights);
}

struct starling_queue *starling_queue_close(struct starling_queue *queue)
{
        if (!queue || sl_forked(&queue->client->fork))
                return NULL;
        cancel_flying(queue);
        drain(queue);
        sl_queue_disarm(queue);
        sl_cleanup_fd(&queue->event_fd);
        queue->event_fd = -1;
        pthread_mutex_lock(&queue->client->lock);
        queue->abandoned = sl_flights_flying(&queue->flights) > 0;
        queue->open = queue->abandoned;
        pthread_mutex_unlock(&queue->client->lock);
        return NULL;
}

uint32_t starling_queue_in_flight(const struct starling_queue *queue)
{
        return sl_flights_unreaped(&queue->flights);
}

const char *starling_queue_error(const struct starling_queue *queue)
{
        return queue->error.text;
}
