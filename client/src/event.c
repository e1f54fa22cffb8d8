/* SPDX-License-Identifier: Apache-2.0 */
#include "queue.h"

#include "base/cleanup.h"

#include <errno.h>
#include <sys/epoll.h>

/*
 * The descriptor is an epoll instance of the queue pair's own, which watches two things: the connection's completion bell and
 * the end of file on the socket. The bell is one for all queue pairs and is never read: watched by edge, each ring of the
 * runtime makes every instance readable once, so that no loop takes a wake-up away from another.
 */
static int watch(int epoll, int fd, uint32_t events)
{
        struct epoll_event event = {.events = events};

        return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0 && errno != EEXIST ? -errno : 0;
}

int sl_queue_watch(struct starling_queue *queue)
{
        const struct sl_connection *connection = &queue->client->connection;

        if (queue->event_fd < 0)
                return 0;

        int r = watch(queue->event_fd, connection->completion, EPOLLIN | EPOLLET);

        return r < 0 ? r : watch(queue->event_fd, connection->socket, EPOLLRDHUP);
}

void sl_queue_unwatch(struct starling_queue *queue)
{
        const struct sl_connection *connection = &queue->client->connection;

        if (queue->event_fd < 0)
                return;
        epoll_ctl(queue->event_fd, EPOLL_CTL_DEL, connection->completion, NULL);
        epoll_ctl(queue->event_fd, EPOLL_CTL_DEL, connection->socket, NULL);
}

/* True when the socket has ended. */
static bool forget_edges(int epoll)
{
        struct epoll_event events[2];
        int n = epoll_wait(epoll, events, 2, 0);
        bool ended = false;

        for (int i = 0; i < n; i++)
                ended = ended || (events[i].events & (EPOLLRDHUP | EPOLLHUP));
        return ended;
}

int starling_queue_fd(struct starling_queue *queue)
{
        if (sl_forked(&queue->client->fork))
                return -ECHILD;
        if (queue->event_fd >= 0)
                return queue->event_fd;
        if (queue->client->connection.completion < 0)
                return -ENOTSUP;
        queue->event_fd = epoll_create1(EPOLL_CLOEXEC);
        if (queue->event_fd < 0)
                return -errno;

        int r = sl_queue_watch(queue);

        if (r < 0) {
                sl_cleanup_fd(&queue->event_fd);
                queue->event_fd = -1;
                return r;
        }
        return queue->event_fd;
}

/* W1 and W2 of doorbell.h; W3 is the caller's event loop. */
int starling_queue_arm(struct starling_queue *queue)
{
        if (sl_forked(&queue->client->fork))
                return -ECHILD;
        if (queue->event_fd < 0)
                return -EINVAL;
        if (forget_edges(queue->event_fd))
                sl_connection_check(&queue->client->connection);
        atomic_store(&queue->map.request->sleep, SL_ASLEEP_FD); /* W1 */
        queue->armed = true;

        bool ready = sl_tail_is_beyond(atomic_load(&queue->map.response->tail) /* W2, E2 */, queue->reaper.head);

        if (!ready && !sl_client_gone(queue->client) && queue->flights.n_stashed == 0)
                return 0;
        sl_queue_disarm(queue);
        return ready || sl_flights_unreaped(&queue->flights) > 0 ? 1 : -EPIPE;
}
